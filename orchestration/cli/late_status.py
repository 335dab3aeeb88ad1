"""What `status` says of late rows and of changed ticks, and `hydrotick accept`, which decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from hydro_core.cli.command import Asked
from hydro_core.errors import DataError, ProgramError
from hydro_core.project.flow_asset import FlowAsset

from ..flows.flows import Flows
from ..flows.landed_past import look, missing
from ..flows.late_arrivals import UNCHANGED, ChangedTicks, LateArrivals, noticed
from ..project.console import Console, asked_flow

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
    """By input what is late or changed now, and what arrived late with the last commit."""
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


def accept(options: Asked) -> int:
    flow, settings = asked_flow(options)
    from ..runner.correction import accept as accept_late
    from ..runner.runner import TickRunner

    runner = TickRunner(settings)
    console = Console(options)
    reading = look(runner, flow)
    found = missing(flow, reading, undecided=True)
    for name, one in found.items():
        if one.late:
            console.say(f"{name}: {one.says_late} landed late; they arrive with the next tick")
        if one.changed:
            console.say(f"{name}: changed {one.says_changed}; this stays as it was read")
    if not found:
        console.say(f"{flow.name}: there is nothing to decide")
    elif not console.agreed("Nothing was accepted."):
        return 1
    else:
        accept_late(runner, flow, reading)
        console.say(f"{flow.name}: accepted")
    console.give({"flow": flow.name, "accepted": {n: asdict(one) for n, one in found.items()}})
    return 0
