"""Items as columns: fields, other types, what functions of the program make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column

from hydro_core.functions.fn import Fn
from hydro_core.functions.result_type import result_type
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.apply import apply
from hydro_core.types.common import common_type
from hydro_core.types.item import (
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
    Unknown,
)
from hydro_core.types.values import conform


def null(item: ItemType) -> Column:
    return F.lit(None).cast(spark_type(item))


def literal(value: Any, item: ItemType) -> Column:
    """A constant item of this type."""
    value = conform(value, item)
    if value is None:
        return null(item)
    match item:
        case Tuple(fields):
            return make_tuple(*map(literal, value, fields))
        case Row(fields):
            return make_row((f.name, literal(value[f.name], f.type)) for f in fields)
        case Array(element):
            return F.array(*(literal(x, element) for x in value)).cast(spark_type(item))
        case _:
            return F.lit(value).cast(spark_type(item))


def at(column: Column, item: ItemType, position: int) -> Column:
    """The field at a position of a tuple or row; a null item has null fields."""
    match item:
        case Tuple():
            return column.getField(f"_{position + 1}")
        case Row(fields):
            return column.getField(fields[position].name)
        case _:
            return F.lit(None)


def type_at(item: ItemType, position: int) -> ItemType:
    match item:
        case Tuple(fields):
            return fields[position]
        case Row(fields):
            return fields[position].type
        case _:
            return UNKNOWN


def named(column: Column, item: ItemType, name: str) -> tuple[Column, ItemType]:
    """The column `name` of a row, and its type."""
    found = item.column(name) if isinstance(item, Row) else None
    return (F.lit(None), UNKNOWN) if found is None else (column.getField(name), found)


def make_tuple(*parts: Column) -> Column:
    return F.struct(*(part.alias(f"_{i}") for i, part in enumerate(parts, start=1)))


def make_row(fields: Iterable[tuple[str, Column]]) -> Column:
    return F.struct(*(column.alias(name) for name, column in fields))


def column_types(item: ItemType) -> dict[str, ItemType]:
    """The columns of a row type; none of what is no row."""
    return {f.name: f.type for f in item.fields} if isinstance(item, Row) else {}


def own_columns(item: ItemType, column: Column | None = None) -> dict[str, Column]:
    """The columns of a row, of the column `item` if no other is named; none of what is no row."""
    row = F.col(ITEM) if column is None else column
    return {name: row.getField(name) for name in column_types(item)}


def fn_type(fn: Fn, item: ItemType) -> ItemType:
    """The type of what a function of the program gives for an item."""
    return result_type(fn, (item,), spread=True)


def evaluated(fn: Fn, item: ItemType) -> Column:
    """`fn` of the column `item`, as what the function gives."""
    return apply(fn, F.col(ITEM), item, tick=F.col(TICK))


def convert(column: Column, item: ItemType, to: ItemType) -> Column:
    """The items as items of another type in which all of them can be written: columns by name,
    numbers widened.
    """
    if item == to or isinstance(to, Unknown):
        return column
    match item, to:
        case Unknown(), _:
            return column.cast(spark_type(to))
        case Tuple(fields), Tuple(others):
            parts = [
                convert(at(column, item, i), f, o)
                for i, (f, o) in enumerate(zip(fields, others, strict=True))
            ]
            return F.when(column.isNotNull(), make_tuple(*parts))
        case Row(), Row(fields):
            columns = [(f.name, convert(*named(column, item, f.name), f.type)) for f in fields]
            return F.when(column.isNotNull(), make_row(columns))
        case Array(element), Array(other):
            return F.transform(column, lambda x: convert(x, element, other))
        case _:
            return column.cast(spark_type(to))


Side = tuple[Column | None, ItemType]
"""An item, None for a missing one, and its type."""


def row_of_two(
    to: ItemType, on: Sequence[str], key: Callable[[int, ItemType], Column], *sides: Side
) -> Column:
    """The columns `on`, then the left's others, then the right's, as a row type names them.

    Args:
        to: the row type.
        on: the columns that both sides have.
        key: makes one of these, by its position, as the given type.
        sides: the left and the right item.
    """
    types = list(column_types(to).values())
    made = [key(i, of) for i, of in enumerate(types[: len(on)])]
    others = [(*side, name) for side in sides for name in column_types(side[1]) if name not in on]
    for of, (column, item, name) in zip(types[len(on) :], others, strict=True):
        made.append(null(of) if column is None else convert(*named(column, item, name), of))
    return make_row(zip(column_types(to), made, strict=True))


def common(one: ItemType, other: ItemType) -> ItemType:
    """The type in which keys of two types are compared."""
    return common_type(one, other) or one


def key_fields(item: ItemType, by: Sequence[str] | None) -> list[Field]:
    """The names and types of a key: of the columns `by`, or of the first field of a tuple."""
    if by:
        return [Field(name, named(F.lit(None), item, name)[1]) for name in by]
    return [Field("_1", type_at(item, 0))]


def key_of(column: Column, item: ItemType, by: Sequence[str] | None) -> list[Column]:
    """The parts of an item's key."""
    if by:
        return [named(column, item, name)[0] for name in by]
    return [at(column, item, 0)]


def reversed_order(column: Column, item: ItemType) -> Column:
    """A column whose ascending order is the descending one of `column`, at any depth."""
    return F.struct(column.isNull().alias("none"), _reversed(column, item).alias("value"))


def _reversed(column: Column, item: ItemType) -> Column:
    match item:
        case Unknown():
            return F.lit(0)
        case Array(element):
            parts = F.transform(column, lambda x: F.struct(F.lit(0), reversed_order(x, element)))
            end = F.array(F.struct(F.lit(1), reversed_order(null(element), element)))
            return F.concat(parts, end)
        case Tuple() | Row():
            fields = [(at(column, item, i), type_at(item, i)) for i in range(len(item.fields))]
            return make_tuple(*(reversed_order(*field) for field in fields))
        case Decimal():
            return -column
        case Scalar(name):
            return _REVERSED[name](column) if name in _REVERSED else F.bitwise_not(column)


def _complement(column: Column) -> Column:
    """Texts and bytes as complemented digits, and at the end something that is greater than any
    digit, so that what begins with another one comes before it.
    """
    digits = F.translate(F.hex(column), "0123456789ABCDEF", "FEDCBA9876543210")
    return F.concat(digits, F.lit("G"))


def _opposite(column: Column) -> Column:
    return F.struct(~F.isnan(column), -column)


_REVERSED: Mapping[str, Callable[[Column], Column]] = {
    "boolean": lambda column: ~column,
    "float": _opposite,
    "double": _opposite,
    "string": _complement,
    "binary": _complement,
    "date": lambda column: F.bitwise_not(F.unix_date(column)),
    "timestamp": lambda column: F.bitwise_not(F.unix_micros(column)),
    "timestamp_ntz": lambda column: F.bitwise_not(F.unix_micros(column.cast("timestamp"))),
}
