"""States of rows: every transition of the table, and the page that shows it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from hydro_core.spark.inputs.differences import (
    PENDING,
    TRANSITIONS,
    DifferingFile,
    LandingEvent,
    RowState,
    Transition,
    TransitionCondition,
    differing_rows,
    joined,
)
from hydro_core.spark.inputs.snapshot import HashedRows
from hydro_core.spark.store.ledger.records import ChangedRange

PAGE = Path(__file__).parents[3] / "docs" / "late-rows.md"
UNTIL, OWN = 5, 2
ARRIVED = {
    TransitionCondition.ALWAYS: (OWN, 4, UNTIL, -1),
    TransitionCondition.READ: (OWN, 4),
    TransitionCondition.NOT_READ: (UNTIL,),
    TransitionCondition.OWN_TICK: (OWN,),
    TransitionCondition.LATER_TICK: (4,),
}
UNLISTED = (RowState.UNREAD, RowState.IN_TIME)


def meanings() -> dict[str, str]:
    """The sentence below each state, as its source has it."""
    source = inspect.getsource(RowState)
    return dict(re.findall(r'^    \w+ = "(.*)"\n    """(.*)"""$', source, re.MULTILINE))


def test_the_page_shows_the_states_and_all_transitions() -> None:
    states = "\n".join(f"| {state} | {meanings()[state]} |" for state in RowState)
    rows = "\n".join(
        f"| {one.before} | {one.event} | {one.after} | {one.condition or 'always'} |"
        for one in TRANSITIONS
    )
    page = PAGE.read_text(encoding="utf-8")
    for table in (states, rows):
        assert table in page, f"docs/late-rows.md is to have:\n{table}"


def test_one_transition_at_most_fits_a_row() -> None:
    for state in RowState:
        for event in LandingEvent:
            ways = [
                one.condition for one in TRANSITIONS if (one.before, one.event) == (state, event)
            ]
            assert len(ways) == len(set(ways))
            assert TransitionCondition.ALWAYS not in ways or len(ways) == 1


@pytest.mark.parametrize("one", TRANSITIONS, ids=lambda one: f"{one.before} {one.event}")
def test_rows_and_files_follow_the_table(one: Transition) -> None:
    for arrived in ARRIVED[one.condition]:
        row = HashedRows(np.array([OWN]), np.array([7]))
        known = differing_rows(row, one.before).arriving(arrived)
        after = known.after(one.event, UNTIL)
        file = DifferingFile("f", OWN, OWN, one.before, arrived=-1 if arrived == OWN else arrived)
        files = file.after(one.event, UNTIL)
        assert len(after) == len(files) == (one.after not in UNLISTED)
        if len(after):
            assert after.are([one.after]).all()
            assert files[0].state is one.after
        if one.after is RowState.PENDING:
            assert after.arrived.tolist() == [-1] == [files[0].arrived]


def test_what_the_table_does_not_name_stays_as_it_is() -> None:
    named = {(one.before, one.event) for one in TRANSITIONS}
    for state in set(RowState) - set(UNLISTED):
        for event in LandingEvent:
            if (state, event) not in named:
                arrived = -1 if state in PENDING else 4
                file = DifferingFile("f", OWN, OWN, state, arrived=arrived)
                assert file.after(event, UNTIL) == [file]
                rows = differing_rows(HashedRows(np.array([OWN]), np.array([7])), state)
                assert rows.after(event, UNTIL).are([state]).all()


def test_a_late_file_that_leaves_before_it_arrived_is_missed_by_no_tick() -> None:
    file = DifferingFile("f", OWN, OWN, RowState.LATE, arrived=UNTIL)
    assert file.after(LandingEvent.LEAVES, UNTIL) == []


def test_changes_of_ticks_that_follow_each_other_are_one() -> None:
    changes = [ChangedRange(4, 4), ChangedRange(1, 1, 2, 1), ChangedRange(2, 2, 3, 0)]
    assert joined(changes) == [ChangedRange(1, 2, 5, 1), ChangedRange(4, 4)]
    assert joined([ChangedRange(1, 2, None, 1), ChangedRange(2, 3, 1, 1)]) == [
        ChangedRange(1, 3, None, 2)
    ]
