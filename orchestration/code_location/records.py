"""What Dagster's records have of a flow: its runs, which process executes each, and which committed
ticks they lack.

Dagster's default launcher starts the process of a run below that of the code server, and nobody
asks after it again: where both are ended, by a machine or with a service, the run's record says for
ever that it goes on. So a run names its process. What the launcher of Kubernetes or Docker starts
these look after themselves.
"""

from __future__ import annotations

import multiprocessing
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

import dagster as dg
from dagster._core.storage.tags import GRPC_INFO_TAG

from hydro_core.errors import DataError, HydroError
from hydro_core.machine.locks import has_ended, host_of, process_named, this_process
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.ticks.calendar import Calendar, TickWindow, window_ranges

from ..flows.flows import Flows
from ..instance.run_tags import (
    CORRECT,
    CORRECT_TAG,
    UNDONE,
    flow_of,
    is_judged,
    keys_of,
    process_of,
    process_tag,
)
from ..project.shape import last_path

_MOST_RUNS = _PAGE = 200


@dataclass(frozen=True, slots=True)
class Attempt:
    run: dg.DagsterRun
    ended: datetime

    @property
    def terminated(self) -> bool:
        """True if somebody terminated it."""
        return self.run.status is dg.DagsterRunStatus.CANCELED

    @property
    def judged(self) -> bool:
        """True if its tick was judged wrong: a retry is of no use until something changes."""
        return is_judged(self.run)


def runs_of(
    flow: FlowAsset,
    instance: dg.DagsterInstance,
    statuses: Sequence[str],
    since: datetime | None = None,
) -> list[dg.RunRecord]:
    """The flow's runs in one of these states, the latest first; `since`: that changed after it."""
    states = [dg.DagsterRunStatus(status) for status in statuses]
    wanted = dg.RunsFilter(statuses=states, updated_after=since)
    return list(islice(all_runs(flow, instance, wanted), _MOST_RUNS))


def all_runs(
    flow: FlowAsset, instance: dg.DagsterInstance, wanted: dg.RunsFilter | None = None
) -> Iterator[dg.RunRecord]:
    """The flow's runs, its job's and those of its assets, the latest first.

    An instance may be shared with much else, so the runs of others are passed over page by page.
    """
    page: Sequence[dg.RunRecord] = instance.get_run_records(wanted, limit=_PAGE)
    while page:
        yield from (record for record in page if flow_of(record.dagster_run) == flow.name)
        cursor = page[-1].dagster_run.run_id
        page = instance.get_run_records(wanted, limit=_PAGE, cursor=cursor)


def attempts_at(
    flow: FlowAsset, flows: Flows, instance: dg.DagsterInstance, tick: int
) -> list[Attempt]:
    calendar, since = flow.ticks.calendar, flows.waits_since(flow, tick)
    found = []
    for record in runs_of(flow, instance, UNDONE, since):
        ended = _ended(record)
        if _covers(calendar, record.dagster_run, tick) and (since is None or ended > since):
            found.append(Attempt(record.dagster_run, ended))
    return found


def corrections_tried(flow: FlowAsset, flows: Flows, instance: dg.DagsterInstance) -> list[Attempt]:
    """The runs that were to compute committed ticks again since the last commit, and did not, the
    latest first.
    """
    last = flows.deployments.ledger(flow).last
    if last is None:
        return []
    return [
        Attempt(record.dagster_run, ended)
        for record in runs_of(flow, instance, UNDONE, last.committed)
        if record.dagster_run.tags.get(CORRECT_TAG) == CORRECT
        and (ended := _ended(record)) > last.committed
    ]


def last_key(flow: FlowAsset, flows: Flows) -> dg.AssetKey:
    """The asset that a tick records last: a tick that it has, all have."""
    return dg.AssetKey(last_path(flow, flows.plan(flow)))


def unrecorded(
    flow: FlowAsset, flows: Flows, instance: dg.DagsterInstance
) -> list[tuple[TickWindow, TickWindow]]:
    """The ticks that are committed, but not in Dagster's records, as ranges.

    Of ticks that were computed again, it may have the records of before.
    """
    calendar, done = flow.ticks.calendar, flows.next_tick(flow)
    if not done:
        return []
    key = last_key(flow, flows)
    recorded = instance.get_materialized_partitions(key) - _outdated(flow, flows, instance, key)
    if len(recorded) == done and calendar.window(done - 1).key in recorded:
        # All of them, as nearly always: to name a hundred thousand windows takes seconds.
        return []
    windows = [calendar.window(tick) for tick in range(done)]
    return window_ranges(window for window in windows if window.key not in recorded)


