"""Feedback by hand that says what an operator says, and how all other feedback runs in a range."""

from __future__ import annotations

import pytest

from hydro_core.catalog.forms import Form
from hydro_core.compile import compile_text
from hydro_core.optimize.optimizer import optimize
from hydro_core.plan.cycles import seen_in
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import Kind, TickPlan
from hydro_core.types.ddl import parse_ddl

SCHEMAS = {"a": "(string, long)", "b": "(string, long)", "i": "k int, v int", "r": "k int, v long"}
F = "lambda p, q: max(p, q), commutative=True"


def planned(text: str) -> TickPlan:
    used = {n: parse_ddl(t) for n, t in SCHEMAS.items() if n in text.split()}
    compiled = compile_text(text, used)
    return plan(compiled.typed)


def optimized(text: str) -> TickPlan:
    used = {n: parse_ddl(t) for n, t in SCHEMAS.items() if n in text.split()}
    return plan(optimize(compile_text(text, used).typed).typed)


def operators(text: str) -> list[str]:
    """Those that read or hold the past, and `x`, in the optimized plan."""
    found = optimized(text)
    names = [n.op.name for n in found.graph if n.id == "x" or n.spec.state.value != "none"]
    return sorted(names)


FED = "u = union(); x -> prev() -> u; a -> u; x -> out\n"

FIRES = {
    "a sum with the tick before is a history": (
        "x = union(); x -> prev() -> x; a -> x; x -> out",
        ["persist"],
    ),
    "behind what passes it on": (
        "x = union(); x -> identity() -> prev() -> tee() -> x; a -> x; x -> out",
        ["persist"],
    ),
    "a set": (FED + "x = u -> unique()", ["old", "persist"]),
    "a set whose union is read by others": (
        FED + "x = u -> unique(); u -> more",
        ["old", "persist"],
    ),
    "a reduction of each key": (
        FED + f"x = u -> reduce_keyed({F}, associative=True)",
        ["running_reduce_keyed"],
    ),
    "a reduction": (
        FED + f"x = u -> reduce({F}, associative=True)",
        ["running_reduce"],
    ),
    "a reduction whose union is read by others": (
        FED + f"x = u -> reduce_keyed({F}, associative=True); u -> more",
        ["prev", "running_reduce_keyed"],
    ),
    "sums of columns that keep their names": (
        'u = union(); x -> prev() -> u; r -> u; x -> out; x = u -> aggregate(by="k", v=sum("v"))',
        ["running_aggregate"],
    ),
    "the latest": (
        'u = union(); x -> prev() -> u; r -> u; x -> out; x = u -> latest(by="k", order="v")',
        ["running_latest"],
    ),
    "the history of the tick before": ("a -> persist() -> prev() -> out", ["old"]),
}


@pytest.mark.parametrize("name", FIRES)
def test_fires(name: str) -> None:
    text, wanted = FIRES[name]
    assert operators(text) == wanted


