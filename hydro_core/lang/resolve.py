"""Statements become a graph: operators, names and ports are resolved, inputs and outputs found.

A name that no statement defines is an input if it is only read, an output if it is only written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hydro_core.catalog.io import SINK, SOURCE
from hydro_core.catalog.registry import NAMES, lookup
from hydro_core.catalog.spec import Args
from hydro_core.errors import Code, Diagnostic, ProgramError, beginning
from hydro_core.ir.builder import Draft, build, numbered, source_args
from hydro_core.ir.graph import Graph
from hydro_core.lang.arguments import StreamArgument, read_arguments
from hydro_core.lang.foreign import cure_of_unknown
from hydro_core.lang.names import Beginning, End, Free, In, Names, Out
from hydro_core.lang.parser import Element, Label, Statement, parse_program
from hydro_core.lang.ports import Wiring
from hydro_core.lang.similar import did_you_mean
from hydro_core.lang.source import Source

Piped = tuple[Beginning, End]


def parse(
    text: str,
    *,
    file: str = "<text>",
    name: str = "flow",
    bindings: Mapping[str, Any] | None = None,
) -> Graph:
    """The graph of a text; `bindings` are what its functions may name beside the builtins."""
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
    """Collects drafts and what is wrong; each step needs those before it."""

    source: Source
    names: Names
    bindings: Mapping[str, Any]
    problems: list[Diagnostic] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    number: dict[int, int] = field(default_factory=dict)
    """From elements, by identity, to their drafts; an element that is wrong has none."""
    arguments: list[tuple[int, StreamArgument]] = field(default_factory=list)

    def graph(self, name: str) -> Graph:
        """The steps, in order; what is wrong is collected and raised once."""
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
            if isinstance(left, Out) and isinstance(right, In):
                wiring.add(left, right)
            elif isinstance(right, In):
                wiring.add_unknown(right)
        wiring.finish()
        self.problems += self.names.problems
        if self.problems:
            raise ProgramError(*sorted(self.problems, key=_place))
        self._label_drafts()
        read = wiring.read | {left.draft for left, _ in flows if isinstance(left, Out)}
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
        """What flows where, as it is written: from an element or a name to an element or a name."""
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
            entry = In(draft, None, stream.span, stream.position, by_argument=True)
            yield Free(stream.name, label, stream.span), entry

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
            return Free(element.name, element.leaves, element.span)
        draft = self.number.get(id(element))
        return None if draft is None else Out(draft, element.leaves, element.span)

    def _right(self, element: Element) -> End:
        if not element.is_call:
            return Free(element.name, element.enters, element.span)
        draft = self.number.get(id(element))
        return None if draft is None else In(draft, element.enters, element.span)

    def _ended(self, flow: Piped) -> Piped:
        """The flow from where it really begins to where it really ends."""
        left, right = flow
        if isinstance(left, Free):
            left = self.names.reading(left, self._left)
        if isinstance(right, Free):
            right = self.names.writing(right, self._right)
        return left, right

    def _without_free(self, flows: list[Piped]) -> list[Piped]:
        """The flows with inputs and outputs in the place of the names that no statement defines."""
        read: dict[str, Free] = {}
        written: dict[str, Free] = {}
        for left, right in flows:
            if isinstance(left, Free):
                read.setdefault(left.name, left)
            if isinstance(right, Free):
                written.setdefault(right.name, right)
        wrong = self._undefined(read, written)
        inputs = {name: self._input(use) for name, use in read.items() if name not in wrong}
        return [
            (
                self._from_input(left, inputs) if isinstance(left, Free) else left,
                self._to_output(right, wrong) if isinstance(right, Free) else right,
            )
            for left, right in flows
        ]

    def _undefined(self, read: Mapping[str, Free], written: Mapping[str, Free]) -> set[str]:
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

    def _input(self, use: Free) -> int:
        self.drafts.append(Draft(SOURCE, source_args(use.name), use.span, use.name))
        return len(self.drafts) - 1

    def _from_input(self, use: Free, inputs: Mapping[str, int]) -> Beginning:
        draft = inputs.get(use.name)
        return None if draft is None else Out(draft, use.label, use.span)

    def _to_output(self, use: Free, wrong: set[str]) -> End:
        if use.name in wrong:
            return None
        self.drafts.append(Draft(SINK, Args((("name", use.name),)), use.span))
        return In(len(self.drafts) - 1, None, use.span)

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
        """What is defined and never read."""
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
    """The error that a program without outputs ends in: what is discarded was meant to be one."""
    message = f"the program has no output: {discarded.message}"
    cure = (
        "an output is a name that is only written, at the end of a pipeline: "
        "`a -> map(…) -> out`; `out = …` names a stream"
    )
    return Diagnostic("name", message, discarded.span, discarded.operator, help=cure)
