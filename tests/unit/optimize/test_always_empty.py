"""Streams that are proven to be empty: they keep their columns, and nothing is made of them."""

from __future__ import annotations

import pytest

from hydro_core.compile import compile_text
from hydro_core.optimize.optimizer import OptimizedProgram, optimize
from hydro_core.optimize.report import explanation, expressions
from hydro_core.types.ddl import parse_ddl

NOTHING = "nothing = in0 -> difference(neg=in0)\n"
MANY = 60
"""Nodes that a few operators may make; unguarded, they make millions."""


def _optimized(text: str) -> OptimizedProgram:
    compiled = compile_text(text, {"in0": parse_ddl("k string, v long")})
    return optimize(compiled.typed, explain=True)


FEEDBACK = """
    kept = union() -> latest(by="k", order="v")
    nothing -> prev() -> kept
    kept -> prev() -> kept
    kept -> out
"""


def test_an_output_that_is_proven_to_be_empty_has_its_columns() -> None:
    plan = _optimized(NOTHING + FEEDBACK)
    assert expressions(plan.graph) == "; out\n(source_iter items=() schema='k string, v long')"
    assert plan.cost_after < 3
    assert not plan.limits
    assert "latest-by-hand" not in explanation(plan)


PROGRAMS = {
    "feedback": FEEDBACK,
    "distinct": "x = nothing -> union(y); y = x -> prev() -> unique(); x -> out",
    "history": "x = nothing -> persist() -> union(in0) -> persist(); x -> delta() -> out",
    "joined": """
        joined = nothing -> join(right=in0, on="k", suffix="_r")
        joined -> select("k") -> persist() -> unique() -> out
    """,
    "mapped": """
        nothing -> map(lambda r: r.v) -> prev() -> union(s)
        s = in0 -> map(lambda r: r.v) -> old() -> union(t) -> persist()
        t = nothing -> map(lambda r: r.v)
        s -> out
    """,
    "window": """
        x = in0 -> union(y) -> union(z) -> persist() -> unique()
        y = nothing -> old(); z = nothing -> window(2)
        x -> delta() -> out
    """,
    "excluded": """
        x = in0 -> difference(neg=k) -> union(y)
        k = nothing -> filter(lambda r: r.v)
        y = x -> prev() -> difference(neg=k)
        x -> persist() -> out
    """,
    "two ticks ago": """
        x = y -> prev() -> filter(lambda r: r.v > 0)
        y = x -> union(nothing) -> prev()
        x -> out
    """,
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_empty_makes_no_terms_without_end(text: str) -> None:
    plan = _optimized(NOTHING + text)
    assert plan.saturation.saturated
    assert plan.saturation.nodes < MANY


def test_what_adds_nothing_makes_no_sums_without_end() -> None:
    plan = _optimized("""
        p = in0 -> map(lambda r: (r.k, r.v)) -> persist()
        s = p -> join(right=q, how="semi") -> delta(); q = p -> persist()
        s -> delta() -> new; s -> unique() -> delta() -> kinds
    """)
    assert plan.saturation.saturated
    assert plan.saturation.nodes < 200
