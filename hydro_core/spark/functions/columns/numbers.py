"""Numbers on Spark: mixed types, floats and decimals as Python computes and rounds them.

Decimals follow Python's default context of 28 digits: a result with more digits, which Python
rounds, is left to Python. Floats are rounded by their exact value, not by their text.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial

from pyspark.sql import Column

from hydro_core.functions.library.operators import decimals
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import integers, structs
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    NotCompilable,
    computed,
    long,
    strict,
)
from hydro_core.types.item import BOOLEAN, DOUBLE, LONG, Decimal, Scalar

_CONTEXT_DIGITS = 28
_SPARK_DIGITS = 38
_MOST_DIGITS = 10
"""10**10 is the last power of ten with 24 bits once its twos are taken out: see `_excess`."""


def is_float(value: ColumnValue) -> bool:
    return (
        isinstance(value.type, Scalar)
        and value.type.name in ("float", "double")
        and not value.mixed
    )


def is_decimal(value: ColumnValue) -> bool:
    return isinstance(value.type, Decimal)


def is_number(value: ColumnValue) -> bool:
    return integers.is_int(value) or is_float(value) or is_decimal(value) or value.mixed


def as_double(value: ColumnValue) -> ColumnValue:
    """The number as a float; null stays null."""
    if value.type == DOUBLE:
        return value
    if not is_float(value) and not integers.is_int(value):
        raise NotCompilable(f"{value.type} and float do not meet in Python")
    if value.constant is not None:
        number = float(value.constant[0])
        return ColumnValue(F.lit(number), DOUBLE, nullable=False, constant=(number,))
    return value.with_(column=value.column.cast("double"), type=DOUBLE, path=None)


def as_mixed(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The number as a double that may represent an int: then it has 53 bits."""
    if value.mixed or is_float(value):
        return as_double(value)
    if value.constant is not None and abs(value.constant[0]) <= integers.EXACT:
        return as_double(value)
    number = scope.sure(value).column
    held = number.cast("long").between(-integers.EXACT, integers.EXACT) | number.isNull()
    column = F.when(held, number.cast("double")).otherwise(scope.ask())
    return computed(column, DOUBLE, value, value, nullable=value.nullable)


