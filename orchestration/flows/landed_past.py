"""Landings of a flow as they were looked at, and its landed past.

The landed past is what committed ticks have read and what is landed still, each row with the tick
with which it arrived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hydro_core.errors import DataError, ProgramError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

from .late_arrivals import UNCHANGED, LateArrivals, noticed

if TYPE_CHECKING:
    from hydro_core.spark.inputs.batches import Batch
    from hydro_core.spark.inputs.looks import LandingView
    from hydro_core.spark.store.ledger.records import Commit, InputRead

    from .flows import Flows, OneLook


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
        first, last = windows[0].tick, windows[-1].tick
        return self.flows.inputs(self.flow).read(first, last, self.seen)


def look(
    flows: Flows,
    flow: FlowAsset,
    landings: OneLook | None = None,
    names: Collection[str] | None = None,
    *,
    to_tell: bool = False,
) -> LandingReads:
    """Looks at what has landed; nothing is changed.

    Args:
        flows: know the ledger and the landings.
        flow: the flow.
        landings: the look, if others take it, too.
        names: the inputs that are looked at; None: all of them.
        to_tell: it is only told of; else open ticks are read as it was seen, or it is accepted.

    Raises:
        HydroError: a landing cannot be read.
    """
    ledger = flows.deployments.ledger(flow)
    last = ledger.last
    one_look = landings or flows.one_look(flow, to_tell=to_tell)
    with faults_as_errors(f"the landings of `{flow.name}`", vanished=True):
        until, reads = 0 if last is None else last.last + 1, ledger.last_reads()
        seen = one_look().look(until, reads, names)
    return LandingReads(flows, flow, seen, After(-1 if last is None else last.sequence))


def missing(
    flow: FlowAsset, reading: LandingReads, *, undecided: bool = False
) -> dict[str, LateArrivals]:
    """Rows that came, or changed, for committed ticks and are not in them, by input.

    With `undecided` it is what somebody may accept: what came or changed since somebody last did.
    """
    calendar = flow.ticks.calendar
    found = {
        name: noticed(calendar, (one.undecided if undecided else one.arrivals).late, one.changed)
        for name, one in reading.seen.items()
    }
    return {name: one for name, one in found.items() if one != UNCHANGED}


@dataclass(frozen=True, slots=True)
class AsArrived:
    """The late rows of an input, by their ticks: those that are read again with the ticks with
    which they arrived, and those of which nobody can tell any more which they are.
    """

    late: Mapping[int, int] = field(default_factory=dict)
    unreported: Mapping[int, int] = field(default_factory=dict)


def lost_past(
    flow: FlowAsset, flows: Flows, plan: TickPlan, inputs: Iterable[str]
) -> Mapping[str, str]:
    """The inputs of a plan of which rows are gone that committed ticks have read, and what says so.

    An input that no tick has read yet has lost nothing.
    """
    ledger = flows.pipeline(flow).ledger
    read = {one.name: one for one in ledger.last_reads()}
    done, rows = flows.next_tick(flow), rows_read(ledger.commits(), 0)
    lost = {}
    for name in inputs:
        if name not in read:
            continue
        try:
            found = flows.inputs(flow, plan, [name])
            seen = found.landings.as_read([read[name]], done)[name]
            found.seen = {name: seen}
            there = found.rows_there(name, seen.now.version)
        except (DataError, ProgramError) as error:
            lost[name] = error.diagnostics[0].message
            continue
        gone = _gone(flow, seen, 0) or _unknown(flow, seen)
        if gone:
            lost[name] = f"input `{name}`: rows that committed ticks have read are gone: {gone}"
        elif there is not None and there < rows.get(name, 0):
            lost[name] = (
                f"input `{name}`: its landing has {there:,} rows, and committed ticks have read "
                f"{rows[name]:,}"
            )
    return lost


def refuse_gone(
    flow: FlowAsset, seen: Mapping[str, LandingView], reads: Mapping[str, InputRead], first: int
) -> None:
    """Refuses to compute ticks again as they had been read, where rows of theirs are gone.

    Raises:
        DataError: which inputs, and which ticks (code `state`).
    """
    lost = {name: _gone(flow, one, first) for name, one in seen.items() if name in reads}
    lost = {name: gone for name, gone in lost.items() if gone}
    if not lost:
        return
    listed = "; ".join(f"`{name}`: {gone}" for name, gone in lost.items())
    off = (one.differences.removed for one in seen.values())
    ticks: list[int] = [tick for of in off for tick in of.ticks[of.arrived >= first].tolist()]
    raise DataError.of(
        "state",
        f"rows of `{flow.name}` that committed ticks have read are not landed any more, and "
        f"the ticks would be computed again without them: {listed}",
        help=f"land them again; or take them out of all outputs first: `hydrotick correct "
        f"{flow.name} --from {flow.ticks.calendar.window(min(ticks)).key}`",
    )


def as_arrived(
    seen: Mapping[str, LandingView], commits: Sequence[Commit] = ()
) -> Mapping[str, AsArrived]:
    """By input, what is read again of the rows that came late.

    Args:
        seen: the inputs as their ticks have read them.
        commits: what the ledger says of them.
    """
    from hydro_core.spark.inputs.arrivals import unreported
    from hydro_core.spark.store.ledger.records import late_by_tick

    found = {}
    for name, one in seen.items():
        off = one.differences
        known = Counter(off.late.ticks[off.late.arrived < one.until].tolist())
        gone = Counter(off.removed.ticks[off.removed.arrived != off.removed.ticks].tolist())
        for file in off.files:
            if file.is_late and file.arrived < one.until:
                known.update(file.rows)
        lost = unreported(one.source, one.scan, off)
        # An earlier version has kept how many they are, and no more.
        lost += late_by_tick(commits, name) - known - gone
        found[name] = AsArrived(known - lost, lost)
    return found


def says_arrived(flow: FlowAsset, found: Mapping[str, AsArrived]) -> Iterator[str]:
    """The same in words: what is read again, and what cannot be told."""
    for name, one in found.items():
        if one.late:
            said = noticed(flow.ticks.calendar, one.late, ()).says_late
            yield (
                f"`{name}` is read as it arrived: {said} came late, and are of the ticks with "
                "which they arrived"
            )
        if one.unreported:
            said = noticed(flow.ticks.calendar, one.unreported, ()).says_late
            yield (
                f"`{name}`: {said} came late, and which they are cannot be told any more: they are "
                "read with their own ticks, where tables that stay have them later"
            )


def rows_read(commits: Sequence[Commit], first: int) -> Mapping[str, int]:
    """How many rows of each input arrived with the ticks from `first` on; of some, nobody has
    counted them.
    """
    from hydro_core.spark.store.ledger.records import standing_counts

    found = {}
    for name, counts in standing_counts(commits).items():
        rows = [rows for tick, rows in counts.items() if tick >= first]
        if None not in rows:
            found[name] = sum(n or 0 for n in rows)
    return found


def _gone(flow: FlowAsset, one: LandingView, first: int) -> str:
    """The rows that are gone which arrived with ticks from one on; empty where none are."""
    from hydro_core.spark.store.ledger.records import ChangedRange

    off = one.differences.removed
    found = Counter(off.ticks[off.arrived >= first].tolist())
    changes = (ChangedRange(tick, tick, rows) for tick, rows in sorted(found.items()))
    return noticed(flow.ticks.calendar, {}, changes).says_changed


def _unknown(flow: FlowAsset, one: LandingView) -> str:
    """The ticks of rows of which nobody can tell whether they are there: the files in which they
    were read are gone, and with them what they had.
    """
    from hydro_core.spark.store.ledger.records import ChangedRange

    files = (file for file in one.differences.files if file.is_removed)
    changes = [ChangedRange(file.first, file.last, None) for file in files]
    return noticed(flow.ticks.calendar, {}, changes).says_changed
