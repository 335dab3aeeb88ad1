"""`hydrotick backfill`, `correct` and `demo`: ticks as Dagster runs in this process.

Each tick is a run of the flow's job for one partition, recorded in the project's instance, so the
UI shows it like any other. Spark starts once, with the first tick.

Somebody sits in front of it. So Ctrl-C is recorded as what it is, a run that somebody terminated,
and not as a failure, which would be tried again by the flow's sensor.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TextIO

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator
from dagster._core.utils import make_new_run_id
from dagster._utils.interrupts import check_captured_interrupt
from dagster_shared.error import SerializableErrorInfo

from hydro_core.cli import output
from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.output import Result
from hydro_core.errors import DataError, shown_file
from hydro_core.machine.locks import this_process
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.storage.remote import DataPlace, RemotePath
from hydro_core.ticks.calendar import TickWindow, span
from hydro_core.types.records import as_record

from ..code_location.factory import project_definitions
from ..code_location.records import end_orphans, refuse_lost_pipeline, unrecorded
from ..flows.readiness import ReadyTicks
from ..instance.opening import open_instance
from ..instance.run_tags import CORRECT, CORRECT_TAG, PARTITION, process_tag, range_tags
from ..project import project
from ..project.console import Console, asked_flow, telling_computed
from ..project.logs import are_json, log
from ..quality.changed import CorrectionResult
from ..runner.correction import CorrectionPlan, correction_due, planned
from ..runner.report import TickReport
from ..runner.runner import TickRunner
from ..worker.client import worker_answers


def backfill(options: Asked) -> Result:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    ready, last = runner.ready(flow), None
    if options.to:
        window = flow.ticks.calendar.window_of(options.to)
        ready.refuse(window)
        last = window.tick
    if options.first and not _begun(flow, runner, options.first, last, console):
        return Result(code=1)
    return Result(_backfill(flow, runner, ready, last, console))


def correct(options: Asked) -> Result:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    plan = planned(runner, flow, options.first)
    corrected = _correct(flow, runner, plan, console)
    if corrected is None:
        return Result(code=1)
    return Result(
        {
            "flow": flow.name,
            "first": plan.first.key,
            "last": plan.last.key,
            "ticks": plan.ticks,
            "commit": corrected.commit,
            "inputs": as_record(corrected.inputs),
            "outputs": as_record(corrected.outputs),
        }
    )


def _begun(
    flow: FlowAsset, runner: TickRunner, key: str, last: int | None, console: Console
) -> bool:
    """Recomputes the committed ticks from `--from` on; False if that is not agreed to."""
    calendar, done = flow.ticks.calendar, runner.next_tick(flow)
    first, window = calendar.window_of(key), calendar.window
    if first.tick == done:
        return True
    if first.tick > done:
        message = f"tick {first.key} cannot be the first: {window(done).key} before it is open"
        cure = f"begin with `--from {window(done).key}`, or leave it out"
        raise DataError.of("config", message, help=cure)
    if last is not None and last < done - 1:
        raise DataError.of(
            "config",
            f"ticks cannot be computed again up to {window(last).key} alone: those after it come "
            "of them",
            help=f"leave out `--to`, or name a tick from {window(done - 1).key} on",
        )
    return _correct(flow, runner, planned(runner, flow, key), console) is not None


def _backfill(
    flow: FlowAsset, runner: TickRunner, ready: ReadyTicks, wanted: int | None, console: Console
) -> dict[str, object]:
    """Runs the ticks up to the one that was asked for, else up to the last that may run; gives what
    that did, as JSON has it.
    """
    last = ready.until - 1 if wanted is None else wanted
    begun, window = runner.next_tick(flow), flow.ticks.calendar.window
    if begun > last:
        why = ready.why if begun >= ready.until else "later ticks were not asked for"
        committed = f"the last one is {window(begun - 1).key}; " if begun else ""
        done = f"{begun:,} tick(s) are committed, {committed}"
        console.say(f"{flow.name}: nothing is open: {done}{why}")
        if wanted is None:
            # The next open tick would have them computed again before it runs.
            tick = correction_due(flow, runner)
            if tick is not None:
                _warm_up(runner)
                plan = planned(runner, flow, window(tick).key)
                late = span([plan.first.key, plan.last.key])
                says = f"rows came or changed for {late}, which are computed again"
                console.say(f"{flow.name}: {says}")
                console.say(*correct_ticks(flow, runner, plan).lines)
        return {"flow": flow.name, "ticks": 0, "committed": begun, "why": why}
    _warm_up(runner)
    began = time.monotonic()
    together, total = runner.project.range_ticks, last - begun + 1
    progress = Progress(total, console.to)
    runner.progress = progress.say
    with progress.shown():
        for ran in run_ticks(flow, runner, last, lambda _: None, together=together):
            ticks = ran.window.tick - ran.first.tick + 1
            made = runner.deployments.ledger(flow).commits(since=ran.first.tick)
            reads = (read for one in made if one.last <= ran.window.tick for read in one.inputs)
            read = sum(one.rows or 0 for one in reads)
            progress.done(span([ran.first.key, ran.window.key]), ticks, read, ran.seconds)
    spent = time.monotonic() - began
    console.say(f"{flow.name}: {total:,} tick(s), {progress.rows:,} rows read, in {spent:.1f} s")
    return {
        "flow": flow.name,
        "ticks": total,
        "committed": last + 1,
        "first": window(begun).key,
        "last": window(last).key,
        "rows": progress.rows,
        "seconds": round(spent, 1),
    }


def _warm_up(runner: TickRunner) -> None:
    """Has what this process needs for ticks, unless a worker runs them."""
    if not worker_answers(runner.project):
        runner.warm_up()


def _correct(
    flow: FlowAsset, runner: TickRunner, plan: CorrectionPlan, console: Console
) -> CorrectionResult | None:
    """Says what would be done, asks, and does it; None where it was not wanted."""
    ticks = f"{span([plan.first.key, plan.last.key])} ({plan.ticks:,} tick(s))"
    console.say(f"{flow.name}: {ticks} are computed again from what is landed now, in one commit.")
    if plan.first != plan.asked:
        console.say(f"  {plan.why}: {plan.first.key} is the first.")
    if not console.agreed():
        return None
    _warm_up(runner)
    began = time.monotonic()
    runner.computed_again = telling_computed(console.say, plan.ticks, plan.first.tick)
    corrected = correct_ticks(flow, runner, plan)
    spent = time.monotonic() - began
    console.say(f"{flow.name}: corrected in {spent:.1f} s (commit {corrected.commit})")
    console.say(*corrected.lines)
    return corrected


_SECONDS = 0.5
_BAR = 24
_CLEAR = "\r\033[K"


class Progress:
    def __init__(self, total: int, to: TextIO) -> None:
        self.ticks, self.rows = 0, 0
        self._total, self._to = total, to
        self._began = time.monotonic()
        self._first = 0.0
        """When the first range was done, which waited for Spark to start."""
        self._waited = 0
        self._live = to.isatty() and not are_json()
        self._lock = threading.Lock()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Within it the line on a terminal follows the clock, too."""
        if not self._live:
            yield
            return
        ended = threading.Event()

        def follow() -> None:
            while not ended.wait(_SECONDS):
                self._draw()

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join()
            self._write(_CLEAR)

    def done(self, what: str, ticks: int, rows: int, seconds: float) -> None:
        self.ticks += ticks
        self.rows += rows
        if not self._first:
            self._first, self._waited = time.monotonic(), self.ticks
        if self._live:
            self._draw()
        else:
            took = f"{ticks} tick(s) committed in {seconds:.1f} s"
            self.say(f"{what}: {took}; {self._state(' done')}")

    def say(self, text: str) -> None:
        if are_json():
            log("progress", text)
            return
        self._write(f"{_CLEAR if self._live else ''}{text}\n")

    def _draw(self) -> None:
        filled = _BAR * self.ticks // self._total
        bar = "█" * filled + "·" * (_BAR - filled)
        spent = _clock(time.monotonic() - self._began)
        self._write(f"{_CLEAR}{bar} {self._state(' ticks')}, {spent} so far")

    def _state(self, unit: str) -> str:
        parts = [f"{self.ticks:,} of {self._total:,}{unit}", f"{self.rows:,} rows read"]
        rate = self._rate()
        if rate is not None:
            parts.append(f"{rate:,.1f} ticks/s")
            if self.ticks < self._total:
                parts.append(f"{_clock((self._total - self.ticks) / rate)} left")
        return ", ".join(parts)

    def _rate(self) -> float | None:
        """Ticks in a second; None before anything is known."""
        if not self.ticks:
            return None
        ticks, since = self.ticks - self._waited, self._first
        if not ticks:
            # The first range waited for Spark: of the time that is left it says too much.
            ticks, since = self.ticks, self._began
        return ticks / max(time.monotonic() - since, 0.001)

    def _write(self, text: str) -> None:
        with self._lock:
            self._to.write(text)
            self._to.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_INTERRUPTS = ("DagsterExecutionInterruptedError", "KeyboardInterrupt")