def arithmetic(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    if integers.is_int(a) and integers.is_int(b):
        return integers.power(scope, a, b) if op == "**" else _OF_INTEGERS[op](a, b)
    if is_decimal(a) or is_decimal(b):
        return _of_decimals(op, a, b)
    if a.mixed or b.mixed:
        return _of_mixed(scope, op, a, b)
    return _of_floats(op, as_double(a), as_double(b))


def minus(a: ColumnValue) -> ColumnValue:
    if integers.is_int(a):
        return integers.subtract(integers.constant(0), a)
    if a.constant is not None and is_float(a):
        return ColumnValue(
            F.lit(-a.constant[0]), DOUBLE, nullable=False, constant=(-a.constant[0],)
        )
    return strict(-a.column, _float_or_decimal(a), a)


def absolute(a: ColumnValue) -> ColumnValue:
    if integers.is_int(a):
        return integers.absolute(a)
    if a.mixed:
        raise NotCompilable("`abs` of an int for some items and a float for others")
    return strict(F.abs(a.column), _float_or_decimal(a), a)


def _float_or_decimal(a: ColumnValue) -> Scalar | Decimal:
    if is_float(a):
        return DOUBLE
    if isinstance(a.type, Decimal) and a.type.precision <= _CONTEXT_DIGITS:
        return a.type
    raise NotCompilable(f"arithmetic of {a.type}")


_PLAIN: dict[str, Callable[[Column, Column], Column]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_OF_INTEGERS: dict[str, Callable[[ColumnValue, ColumnValue], ColumnValue]] = {
    "+": integers.add,
    "-": integers.subtract,
    "*": integers.multiply,
    "/": integers.true_divide,
    "//": integers.floor_divide,
    "%": integers.modulo,
    **{op: partial(integers.bitwise, op) for op in ("&", "|", "^")},
    **{op: partial(integers.shift, op) for op in ("<<", ">>")},
}


def _of_floats(op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    x, y = a.column, b.column
    may_be_zero = b.constant is None or b.constant[0] == 0
    match op:
        case "+" | "-" | "*":
            return strict(_PLAIN[op](x, y), DOUBLE, a, b)
        case "/":
            return strict(F.try_divide(x, y), DOUBLE, a, b, doubtful=may_be_zero)
        case "%":
            return integers.float_modulo(a, b)
        case "//":
            return integers.float_floor_divide(a, b)
        case _:
            raise NotCompilable(f"`{op}` of floats")


def _of_mixed(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """An int for some items, a float for others: equal as long as floats hold the ints."""
    if op not in ("+", "-", "*", "/"):
        raise NotCompilable("an operand is an int for some items and a float for others")
    x, y = (as_mixed(scope, v).with_(mixed=False) for v in (a, b))
    result = _of_floats(op, x, y)
    if op == "/" or is_float(a) or is_float(b):
        return result
    held = F.abs(result.column) <= float(integers.EXACT)
    # A float may be −0, an int never.
    held = held & (result.column != 0.0) if op == "*" else held
    column = F.when(held, result.column)
    return strict(column, DOUBLE, result, result, doubtful=True).with_(mixed=True)


def _of_decimals(op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    left, right = _decimal_type(a), _decimal_type(b)
    type_ = decimals(op, left, right)
    if op not in _PLAIN or type_ is None:
        raise NotCompilable(f"`{op}` of decimals")
    if max(left.precision, right.precision, type_.precision) >= _SPARK_DIGITS or (
        type_.scale > _CONTEXT_DIGITS
    ):
        raise NotCompilable("a decimal of more digits than Spark keeps")
    x, y = a.column.cast(str(left)), b.column.cast(str(right))
    column = _PLAIN[op](x, y).cast(str(type_))
    if type_.precision <= _CONTEXT_DIGITS:
        return strict(column, type_, a, b)
    least = F.lit(f"1{'0' * (_CONTEXT_DIGITS - type_.scale)}").cast("decimal(38,0)")
    return strict(F.when(F.abs(column) < least, column), type_, a, b, a, b, doubtful=True)


def _decimal_type(value: ColumnValue) -> Decimal:
    if isinstance(value.type, Decimal):
        return value.type
    if not integers.is_int(value) or value.type == BOOLEAN:
        raise NotCompilable(f"a decimal and {value.type} do not meet in Python")
    if value.constant is not None:
        return Decimal(len(str(abs(value.constant[0]))), 0)
    return Decimal(structs.DIGITS[str(value.type)], 0)


def truncated(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """`int(x)` of a number."""
    if integers.is_int(value):
        return scope.need(integers.as_long(value))
    if is_float(value):
        return _within_long(scope, value, lambda d: d.cast("long"))
    if isinstance(value.type, Decimal) and value.type.precision - value.type.scale <= 18:
        number = scope.need(value)
        return long(number.column.cast("long"), number, safe=True)
    raise NotCompilable(f"`int` of {value.type}")


def rounded(scope: ColumnScope, value: ColumnValue, digits: ColumnValue | None) -> ColumnValue:
    """`round(x)`, `round(x, digits)`: halves to the even neighbour."""
    (n,) = (None,) if digits is None else digits.constant or (-1,)
    if not (n is None or (type(n) is int and n >= 0)):
        raise NotCompilable("`round` to a computed number of digits, or to tens")
    if integers.is_int(value):
        return scope.need(integers.as_long(value))
    if is_float(value):
        if n is None:
            return _within_long(scope, value, lambda d: F.rint(d).cast("long"))
        return _float_to(scope, value, n)
    if isinstance(value.type, Decimal) and n is not None:
        return _decimal_to(value, value.type, n)
    raise NotCompilable(f"`round` of {value.type}")


def _within_long(
    scope: ColumnScope, value: ColumnValue, convert: Callable[[Column], Column]
) -> ColumnValue:
    number = scope.need(as_double(value))
    d = number.column
    column = F.when((d < 2.0**63) & (d >= -(2.0**63)), convert(d))
    return strict(column, LONG, number, number, doubtful=True)


def units(x: Column, digits: int) -> Column:
    """The float in units of its last digit, rounded, where `is_certain`."""
    power = F.lit(10.0**digits)
    # A product that looks like a half is one, or is just above or below it: then a quarter decides.
    half = F.abs(x * power % 1.0) == 0.5
    nearer = F.rint(x * power + F.signum(_excess(x, power)) * 0.25)
    return F.when(half, nearer).otherwise(F.rint(x * power))


def is_certain(x: Column, digits: int) -> Column:
    """True if `units` has bits left for halves."""
    return F.abs(x * 10.0**digits) < 2.0**51


def _float_to(scope: ColumnScope, value: ColumnValue, digits: int) -> ColumnValue:
    if digits > _MOST_DIGITS:
        raise NotCompilable(f"`round` to more than {_MOST_DIGITS} digits")
    number = scope.need(as_double(value))
    x = number.column
    told = F.when(is_certain(x, digits), units(x, digits) / 10.0**digits)
    # Beyond 52 bits all floats are whole.
    return strict(told.when(F.abs(x) >= 2.0**52, x), DOUBLE, *[number] * 11, doubtful=True)


def _excess(x: Column, power: Column) -> Column:
    """`x * power` exactly, minus the product as a float: the error of its rounding.

    The first 24 bits of x and the other 29, each times a power of 24 bits, are exact as floats; and
    so is the difference after the product is subtracted.
    """
    first = x.cast("float").cast("double")
    return (first * power - x * power) + (x - first) * power


def _decimal_to(value: ColumnValue, of: Decimal, digits: int) -> ColumnValue:
    to = Decimal(of.precision - of.scale + digits + 1, digits)
    if digits > of.scale or to.precision > _CONTEXT_DIGITS:
        raise NotCompilable(f"`round` of {of} to {digits} digits")
    x = value.column
    nearest = F.bround(x, digits).cast(str(to))
    # Python's decimals have a −0: the result for small negative ones.
    return strict(
        F.when((nearest != 0) | (x >= 0), nearest), to, value, value, value, doubtful=True
    )
