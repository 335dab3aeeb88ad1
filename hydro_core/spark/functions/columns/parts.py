"""Which parts of a function's tree are always evaluated, and which stand in its result."""

from __future__ import annotations

from collections.abc import Iterator

from hydro_core.functions.tree import (
    BoolOp,
    Call,
    Compare,
    Comprehension,
    Expr,
    IfElse,
    Inner,
    Let,
    MakeList,
    MakeRow,
    MakeTuple,
    Opaque,
    Param,
)
from hydro_core.functions.walk import children


def surely_reads(node: Expr, name: str) -> bool:
    """Whether the expression evaluates the name whatever the item is."""
    if isinstance(node, Param):
        return node.name == name
    return any(surely_reads(part, name) for part in _always(node))


def result_nodes(tree: Expr) -> frozenset[int]:
    """The ids of the nodes whose values are results, or stand in them, and nothing else."""
    results: set[int] = set()
    others: set[int] = set()
    _mark(tree, results, others, is_result=True)
    return frozenset(results - others)


def _always(node: Expr) -> Iterator[Expr]:
    """The direct parts that are evaluated whenever the expression is."""
    match node:
        case IfElse(condition):
            yield condition
        case BoolOp(_, values):
            yield values[0]
        case Compare(first, rest):
            yield from (first, rest[0][1])
        case Comprehension(source=source):
            yield source
        case Inner() | Opaque():
            return
        case _:
            yield from children(node)


def _mark(node: Expr, results: set[int], others: set[int], *, is_result: bool) -> None:
    (results if is_result else others).add(id(node))
    passed_on = frozenset(map(id, _passed_on(node)))
    for child in children(node):
        stands = is_result and id(child) in passed_on
        _mark(child, results, others, is_result=stands)


def _passed_on(node: Expr) -> tuple[Expr, ...]:
    """The direct parts whose values are, or stand in, the value of the node."""
    match node:
        case IfElse(_, then, otherwise):
            return (then, otherwise)
        case Let(body=body):
            return (body,)
        case MakeTuple() | MakeRow() | MakeList():
            return tuple(children(node))
        case Comprehension(element=element):
            return (element,)
        case Call("(flatten)", args):
            return args
        case _:
            return ()
