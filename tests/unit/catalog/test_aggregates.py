"""Aggregates: their types are Spark's."""

from __future__ import annotations

import pytest

from hydro_core.catalog.aggregates import AGGREGATES, NAMES, aggregate_type
from hydro_core.catalog.spec import Aggregate, Args, TypeProblem
from hydro_core.optimize.rules.aggregates import facts_of
from hydro_core.types.ddl import parse_ddl, to_ddl

ROW = parse_ddl(
    "s string, b boolean, i int, l long, f float, d double, e decimal(10, 2), w decimal(38, 10)"
)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("count", "long"),
        ("count s", "long"),
        ("count_distinct s l", "long"),
        ("sum i", "long"),
        ("sum f", "double"),
        ("sum e", "decimal(20,2)"),
        ("sum w", "decimal(38,10)"),
        ("avg l", "double"),
        ("avg e", "decimal(14,6)"),
        ("avg w", "decimal(38,14)"),
        ("min s", "string"),
        ("max e", "decimal(10,2)"),
        ("min_by s l", "string"),
        ("max_by l d", "long"),
        ("first s", "string"),
        ("any_value b", "boolean"),
        ("collect_list i", "array<int>"),
        ("collect_set s", "array<string>"),
        ("count_if b", "long"),
        ("bool_and b", "boolean"),
        ("stddev l", "double"),
        ("variance e", "double"),
        ("median i", "double"),
    ],
)
def test_type(written: str, wanted: str) -> None:
    name, *columns = written.split()
    assert to_ddl(aggregate_type(Aggregate(name, tuple(columns)), ROW)) == to_ddl(
        parse_ddl(f"x {wanted}").column("x")
    )  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize(
    "written", ["sum s", "sum b", "avg s", "count_if l", "bool_or s", "stddev b"]
)
def test_no_type(written: str) -> None:
    name, *columns = written.split()
    with pytest.raises(TypeProblem, match=f"`{name}` needs"):
        aggregate_type(Aggregate(name, tuple(columns)), ROW)


def test_aliases_lead_to_entries() -> None:
    assert NAMES["mean"] == "avg"
    assert set(NAMES.values()) == {n for n, a in AGGREGATES.items() if not a.internal}


def test_what_the_page_names_is_there() -> None:
    page = "sum count min max avg count_distinct collect_list collect_set min_by max_by count_if"
    assert set((page + " first last any_value stddev").split()) <= set(NAMES)
    assert {s.name for s in AGGREGATES.values() if s.needs_order} == {"first", "last"}


@pytest.mark.parametrize(("column", "moves"), [("l", True), ("w", True), ("d", False)])
def test_totals_of_what_is_rounded_do_not_move(column: str, moves: bool) -> None:
    parts = (("n", Aggregate("count")), ("t", Aggregate("total", (column,))))
    args = Args((("by", ("s",)), ("aggregates", parts)))
    assert ("moves" in {name for name, _ in facts_of(args, ROW, ROW)}) == moves
