"""`hydrotick status` and `accept`: committed ticks, late rows, failures, the next tick of flows."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import yaml

from hydro_core.cli.command import Asked
from hydro_core.cli.output import Result
from hydro_core.errors import DataError, HydroError, ProgramError, shown_file
from hydro_core.machine.locks import has_ended
from hydro_core.project.discover import no_flows
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.functions.reruns import CURE
from hydro_core.ticks.calendar import span
from hydro_core.types.item import QUARANTINE
from hydro_core.types.records import as_record

from ..code_location.next_run import next_run
from ..deploy.deployments import UndeployedChanges, started_empty
from ..flows.flows import Flows, QuarantineCounts, quarantined
from ..flows.landed_past import look, missing
from ..flows.late_arrivals import (
    UNCHANGED,
    ChangedTicks,
    LateArrivals,
    LateEvents,
    kept_events,
    noticed,
)
from ..instance import SETTINGS
from ..instance.run_tags import FLOW_TAG, IN_FLIGHT, UNDONE, keys_of, process_of
from ..project import project
from ..project.console import Console, asked_flow, flow_named
from ..project.shape import last_path
from .maintenance import verified

if TYPE_CHECKING:
    import dagster as dg

    from ..code_location.sensors import FailedRun


# Dagster is loaded where its records have something to say, and not before: it takes seconds.

_ORPHANED = ": its process has ended, and the sensor or `hydrotick backfill` has it fail"
T = TypeVar("T")
_UNITS = (("d", 86400, 2), ("h", 3600, 1))
"""Units of time, their seconds, and from how many of them on they are used."""


@dataclass(frozen=True, slots=True)
class RunInFlight:
    """A run in flight: its ticks (first and last key), state, begin and process, where known."""

    run: str
    ticks: tuple[str, str] | None
    state: str
    since: str
    process: str | None


@dataclass(frozen=True, slots=True)
class RanAgain:
    """A function for which ranges ran again in Python: how often, and the last range's ticks."""

    function: str
    times: int
    ticks: tuple[str, str]
    stays: bool
    """It runs in Python from now on, so no range runs twice because of it."""


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """How a flow is; `lag_seconds` is how long ago the first open tick could have run."""

    flow: str
    committed: int
    last: str | None
    open: int
    lag_seconds: int
    running: tuple[RunInFlight, ...]
    failed: FailedRun | None
    stopped: bool
    next: str
    tables: str
    empty: tuple[str, ...]
    """The inputs of which the last committed tick had no row."""
    late: Mapping[str, LateRows]
    """The inputs for which rows came late, or have changed, after their ticks were committed."""
    deployment: int | None
    """The number of the deployment that serves; None before the first tick."""
    undeployed: str
    """Changes of the program that are not deployed, in words; empty if there are none."""
    deployable: bool
    started_empty: tuple[str, ...]
    """States and outputs that began without a past, and since when."""
    reruns: tuple[RanAgain, ...]
    """The functions for which ranges of ticks ran again in Python."""
    spark_conf: Mapping[str, str]
    """The settings of Spark's own that its ticks run with, and where if not on this machine."""
    quarantine: QuarantineCounts | None = None
    """How many rows are in quarantine; None: the flow has no such output."""
    events: Mapping[str, LateEvents] = field(default_factory=dict)
    """The inputs of which rows of the last committed tick are of events from before its window."""
    behind: tuple[str, ...] = ()
    """The outputs whose tables do not show the last commit yet."""
    goes_on: bool = True
    """False where nothing stopped it, but it is not known what may run, or rows are gone that it
    waits for."""

    @property
    def is_well(self) -> bool:
        """True if it goes on by itself."""
        return self.goes_on and not self.stopped and self.failed is None


