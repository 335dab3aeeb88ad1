"""Tuples and rows on Spark: construction, fields, conversion to a common type; and constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as DecimalValue
from typing import Any

from pyspark.sql import Column

from hydro_core.functions.kinds import TIMEDELTA
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns import integers
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    Generator,
    NotCompilable,
    ValueType,
    computed,
    is_item,
)
from hydro_core.types.item import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGERS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
    children,
    is_integer,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_MICROSECONDS = 2**63
DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
"""The most digits of an integer."""


def make_tuple(parts: Sequence[ColumnValue]) -> ColumnValue:
    return _made(Tuple(tuple(map(_item, parts))), parts)


def make_row(fields: dict[str, ColumnValue]) -> ColumnValue:
    names = tuple(Field(name, _item(value)) for name, value in fields.items())
    return _made(Row(names), list(fields.values()))


def names_of(item: ValueType) -> tuple[str, ...]:
    """Spark's names of the fields."""
    if isinstance(item, Row):
        return item.names
    return tuple(f"_{i}" for i in range(1, 1 + len(item.fields if isinstance(item, Tuple) else ())))


def struct(columns: Mapping[str, Column]) -> Column:
    if not columns:
        return F.from_json(F.lit("{}"), "struct<>")
    return F.struct(*(column.alias(name) for name, column in columns.items()))


def tuple_of(*columns: Column) -> Column:
    return struct({f"_{i}": column for i, column in enumerate(columns, start=1)})


def arity(value: ColumnValue) -> int:
    return len(value.type.fields) if isinstance(value.type, Tuple | Row) else 0


def field_at(scope: ColumnScope, value: ColumnValue, position: int) -> ColumnValue:
    """The field at a position, from 0; a None has none."""
    if value.parts is not None:
        scope.use(*(p for i, p in enumerate(value.parts) if i != position))
        return value.parts[position]
    if not isinstance(value.type, Tuple | Row):
        raise NotCompilable(f"a field of {value.type}")
    at = value.type.fields[position]
    name, item = (at.name, at.type) if isinstance(at, Field) else (f"_{position + 1}", at)
    base = present(scope, value)
    path = (*base.path, name) if base.path is not None else None
    column = base.column.getField(name)
    return ColumnValue(column, item, safe=base.safe, size=base.size + 1, path=path)


