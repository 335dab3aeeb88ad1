"""What passes through the driver where outputs are changes, tables, corrected or deployed anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from hydro_core.project.flow_asset import KeptOutput
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.store.outputs.published import PUBLISHED
from hydrotick.deploy.switch import compare, deploy
from hydrotick.quality.changed import ChangedRows
from hydrotick.quality.judge import measure
from tests.orchestration.late import Late
from tests.orchestration.test_what_passes_the_driver import Passed, begun, land

pytestmark = [pytest.mark.spark]

PROGRAM = """
payments = source("user string, amount long")
payments -> persist() -> aggregate(by="user", total=sum("amount")) -> totals
payments -> today
"""
"""One output is what each tick changes of it, the other has the rows of each tick."""
CHANGED = """
payments = source("user string, amount long")
payments -> persist() -> aggregate(by="user", total=sum("amount")) -> doubled
doubled = with_columns(total=lambda t: 2 * t.total) -> totals
payments -> with_columns(amount=lambda p: p.amount + 1) -> today
"""
TABLES = dict.fromkeys(("totals", "today"), KeptOutput("table"))


class Told:
    """What of a flow with many keys is told, step by step, and what passes of each step."""

    def __init__(self, home: Path, rows: int, bound: int, patch: pytest.MonkeyPatch) -> None:
        self.rows, self.late = rows, begun(home, bound, patch)
        self.late.edit(PROGRAM)
        self.late.flow = replace(self.late.flow, outputs=TABLES)

    def steps(self, *, every: bool) -> Iterator[tuple[str, Passed]]:
        """Ticks, a correction, and a deployment from a tick on, each with what passes of it; with
        `every` a tick that is judged again and programs that are compared, too.
        """
        rows, late = self.rows, self.late
        yield from self._step("first", lambda: self._tick(0, range(rows)))
        yield from self._step("grown", lambda: self._tick(1, range(rows, 2 * rows)))
        yield from self._step("changed", lambda: self._tick(2, range(rows // 2, 2 * rows)))
        self.say(rows * 2, {1: rows // 2, 2: rows * 3 // 2})
        land(late, 1, range(3 * rows, 4 * rows))
        yield from self._step("corrected", self._correct)
        self.say(rows * 3, {1: rows * 3 // 2, 2: rows * 3 // 2})
        if every:
            yield from self._step("judged", self._judge)
        late.edit(CHANGED)
        late.open()
        if every:
            yield from self._step("compared", self._compare)
        yield from self._step("deployed", self._deploy)
        self.say(rows * 3, {2: rows * 3 // 2, 4: rows * 3 // 2})

    def say(self, count: int, totals: dict[int, int]) -> None:
        """That the tables hold so many rows in all, and so many users with each total."""
        place = Path(str(late_directory(self.late))) / PUBLISHED
        found = DeltaTable(place / "totals").to_pyarrow_table()
        assert Counter(found["total"].to_pylist()) == totals
        assert len(set(found["user"].to_pylist())) == found.num_rows == count
        assert DeltaTable(place / "today").to_pyarrow_table().num_rows == self.rows * 3 // 2
        assert verify(late_directory(self.late), measure).problems == ()

    def _step(self, name: str, work: Callable[[], None]) -> Iterator[tuple[str, Passed]]:
        passed = Passed()
        with passed.counting():
            work()
        yield name, passed

    def _tick(self, tick: int, users: range) -> None:
        land(self.late, tick, users)
        self.late.ran((tick, tick))
        assert self.late.runner.pipeline(self.late.flow).published.behind == {}

    def _correct(self) -> None:
        *_, report = self.late.correct(1)
        # New keys stand at two ticks; those of tick 1 arrive there again.
        assert report.corrected is not None
        outputs = report.corrected.outputs
        assert outputs["totals"] == ChangedRows(2 * self.rows, 0)
        assert outputs["today"] == ChangedRows(self.rows, 0)

    def _judge(self) -> None:
        window = self.late.flow.ticks.calendar.window(2)
        verdicts = self.late.runner.judge_again(self.late.flow, window, "totals")
        assert len(verdicts) > 3
        assert all(verdict.passed for verdict in verdicts), verdicts

    def _compare(self) -> None:
        found = compare(self.late.planned(), self.late.runner, 1, lambda _: None)
        rows = self.rows
        assert found["totals"] == ChangedRows(3 * rows, 3 * rows)
        assert found["today"] == ChangedRows(rows * 3 // 2, rows * 3 // 2)

    def _deploy(self) -> None:
        window = self.late.flow.ticks.calendar.window(2)
        deploy(self.late.planned(first=window), self.late.runner, lambda _: None)
        self.late.open()


def late_directory(late: Late) -> Path:
    found = late.runner.directory(late.flow)
    assert isinstance(found, Path)
    return found


def passed_of(
    tmp_path: Path, rows: int, bound: int, *, every: bool = False
) -> dict[str, tuple[int, int]]:
    """How many rows pass of each step, by jobs and of tables."""
    with pytest.MonkeyPatch.context() as patch:
        told = dict(Told(tmp_path / str(rows), rows, bound, patch).steps(every=every))
    for step, passed in told.items():
        assert passed.piece <= bound, step
        # Of what was small before, each partition of each table gives so many and one, once.
        assert passed.of_jobs + passed.of_tables <= 8 * (bound + 1) + 20, step
    return {step: (passed.of_jobs, passed.of_tables) for step, passed in told.items()}


def test_few_rows_pass_whatever_changes(spark: SparkSession, tmp_path: Path) -> None:
    assert spark is not None
    assert passed_of(tmp_path, 2_400, 100)


@pytest.mark.slow
def test_as_few_rows_pass_of_many_changes(spark: SparkSession, tmp_path: Path) -> None:
    assert spark is not None
    bound = 20_000
    few, many = (passed_of(tmp_path, rows, bound, every=True) for rows in (80_000, 320_000))
    for step, passed in many.items():
        # A look that found fewer than it may take finds as many as that, no more.
        assert sum(passed) - sum(few[step]) <= bound + 1, step
