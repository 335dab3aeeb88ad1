"""The forms of a plan's outputs, and of what it stores, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    Commands,
    Ends,
    Linear,
    Matching,
    OrderedByKey,
    Ordering,
    Output,
    OverTime,
    PerKey,
    PerPosition,
    Product,
    Running,
    Window,
)
from hydro_core.catalog.forms import Form
from hydro_core.catalog.variants import Places
from hydro_core.ir.graph import Node, NodeId
from hydro_core.plan.kinds import Kind
from hydro_core.plan.tick_plan import StateSlot, TickPlan

_FORMS = {
    Form.VALUES: "in values",
    Form.CHANGES: "in changes",
    Form.GROWTH: "as a history",
}


@dataclass(frozen=True, slots=True)
class StreamForm:
    """A stream of a plan, its form, and what that means there."""

    stream: str
    form: Form
    why: str

    def __str__(self) -> str:
        return f"`{self.stream}` {_FORMS[self.form]}: {self.why}"

    def as_json(self) -> Mapping[str, str]:
        """The stream as `--format json` prints it."""
        return {"stream": self.stream, "form": self.form.name.lower(), "why": self.why}


def stream_forms(plan: TickPlan) -> tuple[StreamForm, ...]:
    """The outputs and what is stored beside them, each in its form."""
    outputs = {_output(n): n.inputs[0].node for n in plan.graph if isinstance(n.cls, Output)}
    lines = [_of(plan, name, stream) for name, stream in outputs.items()]
    lines += _stored(plan, set(outputs.values()))
    return tuple(lines)


def written_whole(plan: TickPlan) -> Iterator[str]:
    """The outputs of which every tick stores all rows again, though most of them stay, and why."""
    for node in plan.graph:
        if isinstance(node.cls, Output):
            stream = node.inputs[0].node
            if plan.form(stream) is Form.VALUES and plan.kinds[stream] is Kind.G:
                yield (
                    f"`{_output(node)}` is stored anew in each tick, all rows of it: nothing tells"
                    " what changes there. `-> changes()` before it stores what changes alone"
                )


def _output(node: Node) -> str:
    return str(node.args.get("name", node.id))


def _stored(plan: TickPlan, outputs: set[NodeId]) -> Iterator[StreamForm]:
    for slot in plan.slots:
        if slot.stream.node in outputs and slot.form is Form.CHANGES:
            continue  # its table of changes serves both
        yield StreamForm(str(slot.stream), slot.form, _why_stored(plan, slot))


def _why_stored(plan: TickPlan, slot: StateSlot) -> str:
    readers = " and ".join(f"`{r}`" for r in slot.readers)
    match slot.form:
        case Form.GROWTH if slot.keep is not None:
            ticks = "last tick" if slot.keep == 1 else f"last {slot.keep} ticks"
            return f"stored for {readers}, as far as the {ticks} go back"
        case Form.GROWTH if slot.bound is not None:
            return f"stored for {readers}, as long as {slot.bound.shown}"
        case Form.GROWTH:
            return f"stored for {readers}, from the first tick on"
        case Form.VALUES:
            return f"stored for {readers}, of the last tick"
        case Form.CHANGES | Form.LOOKED_UP:
            return f"stored as a log, {_changing(plan.graph[slot.stream.node])}"


def _of(plan: TickPlan, name: str, stream: NodeId) -> StreamForm:
    form = plan.form(stream)
    match form:
        case Form.CHANGES:
            why = _changing(plan.graph[stream])
        case Form.GROWTH:
            why = "what comes is added, nothing goes"
        case _ if plan.kinds[stream] is Kind.G:
            why = "all its rows are made and stored in each tick"
        case _:
            why = "a tick's rows are there in this tick alone"
    return StreamForm(name, form, why)


def _changing(node: Node) -> str:  # noqa: C901, PLR0911 - a closed set of cases
    """What comes and goes there."""
    cls = node.cls
    match cls:
        case Running(OrderedByKey(gives)):
            return _BY_PLACES[gives]
        case ByKey(keyed=True) | Running(ByKey(keyed=True)):
            return "a key's new result replaces its old one"
        case Running() | Commands(keyed=False):
            return "the new result replaces the old one"
        case Commands():
            return "what a command leaves for a key replaces what was there"
        case Window(timed=timed):
            goes = "its time is too long ago" if timed else "the window has passed it"
            return f"a row comes with its tick, and goes when {goes}"
        case OrderedByKey():
            return "a key's rows go and come again where their places change"
        case AsOf():
            return "a row goes, and comes again, when another is the nearest to it"
        case Matching() | Product():
            return "a row without a match goes when its first match comes"
        case Linear() | Ordering() | Output():
            inputs = " and ".join(f"`{e.node}`" for e in dict.fromkeys(node.inputs))
            return f"what comes and goes in {inputs} does so here"
        case Ends() | PerKey() | PerPosition() | OverTime():
            return "what comes and goes is told"
        case _:
            assert_never(cls)


_BY_PLACES = {
    Places.EACH: "a row comes with its columns, and those behind a late one are made again",
    Places.FIRST: "a row that is among the first drives another one out",
}