def _outdated(
    flow: FlowAsset, flows: Flows, instance: dg.DagsterInstance, key: dg.AssetKey
) -> set[str]:
    """The ticks of the last commit, if what was recorded last of them is of an earlier one.

    No tick runs before this is put right, so the last commit is the only one to look at.
    """
    commit = flows.deployments.ledger(flow).last_run
    if commit is None:
        return set()
    keys = [flow.ticks.calendar.window(tick).key for tick in commit.ticks]
    wanted = dg.AssetRecordsFilter(asset_key=key, asset_partitions=keys[-1:])
    for record in instance.fetch_materializations(wanted, limit=1).records:
        made = record.asset_materialization
        known = made.metadata.get("commit") if made else None
        if known is not None and known.value != commit.sequence:
            return set(keys)
    return set()


def refuse_lost_pipeline(instance: dg.DagsterInstance, flow: FlowAsset, flows: Flows) -> None:
    """Raises where Dagster has ticks of the flow, but its pipeline has no ledger at all.

    That is a file system that is not mounted, or a directory that somebody has removed; the ticks
    would begin anew without a word.

    Raises:
        DataError: what Dagster has, and what to do (code `state`).
    """
    directory = flows.directory(flow)
    if Ledger(directory).exists:
        return
    recorded = sorted(
        {
            tick
            for key in recorded_tables(instance, flow)
            for tick in instance.get_materialized_partitions(key)
        }
    )
    if recorded:
        raise DataError.of(
            "state",
            f"Dagster has {len(recorded):,} ticks of `{flow.name}`, the last one "
            f"{recorded[-1]}, but there is no ledger in {directory}",
            help="mount that directory or restore it from a copy; or start the flow over: "
            f"`hydrotick reset {flow.name}`",
        )


def recorded_tables(instance: dg.DagsterInstance, flow: FlowAsset) -> list[dg.AssetKey]:
    """The assets of the flow that Dagster has seen, also those that its program has no more."""
    return [
        key
        for key in instance.get_asset_keys(prefix=[flow.name])
        if key.path[0] == flow.name and key.path[1:2] != ["landing"]
    ]


def _ended(record: dg.RunRecord) -> datetime:
    return datetime.fromtimestamp(record.end_time or record.update_timestamp.timestamp(), tz=UTC)


def _covers(calendar: Calendar, run: dg.DagsterRun, tick: int) -> bool:
    keys = keys_of(run.tags)
    if keys is None:
        return True
    try:
        first, last = (calendar.window_of(key).tick for key in keys)
    except HydroError:
        # The axis was another when it ran.
        return False
    return first <= tick <= last


def runs_with(flow: FlowAsset, instance: dg.DagsterInstance, texts: Collection[str]) -> list[str]:
    """The ids of a flow's runs that have recorded one of some texts as a word, the latest first.

    All that they have recorded is read.
    """
    words = "|".join(map(re.escape, texts))
    wanted = re.compile(rf"(?<!\w)(?:{words})(?!\w)")
    runs = (record.dagster_run.run_id for record in all_runs(flow, instance))
    return [run for run in runs if _has(instance, run, wanted)]


def _has(instance: dg.DagsterInstance, run: str, wanted: re.Pattern[str]) -> bool:
    return any(wanted.search(dg.serialize_value(entry)) for entry in instance.all_logs(run))


_BEGUN = ("NOT_STARTED", "STARTED", "CANCELING")
"""The states of a run in which the process that its tag names executes it."""


def note_process(run: dg.DagsterRun, instance: dg.DagsterInstance) -> None:
    """Names the process that executes a run, from within it, where nobody else has.

    With the executor of several processes a step is not in the process of its run, but right below.
    """
    if GRPC_INFO_TAG not in run.tags or process_of(run) is not None:
        return
    number = _process_number(run, instance)
    parent = multiprocessing.parent_process()
    near = {os.getpid(), os.getppid(), *(() if parent is None else (parent.pid,))}
    if number is not None and number in near:
        instance.add_run_tags(run.run_id, process_tag(run.run_id, process_named(number)))


def end_orphans(instance: dg.DagsterInstance, flow: FlowAsset) -> list[dg.DagsterRun]:
    """Runs whose process is gone (killed, say) are shown as failed, not as running for ever.

    Gives the runs of which that cannot be told: their processes are on other hosts.
    """
    elsewhere = []
    for record in runs_of(flow, instance, _BEGUN):
        process = process_of(record.dagster_run)
        if process is not None and has_ended(process):
            message = "Its process ended before the tick did."
            instance.report_run_failed(record.dagster_run, message)
        elif process is not None and host_of(process) != host_of(this_process()):
            elsewhere.append(record.dagster_run)
    return elsewhere


def _process_number(run: dg.DagsterRun, instance: dg.DagsterInstance) -> int | None:
    """The number of a run's process, as Dagster has recorded it when that began."""
    of_type = dg.DagsterEventType.ENGINE_EVENT
    for log in instance.all_logs(run.run_id, of_type=of_type):
        event = log.get_dagster_event()
        told = event.engine_event_data.metadata.get("pid")
        if told is not None and str(told.value).isdigit():
            return int(str(told.value))
    return None