_SAYS = "Somebody interrupted it where it was started (Ctrl-C)."


@dataclass(frozen=True, slots=True)
class RunHere:
    """A run that has ended: whether all of it succeeded, and what the first failed step raised,
    from the outermost error to its cause.
    """

    success: bool
    errors: Sequence[SerializableErrorInfo]

    @property
    def reason(self) -> str:
        """Why it failed: the innermost cause."""
        return self.errors[-1].to_string() if self.errors else "the run failed"


def run_here(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    keys: tuple[str, str],
    more: Mapping[str, str] | None = None,
) -> RunHere:
    """Executes a job for the ticks from one key to another, as one run of this process.

    Args:
        instance: where the run is recorded.
        keys: those of the first and the last tick.
        more: tags of the run beside those that it needs.

    Raises:
        KeyboardInterrupt: Ctrl-C came; the run is recorded as terminated, unless it was done by
            then.
    """
    ticks = {PARTITION: keys[0]} if keys[0] == keys[1] else range_tags(*keys)
    number = make_new_run_id()
    tags = {**job.run_tags, **process_tag(number, this_process()), **ticks, **(more or {})}
    run = instance.create_run_for_job(job, run_id=number, run_config=_QUIET, tags=tags)
    interrupted = False
    errors: list[SerializableErrorInfo] = []
    try:
        for event in execute_run_iterator(InMemoryJob(job), run, instance):
            # Dagster asks how the run stands before it says how it has ended.
            if not errors:
                errors = list(_errors(event))
                if any(error.cls_name in _INTERRUPTS for error in errors):
                    interrupted = True
                    instance.report_run_canceling(run, _SAYS)
            # What comes between two steps is noted by Dagster, and forgotten with the run.
            interrupted |= check_captured_interrupt()
    except KeyboardInterrupt:
        if not _ended(instance, run).is_finished:
            instance.report_run_canceled(run, _SAYS)
        raise
    if interrupted:
        raise KeyboardInterrupt
    return RunHere(_ended(instance, run).is_success, errors)


