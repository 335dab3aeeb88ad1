"""Operators under construction: they know each other, and stand in the order of being added."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hydro_core.catalog.combine import CROSS, DIFFERENCE, JOIN
from hydro_core.catalog.group import UNIQUE
from hydro_core.catalog.io import SINK, SOURCE
from hydro_core.catalog.itemwise import FILTER, MAP, RENAME, SELECT
from hydro_core.catalog.spec import Args, OpSpec
from hydro_core.errors import ProgramError, Span, TypeProblem
from hydro_core.functions.fn import Fn
from hydro_core.functions.read import read_function
from hydro_core.ir.builder import Draft, source_args
from hydro_core.lang.signature import bind
from hydro_core.lang.values import ValueReader

_READER = ValueReader()


@dataclass(eq=False, slots=True)
class NodeToBe:
    """A node to be, and what it reads."""

    draft: Draft
    inputs: list[NodeToBe] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rows:
    """A stream of rows, their columns, and whether none of them stands in it twice."""

    node: NodeToBe
    columns: tuple[str, ...]
    is_set: bool


class Operators:
    def __init__(self) -> None:
        self.nodes: list[NodeToBe] = []

    def add(
        self,
        op: OpSpec,
        inputs: Sequence[NodeToBe],
        span: Span | None,
        *positional: Any,
        **keywords: Any,
    ) -> NodeToBe:
        """A new operator that reads `inputs`, with its arguments.

        Raises:
            ProgramError: the arguments are wrong.
        """
        try:
            args, _ = bind(op, positional, list(keywords.items()), _READER)
        except TypeProblem as wrong:
            cure = wrong.help or "an item is a number, a text, a time, a tuple, a row or an array"
            raise ProgramError.of(wrong.code, wrong.message, span, op.name, help=cure) from None
        return self.place(NodeToBe(Draft(op, args, span), list(inputs)))

    def place(self, node: NodeToBe) -> NodeToBe:
        """Puts a node behind those that are there."""
        self.nodes.append(node)
        return node

    def source(self, name: str, span: Span, schema: Any, fds: Any) -> NodeToBe:
        """An input."""
        args = source_args(name, schema=schema, fds=fds)
        return self.place(NodeToBe(Draft(SOURCE, args, span, name)))

    def sink(self, node: NodeToBe, name: str, span: Span | None) -> None:
        """An output."""
        self.place(NodeToBe(Draft(SINK, Args((("name", name),)), span), [node]))

    def drafts(self) -> list[Draft]:
        """The drafts, which know each other by number."""
        number = {id(node): i for i, node in enumerate(self.nodes)}
        for node in self.nodes:
            node.draft.inputs = [(number[id(read)], "") for read in node.inputs]
        return [node.draft for node in self.nodes]

    # What bodies and heads are made of

    def filter(self, rows: Rows, test: Fn, span: Span) -> Rows:
        """The rows of which a condition holds."""
        return Rows(self.add(FILTER, [rows.node], span, test), rows.columns, rows.is_set)

    def unique(self, rows: Rows, span: Span) -> Rows:
        """The rows, each once."""
        if rows.is_set:
            return rows
        return Rows(self.add(UNIQUE, [rows.node], span), rows.columns, is_set=True)

    def project(self, rows: Rows, columns: Mapping[str, str], span: Span) -> Rows:
        """The rows with other columns: from the new names to those of `rows`, each of them once."""
        node, old = rows.node, tuple(columns.values())
        if old != rows.columns:
            node = self.add(SELECT, [node], span, *old)
        renamed = {new: before for new, before in columns.items() if new != before}
        if renamed:
            node = self.add(RENAME, [node], span, **renamed)
        return Rows(node, tuple(columns), rows.is_set and set(old) == set(rows.columns))

    def joined(self, left: Rows, right: Rows, span: Span) -> Rows:
        """The pairs of rows that agree in the columns that both have."""
        shared = [c for c in left.columns if c in right.columns]
        is_set = left.is_set and right.is_set
        if not shared:
            return self.crossed(left, right, span)
        node = self.add(JOIN, [left.node, right.node], span, on=shared)
        others = [c for side in (left, right) for c in side.columns if c not in shared]
        return Rows(node, (*shared, *others), is_set)

    def crossed(self, left: Rows, right: Rows, span: Span) -> Rows:
        """All pairs of rows, as rows of the columns of both."""
        node = self.add(CROSS, [left.node, right.node], span)
        parts = [f"{c!r}: a[{c!r}]" for c in left.columns]
        parts += [f"{c!r}: b[{c!r}]" for c in right.columns]
        both = function(f"lambda a, b: {{{', '.join(parts)}}}")
        columns = (*left.columns, *right.columns)
        return Rows(self.add(MAP, [node], span, both), columns, left.is_set and right.is_set)

    def without(self, rows: Rows, absent: Rows, span: Span) -> Rows:
        """The rows that agree with none of `absent` in its columns, all of which they have."""
        if set(absent.columns) == set(rows.columns):
            node = self.add(DIFFERENCE, [rows.node, absent.node], span)
        else:
            on = list(absent.columns)
            node = self.add(JOIN, [rows.node, absent.node], span, on=on, how="anti")
            rest = tuple(c for c in rows.columns if c not in on)
            return Rows(node, (*on, *rest), rows.is_set)
        return Rows(node, rows.columns, rows.is_set)


def function(text: str) -> Fn:
    """The function that a lambda of ours is."""
    return read_function(ast.parse(text, mode="eval").body, {})
