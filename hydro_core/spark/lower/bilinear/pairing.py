"""The items that a join makes of two.

Their key is taken from the columns that the rows were joined by: so Spark sees that what a join has
brought together lies by the key of the new item, whatever becomes of it later.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column

from hydro_core.spark.lower.items.columns import (
    at,
    common,
    convert,
    key_fields,
    key_of,
    make_row,
    make_tuple,
    named,
    null,
    type_at,
)
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import Field, ItemType, Row, Tuple

Side = tuple[Column | None, ItemType]
"""An item, None for a missing one, and its type."""

KeyPart = Callable[[int, ItemType], Column]
"""A part of the key by its position, as a column of the given type."""


def key_types(step: Step) -> list[ItemType]:
    """The types in which the parts of the key are compared."""
    left, right = (key_fields(side.item, step.arg("on")) for side in step.inputs)
    return [common(a.type, b.type) for a, b in zip(left, right, strict=True)]


def paired(
    step: Step, x: Column | None, y: Column | None, key: list[Column] | None = None
) -> Column:
    """The item that two items make; None stands for a missing one, whose fields are null.

    `key` has the key of the left item, in the types in which it is compared.
    """
    left, right = (side.item for side in step.inputs)
    keyed = (x, left) if x is not None else (y, right)
    part = _part_of(step, keyed, key)
    if step.arg("on") is None:
        return _paired_tuple(step.item, part, (x, left), (y, right))
    return make_row(_paired_columns(step, part, (x, left), (y, right)))


def _part_of(step: Step, keyed: Side, key: list[Column] | None) -> KeyPart:
    column, item = keyed
    on, types = step.arg("on"), key_types(step)

    def part(position: int, to: ItemType) -> Column:
        if key is not None and types[position] == to:
            return key[position]
        if column is None:
            return null(to)
        own = key_fields(item, on)[position].type
        return convert(key_of(column, item, on)[position], own, to)

    return part


def _paired_tuple(item: ItemType, part: KeyPart, x: Side, y: Side) -> Column:
    """`(k, (v, w))`."""
    if not isinstance(item, Tuple):
        return null(item)
    key, values = item.fields
    mine, theirs = (_value(side, type_at(values, i)) for i, side in enumerate((x, y)))
    return make_tuple(part(0, key), make_tuple(mine, theirs))


def _value(side: Side, to: ItemType) -> Column:
    column, item = side
    if column is None:
        return null(to)
    return convert(at(column, item, 1), type_at(item, 1), to)


def _paired_columns(step: Step, part: KeyPart, x: Side, y: Side) -> list[tuple[str, Column]]:
    """The `on` columns, then the left's others, then the right's, as the output names them."""
    if not isinstance(step.item, Row):
        return []
    on, fields = step.arg("on"), step.item.fields
    found = [(field.name, part(i, field.type)) for i, field in enumerate(fields[: len(on)])]
    mine, theirs = ([f.name for f in columns(side[1]) if f.name not in on] for side in (x, y))
    sources = [*((x, n) for n in mine), *((y, n) for n in theirs)]
    for field, ((column, of), name) in zip(fields[len(on) :], sources, strict=True):
        if column is None:
            found.append((field.name, null(field.type)))
        else:
            found.append((field.name, convert(*named(column, of, name), field.type)))
    return found


def columns(item: ItemType) -> tuple[Field, ...]:
    """The columns of a row type."""
    return item.fields if isinstance(item, Row) else ()
