"""Calls of functions on items.

A function of several parameters gets the fields of the tuple or row in their order; in a fold the
accumulator comes first, then the item or its fields. What comes back is an item: beyond 64 bits, or
not an item, is a `ValueProblem`. Which shard an item is routed to may be such a call's result, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hydro_core.functions.fn import Fn
from hydro_core.types.item import UNKNOWN, FieldPath, ItemType, at
from hydro_core.types.routing import shard_of
from hydro_core.types.values import RowItem, Struct, ValueProblem, describe, is_changeable, to_item

FAILURES = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, ValueProblem)
"""What a function may raise on an item: the item then goes to the first shard."""


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


def router(
    by: Sequence[FieldPath], f: Fn | None, item: ItemType, shards: int
) -> Callable[[Any], int]:
    """The function from items to their shards.

    Args:
        by: the fields that items are routed by, if there is no `f`.
        f: gives the value, or the tuple of values, that items are routed by.
        item: the type of the items.
        shards: how many there are.
    """

    def by_value(fn: Fn, x: Any) -> int:
        try:
            return shard_of([(call_item(fn, x), UNKNOWN)], shards)
        except FAILURES:
            return 0

    if f is not None:
        return lambda x: by_value(f, x)
    types = [at(item, path) or UNKNOWN for path in by]

    def routed(x: Any) -> int:
        values = (_field(x, path) for path in by)
        return shard_of(zip(values, types, strict=True), shards)

    return routed


def _field(item: Any, path: FieldPath) -> Any:
    for step in path:
        if item is None:
            return None
        item = item[int(step)] if isinstance(item, tuple) else item[step]
    return item
