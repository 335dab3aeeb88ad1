"""The direct parts of an expression that Python evaluates whenever it evaluates the expression."""

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
    Slice,
    Spread,
    Unary,
)


def parts_of(node: Expr) -> Iterator[Expr]:
    """The parts of an expression that is no choice."""
    match node:
        case Attribute(base) | Unary(_, base) | Comprehension(source=base):
            yield base
        case Index(a, b) | Binary(_, a, b):
            yield from (a, b)
        case Slice(base, low, high, step):
            yield from (part for part in (base, low, high, step) if part is not None)
        case Call(args=args, keywords=keywords):
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


def result_nodes(tree: Expr) -> frozenset[int]:
    """The ids of the nodes whose values are results of the function, or parts of them, and nothing else."""
    results: set[int] = set()
    others: set[int] = set()
    _mark(tree, results, others, is_result=True)
    return frozenset(results - others)


def _mark(node: Expr, results: set[int], others: set[int], *, is_result: bool) -> None:
    (results if is_result else others).add(id(node))
    for child in _children(node):
        _mark(child, results, others, is_result=is_result and any(child is p for p in _passed_on(node)))


def _passed_on(node: Expr) -> tuple[Expr, ...]:
    """The direct parts whose values are, or stand in, the value of the node."""
    match node:
        case IfElse(_, then, otherwise):
            return (then, otherwise)
        case Let(body=body):
            return (body,)
        case MakeTuple() | MakeRow() | MakeList():
            return tuple(parts_of(node))
        case Comprehension(element=element):
            return (element,)
        case Call("(flatten)", args):
            return args
        case _:
            return ()


def _children(node: Expr) -> Iterator[Expr]:
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
            yield from (element, source, *conditions)
        case Inner(_, body):
            yield body
        case _:
            yield from parts_of(node)
