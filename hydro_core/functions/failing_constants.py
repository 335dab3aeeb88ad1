"""Constant parts of functions that always fail: `timedelta(months=3)`, `1 // 0`.

Only what is evaluated for every item counts. A branch that may never be taken may fail, and so may
what stands behind an `and`, in a comprehension or in a function within the function.
"""

from __future__ import annotations

from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.constant import failure_of, value_of
from hydro_core.functions.fold import always, children
from hydro_core.functions.library.registry import operation
from hydro_core.functions.tree import Bind, Const, Expr, Op, Param


def check_constants(tree: Expr) -> None:
    """Refuses a function that fails for every item.

    Raises:
        TypeProblem: a part of it that depends on nothing has no value.
    """
    constant: dict[int, bool] = {}
    todo = [tree]
    while todo:
        part = todo.pop()
        if not _is_constant(part, constant):
            todo += reversed([*always(part)])
        elif not isinstance(part, Const):
            problem = failure_of(part)
            if problem is not None:
                raise problem


def constant_value(tree: Expr) -> Any:
    """The value of a tree that depends on nothing, `...` of another, and of one that has none."""
    if isinstance(tree, Const):
        return tree.value
    try:
        return value_of(tree) if _is_constant(tree, {}) else ...
    except TypeProblem:
        return ...


def _is_constant(tree: Expr, known: dict[int, bool]) -> bool:
    """Whether it has no parameter, of its own or of what is around it."""
    found = known.get(id(tree))
    if found is None:
        match tree:
            case Param() | Bind() | Op("(unpack)" | "(flatten)"):
                found = False
            case Op(name, family=family) if family != "method" and operation(name) is None:
                found = False
            case _:
                found = all(_is_constant(child, known) for child in children(tree))
        known[id(tree)] = found
    return found
