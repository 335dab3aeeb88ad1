"""Committed ticks are computed again without some rows, each with the others that it had read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import FlowAsset

from ..flows.landed_past import refuse_gone
from ..flows.looking import LandingReads, look
from .ranges import Log, Ranges, is_of_the_tick
from .report import TickReport, report_of_error
from .staging import kept_for_checks, run_staged

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals.landings import LandingView
    from hydro_core.spark.inputs.arrivals.removed_rows import RemovedRows
    from hydro_core.spark.store.ledger.input_reads import Counts, InputRead

    from .runner import TickRunner


def reads_of(runner: TickRunner, flow: FlowAsset) -> Mapping[str, InputRead]:
    """What the last ticks that are committed have read of the inputs."""
    return {read.name: read for read in runner.deployments.ledger(flow).last_reads()}


def refuse_others_gone(
    runner: TickRunner, flow: FlowAsset, first: int, gone: Mapping[str, RemovedRows]
) -> None:
    """Refuses to compute ticks again, where other rows are gone that they have read.

    Raises:
        DataError: which inputs, and which ticks (code `state`).
    """
    from hydro_core.spark.inputs.arrivals.removed_rows import seen_without

    seen = dict(look(runner, flow, to_tell=True).seen)
    seen |= {name: seen_without(seen[name], one) for name, one in gone.items()}
    refuse_gone(flow, seen, reads_of(runner, flow), first)


def unread_by(
    runner: TickRunner,
    flow: FlowAsset,
    seen: Mapping[str, LandingView],
    gone: Mapping[str, RemovedRows],
    counts: Mapping[str, Counts],
) -> Iterator[InputRead]:
    """What is to stand in the ledger of the inputs, which are read without some rows."""
    from hydro_core.spark.inputs.arrivals.removed_rows import unread

    directory = runner.directory(flow)
    for name, read in reads_of(runner, flow).items():
        if name in seen:
            yield unread(seen[name], read, directory, gone.get(name), counts.get(name, {}))


def without_rows(
    runner: TickRunner,
    flow: FlowAsset,
    first: int,
    reading: LandingReads,
    gone: Mapping[str, RemovedRows],
    log: Log,
) -> TickReport:
    """Computes the committed ticks from one on again without rows that are gone, in one commit.

    The others arrive as they had arrived.

    Args:
        runner: whose pipeline; its lock is held.
        first: the first tick that has read one of the rows.
        reading: what is landed now.
        gone: the rows, by input.
        log: told of what is computed.

    Returns:
        The report of the last tick, or of the one that failed; then all is as it was.
    """
    window = flow.ticks.calendar.window(first)
    try:
        return _computed(runner, flow, first, reading, gone, log)
    except HydroError as error:
        return report_of_error(window, error, judged=is_of_the_tick(error))


def _computed(
    runner: TickRunner,
    flow: FlowAsset,
    first: int,
    reading: LandingReads,
    gone: Mapping[str, RemovedRows],
    log: Log,
) -> TickReport:
    from hydro_core.spark.executor.failed_job import failures_as_errors
    from hydro_core.spark.pipeline.rework import KeptReads
    from hydro_core.spark.pipeline.start_rework import correction

    pipeline, last = runner.pipeline(flow), runner.next_tick(flow) - 1
    reads = {read.name: read for read in unread_by(runner, flow, reading.seen, gone, {})}
    fewer = {name: one.counts for name, one in gone.items()}
    # Of a file that is gone nobody knows how many rows went with it.
    unreported = {name for name, one in gone.items() if one.files}
    late = {name: one.late for name, one in gone.items()}
    kept = KeptReads(reads, {}, unreported=unreported, without=fewer, late_without=late)
    seen = runner.landings(flow).as_read(list(reads.values()), last + 1)
    with (
        failures_as_errors(directory=pipeline.directory),
        correction(pipeline, first, kept) as rework,
    ):
        ranges = Ranges(runner.asset(flow), rework.staging, LandingReads(runner, flow, seen), log)
        reports = run_staged(rework, ranges, runner.project.range_ticks, lambda _: None)
        if reports[-1].committed:
            commit = rework.replace(kept_for_checks(rework))
            log(f"commit {commit.sequence} computed {len(reports):,} tick(s) again")
        return reports[-1]
