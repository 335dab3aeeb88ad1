"""Diagnostics of the analyses, each with its place and its cure in the program's own words."""

from __future__ import annotations

from collections.abc import Sequence

from hydro_core.catalog.spec import Port, TypeProblem, functions_of
from hydro_core.errors import Diagnostic, Span
from hydro_core.ir.graph import Endpoint, Graph, Node
from hydro_core.ir.walk import is_generated
from hydro_core.lang.similar import did_you_mean
from hydro_core.lang.suffixes import RULES
from hydro_core.types.item import ItemType


def of_type(node: Node, problem: TypeProblem, inputs: Sequence[ItemType]) -> Diagnostic:
    """A type problem of a node, at its place within a function if it has one."""
    message = problem.message
    if not message.startswith("`"):
        message = f"`{node.op.name}`: {message}"
    help_ = problem.help or f"what flows in is {' and '.join(map(str, inputs))}"
    return Diagnostic(problem.code, message, _place(node, problem.place), node.op.name, help=help_)


def _place(node: Node, place: tuple[int, int]) -> Span | None:
    if place == (0, 0):
        return node.span
    for fn in functions_of(node.args):
        if fn.span is not None and fn.span.line <= place[0] <= fn.span.end_line:
            begins = place == (fn.span.line, fn.span.column)
            return fn.span if begins else fn.span.at(*place)
    return node.span


def of_schema(graph: Graph, node: Node) -> Diagnostic:
    """An input of which neither the program nor the caller nor data says the type."""
    name = node.args["name"]
    others = [n.id for n in graph if n is not node] + [*graph.sinks]
    meant = did_you_mean(name, others)
    declare = f'declare it: `{name} = source("…")`, or give its schema or data'
    if node.span is not None and node.span.file.endswith(RULES):
        declare = (
            f"say what it has: `.input {name}(column: type, …)`, or `schemas` in `asset.yaml`; "
            "`hydrotick run` also takes the types of its data"
        )
    return Diagnostic(
        "input",
        f"`{name}` is never defined, so it is an input, but nothing says what its items are",
        node.span,
        node.op.name,
        help=f"{meant} If it is an input, {declare}" if meant else declare,
    )


def of_order(graph: Graph, node: Node, port: Port, endpoint: Endpoint) -> Diagnostic:
    """An operator that needs an order which its input has not."""
    reader = f"`{node.op.name}`"
    several = len(node.op.inputs) > 1
    wants = f"{reader} needs an ordered input" + (f" at `[{port.name}]`" if several else "")
    before = graph[endpoint.node]
    stream = "… " if is_generated(before) else f"{endpoint} "
    help_ = f"impose one first: `{stream}-> sort() -> {_written(node)}`"
    if several and is_generated(node) and port.keyword:
        help_ = f"impose one first: `ordered = {stream}-> sort()`, then `{port.keyword}=ordered`"
    elif several:
        entry = f"[{port.name}]" + (f"{node.op.name}()" if is_generated(node) else node.id)
        help_ = f"impose one first: `{stream}-> sort() -> {entry}`"
    if port.cure:
        help_ += f"; or {port.cure}"
    return Diagnostic(
        "ordering",
        f"{wants}, but {_said(before, endpoint)} has no order",
        node.span,
        node.op.name,
        help=help_,
    )


def _written(node: Node) -> str:
    """The call as the program writes it, if that is short."""
    span = node.span
    if span is not None and span.text and span.line == span.end_line:
        text = span.text[span.column - 1 : span.end_column - 1]
        if text.startswith(node.op.name) and len(text) <= 40:
            return text
    return f"{node.op.name}({'…' if node.op.args else ''})"


def _said(node: Node, endpoint: Endpoint) -> str:
    return f"what `{node.op.name}` gives" if is_generated(node) else f"`{endpoint}`"
