"""An aggregate's entry is all that makes it incremental."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hydro_core.catalog.internal import AGGREGATE_RESULT, MOVING_AGGREGATE, RUNNING_AGGREGATE
from hydro_core.compile import best_plan, compile_text, planned, stratified
from hydro_core.plan.streams import repeated
from hydro_core.validation.random_ticks import validate_randomly
from tests.support.added_aggregate import add_range

ROWS = 'r = source("k string, v long")\n'
EVER = "x = r -> persist() -> aggregate(by='k', r=range('v'), n=count()); x -> out"
MOVED = "x = r -> window(2) -> aggregate(by='k', r=range('v'), n=count()); x -> out"
ALL = "x = r -> persist() -> aggregate(r=range(lambda row: row.v)); x -> out"


@pytest.fixture(autouse=True)
def _added() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        add_range(patched)
        yield


@pytest.mark.parametrize("text", [EVER, MOVED, ALL])
def test_its_plan_is_the_program(text: str) -> None:
    program = compile_text(ROWS + text)
    plan = stratified(best_plan(program).typed)
    assert validate_randomly(plan, program, 20) is None


@pytest.mark.parametrize("text", [EVER, ALL])
def test_over_a_history_it_goes_on_from_its_parts(text: str) -> None:
    best = best_plan(compile_text(ROWS + text))
    operators = {node.op: node for node in best.typed.graph}
    stored = operators[RUNNING_AGGREGATE].args["aggregates"]
    assert {a.function for _, a in stored} - {"count"} == {"max", "min"}
    assert AGGREGATE_RESULT in operators
    assert best.notes == ()


def test_without_an_inverse_it_reads_its_window() -> None:
    best = best_plan(compile_text(ROWS + MOVED))
    assert MOVING_AGGREGATE not in {node.op for node in best.typed.graph}
    [note] = best.notes
    assert "`range` has no inverse" in note.reason


def test_over_a_range_it_is_merged() -> None:
    assert not repeated(planned(compile_text(ROWS + EVER)))
    [told] = repeated(planned(compile_text(ROWS + MOVED))).values()
    assert "`range` of `r` does not tell what is left" in told
