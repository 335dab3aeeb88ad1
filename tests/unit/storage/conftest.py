"""The store of these tests answers at once: they try every request of long work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hydro_core.storage.store import bucket_store
from tests.support.store_server import StoreServer, quick_store_server, with_credentials


@pytest.fixture(scope="session")
def _quick_server() -> Iterator[StoreServer]:
    with quick_store_server() as found:
        yield found


@pytest.fixture
def quick_server(_quick_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    """The store in memory: its bucket is empty, and nothing was asked of it."""
    with_credentials(monkeypatch)
    bucket_store.cache_clear()
    _quick_server.at("x").store.delete_below("")
    _quick_server.asked.clear()
    return _quick_server


@pytest.fixture
def moto_server(_store_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    """moto's, as `server` is elsewhere."""
    with_credentials(monkeypatch)
    bucket_store.cache_clear()
    _store_server.at("x").store.delete_below("")
    _store_server.asked.clear()
    return _store_server


@pytest.fixture
def server(quick_server: StoreServer) -> StoreServer:
    """The object store of these tests."""
    return quick_server