def status(options: Asked) -> Result:
    known = project.current()
    flows, asked, broken = Flows(known.settings), known.flows, known.broken
    if options.flow is not None:
        asked, broken = [flow_named(options.flow, known)], []
    if options.verify:
        return verified(asked, flows)
    with ExitStack() as opened:
        instance = cache(lambda: opened.enter_context(records_of(flows)))
        found = [
            status_of(flow, flows, None if say_nothing_more(flow, flows) else instance())
            for flow in asked
        ]
    late = options.max_open is not None and any(flow.open > options.max_open for flow in found)
    is_well = all(flow.is_well for flow in found) and not broken and not late
    record = {
        "flows": [asdict(flow) for flow in found],
        "broken": [{"flow": flow.name, "error": flow.error.as_json()} for flow in broken],
    }
    if not found and not broken and known.settings.root is not None:
        return Result(record, no_flows(known.settings.root))
    wrong = (f"{flow.name}: what it declares is wrong\n{flow.error}" for flow in broken)
    return Result(record, (*_table(found), *wrong), 0 if is_well else 1)


def status_of(flow: FlowAsset, flows: Flows, instance: dg.DagsterInstance | None) -> FlowStatus:
    """How a flow is now, by its ledger and Dagster's records; None: these say nothing more."""
    calendar, done = flow.ticks.calendar, flows.next_tick(flow)
    waiting = max(0, _known(lambda: flows.ready(flow).until, 0) - done)
    lag = int((flows.now() - calendar.window(done).end).total_seconds()) if waiting else 0
    following = next_run(flow, flows, instance)
    running, failed = ((), None) if instance is None else _recorded(flow, flows, instance)
    serving = _known(lambda: flows.deployments.active(flow), None)
    spark = flows.settings_for(flow).spark
    where = {} if spark.master.startswith("local") else {"spark.master": spark.master}
    undeployed = UndeployedChanges() if serving is None else flows.deployments.undeployed(flow)
    return FlowStatus(
        flow=flow.name,
        committed=done,
        last=calendar.window(done - 1).key if done else None,
        open=waiting,
        lag_seconds=lag,
        running=running,
        failed=failed,
        stopped=following.stopped,
        next=following.says,
        goes_on=following.goes_on,
        tables=str(flows.directory(flow)),
        empty=flows.empty_inputs(flow),
        late=late_rows(flow, flows),
        quarantine=quarantined(flow, flows),
        events=kept_events(flows.deployments.ledger(flow).commit_of(done - 1), done - 1)
        if done
        else {},
        deployment=None if serving is None else serving.number,
        undeployed=undeployed.says,
        deployable=undeployed.deployable,
        started_empty=() if serving is None else started_empty(serving.deployment),
        reruns=_reruns(flow, flows),
        spark_conf={**where, **dict(spark.extra)},
        behind=flows.behind(flow),
    )


def _reruns(flow: FlowAsset, flows: Flows) -> tuple[RanAgain, ...]:
    last, calendar = flows.deployments.ledger(flow).last, flow.ticks.calendar
    most = flows.project.core.spark.guard_reruns
    return tuple(
        RanAgain(
            str(one.function),
            one.times,
            (calendar.window(one.first).key, calendar.window(one.last).key),
            stays=one.times >= most,
        )
        for one in (last.reruns if last else ())
    )


def records_of(flows: Flows) -> AbstractContextManager[dg.DagsterInstance]:
    from ..instance.opening import read_instance

    return read_instance(flows.project.dagster_home)


def _recorded(
    flow: FlowAsset, flows: Flows, instance: dg.DagsterInstance
) -> tuple[tuple[RunInFlight, ...], FailedRun | None]:
    from ..code_location.records import attempts_at, runs_of
    from ..code_location.sensors import failed_run

    running = tuple(_running(record) for record in runs_of(flow, instance, IN_FLIGHT))
    tries = attempts_at(flow, flows, instance, flows.next_tick(flow))
    failed = tries and not tries[0].terminated
    return running, failed_run(instance, tries[0].run) if failed else None


def _known(ask: Callable[[], T], otherwise: T) -> T:
    """The value, or `otherwise` where an error prevents it, which `next` reports."""
    try:
        return ask()
    except (DataError, ProgramError):
        return otherwise


