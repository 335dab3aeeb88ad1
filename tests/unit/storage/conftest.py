"""A store for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hydro_core.storage.store import bucket_store
from tests.support.store_server import StoreServer, store_server, with_credentials


@pytest.fixture(scope="module")
def _server() -> Iterator[StoreServer]:
    with store_server() as server:
        yield server


@pytest.fixture
def server(_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    """A server whose bucket is empty."""
    with_credentials(monkeypatch)
    bucket_store.cache_clear()
    _server.at("x").store.delete_below("")
    _server.asked.clear()
    return _server
