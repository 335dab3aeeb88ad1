"""Operators under construction: they know each other, and stand in the order of being added."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hydro_core.catalog.io import SOURCE
from hydro_core.catalog.registry import lookup
from hydro_core.catalog.spec import Args
from hydro_core.errors import Diagnostic, ProgramError, Span, TypeProblem
from hydro_core.functions.fn import Fn
from hydro_core.functions.read import read_function
from hydro_core.ir.builder import Draft, source_args
from hydro_core.lang.signature import ArgumentProblem, bind
from hydro_core.lang.values import ValueReader

_READER = ValueReader()


@dataclass(eq=False, slots=True)
class Made:
    """A node to be, and what it reads."""

    draft: Draft
    inputs: list[Made] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rows:
    """A stream of rows, their columns, and whether none of them stands in it twice."""

    node: Made
    columns: tuple[str, ...]
    is_set: bool


class Operators:
    """The operators of a program."""

    def __init__(self) -> None:
        self.nodes: list[Made] = []

    def add(
        self,
        op: str,
        inputs: Sequence[Made],
        span: Span | None,
        *positional: Any,
        **keywords: Any,
    ) -> Made:
        """A new operator that reads `inputs`, with its arguments.

        Raises:
            ProgramError: the arguments are wrong.
        """
        spec = lookup(op)
        assert spec is not None
        try:
            bound = bind(spec, positional, list(keywords.items()), _READER)
        except ArgumentProblem as wrong:
            raise ProgramError(
                Diagnostic(wrong.code, wrong.message, span, op, help=wrong.help)
            ) from None
        except TypeProblem as wrong:
            cure = wrong.help or "an item is a number, a text, a time, a tuple, a row or an array"
            raise ProgramError(Diagnostic(wrong.code, wrong.message, span, op, help=cure)) from None
        return self.place(Made(Draft(spec, bound.args, span), list(inputs)))

    def place(self, node: Made) -> Made:
        """Puts a node behind those that are there."""
        self.nodes.append(node)
        return node

    def source(self, name: str, span: Span, schema: Any, fds: Any) -> Made:
        """An input."""
        args = source_args(name, schema=schema, fds=fds)
        return self.place(Made(Draft(SOURCE, args, span, name)))

    def sink(self, node: Made, name: str, span: Span | None) -> None:
        """An output."""
        spec = lookup("sink")
        assert spec is not None
        self.place(Made(Draft(spec, Args((("name", name),)), span), [node]))

    def drafts(self) -> list[Draft]:
        """The drafts, which know each other by number."""
        number = {id(node): i for i, node in enumerate(self.nodes)}
        for node in self.nodes:
            node.draft.inputs = [(number[id(read)], "") for read in node.inputs]
        return [node.draft for node in self.nodes]

    # What bodies and heads are made of

    def filter(self, rows: Rows, test: Fn, span: Span) -> Rows:
        """The rows of which a condition holds."""
        return Rows(self.add("filter", [rows.node], span, test), rows.columns, rows.is_set)

    def unique(self, rows: Rows, span: Span) -> Rows:
        """The rows, each once."""
        if rows.is_set:
            return rows
        return Rows(self.add("unique", [rows.node], span), rows.columns, is_set=True)

    def project(self, rows: Rows, columns: Mapping[str, str], span: Span) -> Rows:
        """The rows with other columns: from the new names to those of `rows`, each of them once."""
        node, old = rows.node, tuple(columns.values())
        if old != rows.columns:
            node = self.add("select", [node], span, *old)
        renamed = {new: before for new, before in columns.items() if new != before}
        if renamed:
            node = self.add("rename", [node], span, **renamed)
        return Rows(node, tuple(columns), rows.is_set and set(old) == set(rows.columns))

    def joined(self, left: Rows, right: Rows, span: Span) -> Rows:
        """The pairs of rows that agree in the columns that both have."""
        shared = [c for c in left.columns if c in right.columns]
        is_set = left.is_set and right.is_set
        if not shared:
            return self.crossed(left, right, span)
        node = self.add("join", [left.node, right.node], span, on=shared)
        others = [c for side in (left, right) for c in side.columns if c not in shared]
        return Rows(node, (*shared, *others), is_set)

    def crossed(self, left: Rows, right: Rows, span: Span) -> Rows:
        """All pairs of rows, as rows of the columns of both."""
        node = self.add("cross", [left.node, right.node], span)
        parts = [f"{c!r}: a[{c!r}]" for c in left.columns]
        parts += [f"{c!r}: b[{c!r}]" for c in right.columns]
        both = function(f"lambda a, b: {{{', '.join(parts)}}}")
        columns = (*left.columns, *right.columns)
        return Rows(self.add("map", [node], span, both), columns, left.is_set and right.is_set)

    def without(self, rows: Rows, absent: Rows, span: Span) -> Rows:
        """The rows that agree with none of `absent` in its columns, all of which they have."""
        if set(absent.columns) == set(rows.columns):
            node = self.add("difference", [rows.node, absent.node], span)
        else:
            on = list(absent.columns)
            node = self.add("join", [rows.node, absent.node], span, on=on, how="anti")
            rest = tuple(c for c in rows.columns if c not in on)
            return Rows(node, (*on, *rest), rows.is_set)
        return Rows(node, rows.columns, rows.is_set)


def function(text: str) -> Fn:
    """The function that a lambda of ours is."""
    return read_function(ast.parse(text, mode="eval").body, {})
