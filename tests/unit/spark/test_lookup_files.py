"""Rows of large files found by hashes beside the tables: those of a look at all rows, whatever has
become of the files by which they are found.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hydro_core.catalog.forms import Form
from hydro_core.plan.lookups import Lookup, RowDemand
from hydro_core.plan.tick_plan import Kind
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.lookups import lookup_files
from hydro_core.spark.store.lookups.conditions import MatchedRows
from hydro_core.spark.store.lookups.index_files import CheckedFile
from hydro_core.spark.store.lookups.lookup_files import LOOKUPS, LookupFiles
from hydro_core.spark.store.schema import TableSpec
from hydro_core.types.arrow import to_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType

NAN = float("nan")
VALUES: dict[str, list[Any]] = {
    "long": [None, 0, -1, 1 << 62, -(1 << 63)],
    "byte": [None, 0, -1, 127],
    "double": [None, 0.0, -0.0, 1.5, NAN, float("inf"), 5e-324],
    "float": [None, 0.0, -0.0, 1.5, NAN],
    "string": [None, "", "a", "A", "a ", "é", "\U0001f600", "a\0", "long" * 50],
    "boolean": [None, True, False],
    "decimal(10,2)": [None, Decimal("0.00"), Decimal("-0.10"), Decimal("0.10")],
    "decimal(38,0)": [None, Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(1)],
    "binary": [None, b"", b"\x00", b"a"],
    "date": [None, date(1, 1, 1), date(2026, 1, 1)],
    "timestamp": [None, datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, tzinfo=UTC)],
}
ROW = parse_ddl("name string, key long, within struct<part: long, text: string>")
BY_KEY = frozenset([Lookup("others", ((("key",), ("0",)),))])
BY_BOTH = frozenset([Lookup("others", ((("key",), ("0",)), (("within", "part"), ("1",))))])
OTHERS = parse_ddl("(long, long)")
PLENTY = 1 << 30


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_files, "INDEXED_ROWS", 1)


def a_row(rng: random.Random) -> dict[str, Any]:
    within = {"part": rng.choice([None, 0, 1, 2]), "text": rng.choice([None, "", "é" * 9])}
    return {
        "name": rng.choice([None, str(rng.random())]),
        "key": rng.choice([None, *range(30)]),
        "within": rng.choice([None, within]),
    }


def stored(place: Path, items: list[Any], of: ItemType, ticks: list[int]) -> DataFile:
    """A data file, and what the log tells of it."""
    path = place / "state" / "table" / f"part-{random.random()}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"item": to_arrow(items, of), "t": ticks}), path, row_group_size=64)
    return DataFile(path, path.stat().st_size, len(items), min(ticks), max(ticks))


def some(place: Path, rng: random.Random, rows: int) -> DataFile:
    ticks = [rng.randrange(10) for _ in range(rows)]
    return stored(place, [a_row(rng) for _ in range(rows)], ROW, ticks)


def met(found: frozenset[Lookup], others: list[Any], *, last_tick: bool = False) -> MatchedRows:
    known: dict[Any, tuple[Any, ItemType]] = {"others": (to_arrow(others, OTHERS), OTHERS)}
    return MatchedRows(RowDemand(found, last_tick=last_tick), ROW, known, (2, 8))


def gone_through(files: list[DataFile], wanted: MatchedRows) -> list[str]:
    tables = [wanted.of(pq.read_table(file.path)) for file in files]
    return sorted(repr(row) for table in tables for row in table.to_pylist())


def looked_up(by: LookupFiles, files: list[DataFile], wanted: MatchedRows) -> tuple[list[str], int]:
    """The rows that are met, and how many files were gone through for them."""
    schema = pq.read_schema(files[0].path)
    found, rest = by.met(files, schema, wanted)
    others = gone_through(list(rest), wanted)
    return sorted([*map(repr, found.to_pylist()), *others]), len(rest)


def kept(place: Path) -> list[Path]:
    return sorted((place / LOOKUPS).glob("[!.]*"))


@pytest.mark.parametrize("seed", range(30))
def test_the_same_rows_are_met(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    files = [some(tmp_path, rng, rng.choice([1, 7, 100, 3000])) for _ in range(rng.randrange(1, 4))]
    by = LookupFiles(tmp_path, PLENTY)
    for _ in range(3):
        others = [(rng.choice([None, *range(30)]), rng.choice([None, 0, 1])) for _ in range(3)]
        wanted = met(rng.choice([BY_KEY, BY_BOTH]), others, last_tick=rng.random() < 0.4)
        assert looked_up(by, files, wanted) == (gone_through(files, wanted), 0)
    assert kept(tmp_path)


@pytest.mark.parametrize("of", VALUES)
def test_equal_keys_of_all_types_are_found(of: str, tmp_path: Path) -> None:
    values, item = VALUES[of], parse_ddl(of)
    file = stored(tmp_path, values * 40, item, [3] * len(values) * 40)
    by = LookupFiles(tmp_path, PLENTY)
    for value in values:
        known: dict[Any, tuple[Any, ItemType]] = {"others": (to_arrow([value], item), item)}
        found = frozenset([Lookup("others", (((), ()),))])
        wanted = MatchedRows(RowDemand(found, last_tick=False), item, known, (0, 9))
        rows, through = looked_up(by, [file], wanted)
        assert rows == gone_through([file], wanted)
        assert (len(rows) >= 40, through) == (True, 0)


def _cut(file: Path, rng: random.Random) -> None:
    os.truncate(file, rng.randrange(file.stat().st_size))


def _flip(file: Path, rng: random.Random) -> None:
    content = bytearray(file.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    beside = file.with_name(".other")
    beside.write_bytes(content)
    beside.replace(file)


def _clear(file: Path, rng: random.Random) -> None:
    content = bytearray(file.read_bytes())
    at = rng.randrange(len(content)) & ~4095
    content[at : at + 4096] = bytes(len(content[at : at + 4096]))
    file.write_bytes(content)


def _exchange(file: Path, rng: random.Random) -> None:
    others = sorted(file.parent.glob("[!.]*"))
    file.write_bytes(rng.choice(others).read_bytes())


def _empty(file: Path, _: random.Random) -> None:
    file.write_bytes(b"")


def _longer(file: Path, _: random.Random) -> None:
    file.write_bytes(file.read_bytes() * 2)


@pytest.mark.parametrize("damage", [_cut, _flip, _clear, _exchange, _empty, _longer])
@pytest.mark.parametrize("opened", [True, False])
def test_damaged_files_give_no_wrong_row(
    damage: Callable[[Path, random.Random], None], opened: bool, tmp_path: Path
) -> None:
    rng = random.Random(damage.__name__)
    files = [some(tmp_path, rng, 1500), some(tmp_path, rng, 900)]
    by, through = LookupFiles(tmp_path, PLENTY), 0
    for _ in range(12):
        wanted = met(rng.choice([BY_KEY, BY_BOTH]), [(rng.randrange(30), 1)], last_tick=True)
        looked_up(by, files, met(BY_KEY, [(1, 1)]))
        looked_up(by, files, met(BY_BOTH, [(1, 1)]))
        damage(rng.choice(kept(tmp_path)), rng)
        if not opened:
            by = LookupFiles(tmp_path, PLENTY)
        rows, of = looked_up(by, files, wanted)
        assert rows == gone_through(files, wanted)
        through += of
    assert through  # some were seen to be damaged, and the data files gone through


def test_what_was_seen_to_be_damaged_is_made_again(tmp_path: Path) -> None:
    file = some(tmp_path, random.Random(1), 500)
    by, wanted = LookupFiles(tmp_path, PLENTY), met(BY_KEY, [(1, 1)])
    looked_up(by, [file], wanted)
    for one in kept(tmp_path):
        _empty(one, random.Random(1))
    assert looked_up(by, [file], wanted)[1] == 1
    assert looked_up(by, [file], wanted)[1] == 0


def test_a_file_that_takes_the_place_of_another_is_not_taken_for_it(tmp_path: Path) -> None:
    rng = random.Random(2)
    one, wanted = some(tmp_path, rng, 500), met(BY_KEY, [(3, 1)])
    looked_up(LookupFiles(tmp_path, PLENTY), [one], wanted)
    other = some(tmp_path, rng, 400)
    other.path.replace(one.path)
    now = DataFile(one.path, one.path.stat().st_size, 400, other.first, other.last)
    assert now.size != one.size
    assert looked_up(LookupFiles(tmp_path, PLENTY), [now], wanted)[0] == gone_through([now], wanted)


def _in_a_process(place: Path, file: DataFile, key: int) -> list[str]:
    lookup_files.INDEXED_ROWS = 1
    return looked_up(LookupFiles(place, PLENTY), [file], met(BY_KEY, [(key, 1)]))[0]


def test_several_processes_at_once(tmp_path: Path) -> None:
    file = some(tmp_path, random.Random(3), 20_000)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        found = list(pool.map(partial(_in_a_process, tmp_path, file), range(6)))
    assert found == [gone_through([file], met(BY_KEY, [(key, 1)])) for key in range(6)]
    assert len(kept(tmp_path)) == 2


def test_one_that_ends_while_it_writes_leaves_nothing_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, wanted = some(tmp_path, random.Random(4), 500), met(BY_KEY, [(1, 1)])

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", end)
        patched.setattr(Path, "unlink", lambda *_, **__: None)  # nothing is tidied up either
        with pytest.raises(KeyboardInterrupt):
            looked_up(LookupFiles(tmp_path, PLENTY), [file], wanted)
    [begun] = (tmp_path / LOOKUPS).iterdir()
    by = LookupFiles(tmp_path, PLENTY)
    assert looked_up(by, [file], wanted) == (gone_through([file], wanted), 0)
    os.utime(begun, (0, 0))
    by.keep([file])
    assert not begun.exists()
    assert len(kept(tmp_path)) == 2


def test_where_nothing_can_be_written_files_are_gone_through(tmp_path: Path) -> None:
    (tmp_path / LOOKUPS).write_text("no directory")
    file, wanted = some(tmp_path, random.Random(5), 500), met(BY_KEY, [(1, 1)])
    by = LookupFiles(tmp_path, PLENTY)
    for _ in range(2):
        assert looked_up(by, [file], wanted) == (gone_through([file], wanted), 1)


def test_no_more_is_kept_than_may_be(tmp_path: Path) -> None:
    rng, wanted = random.Random(6), met(BY_KEY, [(1, 1)])
    files = [some(tmp_path, rng, 3000) for _ in range(4)]
    by = LookupFiles(tmp_path, 900_000)
    rows, through = looked_up(by, files, wanted)
    assert rows == gone_through(files, wanted)
    assert 0 < through < 4
    assert sum(one.stat().st_size for one in kept(tmp_path)) <= 900_000
    nothing = LookupFiles(tmp_path / "other", 0)
    assert looked_up(nothing, files, wanted) == (rows, 4)


def test_they_go_with_their_data_files(tmp_path: Path) -> None:
    rng, wanted = random.Random(7), met(BY_KEY, [(1, 1)])
    one, other = some(tmp_path, rng, 300), some(tmp_path, rng, 300)
    by = LookupFiles(tmp_path, PLENTY)
    looked_up(by, [one, other], wanted)
    before = kept(tmp_path)
    by.keep([other])
    assert len(kept(tmp_path)) == len(before) // 2
    assert looked_up(by, [other], wanted) == (gone_through([other], wanted), 0)
    by.remove_all()
    assert not (tmp_path / LOOKUPS).exists()


def test_a_data_file_that_is_broken_is_told_by_who_goes_through_it(tmp_path: Path) -> None:
    file = some(tmp_path, random.Random(8), 300)
    schema = pq.read_schema(file.path)
    file.path.write_bytes(b"PAR1 and nothing else PAR1")
    found, rest = LookupFiles(tmp_path, PLENTY).met([file], schema, met(BY_KEY, [(1, 1)]))
    assert (found.num_rows, list(rest)) == (0, [file])


def test_rows_with_arrays_are_gone_through(tmp_path: Path) -> None:
    item = parse_ddl("key long, names array<string>")
    file = stored(tmp_path, [{"key": n, "names": ["a"]} for n in range(50)], item, [3] * 50)
    known: dict[Any, tuple[Any, ItemType]] = {"others": (to_arrow([(4, 0)], OTHERS), OTHERS)}
    wanted = MatchedRows(RowDemand(BY_KEY), item, known, (0, 9))
    assert looked_up(LookupFiles(tmp_path, PLENTY), [file], wanted) == (
        gone_through([file], wanted),
        1,
    )


def test_little_of_a_large_file_is_looked_at(tmp_path: Path) -> None:
    rows = 100_000
    items = [{"name": f"name {n}", "key": n, "within": None} for n in range(rows)]
    file = stored(tmp_path, items, ROW, [3] * rows)
    wanted = met(BY_KEY, [(n, 0) for n in (5, 70_000, 99_999)])
    LookupFiles(tmp_path, PLENTY).met([file], pq.read_schema(file.path), wanted)
    by = LookupFiles(tmp_path, PLENTY)
    found, rest = by.met([file], pq.read_schema(file.path), wanted)
    assert [row["item"]["key"] for row in found.to_pylist()] == [5, 70_000, 99_999]
    assert not rest
    opened: list[CheckedFile] = list(by._open.values())
    looked_at = sum(int(one.pages_checked) for one in opened)
    all_pages = sum(one.stat().st_size for one in kept(tmp_path)) // 4096
    assert looked_at < all_pages // 10


def test_rows_that_are_looked_up_are_not_gone_through(tmp_path: Path) -> None:
    rng = random.Random(9)
    files = [some(tmp_path, rng, 400), some(tmp_path, rng, 300)]
    spec = TableSpec("state/table", "state", "table", ROW, False, Form.GROWTH, Kind.E, "")
    table = StoredTable(tmp_path, spec, checkpoint_interval=10)
    table.files = lambda: files  # type: ignore[method-assign]
    by = LookupFiles(tmp_path, 1)
    assert by.gone_through(table) == 0
    looked_up(by, files, met(BY_KEY, [(1, 1)]))
    assert by.gone_through(table) == 700  # there was no room
    assert LookupFiles(tmp_path, 0).gone_through(table) == 700
