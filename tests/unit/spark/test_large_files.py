"""Rows that are met in files too large to be held: those of memory, and little is read."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hydro_core.files.parquet import parquet_format
from hydro_core.plan.lookups import Lookup, RowDemand
from hydro_core.spark.store.cached_rows import RowCache
from hydro_core.spark.store.lookups.conditions import MatchedRows
from hydro_core.spark.store.lookups.lookup_files import met_in_files
from hydro_core.types.arrow import to_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType

ROW = parse_ddl("name string, key long, within struct<part: long, text: string>")
BY_KEY = frozenset([Lookup("others", ((("key",), ("0",)),))])
BY_BOTH = frozenset([Lookup("others", ((("key",), ("0",)), (("within", "part"), ("1",))))])
OTHERS = parse_ddl("(long, long)")


def a_row(rng: random.Random) -> dict[str, Any] | None:
    within = {"part": rng.choice([None, 0, 1, 2]), "text": str(rng.random())}
    key = rng.choice([None, *range(30)])
    return {"name": str(key), "key": key, "within": rng.choice([None, within])}


def stored(rng: random.Random, rows: int) -> pa.Table:
    items = to_arrow([a_row(rng) for _ in range(rows)], ROW)
    return pa.table({"item": items, "t": [rng.randrange(10) for _ in range(rows)]})


def dataset(place: Path, tables: list[pa.Table], group: int) -> ds.Dataset:
    for i, table in enumerate(tables):
        pq.write_table(table, place / f"{i}.parquet", row_group_size=group)
    paths = [str(place / f"{i}.parquet") for i in range(len(tables))]
    return ds.dataset(paths, schema=tables[0].schema, format=parquet_format())


def met(found: frozenset[Lookup], others: list[Any], *, last_tick: bool = False) -> MatchedRows:
    known: dict[Any, tuple[Any, ItemType]] = {"others": (to_arrow(others, OTHERS), OTHERS)}
    return MatchedRows(RowDemand(found, last_tick=last_tick), ROW, known, (2, 8))


def named(directory: Path) -> dict[str, Path]:
    return {str(file): file for file in directory.rglob("*.parquet")}


@pytest.mark.parametrize("seed", range(30))
def test_the_same_rows_are_met_as_in_memory(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    tables = [stored(rng, rng.choice([1, 7, 100])) for _ in range(rng.randrange(1, 4))]
    files = dataset(tmp_path, tables, rng.choice([1, 5, 64, 1000]))
    others = [(rng.choice([None, *range(30)]), rng.choice([None, 0, 1])) for _ in range(3)]
    wanted = met(rng.choice([BY_KEY, BY_BOTH]), others, last_tick=rng.random() < 0.3)
    rows = [wanted.of(table).combine_chunks() for table in tables]
    held = RowCache(rng.choice([0, 500, 1 << 20]))
    for _ in range(2):
        found = list(met_in_files(named(tmp_path), files, wanted, held))
        assert [r.to_pylist() for r in found] == [r.to_pylist() for r in rows if r.num_rows]


def test_of_other_row_groups_only_what_is_compared_is_read(tmp_path: Path) -> None:
    rows = [{"name": f"name {i}", "key": i, "within": {"part": i, "text": "x"}} for i in range(100)]
    table = pa.table({"item": to_arrow(rows, ROW), "t": [5] * 100})
    files = dataset(tmp_path, [table], 10)
    file = tmp_path / "0.parquet"
    content, footer = bytearray(file.read_bytes()), pq.read_metadata(file)
    broken = [i for i in range(footer.num_row_groups) if i not in (3, 7)]
    for chunk in (footer.row_group(i).column(j) for i in broken for j in range(footer.num_columns)):
        if chunk.path_in_schema not in ("item.key", "t"):
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            content[start : start + chunk.total_compressed_size] = bytes(
                chunk.total_compressed_size
            )
    file.write_bytes(content)
    with pytest.raises((OSError, pa.ArrowInvalid)):
        files.to_table()
    [found] = met_in_files(
        named(tmp_path), files, met(BY_KEY, [(75, 0), (31, 0)]), RowCache(1 << 20)
    )
    assert [row["item"]["name"] for row in found.to_pylist()] == ["name 31", "name 75"]
