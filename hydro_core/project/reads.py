"""Flows that read outputs of other flows: these are there, have ticks that fit, and no circle."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.lang.source import did_you_mean
from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydro_core.ticks.calendar import Feed
from hydro_core.types.item import UNKNOWN, ItemType, declared_columns

_OF_TABLES = frozenset({"tick", "position", "copies"})
"""Columns that the tables of outputs have beside those of their items."""


def reads_wrong(
    flows: Sequence[FlowAsset], broken: Sequence[str] = ()
) -> Iterator[tuple[str, ProgramError]]:
    """What is wrong with what flows read of each other, by their names (code `config`).

    Args:
        flows: those of a project that are right by themselves.
        broken: the names of its other flows.
    """
    known = {flow.name: flow for flow in flows}
    for flow in flows:
        problems = [
            _problem(flow, name, said)
            for name, read in flow.reads.items()
            if (said := _wrong(flow, read, known, broken)) is not None
        ]
        if problems:
            yield flow.name, ProgramError(*problems)


def _wrong(
    flow: FlowAsset, read: FlowOutput, known: Mapping[str, FlowAsset], broken: Sequence[str]
) -> tuple[str, str] | None:
    """What is wrong with one input, and the cure."""
    other = known.get(read.flow)
    if other is None:
        if read.flow in broken:
            return f"the flow `{read.flow}` cannot be loaded", "mend that flow"
        there = ", ".join(f"`{name}`" for name in known)
        cure = did_you_mean(read.flow, known) or f"there are {there}"
        return f"there is no flow `{read.flow}`", cure
    circle = _circle(flow.name, known, [read.flow])
    if circle:
        listed = ", which reads ".join(f"`{name}`" for name in circle)
        return f"a circle: it reads {listed}", "let one of them read what has landed instead"
    return _ticks_differ(flow, other)


def _circle(end: str, known: Mapping[str, FlowAsset], way: list[str]) -> list[str]:
    """The flows up to `end`, each of which reads the next; none: empty."""
    if way[-1] == end:
        return way
    flow = known.get(way[-1])
    for read in flow.reads.values() if flow else ():
        if read.flow not in way and (found := _circle(end, known, [*way, read.flow])):
            return found
    return []


def _ticks_differ(flow: FlowAsset, other: FlowAsset) -> tuple[str, str] | None:
    feed = Feed(flow.ticks.calendar, other.ticks.calendar)
    if feed.is_one_to_one or (feed.is_coarser and flow.ticks.zone == other.ticks.zone):
        return None
    says, own = (
        f"every {calendar.every} from {calendar.shown(calendar.origin)}"
        for calendar in (feed.other, feed.own)
    )
    message = f"`{other.name}` has ticks that do not fit: {says}, and `{flow.name}` {own}"
    return message, (
        f"give both the same `every` and `zone`, with starts that are whole ticks apart, or "
        f"`{flow.name}` shorter ticks than `{other.name}`"
    )


def no_such_output(flow: FlowAsset, name: str, outputs: Collection[str]) -> ProgramError:
    """An input of a flow is to be an output that another flow, which has these, does not have."""
    read = flow.reads[name]
    there = ", ".join(f"`{output}`" for output in outputs)
    cure = did_you_mean(read.output, outputs) or f"there are {there}"
    says = f"the flow `{read.flow}` has no output `{read.output}`"
    return ProgramError(_problem(flow, name, (says, cure)))


def columns_wrong(
    flow: FlowAsset, inputs: Mapping[str, ItemType], outputs: Mapping[str, Mapping[str, ItemType]]
) -> ProgramError | None:
    """What is wrong with the columns that a program reads of other flows' programs; None: nothing.

    Args:
        flow: reads outputs of other flows.
        inputs: the types of its program's inputs.
        outputs: by the names of other flows, the types of their programs' outputs.
    """
    problems: list[Diagnostic] = []
    for name, read in flow.reads.items():
        there = outputs.get(read.flow)
        if there is None:
            continue
        if read.output not in there:
            return no_such_output(flow, name, there)
        given = declared_columns(there[read.output])
        wanted = declared_columns(inputs.get(name, UNKNOWN))
        if given is not None and wanted is not None:
            listed = ", ".join(f"`{column}`" for column in given)
            problems += [
                _problem(flow, name, (f"{read} has no column `{column}`", f"it has {listed}"))
                for column in wanted
                if column not in given and column not in _OF_TABLES
            ]
    return ProgramError(*problems) if problems else None


def takes_back(flow: FlowAsset, name: str) -> ProgramError:
    """An input of a flow is a log of changes, and its program does not read what they do."""
    says = f"{flow.reads[name]} takes rows back: they are in its table with negative `copies`"
    cure = (
        "have the program read the column `copies long` too, or the other flow end that output "
        "with `delta()`, whose rows are events"
    )
    return ProgramError(_problem(flow, name, (says, cure)))


def _problem(flow: FlowAsset, name: str, said: tuple[str, str]) -> Diagnostic:
    place = f"inputs.{name}"
    return flow.problem_at(place, *said, at=f"{place}.flow")