def _running(record: dg.RunRecord) -> RunInFlight:
    run = record.dagster_run
    begun = datetime.fromtimestamp(
        record.start_time or record.create_timestamp.timestamp(), tz=UTC
    ).isoformat(timespec="seconds")
    return RunInFlight(
        run.run_id, keys_of(run.tags), run.status.value.lower(), begun, process_of(run)
    )


def _table(found: Sequence[FlowStatus]) -> list[str]:
    head = f"{'flow':<12}{'deployment':>11}{'committed':>10}{'last tick':>18}"
    lines = [f"{head}{'open':>7}{'lag':>8}  tables"]
    for flow in found:
        last, deployed = flow.last or "–", flow.deployment or "–"
        counts = f"{deployed:>11}{flow.committed:>10,}{last:>18}{flow.open:>7,}"
        counts += f"{_duration(flow.lag_seconds):>8}"
        lines.append(f"{flow.flow:<12}{counts}  {shown_file(flow.tables)}")
        lines += [f"  {line}" for line in _details(flow)]
    return lines


def _details(flow: FlowStatus) -> list[str]:
    lines = [
        f"{run.state}: {span(run.ticks)} since {run.since} (run {run.run})"
        f"{_ORPHANED if run.process is not None and has_ended(run.process) else ''}"
        for run in flow.running
    ]
    if flow.failed is not None:
        failed = flow.failed
        said: list[Any] = failed.cause.splitlines()
        lines += [f"failed: {span(failed.ticks)}: {said[0] if said else ''}"]
        lines += [f"        {line}" for line in said[1:]]
        lines.append(f"cure:   {failed.cure}")
    if flow.undeployed and not flow.deployable:
        lines.append(f"changed: {flow.undeployed}: `hydrotick plan {flow.flow}` says where")
    elif flow.undeployed:
        lines.append(
            f"changed: {flow.undeployed}: `hydrotick plan {flow.flow}` says what they would do, "
            f"`hydrotick deploy {flow.flow}` does it"
        )
    lines += [f"note:   {note}" for note in flow.started_empty]
    lines += [f"empty:  the last tick had no row of `{name}`" for name in flow.empty]
    lines += late_lines(flow.flow, flow.late)
    lines += [f"event:  `{name}`, {flow.last}: {one}" for name, one in flow.events.items()]
    held = flow.quarantine
    if held and held.all:
        lines.append(
            f"wrong:  {held.all:,} row(s) are in quarantine, {held.last:,} of them by the last "
            f"commit: `hydrotick show {flow.flow} {QUARANTINE} --tick {held.tick}`"
        )
    lines += _ran_again(flow.reruns)
    lines += [
        f"behind: the table of `{name}` does not show the last tick; the next one brings it up"
        for name in flow.behind
    ]
    lines += [f"spark:  {name} = {value}" for name, value in flow.spark_conf.items()]
    if not flow.running:
        says = flow.next.replace("\n", "\n  ")
        lines.append(f"{'stopped' if flow.stopped else 'next'}: {says}{_how(flow)}")
    return lines


def _ran_again(reruns: Sequence[RanAgain]) -> Iterator[str]:
    for one in reruns:
        ranges = "one range" if one.times == 1 else f"{one.times:,} ranges"
        then = "; it stays in Python from now on" if one.stays else ""
        yield (
            f"again:  {ranges} ran twice, the last of {span(one.ticks)}: Spark cannot tell for "
            f"some items what {one.function} gives, Python computed it{then}"
        )
    if reruns:
        yield f"        {CURE}"


def _how(flow: FlowStatus) -> str:
    """How what is open is run, where nothing is in its way; the UI knows if a sensor is on."""
    if not flow.is_well or not flow.open:
        return ""
    by_sensor = f"so does `hydrotick dev` while the sensor `{flow.flow}_next_tick` is on"
    return f": `hydrotick backfill {flow.flow}` runs them; {by_sensor}"


