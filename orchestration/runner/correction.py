"""Ticks of a flow run as ranges, and committed ticks corrected by what is landed now."""

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

from ..flows.landed_past import After, LandingReads, look, rows_read
from ..flows.late_arrivals import KEPT, as_kept, late_events, noticed
from ..quality.changed import CorrectionResult, RowsRead, changed
from .report import TickReport, checks_passed, committed, report_of_error, reports_of, tables_of

if TYPE_CHECKING:
    from hydro_core.spark.inputs.batches import Batch
    from hydro_core.spark.inputs.looks import LandingView
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.prepared import PreparedRange
    from hydro_core.spark.pipeline.rework import StagedPast

    from ..flows.flows import Flows, OneLook
    from ..quality.suites import Verdict


# If something in a range is wrong, fewer ticks are tried, so that all before the wrong one are
# committed, and it is the one that is named.


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


JudgeSample = Callable[["Pipeline", "PreparedRange"], "Iterator[tuple[str, Verdict]]"]
"""Gives verdicts on ticks that are written, by the outputs' names."""


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
    sample: JudgeSample | None = None
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
                found = self.sample(pipeline, prepared)
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


# Corrected ticks run beside the tables that serve, as ranges like any other, with every check
# judged, and take their place by one commit. If one of them fails, everything is as it was.


@dataclass(frozen=True, slots=True)
class CorrectionPlan:
    """What a correction would compute again: the ticks `first` to `last`, where `asked` was first.

    An earlier tick is the first where the past before the one that was asked for is gone, or where
    rows came late for it that have to be corrected.
    """

    asked: TickWindow
    first: TickWindow
    last: TickWindow
    why: str = ""
    """Why another tick than the one that was asked for is the first."""

    @property
    def ticks(self) -> int:
        return self.last.tick - self.first.tick + 1


def planned(flows: Flows, flow: FlowAsset, key: str) -> CorrectionPlan:
    """What a correction from a tick on would compute again.

    Raises:
        HydroError: there is no such tick, or it is not committed (code `state`).
    """
    from hydro_core.spark.pipeline.rework import first_again

    calendar = flow.ticks.calendar
    asked = calendar.window_of(key)
    done = flows.next_tick(flow)
    if asked.tick >= done:
        window = calendar.window
        raise DataError.of(
            "state",
            f"tick {asked.key} of `{flow.name}` is not committed, so there is nothing to correct",
            help=f"the committed ticks are {window(0).key} to {window(done - 1).key}"
            if done
            else f"run it: `hydrotick backfill {flow.name}`",
        )
    begin = first_to_correct(flows.asset(flow), look(flows, flow).seen, asked.tick)
    wanted = calendar.window(asked.tick if begin is None else begin)
    first = calendar.window(first_again(flows.pipeline(flow), wanted.tick))
    why = "" if wanted == asked else f"Something came or changed for {wanted.key}, too"
    why = why if first == wanted else f"The past before {wanted.key} is gone"
    return CorrectionPlan(asked, first, calendar.window(done - 1), why)


def correct(
    flows: Flows,
    flow: FlowAsset,
    first: TickWindow,
    log: Log,
    reading: LandingReads | None,
    computed_again: Callable[[Sequence[TickWindow]], None],
) -> Iterator[TickReport]:
    """Computes the ticks from `first` to the last committed one again, and reports each.

    Nothing is reported before their commit, and then all of them; or the one that fails. All ranges
    read what `reading` has seen, or what is landed now: the ledger has one state of the landings
    for all of them. `computed_again` is called with the ticks that have been computed.
    """
    from hydro_core.spark.inputs.looks import look_again
    from hydro_core.spark.pipeline.rework import correction

    def corrected() -> list[TickReport]:
        pipeline = flows.pipeline(flow)
        seen = (reading or look(flows, flow)).seen
        begin = first_to_correct(flows.asset(flow), seen, first.tick)
        begin = first.tick if begin is None else begin
        with faults_of(pipeline), correction(pipeline, begin) as rework:
            before = look_again(seen, rework.first)
            again = LandingReads(flows, flow, before)
            ranges = Ranges(flows.asset(flow), rework.staging, again, log)
            reports = run_staged(rework, ranges, flows.project.range_ticks, computed_again)
            if reports[-1].committed:
                gains = {name: one.gain for name, one in before.items()}
                reports = _replaced(flows, rework, reports, gains)
                log(str(reports[-1].corrected))
            return reports

    try:
        reports = with_another_jvm(corrected, log)
    except HydroError as error:
        reports = [report_of_error(first, error, judged=is_of_the_tick(error))]
    if not reports[-1].committed:
        cure = reports[-1].cure or "mend its cause and correct again"
        kept = "nothing was changed, all committed ticks are as they were"
        reports = [replace(reports[-1], cure=f"{cure}; {kept}")]
    yield from reports


