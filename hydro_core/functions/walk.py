"""Walks over trees."""

from __future__ import annotations

from collections.abc import Iterator

from hydro_core.functions.tree import (
    Attribute,
    Binary,
    BoolOp,
    Call,
    Compare,
    Comprehension,
    Expr,
    FString,
    IfElse,
    Index,
    Inner,
    Let,
    MakeList,
    MakeRow,
    MakeTuple,
    Method,
    Opaque,
    Param,
    Slice,
    Spread,
    Unary,
)


def children(node: Expr) -> Iterator[Expr]:  # noqa: C901, PLR0912 - a closed set of cases
    """The direct parts of an expression, in the order in which Python comes to them."""
    match node:
        case IfElse(test, then, otherwise):
            yield from (test, then, otherwise)
        case Let(_, value, body):
            yield from (value, body)
        case BoolOp(_, values):
            yield from values
        case Compare(first, rest):
            yield from (first, *(operand for _, operand in rest))
        case Comprehension(_, element, _, source, conditions):
            yield from (source, *conditions, element)
        case Attribute(base) | Unary(_, base) | Inner(_, base):
            yield base
        case Index(a, b) | Binary(_, a, b):
            yield from (a, b)
        case Slice(base, low, high, step):
            yield from (part for part in (base, low, high, step) if part is not None)
        case Call(args=args, keywords=keywords) | Opaque(args=args, keywords=keywords):
            yield from (*args, *(value for _, value in keywords))
        case Method(base, _, args, keywords):
            yield from (base, *args, *(value for _, value in keywords))
        case MakeTuple(parts) | MakeList(parts):
            yield from (part.value if isinstance(part, Spread) else part for part in parts)
        case MakeRow(fields):
            yield from (part.value if isinstance(part, Spread) else part[1] for part in fields)
        case FString(texts):
            yield from (part[0] for part in texts if not isinstance(part, str))
        case _:
            return


def mentions(node: Expr, name: str) -> bool:
    """Whether a name is read anywhere in the expression."""
    if isinstance(node, Param):
        return node.name == name
    return any(mentions(child, name) for child in children(node))
