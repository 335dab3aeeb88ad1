"""`hydrotick status`: how far every flow is, what runs, what failed last, and what comes next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from hydro_core.cli import output
from hydro_core.cli.command import Asked
from hydro_core.errors import DataError, ProgramError, shown_file
from hydro_core.machine.processes import has_ended
from hydro_core.project.discover import Broken, no_flows
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.functions.reruns import CURE
from hydro_core.ticks.calendar import span
from hydro_core.types.item import QUARANTINE

from ..code_location.next_run import next_run
from ..flows.flows import Flows, Quarantined, quarantined
from ..flows.late_arrivals import LateEvents, kept_events
from ..instance.run_tags import IN_FLIGHT, keys_of, process_of
from ..project import project
from ..project.console import Console, flow_named
from ..project.programs import started_empty
from ..project.serving import Undeployed
from .glance import say_nothing_more
from .late_status import LateRows, late_lines, late_rows
from .maintenance import verified

if TYPE_CHECKING:
    import dagster as dg

    from ..code_location.failures import FailedRun

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
    """Whether it runs in Python from now on, and no range twice because of it."""


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
    """What of the program as it is now is not deployed, in words; empty if nothing."""
    deployable: bool
    started_empty: tuple[str, ...]
    """What the deployment began without a past, and since when."""
    reruns: tuple[RanAgain, ...]
    """The functions for which ranges of ticks ran again in Python."""
    spark_conf: Mapping[str, str]
    """The settings of Spark's own that its ticks run with, and where if not on this machine."""
    quarantine: Quarantined | None = None
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
        """Whether it goes on by itself."""
        return self.goes_on and not self.stopped and self.failed is None


def status(options: Asked) -> int:
    known = project.current()
    flows, asked, broken = Flows(known.settings), known.flows, known.broken
    if options.flow is not None:
        asked, broken = [flow_named(options.flow, known)], []
    if options.verify:
        return 0 if verified(asked, flows, Console(options)) else 1
    with ExitStack() as opened:
        instance = cache(lambda: opened.enter_context(records_of(flows)))
        found = [
            status_of(flow, flows, None if say_nothing_more(flow, flows) else instance())
            for flow in asked
        ]
    if found or broken or options.format == "json" or known.settings.root is None:
        _print(found, broken, options.format)
    else:
        output.print_text(no_flows(known.settings.root))
    late = options.max_open is not None and any(flow.open > options.max_open for flow in found)
    return 0 if all(flow.is_well for flow in found) and not broken and not late else 1


def _print(found: Sequence[FlowStatus], broken: Sequence[Broken], style: str) -> None:
    if style == "json":
        told = {"flows": [asdict(flow) for flow in found]}
        wrong = [{"flow": flow.name, "error": flow.error.as_json()} for flow in broken]
        output.print_text(json.dumps({**told, "broken": wrong}, indent=2))
        return
    output.write(_table(found))
    for flow in broken:
        output.write(f"{flow.name}: what it declares is wrong\n{flow.error}\n")


def status_of(flow: FlowAsset, flows: Flows, instance: dg.DagsterInstance | None) -> FlowStatus:
    """How a flow is now, by its ledger and Dagster's records; None: these say nothing more."""
    calendar, done = flow.ticks.calendar, flows.next_tick(flow)
    waiting = max(0, _known(lambda: flows.ready(flow).until, 0) - done)
    lag = int((flows.now() - calendar.window(done).end).total_seconds()) if waiting else 0
    following = next_run(flow, flows, instance)
    running, failed = ((), None) if instance is None else _recorded(flow, flows, instance)
    serving = _known(lambda: flows.deployments.serving(flow), None)
    spark = flows.settings_for(flow).spark
    where = {} if spark.master.startswith("local") else {"spark.master": spark.master}
    undeployed = Undeployed() if serving is None else flows.deployments.undeployed(flow)
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
    """What the ledger has counted of the program that serves."""
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
    """The runs at work on a flow, and why the last try of its next tick failed, if it did."""
    from ..code_location.failures import failed_run
    from ..code_location.records import attempts_at, runs_of

    running = tuple(_running(record) for record in runs_of(flow, instance, IN_FLIGHT))
    tries = attempts_at(flow, flows, instance, flows.next_tick(flow))
    failed = tries and not tries[0].terminated
    return running, failed_run(instance, tries[0].run) if failed else None


def _known(ask: Callable[[], T], otherwise: T) -> T:
    """What is asked for; where it cannot be told, `next` says why."""
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


def _table(found: Sequence[FlowStatus]) -> str:
    head = f"{'flow':<12}{'deployment':>11}{'committed':>10}{'last tick':>18}"
    lines = [f"{head}{'open':>7}{'lag':>8}  tables"]
    for flow in found:
        last, deployed = flow.last or "–", flow.deployment or "–"
        counts = f"{deployed:>11}{flow.committed:>10,}{last:>18}{flow.open:>7,}"
        counts += f"{_duration(flow.lag_seconds):>8}"
        lines.append(f"{flow.flow:<12}{counts}  {shown_file(flow.tables)}")
        lines += [f"  {line}" for line in _details(flow)]
    return "\n".join(lines) + "\n"


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
    """Why ranges ran twice, and what can be done about it."""
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
