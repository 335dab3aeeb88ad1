"""Tokens to statements.

`statement := [NAME "="] element ("->" element)*` and `element := [PORT] NAME ["(" … ")"] [PORT]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hydro_core.errors import Diagnostic, ProgramError, Span
from hydro_core.lang.source import Source
from hydro_core.lang.tokens import Token, tokenize


@dataclass(frozen=True, slots=True)
class Label:
    """A port before or after an element: `[0]`, `[pos]`, `[evens]`."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class ArgumentText:
    """The text between an operator's brackets; `start` is the offset of its first character."""

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


_LABEL = re.compile(r"\s*(?:(\w+)|'([^'\\\n]*)'|\"([^\"\\\n]*)\")\s*")

_STATEMENT = "a statement is `name = a -> b()` or `a -> b()`"


def parse_program(source: Source) -> tuple[Program, list[Diagnostic]]:
    """The statements of a text that can be read, and the problems of the others."""
    tokens, problems = tokenize(source)
    statements: list[Statement] = []
    for run, cut_short in _runs(tokens):
        try:
            statements.append(_Reader(source, run).statement())
        except ProgramError as wrong:
            # A statement with a bad token ends too early: one problem is enough.
            if not cut_short:
                problems += wrong.diagnostics
    return Program(tuple(statements)), problems


def _runs(tokens: list[Token]) -> list[tuple[list[Token], bool]]:
    """The tokens of each statement, with a flag that a bad token ended it."""
    runs: list[tuple[list[Token], bool]] = [([], False)]
    for token in tokens:
        if token.kind == "end":
            runs[-1] = (runs[-1][0], token.text == "wrong")
            runs.append(([], False))
        else:
            runs[-1][0].append(token)
    return [(run, cut) for run, cut in runs if run]


class _Reader:
    """Reads the tokens of one statement, none of them twice."""

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source, self.tokens, self.at = source, tokens, 0

    def statement(self) -> Statement:
        name = name_span = None
        if len(self.tokens) > 1 and self.tokens[1].kind == "equals":
            token = self._take("name", "a name must stand before `=`")
            name, name_span = token.text, self._span(token)
            self.at += 1
        elements = [self._element("=" if name else "")]
        while self.at < len(self.tokens):
            self._take("arrow", "`->` or the end of the statement must follow here")
            elements.append(self._element("->"))
        return Statement(tuple(elements), name, name_span)

    def _element(self, after: str) -> Element:
        enters = self._label()
        said = f"after `{after}`" if after else "here"
        name = self._take("name", f"an operator or a name must stand {said}")
        last = name
        arguments = None
        if self._peek() == "arguments":
            last = self.tokens[self.at]
            arguments = ArgumentText(last.text, last.start + 1)
            self.at += 1
        leaves = self._label()
        span = self.source.span(name.start, last.end)
        return Element(name.text, span, self._span(name), arguments, enters, leaves)

    def _label(self) -> Label | None:
        if self._peek() != "port":
            return None
        token = self.tokens[self.at]
        self.at += 1
        found = _LABEL.fullmatch(token.text)
        if found is None:
            raise self._wrong(
                f"`[{token.text.strip()}]` is no port",
                token,
                "a port is a number or a word: `[0]`, `[pos]`",
            )
        return Label(next(g for g in found.groups() if g is not None), self._span(token))

    def _peek(self) -> str | None:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else None

    def _take(self, kind: str, message: str) -> Token:
        if self._peek() == kind:
            self.at += 1
            return self.tokens[self.at - 1]
        if self.at == len(self.tokens):
            raise self._wrong(f"{message}, but the statement ends", self.tokens[-1], _STATEMENT)
        token = self.tokens[self.at]
        raise self._wrong(message, token, _STATEMENT)

    def _span(self, token: Token) -> Span:
        return self.source.span(token.start, token.end)

    def _wrong(self, message: str, token: Token, help_: str) -> ProgramError:
        return ProgramError.of("syntax", message, self._span(token), help=help_)
