"""The shape of a flow: what its states and outputs are computed from."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hydro_core import Flow
from hydro_core.analysis.infer import infer
from hydro_core.plan.planner import plan
from hydro_core.spark.pipeline.tables import output_tables, state_tables
from hydrotick.project.shape import FlowShape, shape_of
from tests.orchestration.small import PROGRAM


def shape(program: str) -> FlowShape:
    typed = infer(Flow.parse(program).graph())
    return shape_of(plan(typed))


def parents(found: FlowShape) -> Mapping[str, tuple[str, ...]]:
    return {part.name: part.parents for part in (*found.states, *found.outputs)}


def test_an_output_hangs_on_the_states_and_inputs_that_it_reads() -> None:
    added = "payments -> persist() -> aggregate(n=count()) -> delta() -> counts"
    found = parents(shape(PROGRAM + added))
    assert found["before"] == found["totals"] == ("state/payments",)
    (counted,) = found.keys() - {"payments", "before", "totals", "counts"}
    assert set(found["counts"]) >= {f"state/{counted}"}
    assert found["payments"] == ("landing/payments",)


def test_inputs_that_meet_nowhere_have_nothing_in_common() -> None:
    found = parents(
        shape("""
        a = source("x long")
        b = source("x long")
        a -> persist() -> all_of_a
        b -> sort() -> limit(1) -> least_of_b
        """)
    )
    assert found["all_of_a"] == ("state/a",)
    assert found["least_of_b"] == ("landing/b",)


def test_a_state_that_a_later_stratum_uses_has_an_edge_to_it() -> None:
    found = parents(
        shape("""
        a = source("x long")
        b = source("x long")
        seen = a -> persist()
        b -> difference(neg=seen) -> persist() -> news
        """)
    )
    (kept,) = [name for name in found if name not in ("a", "news")]
    assert found["news"] == (f"state/{kept}",)
    assert found[kept] == ("landing/b", "state/a")


def test_states_that_feed_each_other_keep_the_edges_that_close_no_circle() -> None:
    found = shape("""
        a = source("x long")
        x = union()
        y = union()
        a -> x
        y -> prev() -> x
        a -> y
        x -> old() -> y
        x -> out
        """)
    above = {f"state/{state.name}": set(state.parents) for state in found.states}
    done: set[str] = set()
    for name, parents_of in above.items():
        assert {p for p in parents_of if p.startswith("state/")} <= done
        done.add(name)
    assert any(state.earlier for state in found.states)
    for state in found.states:
        assert not set(state.earlier) & set(state.parents)


def test_columns_lead_to_the_columns_of_inputs() -> None:
    found = shape("""
        payments = source("user string, amount long")
        payments -> persist() -> aggregate(by="user", total=sum("amount")) -> totals
        payments -> map(lambda user, amount: (amount + 1, user)) -> pairs
        """)
    sources = {output.name: output.sources for output in found.outputs}
    assert sources["totals"]["user"] == (("payments", "user"),)
    assert ("payments", "amount") in sources["totals"]["total"]
    assert sources["pairs"]["_2"] == (("payments", "user"),)
    assert sources["pairs"]["_1"] == (("payments", "amount"),)


def test_columns_have_the_types_that_a_table_of_sql_has() -> None:
    found = shape("""
        visits = source("user string, place struct<x: long, tags: array<int>> not null")
        visits -> persist() -> pairs
        visits -> map(lambda user, place: ((user, place.x), place)) -> nested
        """)
    place = "struct<x: bigint, tags: array<int>>"
    assert dict(found.inputs["visits"]) == {"user": "string", "place": place}
    (state,) = found.states
    assert dict(state.columns) == {"item": f"struct<user: string, place: {place}>", "t": "bigint"}
    nested = next(output for output in found.outputs if output.name == "nested")
    assert dict(nested.columns) == {
        "tick": "bigint",
        "_1": "struct<_1: string, _2: bigint>",
        "_2": place,
    }


@pytest.mark.parametrize(
    "program",
    [
        PROGRAM,
        "a = source('x long')\na -> persist() -> sort() -> out",
        "a = source('x long')\na -> persist() -> aggregate(by='x', n=count()) -> out",
        "a = source('x long')\nboth = a -> tee()\nboth[0] -> out\nboth[1] -> persist() -> kept",
        "a = source('x long')\na -> map(lambda x: (x, str(x))) -> sort() -> delta() -> out",
    ],
)
def test_columns_are_those_of_the_stored_tables(program: str) -> None:
    found = shape(program)
    states, outputs = state_tables(found.plan), output_tables(found.plan)
    stored = {name: set(spec.plain_schema.names) for name, spec in {**states, **outputs}.items()}
    shown = {
        part.name: {name for name, _ in part.columns} for part in (*found.states, *found.outputs)
    }
    assert shown == stored
