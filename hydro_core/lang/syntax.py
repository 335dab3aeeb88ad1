"""The syntax tree of a program: statements of elements, arguments still as text."""

from __future__ import annotations

from dataclasses import dataclass

from hydro_core.errors import Span


@dataclass(frozen=True, slots=True)
class Label:
    """A port before or after an element: `[0]`, `[pos]`, `[evens]`."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class ArgumentText:
    """What stands between an operator's brackets; `start` is the offset of its first character."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Element:
    """A name, or with `arguments` an operator call."""

    name: str
    span: Span
    name_span: Span
    arguments: ArgumentText | None = None
    enters: Label | None = None
    leaves: Label | None = None

    @property
    def is_call(self) -> bool:
        return self.arguments is not None


@dataclass(frozen=True, slots=True)
class Statement:
    """`name = pipeline`, or a pipeline alone."""

    elements: tuple[Element, ...]
    name: str | None = None
    name_span: Span | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """The statements of a text, in its order."""

    statements: tuple[Statement, ...]
