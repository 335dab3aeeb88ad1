"""Streams that are surely empty."""

from __future__ import annotations

from hydro_core.compile import compile_text
from hydro_core.plan.planner import plan
from hydro_core.spark.pipeline.prepared import surely_empty

PROGRAM = """
a = source("long")
b = source("long")
doubled = a -> map(lambda x: 2 * x)
both    = doubled -> union(b)
pairs   = doubled -> cross(right=b)
counted = a -> fold(0, lambda n, x: n + 1, commutative=True)
stored  = a -> persist()
before  = a -> prev()
both -> both_out
doubled -> doubled_out
pairs -> pairs_out
counted -> counted_out
stored -> stored_out
before -> before_out
"""


def names(*inputs: str) -> set[str]:
    compiled = compile_text(PROGRAM)
    return set(surely_empty(plan(compiled.typed), inputs))


def test_what_only_an_empty_input_reaches_is_empty() -> None:
    assert names("a") == {"a", "doubled", "doubled_out"}


def test_all_inputs_must_be_empty() -> None:
    assert names("b") == {"b"}
    assert names("a", "b") >= {"both", "pairs", "both_out", "pairs_out"}


def test_a_fold_has_an_item_of_nothing_and_a_past_is_not_known() -> None:
    assert not names("a", "b") & {"counted", "stored", "before", "stored_out"}


def test_a_cycle_is_left_alone() -> None:
    text = """
    a = source("long")
    seen = a -> union(again)
    again = seen -> filter(lambda x: x < 3)
    seen -> unique() -> out
    """
    compiled = compile_text(text)
    found = surely_empty(plan(compiled.typed), ["a"])
    assert found == {"a"}
