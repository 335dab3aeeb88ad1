"""Python's dates, timestamps and timedeltas on Spark.

A timedelta is a long of microseconds. Spark's calendar reaches further than Python's: a result
outside the years 1 to 9999 fails, as it does in Python. Timestamps are read in UTC, the zone of
every session.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hydro_core.functions.kinds import TIMEDELTA
from hydro_core.functions.library.times import DAY, SECOND, microseconds
from hydro_core.functions.tree import Op
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import integers
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    NotCompilable,
    computed,
    strict,
)
from hydro_core.types.item import DATE, LONG, TIMESTAMP, TIMESTAMP_NTZ

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENDS = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
"""The first and the last moment of Python's calendar."""
_UNITS = {
    "days": DAY,
    "seconds": SECOND,
    "microseconds": 1,
    "milliseconds": 1_000,
    "minutes": 60 * SECOND,
    "hours": 3_600 * SECOND,
    "weeks": 7 * DAY,
}
"""The arguments of `timedelta`, in this order, in microseconds."""
_LEAST = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}
"""The least value of each field, from the largest to the smallest; years have none."""


def is_moment(value: ColumnValue) -> bool:
    return value.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def zoned(scope: ColumnScope, base: ColumnValue, zone: Any) -> ColumnValue:
    """`timestamp.replace(tzinfo=zone)`: UTC, or None."""
    if base.type == DATE or (zone is not None and str(zone) != "UTC"):
        raise NotCompilable("`.replace` of the zone by another one than UTC")
    to = TIMESTAMP_NTZ if zone is None else TIMESTAMP
    value = scope.need(base)
    return computed(value.column.cast(str(to)), to, value, safe=True)


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
    if op == "+" and a.type == TIMEDELTA and is_moment(b):
        a, b = b, a
    if is_moment(a) and b.type == TIMEDELTA and op in ("+", "-"):
        return _moved(scope, op, a, b)
    if is_moment(a) and a.type == b.type and op == "-":
        x, y = scope.need(a), scope.need(b)
        if a.type == DATE:
            days = F.datediff(x.column, y.column).cast("long")
            return computed(days * DAY, TIMEDELTA, x, y, safe=True)
        return computed(
            microseconds(F, x.column) - microseconds(F, y.column), TIMEDELTA, x, y, safe=True
        )
    if TIMEDELTA in (a.type, b.type):
        return _of_durations(scope, op, a, b)
    raise NotCompilable(f"`{op}` of {a.type} and {b.type}")


_OF_DURATIONS = {
    "+": integers.add,
    "-": integers.subtract,
    "%": integers.modulo,
    "/": integers.true_divide,
    "//": integers.floor_divide,
}
"""Operations of two timedeltas, by the operation of their microseconds."""


def _of_durations(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """Operations of two timedeltas, and a multiple of one."""
    x, y = (
        scope.need(v.with_(type=LONG, constant=None) if v.type == TIMEDELTA else v) for v in (a, b)
    )
    if a.type == b.type and op in _OF_DURATIONS:
        made = _OF_DURATIONS[op](x, y)
    elif op == "*" and (integers.is_int(a) or integers.is_int(b)):
        made = integers.multiply(integers.as_long(x), integers.as_long(y))
    elif op == "//" and a.type == TIMEDELTA and integers.is_int(b):
        return integers.floor_divide(x, y).with_(type=TIMEDELTA)
    else:
        raise NotCompilable(f"`{op}` of {a.type} and {b.type}")
    # Python's timedeltas hold all microseconds of 64 bits.
    return made if op in ("/", "//") else made.with_(type=TIMEDELTA)


def negative(value: ColumnValue) -> ColumnValue:
    return strict(
        F.try_subtract(integers.literal(0), value.column), TIMEDELTA, value, doubtful=True
    )


def duration(scope: ColumnScope, node: Op) -> ColumnValue:
    """`timedelta(days=n)` of integers: doubtful if it exceeds 64 bits of microseconds."""
    parts = [*zip(_UNITS, node.args, strict=False), *node.keywords]
    total = integers.literal(0)
    values = []
    for name, expression in parts:
        value = scope.compile(expression)
        if name not in _UNITS or not integers.is_int(value):
            raise NotCompilable("a timedelta of other than integers")
        number = integers.bound(scope, value)
        values.append(number)
        total = F.try_add(total, F.try_multiply(number.column, integers.literal(_UNITS[name])))
    return strict(total, TIMEDELTA, *values, doubtful=bool(values))


def _moved(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    x, d = scope.need(a), scope.need(b)
    if a.type == DATE:
        # Python uses the whole days of the timedelta, rounded down.
        down = F.when(d.column % DAY < 0, F.lit(1)).otherwise(F.lit(0))
        days = F.call_function("div", d.column, integers.literal(DAY)) - down
        start = F.unix_date(x.column).cast("long")
        moved = start + days if op == "+" else start - days
        low, high = ((end.date() - _EPOCH.date()).days for end in _ENDS)
        column = F.when(moved.between(low, high), F.date_from_unix_date(moved.cast("int")))
        return strict(column, DATE, x, d, d, x, d, doubtful=True)
    combine = F.try_add if op == "+" else F.try_subtract
    moved = combine(microseconds(F, x.column), d.column)
    low, high = ((end - _EPOCH) // _EPOCH.resolution for end in _ENDS)
    stamp = F.timestamp_micros(moved)
    stamp = stamp.cast("timestamp_ntz") if a.type == TIMESTAMP_NTZ else stamp
    column = F.when(moved.between(integers.literal(low), integers.literal(high)), stamp)
    return strict(column, a.type, x, d, x, d, doubtful=True)
