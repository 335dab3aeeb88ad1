"""What rules are made of, as they are written: every part has its place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from hydro_core.errors import Span
from hydro_core.lang.source import Source

Time = Literal["now", "next", "async"]


@dataclass(frozen=True, slots=True)
class RuleExpression:
    """An expression: its tree, and where in the source it begins."""

    tree: ast.expr
    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        """The expression as it stands."""
        return " ".join(self.source.text[self.start : self.end].split())

    @property
    def span(self) -> Span:
        return self.source.span(self.start, self.end)

    def locate(self, node: ast.AST) -> tuple[int, int]:
        """Line and column of a part of it, in the file."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 1)
        lines = f"({self.source.text[self.start : self.end]}".split("\n")
        return self.source.position(self.source.offset_within(self.start, lines, line, column))


ArgumentKind = Literal["variable", "wildcard", "expression", "gathered"]


@dataclass(frozen=True, slots=True)
class Argument:
    """What stands in a place of a predicate; `name` of a variable, `column` if it is named."""

    kind: ArgumentKind
    written: RuleExpression
    name: str = ""
    column: str | None = None

    @property
    def span(self) -> Span:
        return self.written.span


@dataclass(frozen=True, slots=True)
class Mention:
    """A predicate with its arguments."""

    predicate: str
    arguments: tuple[Argument, ...]
    span: Span
    name_span: Span

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that stand in it by themselves, each once."""
        return tuple(dict.fromkeys(a.name for a in self.arguments if a.kind == "variable"))


@dataclass(frozen=True, slots=True)
class BodyCondition:
    """A condition, or with a `target` what that variable is."""

    written: RuleExpression
    variables: frozenset[str]
    target: str | None = None

    @property
    def span(self) -> Span:
        return self.written.span


@dataclass(frozen=True, slots=True)
class Literals:
    """A body: what must hold, what must not, and conditions, in the order of the text."""

    positive: tuple[Mention, ...] = ()
    negative: tuple[Mention, ...] = ()
    conditions: tuple[BodyCondition, ...] = ()

    def atoms(self) -> Iterator[tuple[Mention, bool]]:
        """All atoms, and whether each is negated."""
        yield from ((atom, False) for atom in self.positive)
        yield from ((atom, True) for atom in self.negative)


@dataclass(frozen=True, slots=True)
class DedalusRule:
    """`head :- body`; `at` is the tick of a fact that holds in that one only."""

    head: Mention
    time: Time
    body: Literals
    span: Span
    at: int | None = None

    @property
    def has_aggregates(self) -> bool:
        """Whether the head gathers what the body gives."""
        return any(a.kind == "gathered" for a in self.head.arguments)


@dataclass(frozen=True, slots=True)
class Declaration:
    """`.input p(a: long, b: string)` or `.decl …`; a column without a type has None."""

    name: str
    columns: tuple[tuple[str, str | None], ...] | None
    span: Span
    is_input: bool


@dataclass(frozen=True, slots=True)
class Dependency:
    """`.fd p: a, b -> c`: what of an input determines what."""

    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    span: Span


@dataclass(slots=True)
class RuleProgram:
    """The statements of a text."""

    source: Source
    rules: list[DedalusRule] = field(default_factory=list)
    declarations: list[Declaration] = field(default_factory=list)
    outputs: list[tuple[str, Span]] = field(default_factory=list)
    never: list[tuple[Literals, Span]] = field(default_factory=list)
    dependencies: list[Dependency] = field(default_factory=list)
