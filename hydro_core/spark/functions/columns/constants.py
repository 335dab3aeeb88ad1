"""Constants of a function as columns."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as DecimalValue
from typing import Any

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import integers
from hydro_core.spark.functions.columns.structs import make_row, make_tuple
from hydro_core.spark.functions.columns.value import DURATION, ColumnValue, Generator, NotCompilable
from hydro_core.types.item import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNKNOWN,
    Decimal,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_MICROSECONDS = 2**63


def constant(value: Any) -> ColumnValue:  # noqa: C901, PLR0911 - a closed set of cases
    """The value of a constant; sets and dicts are only looked into, lists are for `arrays`."""
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
    """A date or a timestamp as a column."""
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
            return _known(integers.literal(microseconds), DURATION, value)
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
    return _known(F.lit(str(value)).cast(f"decimal({precision},{scale})"), item, value)
