"""Late rows: what lands for committed ticks, or changes there, before the next tick runs.

An input says what becomes of such rows: they arrive with the next tick, or committed ticks are
computed again with them, or nothing runs until somebody decides. In any case they are told of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset

from ..flows.late_arrivals import noticed
from ..flows.looking import After, LandingReads, look
from .ranges import overtaken

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals.landings import LandingView

    from ..flows.flows import Flows


def forget_lists(flows: Flows, flow: FlowAsset) -> None:
    """Removes old lists of files, where they take much; those that are read next stay."""
    from hydro_core.spark.inputs.arrivals.listing import clear_listings

    directory = flows.directory(flow)
    reads = flows.deployments.ledger(flow).last_reads()
    needed = {name for read in reads for name in read.lists}
    if needed:
        clear_listings(directory, needed)


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
            found += [tick for tick in (one.arrivals.earliest, *_firsts(one)) if tick is not None]
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


def _firsts(one: LandingView) -> list[int]:
    return [change.first for change in one.changed]


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
