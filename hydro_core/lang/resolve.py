"""Statements to a graph: operators, names, ports, inputs and outputs are resolved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hydro_core.catalog.itemwise import SINK, SOURCE
from hydro_core.catalog.registry import NAMES, lookup
from hydro_core.catalog.spec import Args, OpSpec, Port
from hydro_core.errors import Code, Diagnostic, ProgramError, Span, beginning
from hydro_core.ir.graph import Draft, Graph, Wire, build, numbered, source_args
from hydro_core.lang.arguments import StreamArgument, read_arguments
from hydro_core.lang.foreign import cure_of_unknown
from hydro_core.lang.parser import Element, Label, Program, Statement, parse_program
from hydro_core.lang.source import Source, did_you_mean

# The meaning of the names of a program.
#
# A name means its pipeline: a stream into the name enters the first element, a stream out of it
# leaves the last. A pipeline that ends in another name flows into that one; its own name, when
# read, means the last element before that one.


@dataclass(frozen=True, slots=True)
class Outlet:
    """The output end of a draft."""

    draft: int
    label: Label | None
    span: Span


@dataclass(frozen=True, slots=True)
class Inlet:
    """The input end of a draft; `position` is known if an argument gives it."""

    draft: int
    label: Label | None
    span: Span
    position: int | None = None
    by_argument: bool = False


@dataclass(frozen=True, slots=True)
class FreeName:
    """A name, read or written; after resolution, one that no statement defines."""

    name: str
    label: Label | None
    span: Span


Beginning = Outlet | FreeName | None
"""The beginning of a flow; None if it is wrong and has a problem already."""
End = Inlet | FreeName | None
"""The end of a flow."""


@dataclass
class Names:
    """The definitions of a program, and which of them are read and written."""

    program: Program
    definitions: dict[str, Statement] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    problems: list[Diagnostic] = field(default_factory=list)

    def __post_init__(self) -> None:
        for statement in self.program.statements:
            if statement.name is None:
                continue
            first = self.definitions.setdefault(statement.name, statement)
            if first is not statement and first.name_span is not None:
                self._bad_name(
                    "name",
                    f"`{statement.name}` is defined twice, first in line {first.name_span.line}",
                    statement.name_span,
                    statement.name,
                    "give one of them another name",
                )

        self._check_turns()

    def _check_turns(self) -> None:
        """Reports names that only refer to each other, read or not."""
        known: set[str] = set()
        for start, statement in self.definitions.items():
            followed: dict[str, None] = {}
            name = FreeName(start, None, statement.elements[0].span)
            while name.name in self.definitions and name.name not in known:
                element = _last(self.definitions[name.name])
                if element.is_call or self._turns(name, followed):
                    break
                name = FreeName(element.name, None, element.span)
            known.update(followed, [start])

    def reading(self, name: FreeName, left: Callable[[Element], Beginning]) -> Beginning:
        """The beginning that a read name means."""
        followed: dict[str, None] = {}
        while name.name in self.definitions:
            if self._turns(name, followed):
                return None
            self.read.add(name.name)
            element = _last(self.definitions[name.name])
            label = self._label(element.leaves, name, "output")
            if element.is_call:
                found = left(element)
                return Outlet(found.draft, label, name.span) if isinstance(found, Outlet) else None
            name = FreeName(element.name, label, name.span)
        return name

    def writing(self, name: FreeName, right: Callable[[Element], End]) -> End:
        """The end that a written name means."""
        followed: dict[str, None] = {}
        while name.name in self.definitions:
            if self._turns(name, followed):
                return None
            self.written.add(name.name)
            element = self.definitions[name.name].elements[0]
            label = self._label(element.enters, name, "input")
            if element.is_call:
                found = right(element)
                return Inlet(found.draft, label, name.span) if isinstance(found, Inlet) else None
            name = FreeName(element.name, label, name.span)
        return name

    def _turns(self, name: FreeName, followed: dict[str, None]) -> bool:
        """True if names only refer to each other; reported once for each cycle."""
        if name.name not in followed:
            followed[name.name] = None
            return False
        names = list(followed)
        turn = names[names.index(name.name) :]
        start = min(turn, key=list(self.definitions).index)
        at = turn.index(start)
        shown = " = ".join(f"`{n}`" for n in [*turn[at:], *turn[:at], start])
        message = f"`{start}` stands for nothing but itself: {shown}"
        span = self.definitions[start].name_span
        if not any(p.span == span and p.code == "name" for p in self.problems):
            self._bad_name(
                "name", message, span, start, "define it by an operator, as in `x = union()`"
            )
        return True

    def _label(self, own: Label | None, name: FreeName, side: str) -> Label | None:
        """The port of a name: given by its definition or its use, not by both."""
        if own is None or name.label is None:
            return own or name.label
        message = f"`{name.name}` stands for the {side} port `[{own.text}]` already"
        help_ = f"leave `[{name.label.text}]` away"
        self._bad_name("port", message, name.label.span, name.name, help_)
        return own

    def _bad_name(
        self, code: Code, message: str, span: Span | None, operator: str | None, help_: str
    ) -> None:
        self.problems.append(Diagnostic(code, message, span, operator, help=help_))


def _last(statement: Statement) -> Element:
    """The element whose output a pipeline gives: not the name that it flows into."""
    last = statement.elements[-1]
    if last.is_call or last.leaves is not None or len(statement.elements) == 1:
        return last
    return statement.elements[-2]


# Ports: the input that a stream enters, the output that it leaves by, and the completeness of
# inputs.


class PortProblem(Exception):  # noqa: N818 - it becomes a Diagnostic
    """The reason why a port is refused."""

    def __init__(self, message: str, help_: str) -> None:
        super().__init__(message)
        self.message, self.help = message, help_


def output_port(op: OpSpec, args: Args, label: str | None) -> str:
    """The port of an `Endpoint` that `label` names."""
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
    """An input as a diagnostic names it."""
    return f"`[{port.name}]` of `{op.name}`" if len(op.inputs) > 1 else f"`{op.name}`"


def input_position(op: OpSpec, label: str | None, taken: set[int]) -> int:
    """The position of the input that `label` names; without one, the only input left."""
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
    """Connects drafts; problems of ports are added to `problems`."""

    drafts: list[Draft]
    problems: list[Diagnostic]
    inlets: dict[int, list[tuple[Inlet, Wire | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    read: set[int] = field(default_factory=set)

    def add(self, left: Outlet, right: Inlet) -> None:
        """A stream from `left` to `right`."""
        draft = self.drafts[left.draft]
        self.read.add(left.draft)
        wire: Wire | None = None
        try:
            label = left.label.text if left.label else None
            wire = (left.draft, output_port(draft.op, draft.args, label))
        except PortProblem as wrong:
            span = left.label.span if left.label else left.span
            self._bad_port(wrong.message, span, draft.op.name, wrong.help)
        self.inlets[right.draft].append((right, wire))

    def add_unknown(self, right: Inlet) -> None:
        """Records a flow to `right` whose beginning is wrong already."""
        self.inlets[right.draft].append((right, None))

    def finish(self) -> None:
        """Gives every draft its inputs; reports drafts that lack one or have too many."""
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
                    self._bad_port(wrong.message, span, draft.op.name, wrong.help)
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
            self._bad_port(
                f"nothing flows into `{draft.op.name}`", draft.span, draft.op.name, help_
            )

    def _all(self, number: int, draft: Draft, filled: dict[int, Wire], whole: bool) -> None:
        op = draft.op
        missing = [i for i in range(len(op.inputs)) if i not in filled]
        if op.optional_input:
            if not missing and number in self.read:
                message = f"nothing flows out of `{op.name}` where something flows in"
                self._bad_port(message, draft.span, op.name, "read the stream before it")
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
            self._bad_port(message, draft.span, op.name, help_)
        draft.inputs = [filled[i] for i in range(len(op.inputs)) if i in filled]

    def _twice(self, draft: Draft, position: int, inlet: Inlet, first: Span) -> None:
        which = _which(draft.op, draft.op.inputs[position])
        span = inlet.label.span if inlet.label else inlet.span
        message = f"two streams flow into {which}; the first one in line {first.line}"
        self._bad_port(message, span, draft.op.name, "bring them together first: `both = union()`")

    def _bad_port(self, message: str, span: Span | None, operator: str, help_: str) -> None:
        self.problems.append(Diagnostic("port", message, span, operator, help=help_))


# Statements become a graph: operators, names and ports are resolved, inputs and outputs found.
#
# A name that no statement defines is an input if it is only read, an output if it is only
# written.


Piped = tuple[Beginning, End]


def parse(
    text: str,
    *,
    file: str = "<text>",
    name: str = "flow",
    bindings: Mapping[str, Any] | None = None,
) -> Graph:
    """The graph of a text; its functions may name `bindings` and the builtins."""
    source = Source(file, text.removeprefix("\ufeff"))
    program, problems = parse_program(source)
    if problems:
        raise ProgramError(*sorted(problems, key=_place))
    return _Resolver(source, Names(program), bindings or {}).graph(name)


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    return beginning(diagnostic.span)


_FIRST = (
    'write a pipeline from an input to an output: `lines = source("string")` and '
    "`lines -> map(lambda x: x.upper()) -> out`"
)


@dataclass
class _Resolver:
    """Collects drafts and problems; each step needs those before it."""

    source: Source
    names: Names
    bindings: Mapping[str, Any]
    problems: list[Diagnostic] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    number: dict[int, int] = field(default_factory=dict)
    """Drafts by the identity of their elements; an element that is wrong has none."""
    arguments: list[tuple[int, StreamArgument]] = field(default_factory=list)

    def graph(self, name: str) -> Graph:
        """The steps, in order; problems are collected and raised once."""
        if not self.names.program.statements:
            span = self.source.span(0, 0)
            raise ProgramError.of("syntax", "the program is empty", span, help=_FIRST)
        for statement in self.names.program.statements:
            for element in statement.elements:
                if element.is_call:
                    self._operator(statement, element)
        flows = self._without_free([self._ended(flow) for flow in self._flows()])
        wiring = Wiring(self.drafts, self.problems)
        for left, right in flows:
            if isinstance(left, Outlet) and isinstance(right, Inlet):
                wiring.add(left, right)
            elif isinstance(right, Inlet):
                wiring.add_unknown(right)
        wiring.finish()
        self.problems += self.names.problems
        if self.problems:
            raise ProgramError(*sorted(self.problems, key=_place))
        self._label_drafts()
        read = wiring.read | {left.draft for left, _ in flows if isinstance(left, Outlet)}
        discarded = sorted(self._discarded(read), key=_place)
        order = sorted(range(len(self.drafts)), key=lambda n: beginning(self.drafts[n].span))
        built = build(numbered(self.drafts, order), name, discarded)
        if discarded and not built.sinks:
            raise ProgramError(*map(_no_output, discarded))
        return built

    def _operator(self, statement: Statement, element: Element) -> None:
        op = lookup(element.name)
        if op is None:
            self.problems.append(self._unknown(element))
            return
        try:
            args, streams = read_arguments(self.source, element, op, self.bindings)
        except ProgramError as wrong:
            self.problems += wrong.diagnostics
            return
        if op is SOURCE and args["name"] is None:
            if statement.name is None or element is not statement.elements[0]:
                self._complain(
                    "arity", "an input needs a name", element, "write `name = source(…)`"
                )
                return
            args = args.with_(name=statement.name)
        self.number[id(element)] = len(self.drafts)
        self.arguments += [(len(self.drafts), stream) for stream in streams]
        self.drafts.append(Draft(op, args, element.span))

    def _unknown(self, element: Element) -> Diagnostic:
        if element.name in self.names.definitions:
            help_ = f"`{element.name}` is a stream of this program: write it without brackets"
        else:
            help_ = cure_of_unknown(element.name)
        message = f"there is no operator `{element.name}`"
        return Diagnostic("unknown-operator", message, element.name_span, element.name, help=help_)

    def _flows(self) -> Iterator[Piped]:
        """The flows as they are written: from an element or a name to an element or a name."""
        for statement in self.names.program.statements:
            elements = statement.elements
            if statement.name is None:
                self._loose_labels(elements)
            for before, after in pairwise(elements):
                yield self._left(before), self._right(after)
            if len(elements) == 1 and not elements[0].is_call and statement.name is None:
                yield self._left(elements[0]), None
        for draft, stream in self.arguments:
            label = None if stream.label is None else Label(stream.label, stream.span)
            entry = Inlet(draft, None, stream.span, stream.position, by_argument=True)
            yield FreeName(stream.name, label, stream.span), entry

    def _loose_labels(self, elements: tuple[Element, ...]) -> None:
        first, last = elements[0], elements[-1]
        if first.enters is not None:
            message = f"nothing flows into `[{first.enters.text}]`"
            cure = "write `stream -> ` before it"
            self.problems.append(
                Diagnostic("port", message, first.enters.span, first.name, help=cure)
            )
        if last.leaves is not None:
            message = f"nothing reads `[{last.leaves.text}]`"
            cure = "write ` -> name` after it, or give the pipeline a name"
            self.problems.append(
                Diagnostic("port", message, last.leaves.span, last.name, help=cure)
            )

    def _left(self, element: Element) -> Beginning:
        if not element.is_call:
            return FreeName(element.name, element.leaves, element.span)
        draft = self.number.get(id(element))
        return None if draft is None else Outlet(draft, element.leaves, element.span)

    def _right(self, element: Element) -> End:
        if not element.is_call:
            return FreeName(element.name, element.enters, element.span)
        draft = self.number.get(id(element))
        return None if draft is None else Inlet(draft, element.enters, element.span)

    def _ended(self, flow: Piped) -> Piped:
        """The flow with its names resolved to their ends."""
        left, right = flow
        if isinstance(left, FreeName):
            left = self.names.reading(left, self._left)
        if isinstance(right, FreeName):
            right = self.names.writing(right, self._right)
        return left, right

    def _without_free(self, flows: list[Piped]) -> list[Piped]:
        """The flows with inputs and outputs in place of undefined names."""
        read: dict[str, FreeName] = {}
        written: dict[str, FreeName] = {}
        for left, right in flows:
            if isinstance(left, FreeName):
                read.setdefault(left.name, left)
            if isinstance(right, FreeName):
                written.setdefault(right.name, right)
        wrong = self._undefined(read, written)
        inputs = {name: self._input(use) for name, use in read.items() if name not in wrong}
        return [
            (
                self._from_input(left, inputs) if isinstance(left, FreeName) else left,
                self._to_output(right, wrong) if isinstance(right, FreeName) else right,
            )
            for left, right in flows
        ]

    def _undefined(self, read: Mapping[str, FreeName], written: Mapping[str, FreeName]) -> set[str]:
        """The names that are neither inputs nor outputs: read and written, or written at a port."""
        wrong = set()
        for name, use in {**read, **written}.items():
            span = use.span
            if name in read and name in written:
                span = min(use.span, read[name].span, key=beginning)
                message = f"`{name}` is read and written, but never defined"
            elif use.label is not None and (name in written or use.label.text != "0"):
                message = f"`{name}` is never defined, so it has no port `[{use.label.text}]`"
            else:
                continue
            cure = self._cure(name)
            self.problems.append(Diagnostic("undefined", message, span, name, help=cure))
            wrong.add(name)
        return wrong

    def _cure(self, name: str) -> str:
        if name in NAMES:
            return f"an operator is written with brackets: `{name}()`"
        return did_you_mean(name, self.names.definitions) or (
            f"define it: `{name} = …`; an output has a name of its own, which is only written"
        )

    def _input(self, use: FreeName) -> int:
        self.drafts.append(Draft(SOURCE, source_args(use.name), use.span, use.name))
        return len(self.drafts) - 1

    def _from_input(self, use: FreeName, inputs: Mapping[str, int]) -> Beginning:
        draft = inputs.get(use.name)
        return None if draft is None else Outlet(draft, use.label, use.span)

    def _to_output(self, use: FreeName, wrong: set[str]) -> End:
        if use.name in wrong:
            return None
        self.drafts.append(Draft(SINK, Args((("name", use.name),)), use.span))
        return Inlet(len(self.drafts) - 1, None, use.span)

    def _label_drafts(self) -> None:
        """Names drafts: the last operator of a statement if its name is read, else the first."""
        for name, statement in self.names.definitions.items():
            calls = [e for e in statement.elements if e.is_call]
            drafts = [self.number[id(e)] for e in calls]
            drafts = [d for d in drafts if self.drafts[d].op.outputs != "none"]
            if not drafts:
                continue
            only_written = name in self.names.written and name not in self.names.read
            self.drafts[drafts[0] if only_written else drafts[-1]].name = name

    def _discarded(self, read: set[int]) -> Iterable[Diagnostic]:
        """Warnings of streams that are defined and never read."""
        for statement in self.names.program.statements:
            last = statement.elements[-1]
            if not self._is_discarded(statement, read):
                continue
            if statement.name is None:
                message, span = f"nobody reads what `{last.name}` gives: it is discarded", last.span
            else:
                message = f"`{statement.name}` is defined and never read: it is discarded"
                span = statement.name_span or last.span
            help_ = "read it, or remove it"
            yield Diagnostic("name", message, span, last.name, help=help_, severity="warning")

    def _is_discarded(self, statement: Statement, read: set[int]) -> bool:
        last = statement.elements[-1]
        if last.is_call:
            number = self.number[id(last)]
            draft = self.drafts[number]
            ends = draft.op.outputs == "none" or (draft.op.optional_input and draft.inputs)
            return not ends and number not in read
        is_alias = len(statement.elements) == 1 and statement.name is not None
        return is_alias and statement.name not in self.names.read | self.names.written

    def _complain(self, code: Code, message: str, element: Element, help_: str) -> None:
        self.problems.append(Diagnostic(code, message, element.span, element.name, help=help_))


def _no_output(discarded: Diagnostic) -> Diagnostic:
    """The error of a program without outputs: a discarded stream was meant to be one."""
    message = f"the program has no output: {discarded.message}"
    cure = (
        "an output is a name that is only written, at the end of a pipeline: "
        "`a -> map(…) -> out`; `out = …` names a stream"
    )
    return Diagnostic("name", message, discarded.span, discarded.operator, help=cure)