def _replaced(
    flows: Flows,
    rework: StagedPast,
    reports: Sequence[TickReport],
    gains: Mapping[str, int | None],
) -> list[TickReport]:
    """The reports as they are once the ticks have taken the place of those before; each input has
    so many rows more, as `gains` says.
    """
    pipeline, staging = rework.serving, rework.staging
    ranges = list(parts(rework, flows.project.range_ticks))
    outputs = {
        name: changed(pipeline.store, staging.store, spec, ranges, lambda: pipeline.spark)
        for name, spec in pipeline.output_tables.items()
    }
    read = rows_read(pipeline.ledger.commits(), rework.first)
    commit = rework.replace(kept_for_checks(rework), gains)
    corrected = CorrectionResult(
        span(report.window.key for report in reports),
        commit.sequence,
        {one.name: RowsRead(one.rows or 0, read.get(one.name)) for one in commit.inputs},
        outputs,
    )
    tables = tables_of(pipeline)
    return [
        replace(report, commit=commit.sequence, corrected=corrected, tables=tables)
        for report in reports
    ]


def forget_lists(flows: Flows, flow: FlowAsset) -> None:
    """Removes old lists of files, where they take much; those that are read next stay."""
    from hydro_core.spark.inputs.snapshot import clear_listings

    needed = {name for read in flows.reads(flow).values() for name in read.lists}
    if needed:
        clear_listings(flows.directory(flow), needed)


def first_to_correct(
    flow: FlowAsset, seen: Mapping[str, LandingView], first: int | None = None
) -> int | None:
    """The first tick that has to be computed again; None: none has to be.

    Args:
        flow: whose inputs say what becomes of late rows.
        first: the tick that is the first anyway, if one is.

    Raises:
        DataError: there is something to decide first (code `input`).
    """
    _refuse_undecided(flow, seen, first)
    found = [] if first is None else [first]
    for name, one in seen.items():
        if flow.inputs[name].late == "correct":
            changed = (change.first for change in one.changed)
            found += [tick for tick in (one.arrivals.earliest, *changed) if tick is not None]
    return min(found, default=None)


def correction_due(flow: FlowAsset, flows: Flows, landings: OneLook | None = None) -> int | None:
    """The first committed tick that is to be computed again with what has landed; None: none is.

    Args:
        flow: the flow.
        flows: know its ledger and its landings.
        landings: the look at them, if others take it, too.

    Raises:
        HydroError: there is something to decide first, or a landing cannot be read.
    """
    decisive = [name for name, where in flow.inputs.items() if where.late != "next"]
    if not flows.next_tick(flow) or all(flow.inputs[n].late != "correct" for n in decisive):
        return None
    return first_to_correct(flow, look(flows, flow, landings, decisive, to_tell=True).seen)


def seen_again(flows: Flows, flow: FlowAsset, reading: LandingReads) -> LandingReads:
    """The same landings, as they were seen, after committed ticks were computed again with them."""
    from hydro_core.spark.inputs.looks import seen_after

    ledger = flows.deployments.ledger(flow)
    last = ledger.last
    if last is None:
        raise AssertionError("only what is committed is computed again")
    reads, directory = ledger.last_reads(), flows.directory(flow)
    with faults_as_errors(f"the landings of `{flow.name}`", vanished=True):
        seen = seen_after(reading.seen, last.last + 1, reads, directory)
    return LandingReads(flows, flow, seen, After(last.sequence))


def accept(flows: Flows, flow: FlowAsset, reading: LandingReads) -> None:
    """Accepts what came or changed for committed ticks, as it was seen: late rows arrive with the
    next tick, and changed ticks stay as they were read. The ledger says so.

    Raises:
        HydroError: another process is at work, or has committed since.
    """
    pipeline, directory = flows.pipeline(flow), flows.directory(flow)
    last = pipeline.ledger.refresh()
    if last is None or reading.after != After(last.sequence):
        raise overtaken(flow.name)
    reads = pipeline.ledger.last_reads()
    pipeline.decide([reading.seen[read.name].accepted(read, directory) for read in reads])


def _refuse_undecided(flow: FlowAsset, seen: Mapping[str, LandingView], before: int | None) -> None:
    """Raises where something came or changed that somebody has to decide on."""
    calendar = flow.ticks.calendar
    undecided = {
        name: one
        for name, one in seen.items()
        if flow.inputs[name].late == "refuse"
        and one.undecided.earliest is not None
        and (before is None or one.undecided.earliest < before)
    }
    if not undecided:
        return
    lines = []
    for name, one in undecided.items():
        found = noticed(calendar, one.undecided.late, one.undecided.changed)
        files = "".join(f"\n    in {file}" for file in one.undecided.files)
        lines += [f"  {name}: late: {found.says_late}{files}"] if found.late else []
        lines += [f"  {name}: changed: {found.says_changed}"] if found.changed else []
    earliest = min(e for one in undecided.values() if (e := one.undecided.earliest) is not None)
    raise DataError.of(
        "input",
        "rows came or changed for committed ticks, and the input refuses them until somebody "
        "decides:\n" + "\n".join(lines),
        help=f"`hydrotick correct {flow.name} --from {calendar.window(earliest).key}` computes "
        f"these ticks again with them; `hydrotick accept {flow.name}` lets late rows arrive "
        "with the next tick, and leaves changed ticks as they were read",
    )


def says(flow: FlowAsset, seen: Mapping[str, LandingView]) -> Iterator[str]:
    """What came or changed for committed ticks, a line for each input."""
    for name, one in seen.items():
        found = noticed(flow.ticks.calendar, one.arrivals.late, one.changed)
        if found.late:
            yield f"`{name}`: late: {found.says_late}"
        if found.changed:
            yield f"`{name}`: changed: {found.says_changed}"
