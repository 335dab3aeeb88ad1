"""Walks over trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from hydro_core.functions.tree import (
    Comprehension,
    Const,
    Expr,
    IfElse,
    Inner,
    Let,
    Make,
    Op,
    Param,
    Part,
    Spread,
)


def children(node: Expr) -> Iterator[Expr]:
    """The direct parts of an expression, in the order in which Python comes to them."""
    match node:
        case Op():
            yield from node.operands
        case IfElse(test, then, otherwise):
            yield from (test, then, otherwise)
        case Let(_, value, body):
            yield from (value, body)
        case Comprehension(_, element, _, source, conditions):
            yield from (source, *conditions, element)
        case Part(base) | Inner(body=base):
            yield base
        case Make(parts=parts):
            yield from (part.value if isinstance(part, Spread) else part for part in parts)
        case Const() | Param():
            return
        case _:
            assert_never(node)


def nodes(tree: Expr) -> Iterator[Expr]:
    """All nodes of a tree, beginning with the tree itself."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        todo += children(node)


def always(node: Expr) -> Iterator[Expr]:
    """The direct parts that Python comes to wherever it comes to the whole."""
    match node:
        case IfElse(test):
            yield test
        case Op("and" | "or", values):
            yield values[0]
        case Op(family="comparison"):
            yield from node.args[:2]
        case Comprehension(source=source):
            yield source
        case Inner():
            return
        case _:
            yield from children(node)


def mentions(node: Expr, name: str) -> bool:
    """Whether a name is read anywhere in the expression."""
    return any(isinstance(part, Param) and part.name == name for part in nodes(node))


def surely_reads(node: Expr, name: str) -> bool:
    """Whether the expression evaluates the name whatever the item is."""
    if isinstance(node, Param):
        return node.name == name
    return any(surely_reads(part, name) for part in always(node))
