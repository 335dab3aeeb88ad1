"""Calls of functions on items.

A function of several parameters gets the fields of the tuple or row in their order; in a fold the
accumulator comes first, then the item or its fields. What comes back is an item: beyond 64 bits, or
not an item, is a `ValueProblem`.
"""

from __future__ import annotations

from typing import Any

from hydro_core.functions.fn import Fn
from hydro_core.types.values import RowItem, Struct, ValueProblem, describe, is_changeable, to_item


def call_item(fn: Fn, item: Any) -> Any:
    """`fn(item)`, or `fn` of the item's fields where it has several parameters."""
    return to_item(fn.call(*_own(fn, _spread(item, len(fn.params)))))


def call_accumulate(fn: Fn, acc: Any, item: Any) -> Any:
    """`fn(acc, item)`, or `fn` of the accumulator and the item's fields, by its parameters."""
    return to_item(fn.call(*_own(fn, (acc, *_spread(item, len(fn.params) - 1)))))


def call_pair(fn: Fn, a: Any, b: Any) -> Any:
    """`fn(a, b)` of two whole items."""
    return to_item(fn.call(*_own(fn, (a, b))))


def _spread(item: Any, parameters: int) -> tuple[Any, ...]:
    if parameters == 1:
        return (item,)
    match item:
        case tuple() if len(item) == parameters:
            return item
        case dict() if len(item) == parameters:
            return tuple(dict.values(item))
        case tuple() | dict():
            problem = f"the item has {len(item)} fields, the function {parameters} parameters"
            raise ValueProblem(problem)
        case _:
            raise ValueProblem(f"{describe(item)} has no fields for {parameters} parameters")


def _own(fn: Fn, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    # A Python function may change the arrays that it gets, and others hold them too.
    if fn.pure or not any(map(is_changeable, arguments)):
        return arguments
    return tuple(map(_copy, arguments))


def _copy(item: Any) -> Any:
    match item:
        case list():
            return [_copy(element) for element in item]
        case tuple():
            return Struct(map(_copy, item))
        case dict():
            return RowItem((name, _copy(value)) for name, value in dict.items(item))
        case _:
            return item
