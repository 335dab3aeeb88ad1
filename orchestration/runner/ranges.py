"""Runs ticks of a flow as ranges on a pipeline: computed, judged as written, then committed.

If something in a range is wrong, fewer ticks are tried, so that all before the wrong one are
committed, and it is the one that is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from hydro_core.errors import (
    Code,
    DataError,
    Diagnostic,
    EngineEndedError,
    HydroError,
    InfrastructureError,
    InternalSparkError,
    TransientError,
)
from hydro_core.machine.faults import faults_as_errors
from hydro_core.plan.planner import in_parts, longest_range
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow, span

from ..flows.landed_past import After
from ..flows.late_arrivals import KEPT, as_kept, late_events
from .report import TickReport, checks_passed, committed, report_of_error, reports_of

if TYPE_CHECKING:
    from hydro_core.spark.inputs.batches import Batch
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.rework import StagedPast

    from ..quality.sample import Sample


T = TypeVar("T")
AGAIN = "Spark's JVM ended in the middle of the work: it begins again, with another one"


def with_another_jvm(work: Callable[[], T], say: Callable[[str], None]) -> T:
    """What the work gives; it is tried a second time, where the process that computes has ended.

    One that ends again is not given a third: it is too small for the work.
    """
    try:
        return work()
    except EngineEndedError:
        say(AGAIN)
        return work()


@contextmanager
def bugs_name_their_ticks(flow: str, ticks: str) -> Iterator[None]:
    """A bug within it, which comes again at every try, says where it was and what helps us."""
    try:
        yield
    except InternalSparkError as bug:
        bug.add_note(
            f"It happened in {ticks} of the flow `{flow}`, and happens at every try. Please send "
            "this text, the program, `asset.yaml`, and the folder `deployments` of the pipeline."
        )
        raise


Log = Callable[[str], None]

ReadBatches = Callable[[Sequence[TickWindow]], "Mapping[str, Batch]"]
"""Gives what has landed for ticks, by the inputs' names."""


class NotCommittedError(HydroError):
    """Ticks that were not committed: an error, or a check that does not hold."""

    def __init__(self, report: TickReport, code: Code = "runtime") -> None:
        super().__init__(Diagnostic(code, report.problem, help=report.cure))
        self.report = report
        """That of their first tick."""


class FailedTickError(NotCommittedError, DataError):
    """Ticks that were not committed, by the fault of one of them."""


class NotRunError(NotCommittedError, InfrastructureError):
    """Ticks that were not committed, by no fault of any of them."""


class EndedError(NotRunError, EngineEndedError):
    """Ticks that were not committed: what computes them ended, of a single tick twice."""


@contextmanager
def faults_of(pipeline: Pipeline) -> Iterator[None]:
    """Within it, what fails in a pipeline's directory or in Spark is an error for people."""
    from hydro_core.spark.executor.shell import failures_as_errors

    with (
        faults_as_errors(f"the pipeline in {pipeline.directory}"),
        failures_as_errors(directory=pipeline.directory),
    ):
        yield


