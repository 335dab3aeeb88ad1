"""Items that agree with others in some fields: those that the language takes for equal."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hydro_core.plan.lookups import Lookup, RowDemand
from hydro_core.spark.store.lookups.conditions import MatchedRows, MatchingItems
from hydro_core.spark.store.schema import leaf_of
from hydro_core.types.arrow import to_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import FieldPath
from hydro_core.types.values import canonical

NAN, OTHER_NAN = float("nan"), -float("nan")
VALUES: dict[str, list[Any]] = {
    "long": [None, 0, -1, 1 << 62, -(1 << 63)],
    "byte": [None, 0, -1, 127],
    "double": [None, 0.0, -0.0, 1.5, NAN, OTHER_NAN, float("inf"), 5e-324],
    "float": [None, 0.0, -0.0, 1.5, NAN],
    "string": [None, "", "a", "A", "a ", "é", "e\u0301", "\U0001f600", "\uffff"],
    "boolean": [None, True, False],
    "decimal(10,2)": [None, Decimal("0.00"), Decimal("-0.10"), Decimal("0.10")],
    "binary": [None, b"", b"\x00", b"a"],
}
FIELDS = [(("0",), ("0",)), (("1",), ("1",))]
STORED = pa.table({"item": [7, 7, None, 8, 7], "t": [0, 1, 2, 3, 4]})


def found(
    items: list[Any],
    item: str,
    others: list[Any],
    of_others: str,
    fields: list[tuple[FieldPath, FieldPath]],
) -> list[int]:
    one, two = parse_ddl(item), parse_ddl(of_others)
    agreeing = MatchingItems(one, to_arrow(others, two), two, Lookup("others", tuple(fields)))
    stored = to_arrow(items, one)
    places = agreeing.places(lambda path: leaf_of(stored, one, path), len(items))
    return [int(place) for place in places]


@pytest.mark.parametrize("of", VALUES)
def test_values_are_equal_as_the_language_has_it(of: str) -> None:
    values = VALUES[of]
    for other in values:
        equal = [i for i, x in enumerate(values) if canonical(x) == canonical(other)]
        assert found(values, of, [other], of, [((), ())]) == equal, other


@pytest.mark.parametrize("seed", range(20))
def test_all_fields_are_to_equal_those_of_one_other(seed: int) -> None:
    rng = random.Random(seed)
    of = [rng.choice(list(VALUES)) for _ in range(2)]
    text = f"({of[0]}, {of[1]})"

    def some(count: int) -> list[Any]:
        return [tuple(rng.choice(VALUES[name]) for name in of) for _ in range(count)]

    items, others = some(60), some(6)
    there = {canonical(x) for x in others}
    wanted = [i for i, x in enumerate(items) if canonical(x) in there]
    assert found(items, text, others, text, FIELDS) == wanted


def test_a_field_within_an_item_that_is_missing_is_none() -> None:
    of = "(long, (long, string))"
    items = [(1, (2, "a")), (1, None), (1, (None, None)), (2, (2, "a")), None]
    fields = [(("0",), ("0",)), (("1", "0"), ("1", "0")), (("1", "1"), ("1", "1"))]
    assert found(items, of, [(1, None)], of, fields) == [1, 2]
    assert found(items, of, [None], of, fields) == [4]
    assert found(items, of, [(1, (2, "a"))], of, fields) == [0]


def test_integers_of_all_sizes_are_numbers() -> None:
    assert found([1, 2, None], "byte", [2, None], "long", [((), ())]) == [1, 2]


@pytest.mark.parametrize(
    ("one", "other"),
    [("long", "double"), ("decimal(10,2)", "decimal(12,2)"), ("array<long>", "array<long>")],
)
def test_what_is_not_compared_here_is_found(one: str, other: str) -> None:
    assert found([None, None], one, [None], other, [((), ())]) == [0, 1]


def test_without_fields_all_is_found_where_anything_came() -> None:
    item = parse_ddl("long")
    everything = frozenset({Lookup("a", ()), Lookup("not there", ())})

    def met(arrived: list[int], last_tick: bool = False) -> tuple[list[int | None], object]:
        batches = {"a": (pa.array(arrived, pa.int64()), item), "not there": (pa.nulls(0), item)}
        one = MatchedRows(RowDemand(everything, last_tick), item, batches, (1, 3))
        return one.of(STORED)["item"].to_pylist(), one.ticks

    assert met([1]) == ([7, None, 8], (1, 3))
    assert met([]) == ([], None)
    assert met([], last_tick=True) == ([8], (3, 3))


def test_of_the_last_tick_all_is_found_if_it_is_needed() -> None:
    item = parse_ddl("long")
    batches = {"a": (pa.array([7]), item)}
    needed = RowDemand(frozenset({Lookup("a", (((), ()),))}), last_tick=True)
    found = MatchedRows(needed, item, batches, (0, 3)).of(STORED)
    assert found.to_pydict() == {"item": [7, 7, 8], "t": [0, 1, 3]}
