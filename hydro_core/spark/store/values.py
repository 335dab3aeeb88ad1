"""Columns of Arrow's as the language compares what is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.plan.stored_rows import ZERO
from hydro_core.types.item import (
    LONG,
    Decimal,
    FieldPath,
    ItemType,
    Scalar,
    at,
    children,
    is_integer,
)

Column = Any
"""An array of Arrow's."""

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

Leaves = Callable[[FieldPath], Column]
"""The leaf that stands at a path in each of some items."""


def places_of(item: ItemType, path: Iterable[str]) -> list[int]:
    """The place of each step of a path among the fields that it is one of."""
    places = []
    for step in path:
        fields = dict(children(item))
        places.append(list(fields).index(step))
        item = fields[step]
    return places


def leaf_of(items: Column, item: ItemType, path: FieldPath) -> Column:
    if path == ZERO:
        return pa.repeat(pa.scalar(0, pa.int64()), len(items))
    places = places_of(item, path)
    return pc.struct_field(items, places) if places else items


def type_of(item: ItemType, path: FieldPath) -> ItemType | None:
    return LONG if path == ZERO else at(item, path)


def are_comparable(one: ItemType | None, other: ItemType | None) -> bool:
    """Whether what the language takes for equal is equal here."""
    if not isinstance(one, Scalar | Decimal) or other is None:
        return False
    return one == other or (is_integer(one) and is_integer(other))


def comparable(column: Column) -> Column:
    """The column with equal values where the language takes them for equal."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))
        nan = pa.scalar(float("nan"), column.type)
        return pc.if_else(pc.is_nan(column), nan, column)
    return column


def in_order(column: Column) -> Column:
    """The column with values that Arrow orders as the language does: NaN is the greatest number,
    the two zeros are one.
    """
    column = comparable(column)
    if not pa.types.is_floating(column.type):
        return column
    # The bits of a number, with those of negative ones turned around, are in its order.
    filled: Any = column.cast(pa.float64()).fill_null(0.0)
    bits = filled.to_numpy(zero_copy_only=False).view(np.int64)
    numbers = np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
    return pa.array(numbers, mask=column.is_null().to_numpy(zero_copy_only=False))
