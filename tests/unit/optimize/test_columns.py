"""Columns that nobody reads are not stored."""

from __future__ import annotations

import pytest

from hydro_core.catalog.classes import Sum
from hydro_core.compile import compile_graph, compile_text
from hydro_core.lang.resolve import parse
from hydro_core.optimize.columns import columns_of
from hydro_core.optimize.optimizer import optimize
from hydro_core.validation.random_ticks import validate_randomly

SOURCES = """
orders = source("id long, cust long, price long, note string")
custs = source("cust long, name string, country string")
"""
JOIN = 'j = orders -> persist() -> join(right=cp, on="cust"); cp = custs -> persist()\n'


def _stored(text: str) -> list[tuple[str, ...]]:
    """The columns of every history in the plan; plan and program agree."""
    program = compile_text(SOURCES + text)
    plan = compile_graph(optimize(program.typed).graph)
    assert validate_randomly(plan, program, 40) is None
    stored = [n for n in plan.graph if n.op.name in {"persist", "old"}]
    return sorted(plan.typed.types[n.inputs[0]].item.names for n in stored)  # type: ignore[union-attr]


def test_a_join_stores_what_is_read_of_it() -> None:
    stored = _stored(JOIN + 'j -> select("price", "name") -> delta() -> out')
    # a difference of rows is of whole rows, but those are what was selected
    assert stored == [("cust", "name"), ("cust", "price")]


def test_an_aggregate_reads_its_columns() -> None:
    stored = _stored('orders -> persist() -> aggregate(by="cust", m=median("price")) -> out')
    assert stored == [("cust", "price")]


def test_what_flows_out_is_read() -> None:
    assert _stored("orders -> persist() -> out") == [("id", "cust", "price", "note")]


def test_a_function_that_hands_its_row_on_reads_all() -> None:
    stored = _stored("orders -> persist() -> sort() -> map(lambda r: r.id) -> out")
    assert stored == [("id", "cust", "price", "note")]


def test_two_readers_of_one_history_share_it() -> None:
    stored = _stored(
        'orders -> persist() -> aggregate(by="cust", m=median("price")) -> out\n'
        'orders -> persist() -> aggregate(by="id", m=median("price")) -> more'
    )
    assert set(stored) == {("id", "cust", "price")}


def test_names_that_a_suffix_makes_keep_their_columns() -> None:
    text = """
    o = source("k long, v long, w long"); p = source("k long, v long")
    pp = p -> persist(); j = o -> persist() -> join(right=pp, on="k", suffix="_r")
    j -> select("v_r") -> delta() -> out
    """
    assert ("k", "v", "w") in _stored(text)


@pytest.mark.parametrize(
    ("function", "read"),
    [
        ("lambda r: r.a + r['b']", {"a", "b"}),
        ("lambda r: 1", set()),
        ("lambda r: {**r}", None),
        ("lambda r: [x.a for x in r.b]", {"b"}),
        ("lambda a, b: a", None),
        ("lambda r: len(r.a) if r.b else 0", {"a", "b"}),
    ],
)
def test_columns_of_functions(function: str, read: set[str] | None) -> None:
    fn = parse(f"x -> map({function}) -> out").named("map")[0].args["f"]
    found = columns_of(fn)
    assert found == (None if read is None else frozenset(read))


def test_a_sum_within_a_sum_is_narrowed_to_what_is_read_of_both() -> None:
    program = compile_text(
        SOURCES
        + "more = orders -> prev(); x = orders -> union(more); y = x -> union(more)\n"
        + 'custs -> join(right=y, on="cust", how="anti") -> out'
    )
    plan = compile_graph(optimize(program.typed).graph)
    assert validate_randomly(plan, program, 40) is None
    sums = [plan.typed.of(n.id).item for n in plan.graph if isinstance(n.cls, Sum)]
    assert [item.names for item in sums] == [("cust",)] * 2  # type: ignore[union-attr]
