"""Which sums of products are all new pairs of two histories."""

from __future__ import annotations

import pytest

from hydro_core.catalog.classes import PerItem
from hydro_core.compile import executable
from hydro_core.plan.streams import NewPairs, new_pairs, not_needed
from hydro_core.plan.tick_plan import TickPlan

SOURCES = 'a = source("(long, long)"); b = source("(long, long)"); c = source("(long, long)")\n'
HISTORIES = "pa = a -> persist(); pb = b -> persist(); pc = c -> persist()\n"


def _found(text: str, *, optimize: bool = False) -> tuple[TickPlan, list[NewPairs]]:
    plan = executable(SOURCES + text, optimize=optimize)
    return plan, list(new_pairs(plan))


def _streams(plan: TickPlan, pairs: NewPairs) -> list[str]:
    """What both sides are the histories of."""
    return [str(plan.graph[way[0]].inputs[0]) for way in pairs.sides]


@pytest.mark.parametrize("product", ["join", "cross"])
def test_what_the_product_rule_makes_is_found(product: str) -> None:
    text = f"{HISTORIES}pa -> {product}(right=pb) -> delta() -> out"
    plan, [pairs] = _found(text, optimize=True)
    assert _streams(plan, pairs) == ["a", "b"]
    [left], [right] = pairs.sides
    assert not_needed(plan, [pairs]) == {pairs.other, left, right}


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
    assert _streams(plan, pairs) == ["a", "b"]


def test_a_history_may_be_what_was_before_and_what_is_new() -> None:
    text = HISTORIES + "pc -> join(right=pc) -> delta() -> out"
    plan, [pairs] = _found(text, optimize=True)
    [old] = plan.graph.named("old")
    assert pairs.sides == ((old.id,), (old.id,))
    assert not_needed(plan, [pairs]) >= {pairs.other, old.id}


def test_a_history_that_somebody_else_reads_is_needed() -> None:
    text = "x = oa -> join(right=b); y = a -> join(right=pb); oa -> seen; x -> union(y) -> out"
    plan, [pairs] = _found(BY_HAND + text)
    _, [right] = pairs.sides
    assert not_needed(plan, [pairs]) == {pairs.other, right}


def test_what_goes_item_by_item_may_stand_behind_a_history() -> None:
    text = (
        "m = b -> map(lambda k, v: (v, k)); x = oa -> join(right=m)\n"
        "pm = pb -> map(lambda k, v: (v, k)); y = a -> join(right=pm); x -> union(y) -> out"
    )
    plan, [pairs] = _found(BY_HAND + text)
    assert _streams(plan, pairs) == ["a", "b"]
    [_], [_, swapped] = pairs.sides
    assert isinstance(plan.graph[swapped].cls, PerItem)
    assert not_needed(plan, [pairs]) == {pairs.other, "m", *pairs.sides[0], *pairs.sides[1]}


@pytest.mark.parametrize(
    "text",
    [
        "x = oa -> join(right=b); y = a -> join(right=pb); y -> more",
        "x = oa -> join(right=b); y = a -> join(right=ob)",
        "x = pa -> join(right=b); y = a -> join(right=pb)",
        "x = oa -> join(right=b); y = c -> join(right=pb)",
        "x = oa -> cross(right=b); y = a -> cross(right=pb) -> filter(lambda x, y: True)",
        "pbb = ob -> union(b, b); x = oa -> join(right=b); y = a -> join(right=pbb)",
        "f = pb -> filter(lambda k, v: k > 0); x = oa -> join(right=b); y = a -> join(right=f)",
        "x = oa -> join(right=b, how='left'); y = a -> join(right=pb, how='left')",
    ],
    ids=[
        "read twice",
        "too few",
        "too many",
        "another stream",
        "not all",
        "twice",
        "some",
        "padded",
    ],
)
def test_other_sums_are_none(text: str) -> None:
    assert not _found(BY_HAND + text + "; x -> union(y) -> out")[1]
