"""A correction: committed ticks of a flow are computed again from what is landed now.

They run beside the tables that serve, as ranges like any other, with every check judged, and take
their place by one commit. If one of them fails, everything is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hydro_core.errors import DataError, HydroError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow, span

from ..flows.landed_past import After, LandingReads, look, rows_read
from ..flows.late_arrivals import noticed
from ..quality.changed import CorrectionResult, RowsRead, changed
from .ranges import (
    Log,
    Ranges,
    faults_of,
    is_of_the_tick,
    kept_for_checks,
    overtaken,
    parts,
    run_staged,
    with_another_jvm,
)
from .report import TickReport, report_of_error, tables_of

if TYPE_CHECKING:
    from hydro_core.spark.inputs.looks import LandingView
    from hydro_core.spark.pipeline.rework import StagedPast

    from ..flows.flows import Flows


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
    from hydro_core.spark.pipeline.start_rework import first_again

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
    from hydro_core.spark.pipeline.start_rework import correction

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


def correction_due(flow: FlowAsset, flows: Flows) -> int | None:
    """The first committed tick that is to be computed again with what has landed; None: none is.

    Raises:
        HydroError: there is something to decide first, or a landing cannot be read.
    """
    decisive = [name for name, where in flow.inputs.items() if where.late != "next"]
    if not flows.next_tick(flow) or all(flow.inputs[n].late != "correct" for n in decisive):
        return None
    return first_to_correct(flow, look(flows, flow, to_tell=True, names=decisive).seen)


def seen_again(flows: Flows, flow: FlowAsset, reading: LandingReads) -> LandingReads:
    """The same landings, as they were seen, after committed ticks were computed again with them."""
    ledger = flows.deployments.ledger(flow)
    last = ledger.last
    if last is None:
        raise AssertionError("only what is committed is computed again")
    seen = flows.landings(flow).look(last.last + 1, ledger.last_reads(), reading.seen)
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
