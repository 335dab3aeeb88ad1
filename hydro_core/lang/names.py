"""What the names of a program stand for.

A name stands for its pipeline: what flows into the name enters the first element, what flows out
leaves the last. A pipeline that ends in another name flows into that one; its own name, when
read, stands for what flows into it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hydro_core.errors import Code, Diagnostic, Span
from hydro_core.lang.parser import Element, Label, Program, Statement


@dataclass(frozen=True, slots=True)
class Out:
    """What leaves a draft."""

    draft: int
    label: Label | None
    span: Span


@dataclass(frozen=True, slots=True)
class In:
    """What enters a draft; `position` is known where an argument says it."""

    draft: int
    label: Label | None
    span: Span
    position: int | None = None
    by_argument: bool = False


@dataclass(frozen=True, slots=True)
class Free:
    """A name, read or written; once names have been followed, one that no statement defines."""

    name: str
    label: Label | None
    span: Span


Beginning = Out | Free | None
"""Where something flows from; None where that is wrong and has been complained of."""
End = In | Free | None
"""Where something flows to."""


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
                self._complain(
                    "name",
                    f"`{statement.name}` is defined twice, first in line {first.name_span.line}",
                    statement.name_span,
                    statement.name,
                    "give one of them another name",
                )

        self._check_turns()

    def _check_turns(self) -> None:
        """Complains of names that stand for each other only, read or not."""
        known: set[str] = set()
        for start, statement in self.definitions.items():
            followed: dict[str, None] = {}
            name = Free(start, None, statement.elements[0].span)
            while name.name in self.definitions and name.name not in known:
                element = _last(self.definitions[name.name])
                if element.is_call or self._turns(name, followed):
                    break
                name = Free(element.name, None, element.span)
            known.update(followed, [start])

    def reading(self, name: Free, left: Callable[[Element], Beginning]) -> Beginning:
        """What a name that is read stands for."""
        followed: dict[str, None] = {}
        while name.name in self.definitions:
            if self._turns(name, followed):
                return None
            self.read.add(name.name)
            element = _last(self.definitions[name.name])
            label = self._label(element.leaves, name, "output")
            if element.is_call:
                found = left(element)
                return Out(found.draft, label, name.span) if isinstance(found, Out) else None
            name = Free(element.name, label, name.span)
        return name

    def writing(self, name: Free, right: Callable[[Element], End]) -> End:
        """What a name that is written stands for."""
        followed: dict[str, None] = {}
        while name.name in self.definitions:
            if self._turns(name, followed):
                return None
            self.written.add(name.name)
            element = self.definitions[name.name].elements[0]
            label = self._label(element.enters, name, "input")
            if element.is_call:
                found = right(element)
                return In(found.draft, label, name.span) if isinstance(found, In) else None
            name = Free(element.name, label, name.span)
        return name

    def _turns(self, name: Free, followed: dict[str, None]) -> bool:
        """Whether names stand for each other only; said once for each round."""
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
            self._complain(
                "name", message, span, start, "define it by an operator, as in `x = union()`"
            )
        return True

    def _label(self, own: Label | None, name: Free, side: str) -> Label | None:
        """The port that is meant: the name's definition or its use says it, not both."""
        if own is None or name.label is None:
            return own or name.label
        message = f"`{name.name}` stands for the {side} port `[{own.text}]` already"
        help_ = f"leave `[{name.label.text}]` away"
        self._complain("port", message, name.label.span, name.name, help_)
        return own

    def _complain(
        self, code: Code, message: str, span: Span | None, operator: str | None, help_: str
    ) -> None:
        self.problems.append(Diagnostic(code, message, span, operator, help=help_))


def _last(statement: Statement) -> Element:
    """The element from which a pipeline is read: not the name that it flows into."""
    last = statement.elements[-1]
    if last.is_call or last.leaves is not None or len(statement.elements) == 1:
        return last
    return statement.elements[-2]
