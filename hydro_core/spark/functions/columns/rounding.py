"""Numbers that are rounded, as Python rounds them: by what a float is, not by how it is written."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import integers, numbers
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import ColumnValue, NotCompilable, long, strict
from hydro_core.types.item import DOUBLE, LONG, Decimal

_MOST_DIGITS = 10
"""10**10 is the last power of ten with 24 bits once its twos are taken out: see `_excess`."""
_CONTEXT_DIGITS = 28


def truncated(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """`int(x)` of a number."""
    if integers.is_int(value):
        return scope.need(integers.as_long(value))
    if numbers.is_float(value):
        return _within_long(scope, value, lambda d: d.cast("long"))
    if isinstance(value.type, Decimal) and value.type.precision - value.type.scale <= 18:
        number = scope.need(value)
        return long(number.column.cast("long"), number, safe=True)
    raise NotCompilable(f"`int` of {value.type}")


def rounded(scope: ColumnScope, value: ColumnValue, digits: ColumnValue | None) -> ColumnValue:
    """`round(x)`, `round(x, digits)`: halves to the even neighbour."""
    known = (None,) if digits is None else digits.constant
    n = known[0] if known is not None else -1
    if not (n is None or (type(n) is int and n >= 0)):
        raise NotCompilable("`round` to a computed number of digits, or to tens")
    if integers.is_int(value):
        return scope.need(integers.as_long(value))
    if numbers.is_float(value):
        if n is None:
            return _within_long(scope, value, lambda d: F.rint(d).cast("long"))
        return _float_to(scope, value, n)
    if isinstance(value.type, Decimal) and n is not None:
        return _decimal_to(value, value.type, n)
    raise NotCompilable(f"`round` of {value.type}")


def _within_long(
    scope: ColumnScope, value: ColumnValue, convert: Callable[[Column], Column]
) -> ColumnValue:
    number = scope.need(numbers.as_double(value))
    d = number.column
    column = F.when((d < 2.0**63) & (d >= -(2.0**63)), convert(d))
    return strict(column, LONG, number, number, doubtful=True)


def units(x: Column, digits: int) -> Column:
    """The float in units of its last of so many digits, rounded, where `is_told`."""
    power = F.lit(10.0**digits)
    # What looks like a half is one, or is just above or below it: then a quarter decides.
    half = F.abs(x * power % 1.0) == 0.5
    nearer = F.rint(x * power + F.signum(_excess(x, power)) * 0.25)
    return F.when(half, nearer).otherwise(F.rint(x * power))


def is_certain(x: Column, digits: int) -> Column:
    """Whether `units` has bits left for halves."""
    return F.abs(x * 10.0**digits) < 2.0**51


def _float_to(scope: ColumnScope, value: ColumnValue, digits: int) -> ColumnValue:
    if digits > _MOST_DIGITS:
        raise NotCompilable(f"`round` to more than {_MOST_DIGITS} digits")
    number = scope.need(numbers.as_double(value))
    x = number.column
    told = F.when(is_certain(x, digits), units(x, digits) / 10.0**digits)
    # Beyond 52 bits all floats are whole.
    return strict(told.when(F.abs(x) >= 2.0**52, x), DOUBLE, *[number] * 11, doubtful=True)


def _excess(x: Column, power: Column) -> Column:
    """`x * power` without a loss, minus the product as a float: what its rounding took away.

    The first 24 bits of x and the other 29, each times a power of 24 bits, are floats; and so is
    what is left of them when the product is taken away.
    """
    first = x.cast("float").cast("double")
    return (first * power - x * power) + (x - first) * power


def _decimal_to(value: ColumnValue, of: Decimal, digits: int) -> ColumnValue:
    to = Decimal(of.precision - of.scale + digits + 1, digits)
    if digits > of.scale or to.precision > _CONTEXT_DIGITS:
        raise NotCompilable(f"`round` of {of} to {digits} digits")
    x = value.column
    nearest = F.bround(x, digits).cast(f"decimal({to.precision},{to.scale})")
    # Python's decimals have a −0, which is what small negative ones become.
    return strict(
        F.when((nearest != 0) | (x >= 0), nearest), to, value, value, value, doubtful=True
    )
