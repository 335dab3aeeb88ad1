"""Plans: kinds of streams, what is kept, what runs tick by tick."""

from __future__ import annotations

from hydro_core.catalog.forms import Form
from hydro_core.compile import compile_text
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import Kind, TickPlan
from hydro_core.types.ddl import parse_ddl

PAIR = parse_ddl("(string, long)")


def planned(text: str, **more: str) -> TickPlan:
    schemas = {"a": PAIR, "b": PAIR, **{n: parse_ddl(t) for n, t in more.items()}}
    compiled = compile_text(text, {n: t for n, t in schemas.items() if n in text.split()})
    return plan(compiled.typed)


def kinds(text: str) -> dict[str, Kind]:
    return dict(planned(text).kinds)


def test_persist_makes_a_history_and_delta_events_of_it() -> None:
    found = kinds("h = a -> persist(); h -> u; u = unique(); u -> delta() -> out")
    assert (found["a"], found["h"], found["u"]) == (Kind.E, Kind.H, Kind.H)
    assert found["out"] is Kind.E


def test_what_can_disappear_is_general() -> None:
    found = kinds(
        "n = a -> persist() -> fold_keyed(0, lambda s, v: s + v, commutative=True); n -> out"
    )
    assert found["n"] is Kind.G


def test_events_win_in_a_join() -> None:
    found = kinds("h = a -> persist(); h -> [0] j; b -> [1] j; j = join() -> out")
    assert found["j"] is Kind.E


def test_a_union_of_unlike_kinds_is_general() -> None:
    assert kinds("u = union(); a -> persist() -> u; b -> u; u -> out")["u"] is Kind.G


def test_a_stream_is_stored_once() -> None:
    [slot] = planned("a -> persist() -> x; a -> old() -> y; a -> prev() -> z").slots
    assert slot.form is Form.GROWTH
    assert len(slot.readers) == 3
    assert slot.keep is None


def test_the_tick_before_of_a_history_is_not_stored() -> None:
    slots = planned("h = a -> persist(); h -> delta() -> x; h -> prev() -> y").slots
    assert [str(slot.stream) for slot in slots] == ["a"]


def test_a_window_says_how_far_back_it_looks() -> None:
    [slot] = planned("a -> window(3) -> out").slots
    assert slot.keep == 3, "what it loses in a tick came three ticks before"


def test_meaning_does_not_depend_on_names() -> None:
    [one] = planned("x = a -> map(lambda k, v: (k, v + 1)); x -> persist() -> out").slots
    [other] = planned("a -> map(lambda k, v: (k, v + 1)) -> tee() -> persist() -> result").slots
    [third] = planned("a -> map(lambda k, v: (k, v + 2)) -> persist() -> out").slots
    assert one.semantic_hash == other.semantic_hash
    assert one.semantic_hash != third.semantic_hash


def test_feedback_runs_tick_by_tick_and_says_so() -> None:
    found = planned(
        """
        f = difference()
        a -> [pos]f
        k -> prev() -> [neg]f
        k = union()
        f -> map(lambda k, v: (k, v + 1)) -> k
        f -> out
        """
    )
    [component] = [c for c in found.components if c.how == "tick by tick"]
    assert "f" in component.nodes
    assert "out" not in component.nodes
    assert len(found.notes) == 1
    assert "prev" in found.notes[0]


def test_a_cycle_within_a_tick_is_a_fixpoint() -> None:
    found = planned(
        "r = union(); a -> r; r -> unique() -> filter(lambda k, v: v > 0) -> r; r -> out"
    )
    assert [c.how for c in found.components if len(c.nodes) > 1] == ["fixpoint"]
