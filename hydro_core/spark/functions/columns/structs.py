"""Tuples and rows on Spark: made, read field by field, and brought to a common type."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import ColumnValue, NotCompilable, computed
from hydro_core.types.item import (
    INTEGERS,
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
    is_integer,
)

DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
"""The most digits of an integer."""


def make_tuple(parts: Sequence[ColumnValue]) -> ColumnValue:
    """`(a, b)`."""
    return _made(Tuple(tuple(map(_item, parts))), parts)


def make_row(fields: dict[str, ColumnValue]) -> ColumnValue:
    """`{"a": a, "b": b}`."""
    names = tuple(Field(name, _item(value)) for name, value in fields.items())
    return _made(Row(names), list(fields.values()))


def arity(value: ColumnValue) -> int:
    """The number of fields."""
    return len(value.type.fields) if isinstance(value.type, Tuple | Row) else 0


def field_at(scope: ColumnScope, value: ColumnValue, position: int) -> ColumnValue:
    """The field at a position, from 0; a None has none."""
    if value.parts is not None:
        scope.use(*(p for i, p in enumerate(value.parts) if i != position))
        return value.parts[position]
    if isinstance(value.type, Row):
        name, item = value.type.fields[position].name, value.type.fields[position].type
    elif isinstance(value.type, Tuple):
        name, item = f"_{position + 1}", value.type.fields[position]
    else:
        raise NotCompilable(f"a field of {value.type}")
    base = present(scope, value)
    path = (*base.path, name) if base.path is not None else None
    column = base.column.getField(name)
    return ColumnValue(column, item, safe=base.safe, size=base.size + 1, path=path)


def present(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The value, where its being None is an error; what is plainly read stays a plain column."""
    if not value.nullable:
        return value
    if value.path is None:
        return scope.need(value)
    scope.guard(value.path, value.column.isNull())
    return value.with_(nullable=False)


def fields_of(scope: ColumnScope, value: ColumnValue) -> list[ColumnValue]:
    """All fields, in order."""
    if value.parts is not None:
        return list(value.parts)
    return [field_at(scope, value.with_(nullable=False), i) for i in range(arity(value))]


def whole(scope: ColumnScope, value: ColumnValue, *, final: bool = False) -> ColumnValue:
    """The value as one column, fields put together; null is None."""
    if value.parts is None:
        return scope.sure(value)
    if not isinstance(value.type, Tuple | Row):
        raise NotCompilable(f"parts of {value.type}")
    parts = [whole(scope, part, final=final) for part in value.parts]
    names = (
        value.type.names
        if isinstance(value.type, Row)
        else [f"_{i + 1}" for i in range(len(parts))]
    )
    column = (
        F.struct(*(p.column.alias(n) for p, n in zip(parts, names, strict=True)))
        if parts
        else _empty()
    )
    if not final and any(p.mixed for p in parts):
        raise NotCompilable("a field is an int for some items and a float for others")
    return computed(column, value.type, *parts, safe=True)


def cast(scope: ColumnScope, value: ColumnValue, to: ItemType, *, final: bool = False) -> Column:
    """The value as a column of type `to`, without a loss; only in a result ints become floats."""
    if value.parts is not None and isinstance(to, Tuple | Row):
        return _cast_parts(scope, value, to, final=final)
    value = whole(scope, value, final=final)
    if value.mixed and not final:
        raise NotCompilable("a value is an int for some items and a float for others")
    if not isinstance(value.type, ItemType):
        raise NotCompilable(f"a {value.type} is no item")
    if value.type == to:
        return value.column
    if value.type == UNKNOWN or fits(value.type, to, final=final):
        return (
            value.column.cast(spark_type(to))
            if _by_position(value.type, to)
            else _refuse(value, to)
        )
    return _refuse(value, to)


def fits(item: ItemType, to: ItemType, *, final: bool = False) -> bool:  # noqa: PLR0911
    """Whether every item of the one type can be written in the other, as Python would."""
    match item, to:
        case _ if item in (to, UNKNOWN):
            return True
        case Scalar(name), Scalar(wider) if is_integer(item) and is_integer(to):
            return INTEGERS.index(name) <= INTEGERS.index(wider)
        case Scalar(name), Scalar("double"):
            return name == "float" or (final and is_integer(item))
        case Decimal(p, s), Decimal(q, t):
            return q - t >= p - s and (t == s or (final and t > s))
        case Scalar(), Decimal(q, t):
            return final and is_integer(item) and q - t >= DIGITS[str(item)]
        case Tuple(xs), Tuple(ys) if len(xs) == len(ys):
            return all(fits(x, y, final=final) for x, y in zip(xs, ys, strict=True))
        case Row(xs), Row(ys) if item.names == to.names:
            return all(fits(x.type, y.type, final=final) for x, y in zip(xs, ys, strict=True))
        case Array(x), Array(y):
            return fits(x, y, final=final)
        case _:
            return False


def _by_position(item: ItemType, to: ItemType) -> bool:
    return isinstance(to, Row) == isinstance(item, Row) or item == UNKNOWN


def _refuse(value: ColumnValue, to: ItemType) -> Column:
    raise NotCompilable(f"{value.type} does not become {to} without a loss")


def _cast_parts(scope: ColumnScope, value: ColumnValue, to: Tuple | Row, *, final: bool) -> Column:
    parts = list(value.parts or ())
    if isinstance(to, Row) and isinstance(value.type, Row):
        by_name = dict(zip(value.type.names, parts, strict=True))
        if set(by_name) != set(to.names):
            return _refuse(value, to)
        columns = [
            cast(scope, by_name[f.name], f.type, final=final).alias(f.name) for f in to.fields
        ]
    elif isinstance(to, Tuple) and isinstance(value.type, Tuple) and len(to.fields) == len(parts):
        columns = [
            cast(scope, part, item, final=final).alias(f"_{i}")
            for i, (part, item) in enumerate(zip(parts, to.fields, strict=True), start=1)
        ]
    else:
        return _refuse(value, to)
    return F.struct(*columns) if columns else _empty()


def _empty() -> Column:
    return F.from_json(F.lit("{}"), "struct<>")


def _item(value: ColumnValue) -> ItemType:
    if not isinstance(value.type, ItemType):
        raise NotCompilable(f"a {value.type} is no item")
    return value.type


def _made(item: Tuple | Row, parts: Sequence[ColumnValue]) -> ColumnValue:
    size = 1 + sum(p.size for p in parts)
    safe = all(p.safe for p in parts)
    # The column is made by `whole`, which knows whether this is a result.
    return ColumnValue(F.lit(None), item, nullable=False, safe=safe, size=size, parts=tuple(parts))
