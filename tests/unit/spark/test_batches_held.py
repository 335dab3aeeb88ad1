"""Rows of landed files in memory: what is new is read, and what is too much is not held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, write_deltalake

from hydro_core.spark.store.cached_rows import RowCache

COLUMNS = ("user", "tick")


def append(path: Path, tick: int, rows: int = 1000) -> None:
    users = [f"user {i}" for i in range(rows)]
    write_deltalake(path, pa.table({"tick": [tick] * rows, "user": users}), mode="append")


def files(path: Path) -> ds.Dataset:
    found: Any = DeltaTable(path).to_pyarrow_dataset()
    return found


class Counting(RowCache):
    """Counts the files that it reads."""

    read = 0

    def _read(self, *given: Any) -> pa.Table:
        self.read += 1
        return super()._read(*given)


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    held = Counting(1 << 20)
    for tick in range(3):
        append(tmp_path, tick)
        for _ in range(2):
            rows = held.rows(tmp_path.joinpath, files(tmp_path), COLUMNS)
            assert sorted(set(rows.to_table()["tick"].to_pylist())) == list(range(tick + 1))
        assert held.read == tick + 1
    held.rows(tmp_path.joinpath, files(tmp_path), ("user",))
    assert held.read == 6


def test_what_is_too_large_is_read_from_its_files(tmp_path: Path) -> None:
    append(tmp_path, 0)
    held = Counting(100)
    table = files(tmp_path)
    assert held.rows(tmp_path.joinpath, table, COLUMNS) is table
    assert not held.read


@pytest.mark.parametrize("most", [80_000, 1 << 20])
def test_no_more_is_held_than_may_be(tmp_path: Path, most: int) -> None:
    held = Counting(most)
    for table in range(4):
        append(tmp_path / str(table), 0)
    for _ in range(2):
        for table in range(4):
            path = tmp_path / str(table)
            assert held.rows(path.joinpath, files(path), COLUMNS).count_rows() == 1000
        assert held._held._bytes == sum(t.nbytes for t in held._held._values.values()) <= most
    assert held.read == (4 if most > 80_000 else 8)


def test_a_table_in_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    held = Counting(1 << 20)
    append(tmp_path, 0)
    held.rows(tmp_path.joinpath, files(tmp_path), COLUMNS)
    rows = pa.table({"tick": [7], "user": ["ann"]})
    write_deltalake(tmp_path, rows, mode="overwrite")
    assert held.rows(tmp_path.joinpath, files(tmp_path), COLUMNS).to_table().num_rows == 1
