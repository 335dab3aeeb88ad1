"""`hydrotick backfill` runs the open ticks of a flow, `hydrotick correct` committed ones again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TextIO

from hydro_core.cli.command import Asked
from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import span

from ..flows.readiness import Ready
from ..project.console import Console, asked_flow, telling_computed
from ..project.logs import are_json, log
from ..quality.changed import CorrectionResult
from ..runner.correction import CorrectionPlan, correction_due, planned
from ..runner.runner import TickRunner
from ..worker.client import worker_answers
from .ticking import correct_ticks, run_ticks


def backfill(options: Asked) -> int:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    ready, last = runner.ready(flow), None
    if options.to:
        window = flow.ticks.calendar.window_of(options.to)
        ready.refuse(window)
        last = window.tick
    if options.first and not _begun(flow, runner, options.first, last, console):
        return 1
    console.give(_backfill(flow, runner, ready, last, console))
    return 0


def correct(options: Asked) -> int:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    plan = planned(runner, flow, options.first)
    found = _correct(flow, runner, plan, console)
    if found is None:
        return 1
    told = {
        "flow": flow.name,
        "first": plan.first.key,
        "last": plan.last.key,
        "ticks": plan.ticks,
        "commit": found.commit,
        "inputs": {name: asdict(read) for name, read in found.inputs.items()},
        "outputs": {name: asdict(changed) for name, changed in found.outputs.items()},
    }
    console.give(told)
    return 0


def _begun(
    flow: FlowAsset, runner: TickRunner, key: str, last: int | None, console: Console
) -> bool:
    """Whether the open ticks may follow: the committed ones from `--from` on are done again."""
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
    flow: FlowAsset, runner: TickRunner, ready: Ready, wanted: int | None, console: Console
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
    """The ticks, rows and time of a backfill."""

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
        """Notes that ticks are committed, which have read so many rows."""
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
        """Says something else, in a line of its own."""
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