def _duration(seconds: int) -> str:
    """A time span in the unit that suits it.

    >>> _duration(0), _duration(300), _duration(7200), _duration(200000)
    ('–', '5 min', '2 h', '2 d')
    """
    if seconds == 0:
        return "–"
    unit, size = next((unit for unit in _UNITS if seconds >= unit[1] * unit[2]), ("min", 60, 0))[:2]
    return f"{max(1, seconds // size)} {unit}"


_THEN = {
    "next": "they arrive with the next tick",
    "correct": "the next tick corrects these ticks first",
    "refuse": "the next tick fails until that is decided",
}


@dataclass(frozen=True, slots=True)
class LateRows:
    """How late an input is: `rows` that wait, by the keys of their `ticks`, ticks that have
    `changed`, what happens `then`, and what `arrived` late with the last commit.
    """

    rows: int
    ticks: Mapping[str, int]
    changed: tuple[ChangedTicks, ...]
    arrived: Mapping[str, int]
    then: str


def late_rows(flow: FlowAsset, flows: Flows) -> dict[str, LateRows]:
    now, undecided = dict[str, LateArrivals](), dict[str, LateArrivals]()
    try:
        if flows.next_tick(flow):
            reading = look(flows, flow, to_tell=True)
            now = missing(flow, reading)
            undecided = missing(flow, reading, undecided=True)
    except (DataError, ProgramError):
        # What is wrong with a landing, or a program, is told by what runs next.
        pass
    reads = flows.deployments.ledger(flow).last_reads()
    last = {read.name: noticed(flow.ticks.calendar, read.late, ()).late for read in reads}
    return {
        name: LateRows(
            one.rows,
            one.late,
            one.changed,
            last.get(name, {}),
            _THEN[landing.late if name in undecided else "next"],
        )
        for name, landing in flow.inputs.items()
        for one in [now.get(name, UNCHANGED)]
        if name in now or last.get(name)
    }


def late_lines(flow: str, found: Mapping[str, LateRows]) -> Iterator[str]:
    for name, late in found.items():
        waits = LateArrivals(late.ticks, late.changed)
        if waits.late:
            yield f"late:    `{name}`: {waits.says_late} landed; {late.then}"
        if late.arrived:
            arrived = LateArrivals(late.arrived).says_late
            yield f"late:    `{name}`: {arrived} arrived with the last commit"
        if waits.changed:
            yield f"changed: `{name}`: {waits.says_changed} since they were committed;"
            yield f"         to compute them again: hydrotick correct {flow} --from {waits.first}"


def accept(options: Asked) -> Result:
    flow, settings = asked_flow(options)
    from ..runner.correction import accept as accept_late
    from ..runner.runner import TickRunner

    runner = TickRunner(settings)
    console = Console(options)
    reading = look(runner, flow)
    undecided = missing(flow, reading, undecided=True)
    for name, one in undecided.items():
        if one.late:
            console.say(f"{name}: {one.says_late} landed late; they arrive with the next tick")
        if one.changed:
            console.say(f"{name}: changed {one.says_changed}; this stays as it was read")
    if not undecided:
        console.say(f"{flow.name}: there is nothing to decide")
    elif not console.agreed("Nothing was accepted."):
        return Result(code=1)
    else:
        accept_late(runner, flow, reading)
        console.say(f"{flow.name}: accepted")
    return Result({"flow": flow.name, "accepted": as_record(undecided)})


_STORAGE = ("storage", "run_storage", "event_log_storage", "local_artifact_storage")
"""The settings of an instance that say where its records are."""
_RUNS, _EVENTS = "history/runs.db", "event_log.db"
_SECONDS = 2


