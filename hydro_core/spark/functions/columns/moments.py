"""Python's dates, timestamps and timedeltas on Spark.

A timedelta is a long of microseconds. Spark's calendar reaches further than Python's: what leaves
the years 1 to 9999 fails, as it does in Python. Timestamps are read in UTC, the zone of every
session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column

from hydro_core.functions.tree import Call
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import division, formats, integers
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import (
    DURATION,
    ColumnValue,
    NotCompilable,
    computed,
    long,
    strict,
    string,
)
from hydro_core.types.item import DATE, LONG, TIMESTAMP, TIMESTAMP_NTZ

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENDS = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
"""The first and the last moment of Python's calendar."""
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_UNITS = {
    "days": _DAY,
    "seconds": _SECOND,
    "microseconds": 1,
    "milliseconds": 1_000,
    "minutes": 60 * _SECOND,
    "hours": 3_600 * _SECOND,
    "weeks": 7 * _DAY,
}
_POSITIONS = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")
_FIELDS: dict[str, Callable[[Column], Column]] = {
    "year": F.year,
    "month": F.month,
    "day": F.dayofmonth,
    "hour": F.hour,
    "minute": F.minute,
    "second": F.second,
}

_NUMBERS: dict[str, Callable[[Column], Column]] = {
    "weekday": lambda day: F.weekday(day).cast("long"),
    "isoweekday": lambda day: F.weekday(day).cast("long") + 1,
    "toordinal": lambda day: F.unix_date(day).cast("long") + _EPOCH.toordinal(),
}
_LEAST = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}
"""What fields begin with, from the largest to the smallest; years begin with none."""


def is_moment(value: ColumnValue) -> bool:
    """Whether it is a date or a timestamp."""
    return value.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def attribute(scope: ColumnScope, base: ColumnValue, name: str) -> ColumnValue:
    """`date.year` and its like."""
    if base.type == DURATION:
        return _of_duration(scope, base, name)
    if not is_moment(base):
        raise NotCompilable(f"`.{name}` of {base.type}")
    if name == "microsecond" and base.type != DATE:
        value = scope.need(base)
        return long(F.pmod(_microseconds(value), F.lit(_SECOND)), value, safe=True)
    if name not in _FIELDS or (base.type == DATE and name in ("hour", "minute", "second")):
        raise NotCompilable(f"`.{name}` of {base.type}")
    value = scope.need(base)
    return long(_FIELDS[name](value.column).cast("long"), value, safe=True)


def method(scope: ColumnScope, base: ColumnValue, name: str, arguments: int) -> ColumnValue:
    """`timestamp.date()` and its like, without arguments."""
    if base.type == DURATION and name == "total_seconds" and not arguments:
        microseconds = base.with_(type=LONG, constant=None)
        return division.true_divide(microseconds, integers.constant(_SECOND))
    if not is_moment(base) or arguments:
        raise NotCompilable(f"`.{name}` of {base.type}")
    value = scope.need(base)
    day = value.column.cast("date")
    if name in _NUMBERS:
        return long(_NUMBERS[name](day), value, safe=True)
    match name:
        case "date" if base.type != DATE:
            return computed(day, DATE, value, safe=True)
        case "isoformat" if base.type == DATE:
            return string(value.column.cast("string"), value, safe=True)
        case "isoformat":
            return formats.iso(value, "T")
        case "timestamp" if base.type == TIMESTAMP:
            microseconds = long(_microseconds(value), value, safe=True)
            return division.true_divide(microseconds, integers.constant(_SECOND))
        case _:
            raise NotCompilable(f"`.{name}` of {base.type}")


