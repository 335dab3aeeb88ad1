"""Rows at or after the first one of others with their key, in the order of the language."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hydro_core.plan.stored_rows import FoundRows, Lookup, LookupBounds, RowsBefore, RowsSinceLate
from hydro_core.spark.store.lookups.conditions import MatchingItems
from hydro_core.spark.store.lookups.search import late_items, rows_before
from hydro_core.spark.store.schema import leaf_of
from hydro_core.types.arrow import from_arrow, to_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.values import canonical, sort_key

NAN = float("nan")
VALUES: dict[str, list[Any]] = {
    "long": [None, 0, -1, 1 << 62, -(1 << 63)],
    "byte": [None, 0, -1, 127],
    "double": [None, 0.0, -0.0, 1.5, -1.5, NAN, float("inf"), float("-inf"), 5e-324],
    "float": [None, 0.0, -0.0, 1.5, NAN],
    "string": [None, "", "a", "A", "a ", "\uffff", "\U0001f600", "a\0"],
    "boolean": [None, True, False],
    "decimal(10,2)": [None, Decimal("0.00"), Decimal("-0.10"), Decimal("0.10")],
    "decimal(38,0)": [None, Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(1)],
    "binary": [None, b"", b"\x00", b"a", b"\xff"],
    "date": [None, date(1, 1, 1), date(2026, 1, 1)],
    "timestamp": [None, datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, tzinfo=UTC)],
}


def not_before(
    item: ItemType, rows: list[Any], others: list[Any], names: list[str], *, descending: bool
) -> list[int]:
    """By the definition: the rows that come before no first row of their key."""

    def place(row: Any) -> Any:
        return [sort_key(row[name]) for name in names]

    least: dict[Any, Any] = {}
    for other in others:
        key, at = canonical(other["k"]), place(other)
        if key not in least or (at > least[key] if descending else at < least[key]):
            least[key] = at
    found = []
    for i, row in enumerate(rows):
        first = least.get(canonical(row["k"]))
        if first is not None and (place(row) <= first if descending else place(row) >= first):
            found.append(i)
    return found


def found(
    item: ItemType, rows: list[Any], others: list[Any], names: list[str], *, descending: bool
) -> list[int]:
    since = LookupBounds(tuple(((n,), (n,)) for n in names), descending=descending)
    lookup = Lookup("others", ((("k",), ("k",)),), since)
    stored = to_arrow(rows, item)
    agreeing = MatchingItems(item, to_arrow(others, item), item, lookup)
    places = agreeing.places(lambda path: leaf_of(stored, item, path), len(rows))
    return [int(place) for place in places]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("of", VALUES)
def test_rows_of_all_types_go_as_the_language_has_it(of: str, descending: bool) -> None:
    item = parse_ddl(f"k long, at {of}, then long")
    rng = random.Random(of)

    def made(count: int) -> list[dict[str, Any]]:
        return [
            {
                "k": rng.choice([None, 0, 1]),
                "at": rng.choice(VALUES[of]),
                "then": rng.choice([None, 0, 1]),
            }
            for _ in range(count)
        ]

    for names in (["at"], ["at", "then"], ["then", "at"]):
        for _ in range(10):
            rows, others = made(60), made(rng.randrange(1, 4))
            wanted = not_before(item, rows, others, names, descending=descending)
            assert found(item, rows, others, names, descending=descending) == wanted


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("of", VALUES)
def test_rows_that_do_not_come_after_the_last_of_their_key_are_late(
    of: str, descending: bool
) -> None:
    item, tail = parse_ddl(f"k long, at {of}"), parse_ddl(f"key long, place {of}")
    rng = random.Random(of)
    slot = FoundRows("slot", Lookup("a", ()))
    late = RowsSinceLate("a", slot, ((("key",), ("k",)),), ((("place",), ("at",)),), descending)
    for count in (0, 1, 4, 4, 4):
        rows = [{"k": rng.choice([None, 0, 1]), "at": rng.choice(VALUES[of])} for _ in range(20)]
        tails = [{"key": rng.choice([None, 0]), "place": rng.choice(VALUES[of])}] * count
        found, _ = late_items(late, to_arrow(rows, item), item, to_arrow(tails, tail), tail)
        wanted = [
            row
            for row in rows
            for places in [[t["place"] for t in tails if t["key"] == row["k"]]]
            if any(not_after(row["at"], place, descending=descending) for place in places)
        ]
        assert repr(from_arrow(found, item)) == repr(from_arrow(to_arrow(wanted, item), item))


def not_after(one: Any, other: Any, *, descending: bool) -> bool:
    first, last = (other, one) if descending else (one, other)
    return bool(sort_key(first) <= sort_key(last))


def test_of_orders_that_are_not_compared_all_rows_are_found() -> None:
    item = parse_ddl("k long, at array<long>")
    rows = [{"k": 0, "at": [1]}, {"k": 0, "at": [3]}, {"k": 1, "at": [3]}]
    others = [{"k": 0, "at": [2]}]
    assert found(item, rows, others, ["at"], descending=False) == [0, 1]


def test_the_numbers_before_those_that_are_there() -> None:
    """A row that came and went again had a number that says nothing."""
    item = parse_ddl("k string, at long, number long")
    log = [("a", 7, 5, 1), ("a", 7, 5, -1), ("a", 7, 6, 1), ("a", 8, 7, 1), ("b", 1, 2, 1)]
    items = [{"k": k, "at": at, "number": n} for k, at, n, _ in log]
    rows = pa.table({"item": to_arrow(items, item), "n": [n for *_, n in log]})
    slot = FoundRows("slot", Lookup("others", ()))
    before = RowsBefore(slot, (("k",),), ("number",), 3)
    pairs, of = rows_before(before, rows, item)
    told = sorted((pair[0], pair[1]["k"]) for pair in from_arrow(pairs, of))
    assert told == [(1, "b"), (3, "a"), (4, "a"), (5, "a")]
    none, _ = rows_before(before, rows.slice(0, 0), item)
    assert len(none) == 0
