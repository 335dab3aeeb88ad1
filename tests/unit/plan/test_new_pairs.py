"""Which sums of products are all new pairs of two histories."""

from __future__ import annotations

import pytest

from hydro_core.compile import executable
from hydro_core.ir.graph import Graph
from hydro_core.plan.new_pairs import NewPairs, new_pairs, not_needed
from hydro_core.plan.tick_plan import TickPlan

SOURCES = 'a = source("(long, long)"); b = source("(long, long)"); c = source("(long, long)")\n'
HISTORIES = "pa = a -> persist(); pb = b -> persist(); pc = c -> persist()\n"


def _found(text: str, *, optimize: bool = False) -> tuple[TickPlan, list[NewPairs]]:
    plan = executable(SOURCES + text, optimize=optimize)
    return plan, list(new_pairs(plan))


def _inputs(graph: Graph, node: str) -> list[str]:
    return [str(e) for e in graph[node].inputs]


@pytest.mark.parametrize("product", ["join", "cross"])
def test_what_the_product_rule_makes_is_found(product: str) -> None:
    text = f"{HISTORIES}pa -> {product}(right=pb) -> delta() -> out"
    plan, [pairs] = _found(text, optimize=True)
    left, right = pairs.histories
    assert (_inputs(plan.graph, left), _inputs(plan.graph, right)) == (["a"], ["b"])
    assert not_needed(plan.graph, [pairs]) == {pairs.other, left, right}


def test_a_join_of_joins_has_one_within_the_other() -> None:
    text = (
        HISTORIES + "j = pb -> join(right=pc) -> map(lambda k, p: (k, p[1]))\n"
        "pa -> join(right=j) -> delta() -> out"
    )
    assert len(_found(text, optimize=True)[1]) == 2


BY_HAND = "oa = a -> old(); ob = b -> old(); pa = a -> persist(); pb = b -> persist()\n"


@pytest.mark.parametrize(
    "text",
    [
        "x = oa -> join(right=b); y = a -> join(right=pb)",
        "y = oa -> join(right=b); x = a -> join(right=pb)",
        "x = pa -> join(right=b); y = a -> join(right=ob)",
    ],
)
def test_whichever_side_is_that_of_the_tick_before(text: str) -> None:
    plan, [pairs] = _found(BY_HAND + text + "; x -> union(y) -> out")
    left, right = pairs.histories
    assert (_inputs(plan.graph, left), _inputs(plan.graph, right)) == (["a"], ["b"])


def test_a_history_that_somebody_else_reads_is_needed() -> None:
    text = "x = oa -> join(right=b); y = a -> join(right=pb); oa -> seen; x -> union(y) -> out"
    plan, [pairs] = _found(BY_HAND + text)
    _, right = pairs.histories
    assert not_needed(plan.graph, [pairs]) == {pairs.other, right}


@pytest.mark.parametrize(
    "text",
    [
        "x = oa -> join(right=b); y = a -> join(right=pb); y -> more",
        "x = oa -> join(right=b); y = a -> join(right=ob)",
        "x = pa -> join(right=b); y = a -> join(right=pb)",
        "x = oa -> join(right=b); y = c -> join(right=pb)",
        "x = oa -> cross(right=b); y = a -> cross(right=pb) -> filter(lambda x, y: True)",
        "x = oa -> join(right=b, how='left'); y = a -> join(right=pb, how='left')",
    ],
    ids=["read twice", "too few", "too many", "another stream", "not all", "padded"],
)
def test_other_sums_are_none(text: str) -> None:
    assert not _found(BY_HAND + text + "; x -> union(y) -> out")[1]
