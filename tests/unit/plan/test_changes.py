"""Running results in plans, and which streams tell their changes."""

from __future__ import annotations

from hydro_core.catalog.forms import Form
from hydro_core.catalog.spec import State
from hydro_core.compile import compile_text, optimized
from hydro_core.plan.planner import plan
from hydro_core.plan.streams import changes_suffice
from hydro_core.plan.tick_plan import Kind, TickPlan

A = 'a = source("k string, v long")\n'
TOTALS = A + 'x = a -> persist() -> aggregate(by="k", n=count(), total=sum("v"))\n'


def planned(text: str) -> TickPlan:
    compiled = optimized(compile_text(text))
    return plan(compiled.typed)


def modes(found: TickPlan) -> dict[str, Form]:
    return {slot.id: slot.form for slot in found.slots}


def test_a_result_that_goes_on_from_the_tick_before_is_running() -> None:
    found = planned(TOTALS + "x -> out")
    assert {c.how for c in found.components} == {"once"}
    assert found.graph["x"].spec.state is State.RESULT
    assert found.kinds["x"] is Kind.G
    assert modes(found) == {"x": Form.CHANGES}
    assert not found.notes


def test_feedback_into_what_is_new_is_not_running() -> None:
    found = planned(
        A + "f = union()\na -> map(lambda r: (r.k, r.v or 0)) -> f\nx -> prev() -> f\n"
        "x = f -> reduce_keyed(lambda m, n: (m - n) * (m - n), commutative=True)\nx -> out"
    )
    assert [c.how for c in found.components if len(c.nodes) > 1] == ["tick by tick"]
    assert "out" not in found.in_changes


def test_changes_go_through_what_goes_item_by_item() -> None:
    found = planned(
        TOTALS + "x -> filter(lambda r: r.n > 1) -> map(lambda r: r.k) -> one\n"
        'x -> select("k") -> two\nx -> map(lambda r: r.k) -> sort() -> three'
    )
    assert {"one", "two"} <= found.in_changes
    assert "three" not in found.in_changes


def test_a_sum_tells_its_changes_if_all_parts_do() -> None:
    found = planned(
        TOTALS + "keys = x -> map(lambda r: r.k)\nevents = a -> map(lambda r: r.k)\n"
        "one = union()\nkeys -> one\nevents -> persist() -> one\none -> first\n"
        "two = union()\nkeys -> two\nevents -> two\ntwo -> second"
    )
    assert "first" in found.in_changes
    assert "second" not in found.in_changes


def test_changes_that_are_told_need_no_past() -> None:
    found = planned(TOTALS + "x -> map(lambda r: r.total) -> changes() -> out")
    assert modes(found) == {"x": Form.CHANGES}


def test_the_tick_before_of_what_tells_its_changes_is_a_log() -> None:
    found = planned(TOTALS + "x -> map(lambda r: r.total) -> prev() -> out")
    assert set(modes(found).values()) == {Form.CHANGES}


def test_a_stream_may_be_stored_as_a_log_and_as_a_history() -> None:
    found = planned(TOTALS + "x -> out\nx -> persist() -> ever")
    assert modes(found) == {"x changes": Form.CHANGES, "x": Form.GROWTH}


def test_commands_tell_what_they_change() -> None:
    found = planned(A + 'a -> sort() -> map(lambda r: ("persist", r.k)) -> persist_mut() -> out')
    assert set(modes(found).values()) == {Form.CHANGES}
    assert "out" in found.in_changes


def test_in_a_loop_values_are_read_where_changes_are_not_told() -> None:
    found = planned(
        A + 'x = union()\na -> x\ng = x -> window(3) -> aggregate(by="k", v=count())\n'
        "g -> prev() -> x\ng -> out"
    )
    assert found.graph["g"].op.name == "aggregate"
    assert not found.in_changes


MEDIANS = A + 'x = a -> persist() -> aggregate(by="k", m=median("v"))\n'


def test_results_by_key_of_a_history_tell_their_changes() -> None:
    found = planned(MEDIANS + "x -> out\nx -> delta() -> new\nx -> changes() -> changed")
    assert {"x", "out"} <= found.in_changes
    assert modes(found) == {"a": Form.GROWTH}


def test_the_tick_before_of_results_by_key_is_a_log() -> None:
    assert modes(planned(MEDIANS + "x -> prev() -> out"))["x"] is Form.CHANGES


def test_what_follows_results_by_key_goes_on() -> None:
    found = planned(MEDIANS + 'x -> aggregate(by="m", n=count()) -> out')
    assert [n.op.name for n in found.graph if n.spec.state is State.RESULT] == ["moving_aggregate"]
    assert "out" in found.in_changes


def test_results_by_key_of_rows_that_come_and_go_are_told() -> None:
    window = 'a -> window(3) -> aggregate(by="k", m=median("v")) -> out'
    assert "out" in planned(A + window).in_changes


def test_results_of_what_is_no_history_are_given_by_values() -> None:
    for text in (
        'a -> aggregate(by="k", m=median("v")) -> out',
        'a -> window(3) -> aggregate(m=median("v")) -> out',
        'a -> persist() -> sort() -> aggregate(by="k", m=first("v")) -> out',
        'a -> persist() -> aggregate(m=median("v")) -> out',
    ):
        assert "out" not in planned(A + text).in_changes, text


def test_changes_suffice_where_nobody_looks_at_more() -> None:
    text = """
        y = x -> filter(lambda r: r.n > 1)
        y -> delta() -> new; x -> out
        z = a -> window(2); z -> delta() -> more; z -> sort() -> in_order
    """
    found = plan(compile_text(TOTALS + text).typed)

    def alone(*outputs: str) -> set[str]:
        streams = changes_suffice(found.graph, found.in_changes, found.kinds, outputs)
        return streams & {"x", "y", "z"}

    assert {"x", "y", "z"} <= found.in_changes
    assert alone() == {"y"}
    assert alone("out") == {"x", "y"}
