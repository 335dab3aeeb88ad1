"""Changes that cancel out within a data file: without them a log comes to the same."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hydro_core.plan.lookups import RowDemand
from hydro_core.plan.stored_rows import Lookup
from hydro_core.spark.store.cached_rows import RowCache
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.lookups import index_files as key_hashes
from hydro_core.spark.store.lookups import lookup_files
from hydro_core.spark.store.lookups import lookup_files as cancelled
from hydro_core.spark.store.lookups.conditions import MatchedRows
from hydro_core.spark.store.lookups.lookup_files import (
    LookupFiles,
    may_cancel,
    met_in,
    remaining_of_file,
    without_cancelled,
)
from hydro_core.types.arrow import from_arrow, to_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.values import canonical

NAN = float("nan")
ROW = parse_ddl("key long, at double, text string, tail struct<key: long>")
BY_KEY = frozenset([Lookup("others", ((("key",), ()),))])
BY_TAIL = frozenset([Lookup("others", ((("tail", "key"), ()),))])
KEY = parse_ddl("long")
KEYS = 20


def an_item(rng: random.Random) -> dict[str, Any]:
    key = rng.choice([None, *range(KEYS)])
    return {
        "key": key,
        "at": rng.choice([None, 0.0, -0.0, 1.5, NAN]),
        "text": rng.choice([None, "", "a"]),
        "tail": rng.choice([None, {"key": None}, {"key": key}]),
    }


def a_log(rng: random.Random, rows: int) -> list[tuple[Any, int, int]]:
    """Items that come and go, at ticks 0 to 9."""
    found: list[tuple[Any, int, int]] = []
    while len(found) < rows:
        item, at = an_item(rng), rng.randrange(10)
        found.append((item, at, rng.choice([1, 1, 2])))
        if rng.random() < 0.8:
            found.append((item, rng.randrange(at, 10), -1))
    return found


def as_table(log: list[tuple[Any, int, int]]) -> pa.Table:
    items = to_arrow([item for item, _, _ in log], ROW)
    return pa.table({"t": [t for _, t, _ in log], "item": items, "n": [n for _, _, n in log]})


def file_of(place: Path, rows: pa.Table) -> DataFile:
    path = place / f"part-{random.random()}.parquet"
    pq.write_table(rows, path)
    return DataFile(path, path.stat().st_size, rows.num_rows, 0, 9)


def summed(rows: pa.Table) -> Counter[Any]:
    """What the changes come to, by the definitions of the language."""
    found: Counter[Any] = Counter()
    items = from_arrow(rows["item"].combine_chunks(), ROW)
    counts: list[Any] = rows["n"].to_pylist()
    for item, n in zip(items, counts, strict=True):
        found[canonical(item)] += n
    return Counter({item: n for item, n in found.items() if n})


def met(
    found: frozenset[Lookup], keys: list[int | None], *, last_tick: bool = False
) -> MatchedRows:
    known: dict[Any, tuple[Any, ItemType]] = {"others": (to_arrow(keys, KEY), KEY)}
    return MatchedRows(RowDemand(found, last_tick=last_tick), ROW, known, (0, 9))


@pytest.mark.parametrize("seed", range(8))
def test_what_is_left_comes_to_the_same(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = as_table(a_log(rng, rng.choice([0, 1, 5, 300])))
    left = without_cancelled(rows)
    assert summed(left) == summed(rows)
    alive = set(summed(rows))
    assert {canonical(item) for item in from_arrow(left["item"].combine_chunks(), ROW)} == alive
    places = remaining_of_file(file_of(tmp_path, rows), rows.schema)
    of_file = rows.take(pa.array(places, pa.int64()))
    assert repr(of_file.to_pylist()) == repr(left.to_pylist())


def test_items_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of their changes together say nothing of each."""
    monkeypatch.setattr(key_hashes, "_mixed", lambda words: words * 0)
    monkeypatch.setattr(cancelled, "words_of", key_hashes.words_of)
    one, other = ({"key": k, "at": None, "text": None, "tail": None} for k in (1, 2))
    rows = as_table([(one, 0, 1), (other, 1, -1)])
    assert without_cancelled(rows).num_rows == 2


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("large", [False, True])
def test_what_is_met_comes_to_the_same(
    seed: int, large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(lookup_files, "INDEXED_ROWS", 1 if large else 1 << 15)
    tables = [as_table(a_log(rng, rng.choice([1, 20, 2000]))) for _ in range(3)]
    files = [file_of(tmp_path, table) for table in tables]
    by, held, left_out = LookupFiles(tmp_path, 1 << 30), RowCache(1 << 26), 0
    for _ in range(3):
        keys = [rng.choice([None, *range(KEYS)]) for _ in range(3)]
        wanted = met(rng.choice([BY_KEY, BY_TAIL]), keys)
        assert may_cancel(tables[0].schema, files, wanted)
        schema = tables[0].schema
        found, rest = by.met(files, schema, wanted, summed=True)
        more = list(met_in([file.path for file in rest], schema, wanted, held, summed=True))
        both = pa.concat_tables([found, *more])
        all_ = pa.concat_tables([wanted.of(table) for table in tables])
        assert summed(both) == summed(all_)
        assert both.num_rows <= all_.num_rows
        left_out += all_.num_rows - both.num_rows
    assert left_out > 0 or all(table.num_rows < 100 for table in tables)


def test_nothing_is_left_out_where_ticks_matter(tmp_path: Path) -> None:
    rows = as_table(a_log(random.Random(0), 10))
    file, may_cancel = file_of(tmp_path, rows), partial(cancelled.may_cancel, rows.schema)
    assert may_cancel([file], met(BY_KEY, [1]))
    assert not may_cancel([file], met(BY_KEY, [1], last_tick=True))
    unknown = DataFile(file.path, file.size, file.rows, None, None)
    assert not may_cancel([file, unknown], met(BY_KEY, [1]))
    later = DataFile(file.path, file.size, file.rows, 0, 10)
    assert not may_cancel([file, later], met(BY_KEY, [1]))


def test_items_with_arrays_all_stay() -> None:
    """Arrays are not compared by columns."""
    item = pa.struct([("key", pa.int64()), ("tags", pa.list_(pa.string()))])
    schema = pa.schema([("item", item), ("t", pa.int64()), ("n", pa.int32())])
    assert not may_cancel(schema, [], met(BY_KEY, [1]))


def test_texts_have_the_same_hashes_however_many_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = ["", "a", None, "ab" * 40, "", "b", "ä", "a", "", None, "c" * 7]
    column = pa.array(["before", *texts, "behind"], pa.string()).slice(1, len(texts))
    whole = key_hashes.words_of([column])
    assert whole[1] == whole[7] != whole[5]
    for count in (1, 2, 3, 50):
        monkeypatch.setattr(key_hashes, "BYTES_AT_ONCE", count)
        assert key_hashes.words_of([column]).tolist() == whole.tolist()
        nothing = pa.array(["", ""], pa.string())
        assert len(key_hashes.words_of([nothing])) == 2


def test_a_log_in_which_rows_only_came_has_none_that_cancel_out() -> None:
    def leaves() -> list[pa.Array[Any]]:
        raise AssertionError("nobody looks at the items")

    for sign in (1, -1):
        assert cancelled.remaining(leaves, sign * np.ones(3, np.int64)).tolist() == [0, 1, 2]
