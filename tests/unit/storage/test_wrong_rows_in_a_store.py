"""Rows that do not fit are read of a bucket as they are of a directory: which, and where."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.support.store_server import Mirror, StoreServer
from tests.unit.files.test_wrong_rows import read, right, wrong

CSV = (
    b"user,day,amount,due\nann,2026-01-01,1,2026-02-01\nbob,2026-01-02,x,\n"
    b"ann,1\n\xff,2026-01-03,5,\ndan,2026-01-04,99999999999999999999,\n"
)
LINES = [
    {"user": "ann", "day": "2026-01-01", "amount": 1, "due": None},
    {"user": "bob", "day": "2026-01-02", "amount": "x"},
    {"user": None, "day": "2026-01-02", "amount": 3},
    "no row",
    {"user": "cid", "day": "soon", "amount": 3},
]


def _json(path: Path) -> None:
    lines = [json.dumps(line) if isinstance(line, dict) else line for line in LINES]
    (path / "a.jsonl").write_text("\n".join(lines))


def _csv(path: Path) -> None:
    (path / "a.csv").write_bytes(CSV)
    with gzip.open(path / "b.csv.gz", "wb") as packed:
        packed.write(CSV)


def _table() -> pa.Table:
    return pa.table(
        {
            "user": ["ann", None, "cid"],
            "day": ["2026-01-01", "2026-01-02", "2026-01-02"],
            "amount": ["1", "2", "x"],
            "due": pa.nulls(3, pa.string()),
        }
    )


def _parquet(path: Path) -> None:
    pq.write_table(_table(), path / "a.parquet")


def _delta(path: Path) -> None:
    write_deltalake(str(path), _table())


@pytest.mark.parametrize("write", [_json, _csv, _parquet, _delta])
def test_wrong_rows_are_the_same(
    write: Callable[[Path], None], server: StoreServer, tmp_path: Path
) -> None:
    local = tmp_path / "rows"
    local.mkdir()
    write(local)
    Mirror(server, local, "rows").sync()

    def found(at: Any) -> tuple[Any, Any]:
        rows = read(at)
        return right(rows), sorted(wrong(rows))

    here, there = found(local), found(server.at("rows"))
    assert here[1], "some rows are wrong"
    assert there == here
