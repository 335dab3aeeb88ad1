"""Null rules: of a strict function a null gives null, as in SQL, where Python's own fail.

An entry has a rule, and any entry may be used under the strict one: `strictly` makes such a use of
an operation, out of nodes that every question has an answer for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from itertools import count
from typing import Any, TypeVar

from hydro_core.functions.fold import mentions
from hydro_core.functions.kinds import ExprType
from hydro_core.functions.library.entry import (
    CallCost,
    CallTyping,
    Expression,
    LibraryFunction,
    Parameter,
)
from hydro_core.functions.tree import Bind, Const, Expr, IfElse, Op, Param, is_function

_Made = TypeVar("_Made")


def strict(function: Callable[..., _Made]) -> Callable[..., _Made | None]:
    """The function, of which a null gives null: but for a parameter whose default it is.

    >>> strict(len)(None), strict(len)("ab")
    (None, 2)
    """
    signature = inspect.signature(function)
    parameters = enumerate(signature.parameters.values())
    free = frozenset(i for i, p in parameters if p.default is None)

    @wraps(function)
    def of_known(*args: Any, **keywords: Any) -> _Made | None:
        if keywords:
            bound = signature.bind(*args, **keywords)
            bound.apply_defaults()
            args = bound.args
        if any(a is None and i not in free for i, a in enumerate(args)):
            return None
        return function(*args)

    return of_known


def strictly(node: Op) -> Expr:
    """The operation, but null if a value that it is computed from is null, as SQL has it.

    >>> from hydro_core.functions.from_tree import text_of
    >>> text_of(strictly(Op("+", (Param("x"), Const(1)))), ("x",))
    'lambda x: None if x is None else x + 1'
    """
    values: dict[str, Expr] = {}
    tested: list[Expr] = []

    def named(operand: Expr) -> Expr:
        """The operand by a name, if it is computed: it is once."""
        if isinstance(operand, Op) and operand.name == "{}":
            value, *form = operand.args
            return replace(operand, args=(named(value), *form))
        found: Expr = operand
        if not isinstance(operand, Const | Param) and not is_function(operand):
            names = (f"operand.{i}" for i in count(len(values)))
            free = next(name for name in names if name not in values and not mentions(node, name))
            found = Param(free, operand.place)
            values[free] = operand
        if isinstance(found, Param) or found == Const(None):
            tested.append(Op("is", (found, Const(None))))
        return found

    args = tuple(map(named, node.args))
    keywords = tuple((name, named(value)) for name, value in node.keywords)
    made: Expr = replace(node, args=args, keywords=keywords)
    if tested:
        test = tested[0] if len(tested) == 1 else Op("or", tuple(tested))
        made = IfElse(test, Const(None), made, node.place)
    for name, value in reversed(values.items()):
        made = Bind("let", (name,), value, made, place=node.place)
    return made


def of_data(
    function: Callable[..., Any],
    gives: ExprType | CallTyping,
    *takes: Parameter,
    column: Expression | None = None,
    may_fail: bool = False,
    cost: CallCost | None = None,
    functions: frozenset[str | int] = frozenset(),
) -> LibraryFunction:
    """The entry of a strict function; what it takes may be given by the names of its parameters."""
    return LibraryFunction(
        function,
        gives,
        takes,
        column,
        may_fail,
        cost=cost,
        nulls="strict",
        functions=functions,
        defaults=defaults_of(function),
    )


def defaults_of(function: Callable[..., Any]) -> tuple[tuple[str, Any], ...]:
    """The names of a function's parameters with their defaults, `...` where there is none."""
    parameters = inspect.signature(function).parameters.values()
    return tuple((p.name, ... if p.default is p.empty else p.default) for p in parameters)
