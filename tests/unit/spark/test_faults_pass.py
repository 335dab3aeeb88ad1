"""What the machine does is told as that, and not taken for a past or a table that is lost."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake.exceptions import DeltaError

from hydro_core.errors import DataError, Diagnostic, HydroError, InfrastructureError
from hydro_core.spark.inputs.snapshot import LandingSource, Snapshot
from hydro_core.spark.store.delta import table
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.earlier_tables import held_at
from hydro_core.spark.store.ledger.records import Commit

BROKEN = InfrastructureError(Diagnostic("runtime", "the disk does not answer", help="see to it"))
LOST = DataError(Diagnostic("state", "a version is lost", help="restore it"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _fails(error: Exception) -> Any:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


def test_an_earlier_version_that_cannot_be_read_now_is_not_lost() -> None:
    commit = Commit(0, 0, 0, "a", {"o": 1}, {}, started=NOW, committed=NOW)
    store: Any = SimpleNamespace(tables={"o": SimpleNamespace(exists=True, files_at=_fails(LOST))})
    assert held_at(store, commit) is None
    store.tables["o"].files_at = _fails(BROKEN)
    with pytest.raises(InfrastructureError):
        held_at(store, commit)


def test_a_file_that_cannot_be_read_now_is_not_listed_without_its_rows() -> None:
    listing: Any = SimpleNamespace(described=lambda _, __, hashed: hashed(Path("a")))
    there = Snapshot("CSV", listing=listing)
    source: Any = SimpleNamespace(hashed=_fails(LOST), snapshot=lambda _: there)
    found = LandingSource.described(source, None, None)  # type: ignore[arg-type]
    assert found.listing is None
    source.hashed = _fails(BROKEN)
    with pytest.raises(InfrastructureError):
        LandingSource.described(source, None, None)  # type: ignore[arg-type]


def test_a_table_that_may_not_be_read_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec: Any = SimpleNamespace(name="o")
    stored = StoredTable(tmp_path, spec, checkpoint_interval=100)
    for words, told in (
        ("Generic LocalFileSystem error: Permission denied (os error 13)", "not the right"),
        ("Invalid table version: 7", "has lost its version 7"),
    ):
        monkeypatch.setattr(table, "opened_table", _fails(DeltaError(words)))
        with pytest.raises(HydroError, match=told) as caught:
            stored.files_at(7)
        assert isinstance(caught.value, InfrastructureError) == ("os error" in words)
