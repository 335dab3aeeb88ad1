"""Ticks as their windows close, in order: what runs next, or why nothing does.

A tick whose next try would say the same (a check, the program, the data, the stored state or what
the asset says is at fault) stops its flow until somebody runs it again. A run that failed for what
may pass (Spark, the disk, the network, a killed process, another process at work) is tried again,
after longer and longer pauses, with fewer ticks at once, and not for ever. A run that somebody
terminated is left to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

from hydro_core.errors import DataError, ProgramError, TransientError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.store.ledger.lock import long_work
from hydro_core.ticks.calendar import TickWindow, span

from ..flows.flows import Flows, OneLook
from ..instance.run_tags import IN_FLIGHT, WAITING, keys_of, runs_it_again
from ..runner.correction import correction_due

if TYPE_CHECKING:
    import dagster as dg

    from .records import Attempt

MOST_TRIES = 6
"""A machine that fails so often in a row, over an hour, wants somebody to look."""

_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class NextRun:
    """What runs next, from a tick to another, or None; why, in words; whether that is for good.

    With `again` the ticks are committed, and are computed again. With `busy` a run goes on, as far
    as Dagster's records say. Where the flow does not go on though nothing stopped it (`goes_on`),
    it is not known what may run, or rows that were read are gone.
    """

    ticks: tuple[TickWindow, TickWindow] | None
    says: str
    stopped: bool = False
    again: bool = False
    busy: bool = False
    goes_on: bool = True


def next_run(flow: FlowAsset, flows: Flows, instance: dg.DagsterInstance | None) -> NextRun:
    """What runs next of a flow, or why nothing does.

    Args:
        flows: knows its ledger and what has landed.
        instance: Dagster's records; None: they have nothing that the ledger does not say.
    """
    try:
        return _next_run(flow, flows, instance)
    except TransientError as error:
        # A store that does not answer stops nothing: the next look may know more.
        return NextRun(None, f"which ticks may run is not known: {error}", goes_on=False)


def _next_run(flow: FlowAsset, flows: Flows, instance: dg.DagsterInstance | None) -> NextRun:
    try:
        flows.plan(flow)
    except (DataError, ProgramError) as error:
        why = "" if error.code in ("state", "config") else ", its program does not compile"
        return NextRun(None, f"nothing can run{why}:\n{error}", True)
    tries: Sequence[Attempt] = ()
    again: Sequence[Attempt] = ()
    if instance is not None:
        from .records import attempts_at, corrections_tried

        first = _by_records(flow, flows, instance)
        if first is not None:
            return first
        tries = attempts_at(flow, flows, instance, flows.next_tick(flow))
        again = corrections_tried(flow, flows, instance)
    work = long_work(flows.directory(flow))
    if work:
        return NextRun(None, f"it waits for {work}")
    return _next_open(flow, flows, tries, again)


def _by_records(flow: FlowAsset, flows: Flows, instance: dg.DagsterInstance) -> NextRun | None:
    """Obstacle to the next tick in Dagster's records; None: there is none."""
    from .records import attempts_at, refuse_lost_pipeline, runs_of, unrecorded

    busy = runs_of(flow, instance, IN_FLIGHT)
    if busy:
        run, since = busy[-1].dagster_run, moment(busy[-1].create_timestamp)
        state = "waits in the queue" if run.status.value in WAITING else "is running"
        says = f"{span(keys_of(run.tags))} {state} since {since} (run {run.run_id})"
        return NextRun(None, says, busy=True)
    try:
        refuse_lost_pipeline(instance, flow, flows)
    except DataError as error:
        return NextRun(None, error.diagnostics[0].message, stopped=True)
    missing = unrecorded(flow, flows, instance)
    if not missing:
        return None
    first, last = missing[0]
    tries = attempts_at(flow, flows, instance, first.tick)
    are, it = ("is", "it is") if first == last else ("are", "they are")
    says = f"{in_words(first, last)} {are} committed, but not recorded: {it} recorded"
    return _unless_failed(flow, tries, flows.now()) or NextRun((first, last), says)


