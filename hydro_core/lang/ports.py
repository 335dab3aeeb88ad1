"""Ports: which input a stream enters, which output it leaves by, whether all inputs are there."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from hydro_core.catalog.spec import Args, OpSpec, Port
from hydro_core.errors import Diagnostic, Span
from hydro_core.ir.builder import Draft, Wire
from hydro_core.lang.names import In, Out
from hydro_core.lang.similar import did_you_mean


class PortProblem(Exception):  # noqa: N818 - it becomes a Diagnostic
    """Why a port does not serve."""

    def __init__(self, message: str, help_: str) -> None:
        super().__init__(message)
        self.message, self.help = message, help_


def output_port(op: OpSpec, args: Args, label: str | None) -> str:
    """The port of an `Endpoint` that `label` means."""
    if op.outputs == "none":
        raise PortProblem(f"nothing flows out of `{op.name}`", "read the stream before it")
    if op.outputs == "copies":
        return ""
    if op.outputs == "ports":
        ports: tuple[str, ...] = args["ports"]
        if label in ports:
            return str(label)
        shown = ", ".join(f"`[{port}]`" for port in ports)
        if label is None:
            raise PortProblem(f"`{op.name}` has several outputs", f"say which one: {shown}")
        raise PortProblem(f"`{op.name}` has no output `[{label}]`", f"it has {shown}")
    if label not in (None, "0"):
        raise PortProblem(
            f"`{op.name}` has one output, not `[{label}]`",
            f"leave `[{label}]` away: a stream may be read any number of times",
        )
    return ""


def shown_ports(op: OpSpec) -> str:
    """The input ports as a program writes them."""
    return " and ".join(f"`[{port.name}]`" for port in op.inputs)


def _which(op: OpSpec, port: Port) -> str:
    """An input as a complaint names it."""
    return f"`[{port.name}]` of `{op.name}`" if len(op.inputs) > 1 else f"`{op.name}`"


def input_position(op: OpSpec, label: str | None, taken: set[int]) -> int:
    """The position of the input that `label` means; without one, the only input left."""
    if not op.inputs:
        raise PortProblem(
            f"nothing can flow into `{op.name}`",
            "a pipeline begins with it; an output has a name of its own: `x -> out`",
        )
    if op.variadic:
        return 0
    if label is not None:
        position = op.port(label)
        if position is not None:
            return position
        if len(op.inputs) == 1:
            message = f"`{op.name}` has one input, not `[{label}]`"
            raise PortProblem(message, f"leave `[{label}]` away")
        help_ = did_you_mean(label, [p.name for p in op.inputs]) if not label.isdigit() else None
        raise PortProblem(
            f"`{op.name}` has no input `[{label}]`", help_ or f"it has {shown_ports(op)}"
        )
    elided = [i for i, port in enumerate(op.inputs) if port.elided]
    free = elided or [i for i in range(len(op.inputs)) if i not in taken]
    if len(free) == 1:
        return free[0]
    help_ = f"say which: {shown_ports(op)}"
    raise PortProblem(f"`{op.name}` has {len(op.inputs)} inputs", help_)


@dataclass
class Wiring:
    """Connects drafts; what is wrong with ports is added to `problems`."""

    drafts: list[Draft]
    problems: list[Diagnostic]
    inlets: dict[int, list[tuple[In, Wire | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    read: set[int] = field(default_factory=set)

    def add(self, left: Out, right: In) -> None:
        """A stream from `left` to `right`."""
        draft = self.drafts[left.draft]
        self.read.add(left.draft)
        wire: Wire | None = None
        try:
            label = left.label.text if left.label else None
            wire = (left.draft, output_port(draft.op, draft.args, label))
        except PortProblem as wrong:
            span = left.label.span if left.label else left.span
            self._complain(wrong.message, span, draft.op.name, wrong.help)
        self.inlets[right.draft].append((right, wire))

    def add_unknown(self, right: In) -> None:
        """Something that is wrong already flows to `right`."""
        self.inlets[right.draft].append((right, None))

    def finish(self) -> None:
        """Gives every draft its inputs; those that lack one or have too many are complained of."""
        for number, draft in enumerate(self.drafts):
            entries = self.inlets.get(number, [])
            taken = {i.position for i, _ in entries if i.position is not None}
            filled: dict[int, Wire] = {}
            places: dict[int, Span] = {}
            whole = True
            for inlet, wire in entries:
                position = inlet.position
                try:
                    if position is None:
                        label = inlet.label.text if inlet.label else None
                        position = (
                            0 if inlet.by_argument else input_position(draft.op, label, taken)
                        )
                except PortProblem as wrong:
                    span = inlet.label.span if inlet.label else inlet.span
                    self._complain(wrong.message, span, draft.op.name, wrong.help)
                    whole = False
                    continue
                if wire is None:
                    whole = False
                elif draft.op.variadic:
                    draft.inputs.append(wire)
                elif position in places:
                    self._twice(draft, position, inlet, places[position])
                else:
                    filled[position] = wire
                places.setdefault(position, inlet.span)
            if draft.op.variadic:
                self._some(draft, whole)
            else:
                self._all(number, draft, filled, whole)

    def _some(self, draft: Draft, whole: bool) -> None:
        if not draft.inputs and whole:
            help_ = f"write `stream -> {draft.op.name}()`"
            self._complain(
                f"nothing flows into `{draft.op.name}`", draft.span, draft.op.name, help_
            )

    def _all(self, number: int, draft: Draft, filled: dict[int, Wire], whole: bool) -> None:
        op = draft.op
        missing = [i for i in range(len(op.inputs)) if i not in filled]
        if op.optional_input:
            if not missing and number in self.read:
                message = f"nothing flows out of `{op.name}` where something flows in"
                self._complain(message, draft.span, op.name, "read the stream before it")
            draft.inputs = [filled[0]] if not missing else []
            return
        if missing and whole:
            port = op.inputs[missing[0]]
            help_ = f"write `stream -> {op.name}()`"
            if port.keyword:
                help_ = (
                    f"write `stream -> [{port.name}]name`, where `name = {op.name}(…)`, "
                    f"or name the stream as an argument: `{op.name}({port.keyword}=stream)`"
                )
            elif len(op.inputs) > 1:
                help_ = f"write `stream -> [{port.name}]name`, where `name = {op.name}(…)`"
            message = f"nothing flows into {_which(op, port)}"
            self._complain(message, draft.span, op.name, help_)
        draft.inputs = [filled[i] for i in range(len(op.inputs)) if i in filled]

    def _twice(self, draft: Draft, position: int, inlet: In, first: Span) -> None:
        which = _which(draft.op, draft.op.inputs[position])
        span = inlet.label.span if inlet.label else inlet.span
        message = f"two streams flow into {which}; the first one in line {first.line}"
        self._complain(message, span, draft.op.name, "bring them together first: `both = union()`")

    def _complain(self, message: str, span: Span | None, operator: str, help_: str) -> None:
        self.problems.append(Diagnostic("port", message, span, operator, help=help_))
