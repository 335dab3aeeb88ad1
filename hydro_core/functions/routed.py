"""Which shard an item is routed to: by some of its fields, or by a function of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hydro_core.functions.evaluate import call_item
from hydro_core.functions.fn import Fn
from hydro_core.types.item import UNKNOWN, FieldPath, ItemType, at
from hydro_core.types.routing import shard_of
from hydro_core.types.values import ValueProblem

FAILURES = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, ValueProblem)
"""What a function may raise on an item: the item then goes to the first shard."""


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
    if f is not None:
        return lambda x: _by_value(f, x, shards)
    types = [at(item, path) or UNKNOWN for path in by]

    def routed(x: Any) -> int:
        values = (_field(x, path) for path in by)
        return shard_of(zip(values, types, strict=True), shards)

    return routed


def _by_value(f: Fn, item: Any, shards: int) -> int:
    try:
        return shard_of([(call_item(f, item), UNKNOWN)], shards)
    except FAILURES:
        return 0


def _field(item: Any, path: FieldPath) -> Any:
    for step in path:
        if item is None:
            return None
        item = item[int(step)] if isinstance(item, tuple) else item[step]
    return item
