"""Null rules: of a strict function a null gives null, as in SQL, where Python's own fail."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from hydro_core.functions.kinds import ExprType
from hydro_core.functions.library.entry import (
    CallCost,
    CallTyping,
    Expression,
    LibraryFunction,
    Parameter,
)

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
