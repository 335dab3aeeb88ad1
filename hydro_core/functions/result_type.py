"""Types of results of functions, and of the accumulators of folds."""

from __future__ import annotations

from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.bind import bind, bound_to
from hydro_core.functions.kinds import ExprType, MixedType, as_item, join, known, part
from hydro_core.functions.tree import Fn
from hydro_core.types.item import Array, ItemType, children, is_large

_WIDENINGS = 64


def result_type(fn: Fn, inputs: tuple[ItemType, ...], spread: bool = True) -> ItemType:
    """The type of the result of a function for arguments of these types.

    With `spread`, the fields of the last argument are the arguments of all parameters that are
    left.

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> f = read_function(ast.parse("lambda k, v: (v, k / 2)", mode="eval").body, {})
    >>> str(result_type(f, (parse_ddl("(long, string)"),)))
    '(string, double)'
    """
    return bind(fn, inputs, spread).result


def accumulator_type(fn: Fn, init: ItemType, item: ItemType, spread: bool = True) -> ItemType:
    """The type of a fold's accumulator: the common type of `init` and of every result.

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> f = read_function(ast.parse("lambda acc, x: acc + x", mode="eval").body, {})
    >>> str(accumulator_type(f, parse_ddl("long"), parse_ddl("double")))
    'double'
    """
    kind: ExprType = init
    for _ in range(_WIDENINGS):
        if fn.returns is not None:
            result: ExprType = fn.returns
        else:
            result = bound_to(fn, (kind, known(item)), spread=spread).raw
        wider = join(kind, result)
        mixed = _mixed(wider)
        if mixed is not None:
            place = mixed.place if mixed.place[0] or fn.tree is None else fn.tree.place
            said = f"the accumulator starts as {mixed.one} and becomes {mixed.other}"
            raise TypeProblem(said, "give the start the type of the result", place=place)
        if wider == kind:
            return as_item(kind)
        if is_large(part(wider)):
            break
        kind = wider
    shown = str(kind) if len(str(kind)) < 60 else f"{str(kind)[:60]}…"
    raise TypeProblem(
        f"the accumulator has no type: it grows with every item, beyond {shown}",
        "give the start the type of the result, or declare `returns=`",
    )


def _mixed(kind: Any) -> MixedType | None:
    if isinstance(kind, MixedType):
        return kind
    inner = [kind.element] if isinstance(kind, Array) else [part for _, part in children(kind)]
    return next((found for found in map(_mixed, inner) if found is not None), None)
