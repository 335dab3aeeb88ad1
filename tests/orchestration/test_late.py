"""Late rows: as if they had landed in time, or with the next tick, or decided; never lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from hydro_core.spark.inputs.batches import Batch
from hydro_core.spark.pipeline.copies import verify
from hydro_core.ticks.calendar import TickWindow
from hydrotick.cli import status as late_status
from hydrotick.flows.landed_past import LandingReads
from hydrotick.quality.judge import measure
from tests.orchestration.late import DAYS, IN_TIME, LATE, OPEN, Late, Row, at, committed
from tests.support.selection import alternately_slow

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.fixture(scope="module")
def of_rows(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Sequence[Row], int], Mapping[str, list[str]]]:
    """What there is after some ticks if exactly these rows had landed before all of them."""
    assert spark is not None

    @cache
    def ran(rows: tuple[Row, ...], ticks: int) -> Mapping[str, list[str]]:
        late = Late(tmp_path_factory.mktemp("in_time"))
        late.land(rows)
        return late.ran((0, ticks - 1)).contents

    return lambda rows, ticks: ran(tuple(sorted(rows)), ticks)


Ideal = Callable[[Sequence[Row], int], Mapping[str, list[str]]]


@pytest.mark.parametrize(
    ("together", "kind"),
    alternately_slow([False, True], ["delta", "parquet"]),
)
def test_late_rows_are_corrected_before_the_next_tick(
    tmp_path: Path, of_rows: Ideal, kind: str, together: bool
) -> None:
    late = committed(tmp_path, "correct", kind, together=together)
    reports = late.run(OPEN, OPEN + 1)
    assert [r.window.key for r in reports] == DAYS[0 if together else 1 : OPEN + 2]
    assert [r.corrected is not None for r in reports] == [True] * (len(reports) - 2) + [False] * 2
    assert not any(report.noticed for report in reports)
    assert late.contents == of_rows([*IN_TIME, *LATE], OPEN + 2)
    assert verify(late.runner.directory(late.flow), measure).problems == ()
    assert [r.window.key for r in late.run(OPEN + 2, OPEN + 2)] == DAYS[OPEN + 2 : OPEN + 3]


@pytest.mark.parametrize(
    ("last", "kind"),
    alternately_slow([OPEN, OPEN + 2], ["delta", "parquet"]),
)
def test_late_rows_arrive_with_the_next_tick(
    tmp_path: Path, of_rows: Ideal, kind: str, last: int
) -> None:
    late = committed(tmp_path, "next", kind)
    late.land([(OPEN, "own", 1)])
    found = late.waiting["payments"]
    assert (found.late, found.changed) == ({DAYS[1]: 2, DAYS[2]: 1}, ())
    reports = late.run(OPEN, last)
    assert [r.committed for r in reports] == [True] * (last - OPEN + 1)
    assert [r.noticed["payments"].late for r in reports[:1]] == [{DAYS[1]: 2, DAYS[2]: 1}]
    assert not any(r.noticed for r in reports[1:])
    assert reports[0].rows["landing/payments"] == 4
    ideal = of_rows([*IN_TIME, *at(OPEN), (OPEN, "own", 1)], last + 1)
    assert late.contents == ideal
    assert late.waiting == {}
    late.open()
    after = late.ran((last + 1, last + 1))
    assert after.contents == of_rows([*IN_TIME, *at(OPEN), (OPEN, "own", 1)], last + 2)


def test_late_rows_are_refused_until_they_are_accepted(tmp_path: Path, of_rows: Ideal) -> None:
    late = committed(tmp_path, "refuse")
    before = late.contents
    (report,) = late.run(OPEN, OPEN + 1)
    assert not report.committed
    assert report.judged
    assert "payments: late: 3 rows of 2026-01-02 (2), 2026-01-03 (1)" in report.problem
    assert "hydrotick correct small --from 2026-01-02" in report.cure
    assert "hydrotick accept small" in report.cure
    assert late.contents == before
    accepted = late.accept()["payments"]
    assert accepted.late == {DAYS[1]: 2, DAYS[2]: 1}
    assert late.accept() == {}
    told = late_status.late_rows(late.flow, late.runner)["payments"]
    assert (told.rows, told.then) == (3, "they arrive with the next tick")
    assert late.runner.decided_at(late.flow) is not None
    late.land([(0, "later", 1)])
    (report,) = late.run(OPEN, OPEN)
    assert "late: 1 row(s) of 2026-01-01" in report.problem
    late.accept()
    late.ran((OPEN, OPEN + 1))
    ideal = of_rows([*IN_TIME, *at(OPEN), (OPEN, "later", 1)], OPEN + 2)
    assert late.contents == ideal
    assert verify(late.runner.directory(late.flow), measure).problems == ()


def test_refused_rows_are_decided_by_a_correction(tmp_path: Path, of_rows: Ideal) -> None:
    late = committed(tmp_path, "refuse")
    window = late.flow.ticks.calendar.window(2)
    (report,) = late.runner.correct(late.flow, window, lambda _: None)
    assert not report.committed
    assert "late: 3 rows" in report.problem
    late.correct(1)
    late.ran((OPEN, OPEN))
    assert late.contents == of_rows([*IN_TIME, *LATE], OPEN + 1)


@pytest.mark.parametrize(
    "first", [pytest.param(n, marks=pytest.mark.slow) for n in (0, 2, OPEN)] + [1, OPEN + 1]
)
def test_a_correction_has_late_rows_where_they_belong_or_as_early_as_it_can(
    tmp_path: Path, of_rows: Ideal, first: int
) -> None:
    """From their own tick on they are where they belong; after it, and before they arrived, they
    arrive with its first tick; after they arrived they stay where they are.
    """
    late = committed(tmp_path, "next").ran((OPEN, OPEN), (OPEN + 1, OPEN + 1))
    late.correct(first)
    arrived = [row if row[0] >= first else (min(first, OPEN), *row[1:]) for row in LATE]
    assert late.contents == of_rows([*IN_TIME, *arrived], OPEN + 2)
    assert late.waiting == {}
    late.ran((OPEN + 2, OPEN + 2))
    assert late.contents == of_rows([*IN_TIME, *arrived], OPEN + 3)


def test_a_correction_from_within_a_range_knows_what_had_arrived(
    tmp_path: Path, of_rows: Ideal
) -> None:
    late = committed(tmp_path, "next", "parquet").ran((OPEN, OPEN + 2))
    late.land([(0, "later", 1)])
    reports = late.correct(OPEN + 1)
    # `prev` remembers the last tick alone, so the range is computed as a whole.
    assert reports[0].window.tick == OPEN
    assert late.contents == of_rows([*IN_TIME, *at(OPEN), (OPEN, "later", 1)], OPEN + 3)


@pytest.mark.parametrize("policy", ["next", "correct", "refuse"])
def test_rows_that_were_removed_are_never_silent(
    tmp_path: Path, of_rows: Ideal, policy: str
) -> None:
    late = Late(tmp_path, policy)
    late.land(IN_TIME)
    late.ran((0, 1), (2, 3))
    DeltaTable(late.place).delete("user = 'bob'")
    left = [row for row in IN_TIME if row[1] != "bob"]
    found = late.waiting["payments"]
    assert found.says_changed == "2026-01-01 (1 removed)"
    reports = late.run(OPEN, OPEN)
    if policy == "refuse":
        assert "payments: changed: 2026-01-01 (1 removed)" in reports[0].problem
        late.correct(0)
        late.ran((OPEN, OPEN))
    elif policy == "next":
        for tick in (OPEN, OPEN + 1):
            found = late.run(tick, tick)[0].noticed["payments"]
            assert found.says_changed == "2026-01-01 (1 removed)"
        assert late.contents == of_rows(IN_TIME, OPEN + 2)
        told = "".join(
            late_status.late_lines("small", late_status.late_rows(late.flow, late.runner))
        )
        assert "changed: `payments`: 2026-01-01 (1 removed)" in told
        assert "hydrotick correct small --from 2026-01-01" in told
        late.correct(0)
    ticks = late.runner.next_tick(late.flow)
    assert late.contents == of_rows(left, ticks)
    assert late.waiting == {}
    assert not late.run(ticks, ticks)[0].noticed


def test_what_was_accepted_is_not_told_again(tmp_path: Path) -> None:
    late = Late(tmp_path)
    late.land(IN_TIME)
    late.ran((0, 3))
    DeltaTable(late.place).delete("user = 'bob'")
    late.ran((OPEN, OPEN))
    assert late.waiting
    late.accept()
    assert late.waiting == {}
    assert not late.run(OPEN + 1, OPEN + 1)[0].noticed


class Crash(BaseException):
    """The process ends here, as far as the pipeline can tell."""


@pytest.mark.parametrize(
    "step",
    ["state/payments", pytest.param("tables", marks=pytest.mark.slow), "ledger"],
)
@pytest.mark.parametrize("policy", ["next", "correct"])
@pytest.mark.parametrize("nth", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_killed_at_a_step(tmp_path: Path, of_rows: Ideal, policy: str, step: str, nth: int) -> None:
    """Under `correct` the first commit is that of the correction, the second that of the tick."""
    late = committed(tmp_path, policy)
    seen = 0

    def stop(name: str) -> None:
        nonlocal seen
        seen += name == step
        if seen == nth and name == step:
            raise Crash(name)

    pipeline = late.runner.pipeline(late.flow)
    pipeline.step = stop
    try:
        late.run(OPEN, OPEN)
        late.run(OPEN + 1, OPEN + 1)
    except Crash:
        pipeline.lock.release()  # as the end of the process does
    late.open()
    done = late.runner.next_tick(late.flow)
    late.ran(*((tick, tick) for tick in range(done, OPEN + 2)))
    rows = [*IN_TIME, *(LATE if policy == "correct" else at(OPEN))]
    assert late.contents == of_rows(rows, OPEN + 2)


def test_another_process_that_corrects_meanwhile_is_noticed(
    tmp_path: Path, of_rows: Ideal, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, other = committed(tmp_path, "next"), None
    read = LandingReads.__call__

    def landed(reading: LandingReads, windows: Sequence[TickWindow]) -> Mapping[str, Batch]:
        nonlocal other
        found = read(reading, windows)
        if other is None:
            other = Late(tmp_path)
            other.correct(1)
        return found

    monkeypatch.setattr(LandingReads, "__call__", landed)
    (report,) = late.run(OPEN, OPEN)
    assert "another process has committed" in report.problem
    assert not report.judged
    late.ran((OPEN, OPEN))
    assert late.contents == of_rows([*IN_TIME, *LATE], OPEN + 1)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["next", "correct"])
@pytest.mark.parametrize("kind", ["delta", "parquet"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_arrive_at_random(
    tmp_path: Path, of_rows: Ideal, policy: str, kind: str, seed: int
) -> None:
    """Rows of any tick land at any time, and ticks are run alone and together."""
    moments = Random(f"{policy} {kind} {seed}")
    late = Late(tmp_path, policy, kind)
    as_read: list[Row] = []
    late.land([(0, "ann", 1)])
    as_read.append((0, "ann", 1))
    done = 0
    while done < 7:
        rows = [
            (moments.randint(0, 8), moments.choice("abc"), moments.randint(0, 9))
            for _ in range(moments.randint(1, 4))
        ]
        late.land(rows)
        as_read += [(r[0] if policy == "correct" else max(r[0], done), *r[1:]) for r in rows]
        if kind == "delta" and moments.random() < 0.3:
            DeltaTable(late.place).optimize.compact()
        last = done + moments.randint(0, 2)
        late.ran((done, last))
        late.open()
        done = last + 1
    assert late.contents == of_rows(as_read, done)
