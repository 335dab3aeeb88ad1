"""Diagnostics of the analyses: what is wrong, at its place in the program, with the cure in the program's own words."""

from __future__ import annotations

from hydro_core.catalog.spec import Port, TypeProblem, functions_of
from hydro_core.errors import Diagnostic, Span
from hydro_core.ir.graph import Endpoint, Graph, Node
from hydro_core.lang.similar import did_you_mean


def of_type(node: Node, problem: TypeProblem) -> Diagnostic:
    """A type problem of a node, at its place within a function if it has one."""
    message = problem.message
    if not message.startswith("`"):
        message = f"`{node.op.name}`: {message}"
    return Diagnostic(
        problem.code, message, _place(node, problem.place), node.op.name, problem.help
    )


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
    return Diagnostic(
        "input",
        f"`{name}` is never defined, so it is an input, but nothing says what its items are",
        node.span,
        "source",
        f"{meant} If it is an input, {declare}" if meant else declare,
    )


def of_order(graph: Graph, node: Node, port: Port, endpoint: Endpoint) -> Diagnostic:
    """An operator that needs an order which its input has not."""
    reader = f"`{node.op.name}`"
    several = len(node.op.inputs) > 1
    wants = f"{reader} needs an ordered input" + (f" at `[{port.name}]`" if several else "")
    stream = str(endpoint)
    target = f"[{port.name}]{node.id}" if several else _written(node)
    help_ = f"impose one first: `{stream} -> sort() -> {target}`"
    if port.cure:
        help_ += f"; or {port.cure}"
    return Diagnostic(
        "ordering",
        f"{wants}, but {_said(graph[endpoint.node], stream)} has no order",
        node.span,
        node.op.name,
        help_,
    )


def _written(node: Node) -> str:
    """The call as the program writes it, if that is short."""
    span = node.span
    if span is not None and span.text and span.line == span.end_line:
        text = span.text[span.column - 1 : span.end_column - 1]
        if text.startswith(node.op.name) and len(text) <= 40:
            return text
    return f"{node.op.name}({'…' if node.op.args else ''})"


def _said(node: Node, stream: str) -> str:
    generated = node.id.startswith(f"{node.op.name}_")
    return f"what `{node.op.name}` gives" if generated else f"`{stream}`"
