"""Which parts of a function's tree stand in its result."""

from __future__ import annotations

from hydro_core.functions.fold import children
from hydro_core.functions.tree import Bind, Expr, IfElse, Make, Op


def result_nodes(tree: Expr) -> frozenset[int]:
    """The ids of the nodes whose values are results, or stand in them, and nothing else."""
    results: set[int] = set()
    others: set[int] = set()
    _mark(tree, results, others, is_result=True)
    return frozenset(results - others)


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
        case Make():
            return tuple(children(node))
        case Bind(body=body):
            return (body,)
        case Op("(flatten)", args):
            return args
        case _:
            return ()