@dataclass(frozen=True, slots=True)
class Ranges:
    """Runs ranges of a flow's ticks on a pipeline: the one that serves, or one beside it."""

    flow: FlowAsset
    pipeline: Pipeline
    read: ReadBatches
    log: Log
    refuse: Callable[[TickWindow], None] = lambda _: None
    """Raises for a tick that may not run."""
    after: After | None = None
    """What is read fits this state of the ledger; None: nobody else can commit."""
    sample: Sample | None = None
    """Judges what the plan gives by what the program gives."""

    def run(self, windows: Sequence[TickWindow]) -> Iterator[TickReport]:
        """Runs consecutive ticks, together if they can be, and reports each.

        After one that is not committed none is run.
        """
        first, last = windows[0].tick, windows[-1].tick

        def run(start: int, end: int) -> Sequence[TickReport]:
            return self._committed(windows[start - first : end - first + 1])

        longest = longest_range(self.pipeline.plan, self.pipeline.settings)
        try:
            for reports in in_parts(first, last, longest, run):
                yield from reports
        except NotCommittedError as failed:
            yield failed.report

    def _committed(self, windows: Sequence[TickWindow]) -> Sequence[TickReport]:
        """The reports of ticks that are committed together.

        Raises:
            NotCommittedError: they are not.
        """
        together = partial(self._together, windows)
        try:
            # Several ticks may have been too many for the process that ended: fewer are tried next.
            with bugs_name_their_ticks(self.flow.name, span(w.key for w in windows)):
                reports = together() if len(windows) > 1 else with_another_jvm(together, self.log)
        except HydroError as error:
            report = report_of_error(windows[0], error, judged=is_of_the_tick(error))
            if isinstance(error, EngineEndedError):
                raise EndedError(report, error.code) from error
            if isinstance(error, InfrastructureError):
                raise NotRunError(report, error.code) from error
            failed = FailedTickError(report, error.code)
        else:
            if reports[0].committed:
                return reports
            failed = FailedTickError(reports[0])
        if len(windows) > 1:
            ticks = span(window.key for window in windows)
            self.log(f"{ticks} cannot be committed together: {failed.report.problem}")
        raise failed

    def _together(self, windows: Sequence[TickWindow]) -> Sequence[TickReport]:
        """Computes ticks, writes them ahead of the ledger, and commits them if all checks hold.

        Raises:
            HydroError: something is wrong with the program, the data or the state.
        """
        from ..quality.judge import judge
        from ..quality.suites import refuse_more

        pipeline = self.pipeline
        first, last = windows[0].tick, windows[-1].tick
        if first > pipeline.next_tick:
            key = self.flow.ticks.calendar.window(pipeline.next_tick).key
            problem = f"it cannot run before {key}, the first that is not committed"
            cure = f"run {key} and those after it first"
            raise TransientError.of("state", problem, help=cure)
        pipeline.refuse_unless_next(first)
        self.refuse(windows[-1])
        with faults_as_errors(f"the landings of `{self.flow.name}`", vanished=True):
            batches = self.read(windows)
        times, ticks = self.flow.ticks.calendar.times(first, last), span(w.key for w in windows)
        with pipeline.prepare(first, last, batches, times=times) as prepared:
            self._refuse_overtaken()
            self.log(f"{ticks}: computed {sum(prepared.rows.values()):,} rows")
            prepared.write()
            refuse_more(self.flow, pipeline, prepared)
            judged = judge(self.flow, pipeline, prepared)
            if self.sample is not None:
                found = self.sample.judge(pipeline, prepared)
                judged = replace(judged, verdicts=[*judged.verdicts, *found])
            events = late_events(self.flow, windows, batches)
            reports = [
                replace(report, events=events.get(report.window.tick, {}))
                for report in reports_of(self.flow, windows, prepared, batches, judged, pipeline)
            ]
            if not reports[0].committed:
                return reports
            passed = checks_passed(judged.verdicts)
            kept = {"tables": judged.facts, "passed": passed, KEPT: as_kept(events)}
            commit = prepared.commit(kept)
            if self.after is not None:
                self.after.commit = commit.sequence
            for name, why in pipeline.published.behind.items():
                self.log(f"the table of `{name}` is behind, the next tick brings it up: {why}")
            self.log(f"{ticks}: committed after {len(judged.verdicts)} checks")
            return list(committed(reports, commit, pipeline))

    def _refuse_overtaken(self) -> None:
        """Raises if another process has committed since the landings were looked at: what is late
        may be another by now. The pipeline's lock is held.
        """
        last = self.pipeline.ledger.last
        now = -1 if last is None else last.sequence
        if self.after is not None and self.after.commit != now:
            raise overtaken(self.flow.name)


def overtaken(flow: str) -> TransientError:
    """The error that another process was faster (code `state`)."""
    return TransientError.of(
        "state",
        f"another process has committed to `{flow}` since its landings were looked at",
        help="run it again: it looks again at what is late by now",
    )


def is_of_the_tick(error: HydroError) -> bool:
    """Whether an error comes again whenever the tick is tried, until somebody changes something:
    the program, the data, the stored state, or what the flow's asset says is at fault.
    """
    return not isinstance(error, TransientError)


OnComputed = Callable[[Sequence[TickWindow]], None]
"""Called with ticks that have been computed."""


def run_staged(
    rework: StagedPast, ranges: Ranges, together: int, computed: OnComputed
) -> list[TickReport]:
    """The reports of all ticks of a rework; or the one of the tick that fails, and none after it.

    Args:
        together: how many make one range.
        computed: told of each range that is done.
    """
    reports: list[TickReport] = []
    for ticks in parts(rework, together):
        windows = [ranges.flow.ticks.calendar.window(tick) for tick in ticks]
        for report in ranges.run(windows):
            if not report.committed:
                return [report]
            reports.append(report)
        computed(windows)
    return reports


def parts(rework: StagedPast, together: int) -> Iterator[range]:
    """The ticks of a rework, so many at a time."""
    for tick in range(rework.first, rework.last + 1, together):
        yield range(tick, min(tick + together, rework.last + 1))


def kept_for_checks(rework: StagedPast) -> Mapping[str, Any]:
    """What the ledger keeps for the checks of ticks that have run beside."""
    from ..quality.judge import kept_of_all

    made = rework.staging.ledger.commits(since=rework.first)
    return {**made[-1].checks, "tables": kept_of_all(made)}