def say_nothing_more(flow: FlowAsset, flows: Flows) -> bool:
    """True if Dagster's records surely have nothing of the flow beyond its ledger."""
    home, done = flows.project.dagster_home, flows.next_tick(flow)
    if not home.exists():
        return not done
    try:
        if not _is_stored_as_shipped(home):
            return False
        if not (home / _RUNS).exists():
            return not done
        with _opened(home / _RUNS) as runs, _opened(home / _EVENTS) as events:
            if _has_runs(runs, flow, flows, done):
                return False
            if done:
                return _has_all_ticks(events, flow, flows, done)
            # Records of the flow's assets are of what is landed or was once computed.
            keys = events.execute("SELECT asset_key FROM asset_keys").fetchall()
            return all(json.loads(key)[0] != flow.name for (key,) in keys)
    except (OSError, HydroError, sqlite3.Error, yaml.YAMLError, _UnknownFormError):
        return False


class _UnknownFormError(Exception):
    """Records have another form than those of this release of Dagster, or are being written."""


def _is_stored_as_shipped(home: Path) -> bool:
    texts = [
        (home / SETTINGS).read_text(encoding="utf-8"),
        (files("hydrotick.instance") / SETTINGS).read_text(encoding="utf-8"),
    ]
    if texts[0] == texts[1]:
        return True
    used, shipped = (yaml.safe_load(text) or {} for text in texts)
    return all(used.get(name) == shipped.get(name) for name in _STORAGE)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    if not os.access(path.parent, os.W_OK):
        # SQLite writes beside what it only reads, unless it may take it to be as it is for ever.
        if path.with_name(f"{path.name}-wal").exists():
            raise _UnknownFormError
        uri += "&immutable=1"
    with closing(sqlite3.connect(uri, uri=True, timeout=_SECONDS)) as connection:
        yield connection


def _has_runs(runs: sqlite3.Connection, flow: FlowAsset, flows: Flows, tick: int) -> bool:
    """Whether a run is at work on the flow, or has failed or been ended since the last commit.

    One that was launched from assets has no tag of its flow: it counts for all of them.
    """
    since = flows.waits_since(flow, tick)
    after = "" if since is None else since.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    query = f"""
        SELECT 1 FROM runs WHERE
        (status IN ({_marks(IN_FLIGHT)})
            OR status IN ({_marks(UNDONE)}) AND update_timestamp > ?)
        AND NOT EXISTS (SELECT 1 FROM run_tags
            WHERE run_tags.run_id = runs.run_id AND key = ? AND value <> ?)
        LIMIT 1
    """  # noqa: S608 - marks alone are put in
    values = (*IN_FLIGHT, *UNDONE, after, FLOW_TAG, flow.name)
    return runs.execute(query, values).fetchone() is not None


def _has_all_ticks(events: sqlite3.Connection, flow: FlowAsset, flows: Flows, done: int) -> bool:
    """True if every committed tick is recorded, the last ones as they were committed last."""
    key = json.dumps(last_path(flow, flows.plan(flow)))
    last = flow.ticks.calendar.window(done - 1).key
    wiped = events.execute("SELECT wipe_timestamp FROM asset_keys WHERE asset_key = ?", (key,))
    if wiped.fetchone() != (None,):
        return False
    of_it = "FROM event_logs WHERE asset_key = ? AND dagster_event_type = 'ASSET_MATERIALIZATION'"
    counted = events.execute(f"SELECT COUNT(DISTINCT partition) {of_it}", (key,))
    made = events.execute(
        f"SELECT event {of_it} AND partition = ? ORDER BY id DESC LIMIT 1",
        (key, last),
    ).fetchone()
    if counted.fetchone() != (done,) or made is None:
        return False
    commit = flows.deployments.ledger(flow).last_run
    return commit is not None and _commit_of(made[0]) in (None, commit.sequence)


def _commit_of(event: str) -> int | None:
    """The commit that a recorded tick names; None where it names none."""
    try:
        made: Any = json.loads(event)["dagster_event"]["event_specific_data"]["materialization"]
        entries = made["metadata_entries"]
        found = [e["entry_data"]["value"] for e in entries if e["label"] == "commit"]
    except (ValueError, KeyError, TypeError) as problem:
        raise _UnknownFormError from problem
    return found[0] if found else None


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
