"""A published table after random changes: its rows, its change feed, what its versions say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from hydro_core.catalog.forms import Form
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.store.outputs.changes import difference
from hydro_core.spark.store.outputs.published import PublishedTable
from hydro_core.spark.store.schema import TableSpec
from hydro_core.types.ddl import parse_ddl

COLUMNS = {
    "k": "string",
    "v": "long",
    "d": "double",
    "a": "array<long>",
    "n": "struct<a: long>",
    "t": "timestamp",
    "b": "binary",
}
CASES = [
    (("k", "v"), ("k",)),
    (("k", "v"), ()),
    (("k", "d", "a"), ()),
    (("d",), ()),
    (("k", "n", "v"), ("k",)),
    (("v", "t", "b"), ("v", "t")),
    (("t", "v"), ()),
]


@dataclass
class Noted:
    sequence: int

    @property
    def last(self) -> int:
        return self.sequence


def spec_of(columns: tuple[str, ...]) -> TableSpec:
    item = parse_ddl(", ".join(f"{name} {COLUMNS[name]}" for name in columns))
    return TableSpec("outputs/x", "output", "x", item, False, Form.CHANGES, Kind.G, "")


def row(rng: Random, columns: tuple[str, ...]) -> dict[str, Any]:
    values = {
        "k": rng.choice(["a", "b", None, "x'y", 'q"', "é"]),
        "v": rng.choice([None, 1, 2, 3]),
        "d": rng.choice([0.0, -0.0, float("nan"), None, 1.5]),
        "a": rng.choice([None, [], [1], [None, 2]]),
        "n": rng.choice([None, {"a": 1}, {"a": None}]),
        "t": rng.choice([None, 0, 86_400_000_000]),
        "b": rng.choice([None, b"", b"\xff"]),
    }
    return {name: values[name] for name in columns}


def counted(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))


@pytest.mark.parametrize(("columns", "key"), CASES)
def test_it_holds_what_it_is_told(
    columns: tuple[str, ...], key: tuple[str, ...], tmp_path: Path
) -> None:
    rng, there = Random(repr(columns)), list[dict[str, Any]]()
    table = PublishedTable(tmp_path, spec_of(columns), key)
    table.restate(table.schema.empty_table(), Noted(0))  # type: ignore[arg-type]
    for sequence in range(1, 25):
        before = pa.Table.from_pylist(there, schema=table.schema)
        for _ in range(rng.randint(0, 3)):
            new = row(rng, columns)
            if key:
                there = [r for r in there if any(r[k] != new[k] for k in key)]
            if key or rng.random() < 0.6 or not there:
                there += [new] * (1 if key else rng.randint(1, 3)) if rng.random() < 0.8 else []
            else:
                there.remove(rng.choice(there))
        now = pa.Table.from_pylist(there, schema=table.schema)
        commit: Any = Noted(sequence)
        if sequence % 7:
            assert table.apply(difference(now, before, table.columns), commit)
        else:
            table.restate(now, commit)
        # Another process opens it anew.
        table = PublishedTable(tmp_path, spec_of(columns), key)
        assert len(difference(table.rows(), now, table.columns)) == 0
        assert table.sequence() == sequence
    told = Counter[str]()
    feed = pa.table(DeltaTable(table.path).load_cdf(starting_version=0).read_all())
    for kind, change in zip(feed["_change_type"].to_pylist(), feed.to_pylist(), strict=True):
        comes = kind in ("insert", "update_postimage")
        told[repr({name: change[name] for name in columns})] += 1 if comes else -1
    left = {name: n for name, n in told.items() if n}
    assert left == counted(table.rows())


def test_other_rows_than_it_has_cannot_go(tmp_path: Path) -> None:
    table = PublishedTable(tmp_path, spec_of(("v",)))
    one, two = (pa.table({"v": [n]}, schema=table.schema) for n in (1, 2))
    commit: Any = Noted(0)
    table.restate(one, commit)
    assert not table.apply(difference(one, two, table.columns), commit)
    assert table.rows().to_pylist() == [{"v": 1}]


def test_columns_that_change_make_it_another(tmp_path: Path) -> None:
    table = PublishedTable(tmp_path, spec_of(("k", "v")), ("k",))
    commit: Any = Noted(0)
    table.restate(pa.table({"k": ["a"], "v": [1]}, schema=table.schema), commit)
    other = PublishedTable(tmp_path, spec_of(("k", "d")), ("k",))
    assert other.sequence() is None
    other.restate(pa.table({"k": ["a"], "d": [0.5]}, schema=other.schema), commit)
    assert DeltaTable(table.path).to_pyarrow_table().to_pylist() == [{"k": "a", "d": 0.5}]
    assert DeltaTable(table.path).metadata().configuration["delta.enableChangeDataFeed"] == "true"


def test_columns_in_another_order_make_it_another(tmp_path: Path) -> None:
    table = PublishedTable(tmp_path, spec_of(("k", "v", "d")))
    rows = pa.table({"k": ["a"], "v": [1], "d": [0.5]}, schema=table.schema)
    table.restate(rows, Noted(0))  # type: ignore[arg-type]
    for sequence, order in enumerate([("d", "k", "v"), ("v", "d", "k"), ("k", "v", "d")], 1):
        table = PublishedTable(tmp_path, spec_of(order))
        table.restate(rows.select(order), Noted(sequence))  # type: ignore[arg-type]
        assert table.sequence() == sequence
        assert tuple(DeltaTable(table.path).to_pyarrow_table().column_names) == order
        assert table.rows().to_pylist() == rows.select(order).to_pylist()


def test_small_files_are_joined(tmp_path: Path) -> None:
    table = PublishedTable(tmp_path, spec_of(("v",)))
    rows = table.schema.empty_table()
    table.restate(rows, Noted(0))  # type: ignore[arg-type]
    for sequence in range(1, 40):
        more = pa.table({"v": [sequence]}, schema=table.schema)
        table.apply(difference(more, rows, table.columns), Noted(sequence))  # type: ignore[arg-type]
        assert table.sequence() == sequence
    assert len(DeltaTable(table.path).file_uris()) < 20
    assert len(table.rows()) == 39
    table.compact(keep_hours=0)
    assert table.sequence() == 39
    assert len(list(tmp_path.rglob("part-*.parquet"))) == 1
