"""What serves and what the ledger says was read: counted, and refused where they differ."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from hydro_core.errors import DataError
from hydro_core.spark.inputs.batches import (
    refuse_gain,
    refuse_miscounted,
    refuse_unlike,
)
from hydro_core.spark.store.ledger.records import (
    Commit,
    InputRead,
    anew_since,
    last_read_of,
    late_by_tick,
    reading,
    standing_counts,
)
from tests.support.refused import Refused

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def commit(sequence: int, first: int, last: int, plan: str, *reads: InputRead) -> Commit:
    return Commit(sequence, first, last, plan, {}, {}, reads, started=NOW, committed=NOW)


def read(first: int, *rows: int, **more: object) -> InputRead:
    counts = dict(enumerate(rows, first))
    return InputRead("x", sum(rows), counts=counts, **more)  # type: ignore[arg-type]


COMMITS = [
    commit(0, 0, 1, "a", read(0, 2, 3)),
    commit(1, 2, 2, "a", read(2, 4, late={0: 1})),
    commit(2, 3, 2, "a"),
    commit(3, 0, 2, "b", InputRead("x"), InputRead("new", 6, counts={0: 1, 1: 2, 2: 3})),
    commit(4, 3, 3, "b", read(3, 5, late={1: 2})),
    commit(5, 2, 3, "b", read(2, 7, 5, late={1: 2})),
]


def test_each_commit_tells_of_the_ticks_that_it_read() -> None:
    found = standing_counts(COMMITS)
    assert found == {"x": {0: 2, 1: 3, 2: 7, 3: 5}, "new": {0: 1, 1: 2, 2: 3}}
    assert standing_counts(COMMITS[:4])["x"] == {0: 2, 1: 3, 2: 4}


def test_a_deployment_reads_nothing_anew() -> None:
    assert [one.sequence for one in reading(COMMITS)] == [0, 1, 4, 5]
    assert anew_since(COMMITS, 1) == 2
    assert anew_since(COMMITS[:5], 1) == 3
    assert anew_since(COMMITS[:4], 1) is None


def test_ticks_that_were_taken_back_are_not_counted() -> None:
    back = [*COMMITS[:2], commit(2, 2, 1, "a")]
    assert standing_counts(back)["x"] == {0: 2, 1: 3}
    assert late_by_tick(back, "x") == {}


def test_what_an_earlier_version_has_not_counted_is_not_known() -> None:
    old = [commit(0, 0, 1, "a", InputRead("x", 5)), commit(1, 2, 2, "a", read(2, 4))]
    assert standing_counts(old)["x"] == {0: None, 1: None, 2: 4}


def test_late_rows_are_those_of_the_commits_that_stand() -> None:
    assert late_by_tick(COMMITS[:4], "x") == {0: 1}
    assert late_by_tick(COMMITS, "x") == {1: 2}


def test_an_input_is_known_as_it_was_read_last() -> None:
    found = last_read_of(COMMITS, "new")
    assert found is not None
    assert (found[0].rows, found[1]) == (6, 3)
    assert last_read_of(COMMITS, "other") is None


def test_a_batch_has_the_rows_that_were_counted(refused: Refused) -> None:
    rows = pa.table({"item": pa.array([1, 2, 3]), "t": pa.array([4, 4, 5])})
    assert refuse_miscounted(InputRead("x", 3), rows, (4, 6)).counts == {4: 2, 5: 1, 6: 0}
    with refused(DataError, "state"):
        refuse_miscounted(read(4, 1, 1, 0), rows, (4, 6))


def test_ticks_that_are_read_as_before_have_the_rows_of_before(refused: Refused) -> None:
    refuse_unlike("x", {0: 1, 1: None, 2: 3}, {0: 1, 1: 7, 2: 3})
    with refused(DataError, "state"):
        refuse_unlike("x", {0: 1, 2: 3}, {0: 1, 2: 2})


def test_a_correction_has_as_many_rows_more_as_came(refused: Refused) -> None:
    refuse_gain("x", 5, 7, 2)
    with refused(DataError, "state"):
        refuse_gain("x", 5, 7, 3)
