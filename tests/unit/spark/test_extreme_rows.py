"""The rows with the least or the greatest value, of those whose keys stay: what a look at all rows
finds, of random logs, in files that are looked up and in those that are gone through.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hydro_core.catalog.forms import Form
from hydro_core.plan.lookups import RowDemand
from hydro_core.plan.stored_rows import ExtremeRows, Lookup
from hydro_core.plan.tick_plan import Kind
from hydro_core.spark.pipeline.jobs import leading_rows
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.lookups import lookup_files
from hydro_core.spark.store.lookups import search as extremes
from hydro_core.spark.store.lookups.conditions import MatchedRows
from hydro_core.spark.store.lookups.lookup_files import LOOKUPS, LookupFiles
from hydro_core.spark.store.lookups.search import LeadingRows, extreme_items
from hydro_core.spark.store.schema import TableSpec
from hydro_core.types.arrow import from_arrow, to_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.values import sort_key

NAN = float("nan")
VALUES: dict[str, list[Any]] = {
    "long": [0, -1, 3, 1 << 62, -(1 << 63)],
    "double": [0.0, -0.0, 1.5, -2.5, NAN, float("inf"), -float("inf"), 5e-324],
    "float": [0.0, 1.5, NAN, -1.5],
    "string": ["", "a", "A", "é", "\U0001f600", "\uffff"],
    "boolean": [True, False],
    "decimal(38,2)": [Decimal("0.00"), Decimal("-0.10"), Decimal(10) ** 35, Decimal("7.01")],
    "date": [date(1, 1, 1), date(2026, 1, 1)],
}
PLENTY = 1 << 30
KEYS = 40

Change = tuple[dict[str, Any], int, int]
"""A row, its tick, and how many copies come."""


def a_log(rng: random.Random, values: Sequence[Any], ticks: int) -> list[Change]:
    """Keys with a value each, which changes from tick to tick; some go."""
    there: dict[int, dict[str, Any]] = {}
    found: list[Change] = []
    for tick in range(ticks):
        for key in rng.sample(range(KEYS), rng.randrange(1, KEYS)):
            if key in there:
                found.append((there.pop(key), tick, -1))
            if rng.random() < 0.8:
                there[key] = {"k": key, "v": rng.choice([None, *values])}
                found.append((there[key], tick, 1))
    return found


def wanted(
    log: Sequence[Change], last: int, changing: set[int], *, greatest: bool, many: int = 1
) -> list[str]:
    """The rows that are there at a tick with the first values of those whose keys stay."""
    counts = Counter[str]()
    rows: dict[str, dict[str, Any]] = {}
    for row, tick, copies in log:
        if tick <= last:
            rows[shown(row)] = row
            counts[shown(row)] += copies
    there = [r for text, r in rows.items() if counts[text] > 0 and r["k"] not in changing]
    valued = [r for r in there if r["v"] is not None]
    if len(valued) < many:
        return []
    keys = sorted((sort_key(r["v"]) for r in valued), reverse=greatest)
    first = [one for one in keys if one in keys[:many]]
    return sorted(shown(r) for r in valued if sort_key(r["v"]) in first)


def shown(row: dict[str, Any]) -> str:
    value = row["v"]
    if isinstance(value, Decimal):
        value = f"{value:.2f}"
    elif isinstance(value, float):
        value += 0.0  # the two zeros are one
    return f"{value} of {row['k']}"


class Logged:
    """A log in files of a pipeline, some of which are looked up by files beside them."""

    def __init__(self, place: Path, item: ItemType, log: Sequence[Change], files: int) -> None:
        self.item, self.place = item, place
        (place / "state").mkdir(parents=True)
        spec = TableSpec("totals", "state", "x", item, False, Form.CHANGES, Kind.E, "")
        self.table = StoredTable(place, spec, checkpoint_interval=100)
        self.table.create()
        size = -(-len(log) // files)
        for start in range(0, len(log), size):
            self.table.append(self.rows(log[start : start + size]))
        self.lookup_files = LookupFiles(place, PLENTY)

    def rows(self, log: Sequence[Change]) -> pa.Table:
        """Changes as they are stored."""
        columns = [to_arrow([row for row, *_ in log], self.item)]
        columns += [pa.array([one[i] for one in log], pa.int64()) for i in (1, 2)]
        schema = self.table.spec.arrow_schema
        by_name = dict(zip(("item", "t", "n"), columns, strict=True))
        return pa.table([by_name[name] for name in schema.names], schema=schema)

    def found(
        self, last: int, changing: set[int], *, greatest: bool, many: int = 1
    ) -> list[str] | None:
        """What is found for a range after a tick that changes some keys."""
        beside = frozenset([Lookup("batch", ((("k",), ("k",)),))])
        rows = ExtremeRows("x", ("v",), greatest, (("k",),), beside, many)
        of_batch = parse_ddl("k long")
        batch = to_arrow([{"k": key} for key in changing], of_batch)
        met = MatchedRows(RowDemand(beside), self.item, {"batch": (batch, of_batch)}, (0, last))
        whole = pa.concat_tables([pq.read_table(f.path) for f in self.table.files()])
        whole = whole.cast(self.table.spec.arrow_schema)

        def take(one: ExtremeRows, count: int) -> LeadingRows | None:
            return leading_rows(self.table, self.lookup_files, (one, self.item), count, last)

        items = extreme_items(
            rows,
            self.item,
            take,
            lambda needed, known: MatchedRows(needed, self.item, known, (0, last)).of(whole),
            met,
        )
        return None if items is None else sorted(map(shown, from_arrow(items, self.item)))


@pytest.mark.parametrize("of", VALUES)
@pytest.mark.parametrize("large", [1, 60, PLENTY])
def test_what_comes_first_is_what_a_look_at_all_rows_finds(
    of: str, large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup_files, "INDEXED_ROWS", large)
    monkeypatch.setattr(extremes, "FIRST_TAKEN", 2)
    item, found_some = parse_ddl(f"k long, v {of}"), 0
    for seed in range(4):
        rng = random.Random(f"{of} {seed}")
        values = VALUES[of] if seed % 2 else list(VALUES[of][:2])
        log = a_log(rng, values, 6)
        logged = Logged(tmp_path / str(seed), item, log, files=rng.randrange(1, 5))
        for greatest in (True, False):
            changing = set(rng.sample(range(KEYS), rng.randrange(KEYS)))
            last = rng.randrange(3, 6)
            many = rng.choice([1, 1, 2, 5])
            right = wanted(log, last, changing, greatest=greatest, many=many)
            found = logged.found(last, changing, greatest=greatest, many=many)
            # Where too few have a value, all rows are read.
            assert found == (right or None), (seed, greatest, last, changing)
            found_some += bool(right)
        made = list((tmp_path / str(seed) / LOOKUPS).glob("*"))
        assert bool(made) == (large == 1) or large == 60
    assert found_some > 2


def test_rows_that_went_are_passed_by_until_one_is_there(tmp_path: Path) -> None:
    item = parse_ddl("k long, v long")
    log: list[Change] = [({"k": 0, "v": 5}, 0, 1), ({"k": 1, "v": 5}, 0, 1)]
    for value in range(10, 800):
        log += [({"k": 2, "v": value}, value, 1), ({"k": 2, "v": value}, value, -1)]
    logged = Logged(tmp_path, item, log, files=3)
    assert logged.found(900, set(), greatest=True) == ["5 of 0", "5 of 1"]
    assert logged.found(900, {0}, greatest=True) == ["5 of 1"]
    assert logged.found(900, {0, 1}, greatest=True) is None
    assert logged.found(500, set(), greatest=False) == ["5 of 0", "5 of 1"]


def test_a_damaged_order_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_files, "INDEXED_ROWS", 1)
    log: list[Change] = [({"k": key, "v": key * 7 % 40}, 0, 1) for key in range(40)]
    logged = Logged(tmp_path, parse_ddl("k long, v long"), log, files=1)
    first = logged.found(0, set(), greatest=True)
    for file in (tmp_path / LOOKUPS).glob("*"):
        file.write_bytes(file.read_bytes()[:-40] + b"x" * 40)
    again = [logged.found(0, set(), greatest=True) for _ in range(2)]
    assert again == [first, first] == [["39 of 17"]] * 2