def present(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The value, where None is an error; a column that is only read stays plain."""
    if not value.nullable:
        return value
    if value.path is None:
        return scope.need(value)
    scope.guard(value.path, value.column.isNull())
    return value.with_(nullable=False)


def fields_of(scope: ColumnScope, value: ColumnValue) -> list[ColumnValue]:
    if value.parts is not None:
        return list(value.parts)
    return [field_at(scope, value.with_(nullable=False), i) for i in range(arity(value))]


def whole(scope: ColumnScope, value: ColumnValue, *, final: bool = False) -> ColumnValue:
    """The value as one column, with its fields combined; null is None."""
    if value.parts is None:
        return scope.sure(value)
    if not isinstance(value.type, Tuple | Row):
        raise NotCompilable(f"parts of {value.type}")
    parts = [whole(scope, part, final=final) for part in value.parts]
    column = struct(dict(zip(names_of(value.type), (p.column for p in parts), strict=True)))
    if not final and any(p.mixed for p in parts):
        raise NotCompilable("a field is an int for some items and a float for others")
    return computed(column, value.type, *parts, safe=True)


def cast(scope: ColumnScope, value: ColumnValue, to: ItemType, *, final: bool = False) -> Column:
    """The value as a column of type `to`, without loss; only in a result ints become floats."""
    if value.parts is not None and isinstance(to, Tuple | Row):
        return _cast_parts(scope, value, to, final=final)
    value = whole(scope, value, final=final)
    if value.mixed and not final:
        raise NotCompilable("a value is an int for some items and a float for others")
    if value.type == to:
        return value.column
    item = _item(value)
    is_of_its_kind = item == UNKNOWN or isinstance(to, Row) == isinstance(item, Row)
    if is_of_its_kind and fits(item, to, final=final):
        return value.column.cast(spark_type(to))
    raise _lossy(value, to)


def fits(item: ItemType, to: ItemType, *, final: bool = False) -> bool:
    """True if every item of the one type can be converted to the other, as Python would."""
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
        case (Tuple() | Row(), Tuple() | Row()) if names_of(item) == names_of(to):
            pairs = zip(children(item), children(to), strict=True)
            return all(fits(x, y, final=final) for (_, x), (_, y) in pairs)
        case Array(x), Array(y):
            return fits(x, y, final=final)
        case _:
            return False


def _lossy(value: ColumnValue, to: ItemType) -> NotCompilable:
    return NotCompilable(f"{value.type} does not become {to} without a loss")


def _cast_parts(scope: ColumnScope, value: ColumnValue, to: Tuple | Row, *, final: bool) -> Column:
    if not isinstance(value.type, type(to)) or set(names_of(value.type)) != set(names_of(to)):
        raise _lossy(value, to)
    given = dict(zip(names_of(value.type), value.parts or (), strict=True))
    wanted = zip(names_of(to), children(to), strict=True)
    return struct({n: cast(scope, given[n], item, final=final) for n, (_, item) in wanted})


def _item(value: ColumnValue) -> ItemType:
    if not is_item(value.type):
        raise NotCompilable(f"a {value.type} is no item")
    return value.type


def _made(item: Tuple | Row, parts: Sequence[ColumnValue]) -> ColumnValue:
    size = 1 + sum(p.size for p in parts)
    safe = all(p.safe for p in parts)
    # `whole` builds the column; it knows if this is a result.
    return ColumnValue(F.lit(None), item, nullable=False, safe=safe, size=size, parts=tuple(parts))


def constant(value: Any) -> ColumnValue:  # noqa: C901, PLR0911 - a closed set of cases
    """The value of a constant; sets and dicts can only be looked up, lists are for `arrays`."""
    match value:
        case None:
            return ColumnValue(F.lit(None), UNKNOWN, constant=(None,))
        case bool():
            return _known(F.lit(value), BOOLEAN, value)
        case int():
            return integers.constant(value)
        case float():
            return _known(F.lit(value), DOUBLE, value)
        case str():
            return _known(F.lit(value), STRING, value)
        case bytes():
            return _known(F.lit(value), BINARY, value)
        case DecimalValue():
            return _decimal(value)
        case date() | timedelta():
            return _moment(value)
        case tuple():
            return make_tuple([constant(v) for v in value]).with_(constant=(value,))
        case dict() if value and all(isinstance(k, str) for k in value):
            row = make_row({k: constant(v) for k, v in value.items()})
            return row.with_(constant=(value,))
        case _:
            return _known(F.lit(None), Generator(type(value).__name__), value)


def moment(value: datetime | date) -> Column:
    if not isinstance(value, datetime):
        return F.date_from_unix_date(F.lit((value - _EPOCH.date()).days))
    zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
    column = F.timestamp_micros(integers.literal((zoned - _EPOCH) // _MICROSECOND))
    return column if value.tzinfo else column.cast("timestamp_ntz")


def _known(column: Column, item: Any, value: Any) -> ColumnValue:
    return ColumnValue(column, item, nullable=False, constant=(value,))


def _moment(value: datetime | date | timedelta) -> ColumnValue:
    match value:
        case timedelta():
            microseconds = value // _MICROSECOND
            if abs(microseconds) >= _MAX_MICROSECONDS:
                raise NotCompilable("a timedelta of more than 64 bits of microseconds")
            return _known(integers.literal(microseconds), TIMEDELTA, value)
        case datetime():
            return _known(moment(value), TIMESTAMP if value.tzinfo else TIMESTAMP_NTZ, value)
        case _:
            return _known(moment(value), DATE, value)


def _decimal(value: DecimalValue) -> ColumnValue:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent > 0:
        raise NotCompilable("a decimal constant without a plain form")
    precision, scale = max(len(digits), -exponent), -exponent
    if precision > 28:
        raise NotCompilable("a decimal constant of more than 28 digits")
    item = Decimal(precision, scale)
    return _known(F.lit(str(value)).cast(str(item)), item, value)
