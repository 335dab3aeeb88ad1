"""What is counted as added and removed is what bags of rows, tick by tick, say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from hydro_core.catalog.forms import Form
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.store.schema import TableSpec
from hydro_core.types.ddl import parse_ddl
from hydrotick.quality.changed import Changed, changed

LAST = 5
ITEM = parse_ddl("user string, at struct<x: double, tags: array<string>>")


@dataclass
class Rows:
    """A store of one table."""

    table: pa.Table

    def arrow(self, _: str, first: int, last: int) -> pa.Table:
        ticks = self.table["tick"].to_pylist()
        return self.table.filter(pa.array([first <= tick <= last for tick in ticks], pa.bool_()))


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


def wanted(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> Changed:
    pairs = [(Counter(old), Counter(new)) for old, new in zip(before, after, strict=True)]
    return Changed(
        sum((new - old).total() for old, new in pairs),
        sum((old - new).total() for old, new in pairs),
    )


def parts(first: int) -> list[range]:
    middle = (first + LAST + 1) // 2
    return [range(first, middle), range(middle, LAST + 1)]


@pytest.mark.parametrize("seed", range(40))
def test_rows_of_ticks(seed: int) -> None:
    random = Random(seed)
    before, after = rows_of(random), rows_of(random)
    ordered = spec(Form.GROWTH, ordered=True)

    def stored(ticks: Sequence[Sequence[int]]) -> Any:
        rows = [
            {"tick": tick, **item(number), "position": position}
            for tick, items in enumerate(ticks)
            for position, number in enumerate(random.sample(items, len(items)))
        ]
        return Rows(pa.Table.from_pylist(rows, schema=ordered.arrow_schema))

    found = changed(stored(before), stored(after), ordered, parts(0))
    assert found == wanted(before, after)


@pytest.mark.parametrize("seed", range(40))
def test_logs_of_changes(seed: int) -> None:
    """A log has, at every tick, the rows that its changes up to then add up to."""
    random = Random(seed)
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
        return Rows(pa.Table.from_pylist(rows, schema=log.arrow_schema))

    assert changed(stored(before), stored(after), log, parts(first)) == wanted(before, after)


def test_nothing_is_unchanged() -> None:
    for form in (Form.GROWTH, Form.CHANGES):
        empty: Any = Rows(spec(form).arrow_schema.empty_table())
        assert str(changed(empty, empty, spec(form), parts(0))) == "unchanged"
