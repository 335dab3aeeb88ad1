"""What is counted as added and removed is what bags of rows, tick by tick, say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from hydro_core.catalog.forms import Form
from hydro_core.spark.frames.leaf import table_frame
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.store.schema import TableSpec
from hydro_core.types.ddl import parse_ddl
from hydrotick.quality.changed import ChangedRows, changed
from tests.support.selection import alternately_slow

LAST = 5
ITEM = parse_ddl("user string, at struct<x: double, tags: array<string>>")


@dataclass
class Rows:
    """A store of one table."""

    table: pa.Table
    of: TableSpec
    held_rows: int = 1_000

    def rows_within(self, _: str, first: int, last: int) -> int:
        return self._within(first, last).num_rows

    def pieces(self, _: str, first: int, last: int) -> Iterator[pa.Table]:
        rows = self._within(first, last)
        yield rows.slice(0, 2)
        yield rows.slice(2)

    def frame(self, spark: SparkSession, _: str, first: int, last: int) -> DataFrame | None:
        rows = self._within(first, last)
        return table_frame(spark, rows, self.of.spark_schema) if rows.num_rows else None

    def _within(self, first: int, last: int) -> pa.Table:
        ticks = self.table["tick"].to_pylist()
        return self.table.filter(pa.array([first <= tick <= last for tick in ticks], pa.bool_()))


def no_session() -> SparkSession:
    raise AssertionError("few rows are compared here")


def spec(form: Form, *, ordered: bool = False) -> TableSpec:
    kind = Kind.G if form is Form.CHANGES else Kind.E
    return TableSpec("outputs/o", "output", "o", ITEM, ordered, form, kind, "")


def item(number: int) -> dict[str, Any]:
    user = None if number == 0 else f"u{number // 4}"
    at = None if number == 1 else {"x": number % 2 / 2, "tags": [None, "t"][: number % 4]}
    return {"user": user, "at": at}


def rows_of(random: Random) -> list[list[int]]:
    """The items of each tick, by their numbers."""
    return [[random.randrange(6) for _ in range(random.randrange(4))] for _ in range(LAST + 1)]


def wanted(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> ChangedRows:
    pairs = [(Counter(old), Counter(new)) for old, new in zip(before, after, strict=True)]
    return ChangedRows(
        sum((new - old).total() for old, new in pairs),
        sum((old - new).total() for old, new in pairs),
    )


def parts(first: int) -> list[range]:
    middle = (first + LAST + 1) // 2
    return [range(first, middle), range(middle, LAST + 1)]


def ordered_rows(random: Random) -> tuple[tuple[Any, Any, TableSpec, list[range]], ChangedRows]:
    """Two stores of rows in an order, as `changed` takes them, and how they differ."""
    before, after = rows_of(random), rows_of(random)
    ordered = spec(Form.GROWTH, ordered=True)

    def stored(ticks: Sequence[Sequence[int]]) -> Any:
        rows = [
            {"tick": tick, **item(number), "position": position}
            for tick, items in enumerate(ticks)
            for position, number in enumerate(random.sample(items, len(items)))
        ]
        return Rows(pa.Table.from_pylist(rows, schema=ordered.arrow_schema), ordered)

    return (stored(before), stored(after), ordered, parts(0)), wanted(before, after)


def logs(random: Random) -> tuple[tuple[Any, Any, TableSpec, list[range]], ChangedRows]:
    """The same of logs: each has, at every tick, the rows that its changes up to then add up to."""
    first = random.randrange(LAST)
    before = rows_of(random)
    after = [*before[:first], *rows_of(random)[first:]]
    log = spec(Form.CHANGES)

    def stored(ticks: Sequence[Sequence[int]]) -> Any:
        rows: list[dict[str, Any]] = []
        there = Counter[int]()
        for tick, items in enumerate(ticks):
            now = Counter(items)
            rows += [
                {"tick": tick, **item(number), "copies": now[number] - there[number]}
                for number in {*there, *now}
                if now[number] != there[number]
            ]
            there = now
        return Rows(pa.Table.from_pylist(rows, schema=log.arrow_schema), log)

    return (stored(before), stored(after), log, parts(first)), wanted(before, after)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("made", [ordered_rows, logs])
def test_what_ticks_have_changed(made: Any, seed: int) -> None:
    given, found = made(Random(seed))
    assert changed(*given, no_session) == found


@pytest.mark.spark
@pytest.mark.parametrize(
    ("made", "seed"),
    alternately_slow([ordered_rows, logs], range(2)),
)
def test_executors_tell_the_same(spark: SparkSession, made: Any, seed: int) -> None:
    given, found = made(Random(seed))
    given[1].held_rows = 0
    assert changed(*given, lambda: spark) == found


def test_nothing_is_unchanged() -> None:
    for form in (Form.GROWTH, Form.CHANGES):
        empty: Any = Rows(spec(form).arrow_schema.empty_table(), spec(form))
        assert str(changed(empty, empty, spec(form), parts(0), no_session)) == "unchanged"