def _ended(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRun:
    return instance.get_run_by_id(run.run_id) or run


def _errors(event: dg.DagsterEvent) -> Iterator[SerializableErrorInfo]:
    error = event.step_failure_data.error if event.is_step_failure else None
    while error is not None:
        yield error
        error = error.cause


@dataclass(frozen=True, slots=True)
class TickDone:
    first: TickWindow
    window: TickWindow
    report: TickReport
    seconds: float


def run_ticks(
    flow: FlowAsset,
    runner: TickRunner,
    last: int,
    started: Callable[[TickWindow], None],
    *,
    together: int = 1,
) -> Iterator[TickDone]:
    """Runs the ticks after the last committed one up to `last`, and gives each when it is done.

    `started` is called with each tick before it runs; `together` says how many make one run. Before
    the first, what a killed process left behind in Dagster's records is put right.

    Raises:
        DataError: a tick failed; the ticks before it are committed, it is not.
    """
    calendar = flow.ticks.calendar
    with _job_of(flow, runner) as (job, instance):
        for tick in range(runner.next_tick(flow), last + 1, together):
            first, window = calendar.window(tick), calendar.window(min(tick + together - 1, last))
            started(first)
            begin = time.monotonic()
            result = run_here(job, instance, (first.key, window.key))
            report = runner.last_report(flow)
            if not result.success or report is None or not report.committed:
                raise _failed(flow, first, report, result)
            yield TickDone(first, window, report, time.monotonic() - begin)


def correct_ticks(flow: FlowAsset, runner: TickRunner, planned: CorrectionPlan) -> CorrectionResult:
    """Computes committed ticks again in one run, and says what that has done.

    Raises:
        DataError: one of them failed; everything is as it was.
    """
    with _job_of(flow, runner) as (job, instance):
        keys = planned.asked.key, planned.last.key
        result = run_here(job, instance, keys, {CORRECT_TAG: CORRECT})
        report = runner.last_report(flow)
        if not result.success or report is None or report.corrected is None:
            raise _failed(flow, planned.asked, report, result)
        return report.corrected


def record_deployed(flow: FlowAsset, runner: TickRunner) -> None:
    """Records the ticks that another deployment has restated, and what else is not recorded yet."""
    with open_instance(runner.project.dagster_home) as instance:
        record_committed(flow, runner, instance)


@contextmanager
def _job_of(
    flow: FlowAsset, runner: TickRunner
) -> Iterator[tuple[dg.JobDefinition, dg.DagsterInstance]]:
    """The flow's job and the instance that records it, with what was left behind put right."""
    with open_instance(runner.project.dagster_home) as instance:
        end_orphans(instance, flow)
        refuse_lost_pipeline(instance, flow, runner)
        # What is wrong with a program is said by it, and not by Dagster.
        runner.deployments.prepare(flow)
        job = project_definitions([flow], runner).resolve_job_def(f"{flow.name}_job")
        record_committed(flow, runner, instance)
        yield job, instance


def record_committed(
    flow: FlowAsset, runner: TickRunner, instance: dg.DagsterInstance
) -> list[tuple[TickWindow, TickWindow]]:
    """Ticks that were committed, but not recorded before the process ended, are recorded now.

    Gives them, as ranges. It takes one run, which computes nothing.
    """
    missing = unrecorded(flow, runner, instance)
    if missing:
        job = project_definitions([flow], runner).resolve_job_def(f"{flow.name}_job")
        first, last = missing[0]
        run_here(job, instance, (first.key, last.key))
    left = unrecorded(flow, runner, instance) if missing else []
    return [ticks for ticks in missing if ticks not in left]


def _failed(
    flow: FlowAsset, first: TickWindow, report: TickReport | None, result: RunHere
) -> Exception:
    name = f"tick {(report.window if report else first).key} of `{flow.name}`"
    if report is None or report.committed:
        return RuntimeError(f"{name} failed: {result.reason}")
    return DataError.of(
        "runtime",
        f"{name} failed: {report.problem}",
        help=report.cure
        or "mend its cause and run it again; the ticks before it are committed and stay",
    )


_FLOW = "flights"
_DAYS = 7
_SHOWN = 8
_LINE = "  {:<12}{:>11}{:>12}{:>17}{:>8}{:>9}"


def demo(options: Asked) -> Result:
    days = options.days
    found = project.current()
    flow = next((flow for flow in found.flows if flow.name == _FLOW and flow.land), None)
    if flow is None or flow.land is None:
        raise DataError.of(
            "config",
            f"the demo is that of hydrotick's repository: this project has no flow `{_FLOW}`",
            help="run it there; `hydrotick init DIR` makes a project that runs",
        )
    calendar = flow.ticks.calendar
    if not 1 <= days <= (calendar.count or days):
        raise MisuseError(f"--days takes 1 to 365, not {days}")
    runner = TickRunner(found.settings)
    _say("Departures from New York in 2013: every day is a tick, and a Dagster run.\n")
    _say(f"Landing the data below {_shown(runner.project.landing)} … ", end="")
    flow.land(runner.project.landing)
    _say("336,776 flights, hourly weather, planes, airlines, airports.")
    _run(runner, flow, days)
    _results(runner, flow)
    _farewell(runner, flow)
    return Result()


def _run(runner: TickRunner, flow: FlowAsset, days: int) -> None:
    done = runner.next_tick(flow)
    if done:
        _say(f"{done} day(s) are committed from before.")
    if done >= days:
        return
    runner.warm_up()
    _say("Starting Dagster and Spark; the first day waits for both.\n")

    _say(_LINE.format("day", "departures", "new routes", "back in service", "checks", "time"))
    for tick in run_ticks(flow, runner, days - 1, _started):
        rows = {name: f"{count:,}" for name, count in tick.report.rows.items()}
        counts = [rows[name] for name in ("departures", "new_routes", "back_in_service")]
        held = f"{sum(verdict.passed for _, verdict in tick.report.verdicts)} ok"
        line = _LINE.format(tick.window.key, *counts, held, f"{tick.seconds:.1f} s")
        _say(("\r" if sys.stdout.isatty() else "") + line)


def _started(window: TickWindow) -> None:
    if sys.stdout.isatty():
        _say(f"  {window.key:<12}…", end="")


def _results(runner: TickRunner, flow: FlowAsset) -> None:
    pipeline = runner.pipeline(flow)
    statistics = pipeline.output("delay_statistics", every=True).to_pandas()
    last = date.fromisoformat(flow.ticks.calendar.window(runner.next_tick(flow) - 1).key)
    latest = statistics.sort_values("tick").groupby(["carrier", "origin"]).tail(1)
    busy = latest[latest["flights"] >= latest["flights"].median()].copy()
    busy["late share"] = busy["late"] / busy["flights"]
    worst = busy.sort_values("late share", ascending=False).head(_SHOWN)
    _say(
        f"\nWho keeps New York waiting, from January 1 to {last:%B} {last.day}: the busier half of"
    )
    _say("carriers and airports, by their share of departures more than 15 minutes late.\n")
    _say(f"  {'carrier':<9}{'from':<6}{'flights':>8}{'late':>7}{'share':>8}{'longest delay':>16}")
    for row in worst.to_dict("records"):
        hours, minutes = divmod(int(row["longest_delay"]), 60)
        _say(
            f"  {row['carrier']:<9}{row['origin']:<6}{row['flights']:>8,}{row['late']:>7,}"
            f"{row['late share']:>8.0%}{f'{hours} h {minutes:02} min':>16}"
        )


def _farewell(runner: TickRunner, flow: FlowAsset) -> None:
    directory = runner.directory(flow)
    _say(f"\nThe tables are Delta tables below {_shown(directory)}:")
    pipeline = runner.pipeline(flow)
    _say(f"  outputs/   {', '.join(pipeline.output_tables)}")
    _say(f"  state/     what ticks remember: {', '.join(pipeline.state_tables)}")
    _say("  _ledger/   a row for every committed tick")
    command = Path(sys.executable).parent / "hydrotick"
    _say(f"\nMore days:                  {shown_file(command)} demo --days 31")
    _say(f"Lineage, runs and checks:   {shown_file(command)} dev")


def _shown(path: DataPlace) -> str:
    return f"{path if isinstance(path, RemotePath) else shown_file(path)}/"


def _say(text: str, end: str = "\n") -> None:
    output.write(text + end)
