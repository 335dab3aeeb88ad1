"""The store of these tests answers at once: they try every request of long work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.store_server import StoreServer, emptied, quick_store_server


@pytest.fixture(scope="session")
def _quick_server() -> Iterator[StoreServer]:
    with quick_store_server() as found:
        yield found


@pytest.fixture
def quick_server(_quick_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    """The store in memory: its bucket is empty, and nothing was asked of it."""
    return emptied(_quick_server, monkeypatch)


@pytest.fixture
def moto_server(_store_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    """moto's, as `server` is elsewhere."""
    return emptied(_store_server, monkeypatch)


@pytest.fixture
def server(quick_server: StoreServer) -> StoreServer:
    """The object store of these tests."""
    return quick_server
