"""Builder of a program by calls: its graph is the same as that of the program's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from hydro_core.catalog.itemwise import NULL, SINK, SOURCE, SOURCE_ITER, TICK
from hydro_core.catalog.spec import OpSpec, TypeProblem
from hydro_core.errors import Code, ProgramError, Span
from hydro_core.ir.graph import Draft, Graph, Wire, build, numbered, source_args
from hydro_core.lang.load import load
from hydro_core.lang.methods import OperatorMethods, ValueReader
from hydro_core.lang.print import is_name, to_text
from hydro_core.lang.resolve import PortProblem, output_port, parse
from hydro_core.lang.signature import as_written, bind
from hydro_core.lang.source import caller
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType

Schema = str | ItemType
_READER = ValueReader()


class Stream(OperatorMethods["Stream"]):
    """The output of an operator. A `Flow`, and the methods of a stream, build streams."""

    def __init__(self, flow: FlowBuilder, wire: Wire) -> None:
        self.flow, self.wire = flow, wire

    def apply(self, op: OpSpec, *arguments: Any, **keywords: Any) -> Stream:
        """The output of an operator on this stream; keywords that are None are ignored."""
        given = {name: value for name, value in keywords.items() if value is not None}
        return self.flow.add(op, self, arguments, given)

    def named(self, name: str) -> Stream:
        """This stream, under a name that plans, errors and assets show."""
        self.flow.name_stream(self, name)
        return self

    def sink(self, name: str) -> None:
        """Makes the stream an output; several sinks of one name add up."""
        self.apply(SINK, name)

    def null(self) -> None:
        """Discards the stream."""
        self.apply(NULL)

    def __getitem__(self, port: str | int) -> Stream:
        """One output of an operator that has several: `s.partition(f, ["even", "odd"])["even"]`."""
        return self.flow.port_of(self, str(port))

    def __iter__(self) -> Any:
        raise TypeError("a stream has no items before its flow runs: `flow.run(ticks)`")

    def __repr__(self) -> str:
        return f"<stream {self.flow.shown(self)}>"


class Forward(Stream):
    """A stream that is used before it is defined: `define` closes the cycle."""

    def __init__(self, flow: FlowBuilder, wire: Wire, name: str, schema: ItemType | None) -> None:
        super().__init__(flow, wire)
        self.name, self.schema = name, schema
        self.place = caller()
        self.target: Stream | None = None

    def define(self, stream: Stream) -> None:
        """Says which stream this is; it gets the name too, unless it has one."""
        if self.target is not None:
            message = f"`{self.name}` is defined twice"
            raise ProgramError.of("name", message, caller(), self.name, help="define it once")
        self.flow.check_own(stream)
        self.target = stream


class FlowBuilder:
    """A program under construction; `graph()` is its result."""

    def __init__(self, name: str = "flow") -> None:
        self.name = name
        self._drafts: list[Draft] = []
        self._forwards: list[Forward] = []

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The flow of a program's file."""
        return cls.of(load(str(path)))

    @classmethod
    def parse(cls, text: str, name: str = "flow", **bindings: Any) -> Self:
        """The flow of a text; its functions may name `bindings` and the builtins."""
        return cls.of(parse(text, name=name, bindings=bindings))

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """A flow that begins with a graph and may grow."""
        flow = cls(graph.name)
        number = {node.id: i for i, node in enumerate(graph)}
        for node in graph:
            wires = [(number[e.node], e.port) for e in node.inputs]
            name = None if node.op.outputs == "none" else node.id
            flow._drafts.append(Draft(node.op, node.args, node.span, name, wires))
        return flow

    def source(
        self, name: str, schema: Schema | None = None, *, fds: Mapping[Any, Any] | None = None
    ) -> Stream:
        """An input; without a schema it has the type of its data."""
        self._check_name(name)
        if any(d.op is SOURCE and d.own_name == name for d in self._drafts):
            raise self._wrong("name", f"`{name}` is an input already", name, "use its stream")
        if schema is None:
            return self._append(Draft(SOURCE, source_args(name), caller(), name))
        keywords = {"name": name} | ({} if fds is None else {"fds": fds})
        stream = self.add(SOURCE, None, (schema,), keywords)
        self._drafts[stream.wire[0]].name = name
        return stream

    def source_iter(self, items: Sequence[Any], *, schema: Schema | None = None) -> Stream:
        """The items at tick 0, empty after."""
        return self.add(SOURCE_ITER, None, (items,), {} if schema is None else {"schema": schema})

    def tick(self) -> Stream:
        """One row each tick: its number, and its times where the ticks have them."""
        return self.add(TICK, None, (), {})

    def null(self) -> Stream:
        """A stream without items."""
        return self.add(NULL, None, (), {})

    def forward(self, name: str, schema: Schema | None = None) -> Forward:
        """A stream that is used before it is defined; `schema`, if given, is checked."""
        self._check_name(name)
        item = parse_ddl(schema) if isinstance(schema, str) else schema
        forward = Forward(self, (-1 - len(self._forwards), ""), name, item)
        self._forwards.append(forward)
        return forward

    def stream(self, name: str) -> Stream:
        """The stream of this name."""
        for number, draft in enumerate(self._drafts):
            if draft.name == name:
                return Stream(self, (number, ""))
        raise self._wrong(
            "undefined", f"there is no stream `{name}`", name, "give it one: `.named(…)`"
        )

    def graph(self) -> Graph:
        """The program as it is now."""
        drafts = [Draft(d.op, d.args, d.span, d.name, list(d.inputs)) for d in self._drafts]
        for forward in self._forwards:
            number, _ = self._followed(forward.wire)
            if drafts[number].name is None:
                drafts[number].name = forward.name
        for draft in drafts:
            draft.inputs = [self._resolved(wire) for wire in draft.inputs]
        self._check_twice(drafts)
        return build(self._without_idle_sources(drafts), self.name)

    def to_text(self) -> str:
        """The program's text; a function that is no expression appears in it by name."""
        return to_text(self.graph())

    def __repr__(self) -> str:
        return f"<flow {self.name}: {len(self._drafts)} operators>"

    def add(
        self,
        op: OpSpec,
        first: Stream | None,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Stream:
        """The stream of a new operator whose first input is `first`."""
        operator, place = op.name, caller()
        try:
            args, named = bind(op, arguments, list(keywords.items()), _READER)
        except TypeProblem as wrong:
            helps = wrong.help or as_written(op)
            raise ProgramError.of(wrong.code, wrong.message, place, operator, help=helps) from None
        inputs = {0: first} if first is not None else {}
        further: list[Stream] = []
        for position, stream in named:
            if not isinstance(stream, Stream):
                message = f"`{operator}` takes a stream here, not {stream!r}"
                help_ = "give it a stream of the same flow"
                raise ProgramError.of("type", message, place, operator, help=help_)
            if position is None:
                further.append(stream)
            else:
                inputs[position] = stream
        streams = [*(inputs[i] for i in sorted(inputs)), *further]
        if not op.variadic and not op.optional_input and len(streams) < len(op.inputs):
            keyword = op.inputs[-1].keyword
            message = f"`{operator}` needs the stream `{keyword}`"
            raise ProgramError.of("arity", message, place, operator, help=as_written(op))
        wires = [self._readable(stream, place) for stream in streams]
        return self._append(Draft(op, args, place, None, wires))

    def name_stream(self, stream: Stream, name: str) -> None:
        """Names the operator of a stream."""
        self._check_name(name)
        number, _ = self._followed(stream.wire)
        draft = self._drafts[number]
        if draft.name not in (None, name):
            raise self._wrong(
                "name", f"the stream is called `{draft.name}` already", name, "name it once"
            )
        if any(d.name == name and d is not draft for d in self._drafts):
            raise self._wrong(
                "name", f"another stream is called `{name}`", name, "choose another name"
            )
        draft.name = name

    def port_of(self, stream: Stream, port: str) -> Stream:
        """One output of the operator of a stream."""
        number, _ = self._followed(stream.wire)
        draft = self._drafts[number]
        try:
            return Stream(self, (number, output_port(draft.op, draft.args, port)))
        except PortProblem as wrong:
            raise self._wrong("port", wrong.message, draft.op.name, wrong.help) from None

    def check_own(self, stream: Stream) -> None:
        """Refuses a stream that belongs to another flow."""
        if stream.flow is not self:
            message = "the stream belongs to another flow"
            raise self._wrong("undefined", message, self.shown(stream), "build both in one flow")

    def shown(self, stream: Stream) -> str:
        """A stream as an error names it."""
        if stream.flow is not self:
            return stream.flow.shown(stream)
        number, port = stream.wire
        if number < 0:
            return self._forwards[-1 - number].name
        draft = self._drafts[number]
        name = draft.name or draft.op.name
        return f"{name}[{port}]" if port else name

    def _append(self, draft: Draft) -> Stream:
        self._drafts.append(draft)
        return Stream(self, (len(self._drafts) - 1, ""))

    def _readable(self, stream: Stream, place: Span | None) -> Wire:
        self.check_own(stream)
        number, port = stream.wire
        if number < 0 or port:
            return stream.wire
        draft = self._drafts[number]
        if draft.op.optional_input and draft.inputs:
            message, helps = f"nothing flows out of `{draft.op.name}`", "read the stream before it"
            raise ProgramError.of("port", message, place, draft.op.name, help=helps)
        try:
            return number, output_port(draft.op, draft.args, None)
        except PortProblem as wrong:
            name = draft.op.name
            raise ProgramError.of("port", wrong.message, place, name, help=wrong.help) from None

    def _followed(self, wire: Wire) -> Wire:
        """The wire of a stream, with forward references replaced by their definitions."""
        passed: list[Forward] = []
        while wire[0] < 0:
            forward = self._forwards[-1 - wire[0]]
            name = forward.name
            if forward.target is None:
                message = f"`{name}` is used, but never defined"
                help_ = "call `.define(stream)` on it"
                raise ProgramError.of("undefined", message, forward.place, name, help=help_)
            if forward in passed:
                message = f"`{name}` stands for nothing but itself"
                help_ = "define it by an operator"
                raise ProgramError.of("name", message, forward.place, name, help=help_)
            passed.append(forward)
            wire = forward.target.wire
        return wire

    def _resolved(self, wire: Wire) -> Wire:
        number, port = self._followed(wire)
        if wire[0] >= 0 or port:
            return number, port
        return self._readable(Stream(self, (number, port)), self._drafts[number].span)

    def _check_twice(self, drafts: Sequence[Draft]) -> None:
        seen: set[str] = set()
        for draft in drafts:
            if draft.name is not None and draft.name in seen:
                message = f"two streams are called `{draft.name}`"
                help_ = "choose another name"
                raise ProgramError.of("name", message, draft.span, draft.name, help=help_)
            seen.add(draft.name or "")

    def _without_idle_sources(self, drafts: list[Draft]) -> list[Draft]:
        """Drops unread inputs without a schema: a text cannot express them."""
        read = {number for draft in drafts for number, _ in draft.inputs}
        kept = (
            i
            for i, draft in enumerate(drafts)
            if i in read or draft.op is not SOURCE or draft.args["schema"] is not None
        )
        return numbered(drafts, kept)

    @property
    def promised(self) -> Mapping[str, ItemType]:
        """The schemas of forward references that have one."""
        return {f.name: f.schema for f in self._forwards if f.schema is not None}

    def _check_name(self, name: str) -> None:
        if not isinstance(name, str) or not is_name(name):
            raise self._wrong(
                "name", f"{name!r} is no name of a stream", None, "write letters, digits and `_`"
            )

    def _wrong(self, code: Code, message: str, operator: str | None, help_: str) -> ProgramError:
        return ProgramError.of(code, message, caller(), operator, help=help_)
