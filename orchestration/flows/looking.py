"""What has landed, as it was looked at: what ticks read, and what came for committed ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hydro_core.machine.faults import faults_as_errors
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

from .late_arrivals import UNCHANGED, LateArrivals, noticed

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals.landings import LandingView
    from hydro_core.spark.inputs.batches import Batch

    from .flows import Flows


@dataclass(slots=True)
class After:
    """The last commit of the ledger, by its number, when the landings were looked at."""

    commit: int


@dataclass(slots=True)
class LandingReads:
    """Reads the landings of a flow as they were seen, for ticks on a ledger as it was then.

    Late rows are in what is read for the first tick that was open, and for no other.
    """

    flows: Flows
    flow: FlowAsset
    seen: Mapping[str, LandingView]
    after: After | None = None
    """How the ledger was; None: nobody else can commit."""

    def __call__(self, windows: Sequence[TickWindow]) -> Mapping[str, Batch]:
        return self.flows.landed(self.flow, windows, self.seen)


def look(
    flows: Flows, flow: FlowAsset, *, to_tell: bool = False, names: Collection[str] | None = None
) -> LandingReads:
    """Looks at what has landed; nothing is changed.

    Args:
        flows: know the ledger and the landings.
        to_tell: it is only told of; else open ticks are read as it was seen, or it is accepted.
        names: the inputs that are looked at; None: all of them.

    Raises:
        HydroError: a landing cannot be read.
    """
    ledger = flows.deployments.ledger(flow)
    last = ledger.last
    with faults_as_errors(f"the landings of `{flow.name}`", vanished=True):
        until, reads = 0 if last is None else last.last + 1, ledger.last_reads()
        landings = flows.landings(flow)
        if names is not None:
            sources = {n: source for n, source in landings.sources.items() if n in names}
            landings = replace(landings, sources=sources)
        seen = landings.look(until, reads, to_tell=to_tell)
    return LandingReads(flows, flow, seen, After(-1 if last is None else last.sequence))


def missing(flow: FlowAsset, reading: LandingReads) -> dict[str, LateArrivals]:
    """What has come or changed for committed ticks and is not in them, by input."""
    calendar = flow.ticks.calendar
    found = {
        name: noticed(calendar, one.arrivals.late, one.changed)
        for name, one in reading.seen.items()
    }
    return {name: one for name, one in found.items() if one != UNCHANGED}


def to_decide(flow: FlowAsset, reading: LandingReads) -> dict[str, LateArrivals]:
    """What somebody may accept, by input: what came or changed since somebody last did."""
    calendar = flow.ticks.calendar
    found = {
        name: noticed(calendar, one.undecided.late, one.changed)
        for name, one in reading.seen.items()
    }
    return {name: one for name, one in found.items() if one != UNCHANGED}