def cut(scope: ColumnScope, base: ColumnValue, fields: Mapping[str, Any]) -> ColumnValue:
    """`timestamp.replace(minute=0, second=0, microsecond=0)`: the beginning of its hour."""
    names = [name for name in _LEAST if base.type != DATE or name in ("month", "day")]
    smallest = names[-len(fields) :]
    if dict(fields) != {name: _LEAST[name] for name in smallest}:
        raise NotCompilable("`.replace` of other than the smallest fields by their beginning")
    value, larger = scope.need(base), ("year", *_LEAST)[names.index(smallest[0])]
    if base.type == DATE:
        return computed(F.trunc(value.column, larger), DATE, value, safe=True)
    begun = F.date_trunc(larger, value.column)
    begun = begun.cast("timestamp_ntz") if base.type == TIMESTAMP_NTZ else begun
    return computed(begun, base.type, value, safe=True)


def arithmetic(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a op b` with a date, a timestamp or a timedelta."""
    if op == "+" and a.type == DURATION and is_moment(b):
        a, b = b, a
    if is_moment(a) and b.type == DURATION and op in ("+", "-"):
        return _moved(scope, op, a, b)
    if is_moment(a) and a.type == b.type and op == "-":
        x, y = scope.need(a), scope.need(b)
        if a.type == DATE:
            days = F.datediff(x.column, y.column).cast("long")
            return computed(days * _DAY, DURATION, x, y, safe=True)
        return computed(_microseconds(x) - _microseconds(y), DURATION, x, y, safe=True)
    raise NotCompilable(f"`{op}` of {a.type} and {b.type}")


def negative(value: ColumnValue) -> ColumnValue:
    """`-timedelta`."""
    return strict(F.try_subtract(integers.literal(0), value.column), DURATION, value, doubtful=True)


def duration(scope: ColumnScope, node: Call) -> ColumnValue:
    """`timedelta(days=n)` of integers: one beyond 64 bits of microseconds is in doubt."""
    parts = [*zip(_POSITIONS, node.args, strict=False), *node.keywords]
    total = integers.literal(0)
    values = []
    for name, expression in parts:
        value = scope.compile(expression)
        if name not in _UNITS or not integers.is_int(value):
            raise NotCompilable("a timedelta of other than integers")
        number = integers.bound(scope, value)
        values.append(number)
        total = F.try_add(total, F.try_multiply(number.column, integers.literal(_UNITS[name])))
    return strict(total, DURATION, *values, doubtful=bool(values))


def _of_duration(scope: ColumnScope, base: ColumnValue, name: str) -> ColumnValue:
    value = scope.need(base)
    whole = value.with_(type=LONG, constant=None)
    day, second = integers.constant(_DAY), integers.constant(_SECOND)
    match name:
        case "days":
            return division.floor_divide(whole, day)
        case "seconds":
            return division.floor_divide(division.modulo(whole, day), second)
        case "microseconds":
            return division.modulo(whole, second)
        case _:
            raise NotCompilable(f"`.{name}` of a timedelta")


def _moved(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    x, d = scope.need(a), scope.need(b)
    if a.type == DATE:
        # Python takes the whole days of the timedelta, rounded down.
        down = F.when(d.column % _DAY < 0, F.lit(1)).otherwise(F.lit(0))
        days = _whole(d.column, _DAY) - down
        start = F.unix_date(x.column).cast("long")
        moved = start + days if op == "+" else start - days
        low, high = ((end.date() - _EPOCH.date()).days for end in _ENDS)
        column = F.when(moved.between(low, high), F.date_from_unix_date(moved.cast("int")))
        return strict(column, DATE, x, d, d, x, d, doubtful=True)
    combine = F.try_add if op == "+" else F.try_subtract
    moved = combine(_microseconds(x), d.column)
    low, high = ((end - _EPOCH) // _EPOCH.resolution for end in _ENDS)
    stamp = F.timestamp_micros(moved)
    stamp = stamp.cast("timestamp_ntz") if a.type == TIMESTAMP_NTZ else stamp
    column = F.when(moved.between(integers.literal(low), integers.literal(high)), stamp)
    return strict(column, a.type, x, d, x, d, doubtful=True)


def _microseconds(value: ColumnValue) -> Column:
    stamp = value.column if value.type == TIMESTAMP else value.column.cast("timestamp")
    return F.unix_micros(stamp)


def _whole(a: Column, b: int) -> Column:
    return F.call_function("div", a, integers.literal(b))