def in_words(first: TickWindow, last: TickWindow) -> str:
    return f"{'tick' if first == last else 'the ticks'} {span([first.key, last.key])}"


def moment(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"


def _next_open(
    flow: FlowAsset, flows: Flows, tries: Sequence[Attempt], again: Sequence[Attempt]
) -> NextRun:
    calendar, tick = flow.ticks.calendar, flows.next_tick(flow)
    landings = flows.one_look(flow, to_tell=True)
    try:
        ready = flows.ready(flow, landings)
    except (DataError, ProgramError) as error:
        return NextRun(None, f"which ticks may run is not known: {error}", goes_on=False)
    if tick >= ready.until:
        due = None if ready.held else _due(flow, flows, again, landings)
        state = "held" if ready.held else "up to date"
        says = "complete: every tick of the flow is committed"
        if not ready.has_ended:
            says = f"{state}; tick {calendar.window(tick).key} is next: {ready.why}"
        return due or NextRun(None, says, goes_on=not ready.held)
    waits = _unless_failed(flow, tries, flows.now(), calendar.window(tick))
    if waits:
        return waits
    # What was too much for the machine may be little enough in smaller parts.
    together = max(1, flows.project.range_ticks >> len(_tries_in_a_row(tries)))
    first, last = calendar.window(tick), calendar.window(min(tick + together, ready.until) - 1)
    waiting = ready.until - tick
    return NextRun((first, last), f"{in_words(first, last)} may run; {waiting:,} open in all")


def _due(
    flow: FlowAsset, flows: Flows, tries: Sequence[Attempt], landings: OneLook
) -> NextRun | None:
    """The committed ticks that are to be computed again where no open one may run, which would do
    so first: their flow may have ended, or its next window may be long.
    """
    try:
        tick = correction_due(flow, flows, landings)
    except (DataError, ProgramError):
        # What is wrong with a landing is told by what runs next.
        return None
    if tick is None:
        return None
    calendar = flow.ticks.calendar
    first, last = calendar.window(tick), calendar.window(flows.next_tick(flow) - 1)
    verb = "is" if first == last else "are"
    again = f"{in_words(first, last)} {verb} computed again"
    waits = _unless_failed(flow, tries, flows.now(), first)
    return waits or NextRun((first, last), f"{again}: rows came or changed for them", again=True)


def _unless_failed(
    flow: FlowAsset, tries: Sequence[Attempt], now: datetime, window: TickWindow | None = None
) -> NextRun | None:
    """Why the last try keeps the next one waiting; None if it does not."""
    if not tries:
        return None
    last = tries[0]
    tick = f"tick {window.key}" if window else "the record"
    again = f"{runs_it_again(flow.name)} (run {last.run.run_id})"
    if last.terminated:
        return NextRun(None, f"{tick} was terminated at {moment(last.ended)}: {again}", True)
    if last.judged:
        wrong = f"{tick} failed, and would again: stopped since {moment(last.ended)}"
        return NextRun(None, f"{wrong}; repair its cause, then {again}", True)
    failed = len(_tries_in_a_row(tries))
    if failed >= MOST_TRIES:
        given_up = f"{tick} failed {failed} times, stopped since {moment(last.ended)}"
        return NextRun(None, f"{given_up}; repair the cause, then {again}", True)
    due = last.ended + min(_FIRST_PAUSE * 2 ** (failed - 1), _LONGEST_PAUSE)
    if now < due:
        failing = f"{tick} failed at {moment(last.ended)}, try {failed} of {MOST_TRIES}"
        return NextRun(None, f"{failing}: it is tried again after {moment(due)}")
    return None


def _tries_in_a_row(tries: Sequence[Attempt]) -> list[Attempt]:
    return list(takewhile(lambda attempt: not (attempt.judged or attempt.terminated), tries))