SILENT = {
    "not of the tick before of another stream": (
        "x = union(); y = a -> map(lambda k, v: (k, v)); y -> prev() -> x; a -> x; x -> out",
        ["prev", "union"],
    ),
    "not of what is changed on the way": (
        "x = union(); x -> prev() -> filter(lambda k, v: v > 0) -> x; a -> x; x -> out",
        ["prev", "union"],
    ),
    "not where nothing is added": (
        "x = union(); x -> prev() -> x; x -> [0]j; a -> [1]j; j = join() -> out",
        ["prev"],
    ),
    "not in an order": (
        "x = chain(); x -> prev() -> [0]x; a -> sort() -> [1]x; x -> out",
        ["chain", "prev"],
    ),
    "not of items of a narrower type": (
        'u = union(); x -> prev() -> u; i -> u; x -> out; x = u -> aggregate(by="k", v=sum("v"))',
        ["aggregate", "prev"],
    ),
    "not a set of what depends on it": (
        (
            "u = union(); x = u -> unique(); x -> prev() -> u; a -> u; x -> out\n"
            "x -> prev() -> map(lambda k, v: (k, v + 1)) -> u"
        ),
        ["prev", "unique"],
    ),
    "not a reduction that is not associative": (
        FED + f"x = u -> reduce_keyed({F})",
        ["prev", "reduce_keyed"],
    ),
    "not a reduction of what depends on it": (
        FED + f"x = u -> reduce_keyed({F}, associative=True); y = x -> prev()\n"
        "y -> filter(lambda k, v: v > 3) -> u",
        ["prev", "reduce_keyed"],
    ),
    "not a count": (
        'u = union(); x -> prev() -> u; r -> u; x -> out; x = u -> aggregate(by="k", v=count("v"))',
        ["aggregate", "prev"],
    ),
    "not a sum of another column": (
        'u = union(); x -> prev() -> u; r -> u; x -> out; x = u -> aggregate(by="k", v=sum("k"))',
        ["aggregate", "prev"],
    ),
    "not a fold, which counts its start in every tick": (
        (
            "u = union(); x -> prev() -> u; a -> u; x -> out\n"
            "x = u -> fold_keyed(0, lambda s, v: s + v, commutative=True, associative=True)"
        ),
        ["fold_keyed", "prev"],
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_is_silent(name: str) -> None:
    text, wanted = SILENT[name]
    assert operators(text) == wanted


def how(text: str) -> list[str]:
    return [c.how for c in planned(text).components if c.how != "once"]


FIRST = "x = difference(); a -> [pos]x; x -> old() -> [neg]x; x -> out"


def test_what_is_first_seen_is_known_as_such() -> None:
    assert how(FIRST) == ["first seen"]
    by_hand = optimized(FED + "x = u -> unique()")
    assert [c.how for c in by_hand.components if c.how != "once"] == ["first seen"]


BY_KEY = 'x = r -> join(right=o, on="k", how="anti"); o = x -> {} ; x -> out'


@pytest.mark.parametrize(
    "way", ["old()", 'select("k") -> old()', 'old() -> select("k") -> unique()']
)
def test_a_key_is_first_seen_where_a_join_keeps_what_has_no_match(way: str) -> None:
    assert how(BY_KEY.format(way)) == ["first seen"]


@pytest.mark.parametrize("way", ['select("k") -> prev()', 'old() -> map(lambda r: {"k": r.k + 1})'])
def test_a_key_is_not_first_seen_where_other_keys_are_looked_for(way: str) -> None:
    assert how(BY_KEY.format(way)) == ["tick by tick"]


def test_what_is_first_seen_is_an_event_whatever_it_is_seen_in() -> None:
    found = planned(FIRST.replace("a ->", "a -> persist() ->"))
    assert found.kinds["x"] is Kind.E


def test_what_is_first_seen_stores_what_single_ticks_store() -> None:
    [slot] = planned(FIRST).slots
    assert (str(slot.stream), slot.form) == ("x", Form.GROWTH)


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        (FIRST.replace("a -> [pos]x", "d = a -> unique(); d -> [pos]x"), "a"),
        (FIRST.replace("a -> [pos]x", "d = a -> sort() -> unique(); d -> [pos]x"), "d"),
        (FIRST.replace("a -> [pos]x", "d = a -> identity(); d -> [pos]x"), "d"),
        ("d = r -> unique(); " + BY_KEY.format("old()").replace("= r", "= d"), "d"),
    ],
    ids=["distinct", "distinct, in an order", "in several copies", "by key"],
)
def test_where_items_are_seen_first(text: str, stream: str) -> None:
    found = planned(text)
    assert str(seen_in(found.graph["x"], found.typed)) == stream


@pytest.mark.parametrize(
    "text",
    [
        FIRST.replace("a -> [pos]x", "u = union(); a -> u; x -> prev() -> u; u -> [pos]x"),
        FIRST.replace("old()", "prev()"),
        FIRST.replace("old()", "window(3) -> prev()"),
        FIRST.replace("old()", "old() -> map(lambda k, v: (k, v + 1))"),
    ],
    ids=["pos depends on x", "only the tick before", "only some ticks", "other items"],
)
def test_what_is_not_first_seen(text: str) -> None:
    assert "first seen" not in how(text)


def test_a_set_by_hand_is_a_history() -> None:
    assert optimized(FED + "x = u -> unique()").kinds["x"] is Kind.H


MOVING = "x = union(); x -> prev() -> map(lambda k, v: (k, v - 1)) -> x; a -> x; x -> out"


def test_feedback_that_waits_for_nothing_is_one_fixpoint() -> None:
    assert how(MOVING) == ["across ticks"]
    assert planned(MOVING).notes == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            f"x = union(); n = x -> fold_keyed(0, {F}); n -> prev() -> x; a -> x; x -> out",
            "`n` (fold_keyed) waits for all of `x`",
        ),
        (
            "x = chain(); x -> prev() -> [0]x; a -> sort() -> [1]x; x -> out",
            "the items of `prev_1` stand in an order",
        ),
    ],
    ids=["blocking", "ordered"],
)
def test_what_runs_tick_by_tick_says_why(text: str, why: str) -> None:
    [note] = planned(text).notes
    assert why in note
