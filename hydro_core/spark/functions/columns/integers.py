"""Python's integers on Spark: longs, null where one would exceed 64 bits or an operand is None.

Divisions are rounded down, the remainder has the divisor's sign; division of floats is here, too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns.value import ColumnScope, ColumnValue, NotCompilable, strict
from hydro_core.types.item import BOOLEAN, DOUBLE, LONG, ItemType, is_integer

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
_BITS = {"boolean": 1, "byte": 7, "short": 15, "integer": 31, "long": 63}

Combine = Callable[[Any, Any], Any]


def is_int(value: ColumnValue) -> bool:
    """True if the value is an int in Python: a bool is one."""
    return not value.mixed and (value.type == BOOLEAN or is_integer_type(value))


def is_integer_type(value: ColumnValue) -> bool:
    """True for an integer that is no boolean."""
    return isinstance(value.type, ItemType) and is_integer(value.type)


def as_long(value: ColumnValue) -> ColumnValue:
    """The same integer in 64 bits; null stays null."""
    if value.type == LONG:
        return value
    return value.with_(column=value.column.cast("long"), type=LONG, constant=None, path=None)


def literal(number: int) -> Column:
    return F.lit(number).cast("long")


def add(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    return _combine(a, b, operator.add, F.try_add, max(_bits(a), _bits(b)) + 1)


def subtract(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    return _combine(a, b, operator.sub, F.try_subtract, max(_bits(a), _bits(b)) + 1)


def multiply(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    return _combine(a, b, operator.mul, F.try_multiply, _bits(a) + _bits(b))


def absolute(a: ColumnValue) -> ColumnValue:
    a = as_long(a)
    return strict(F.when(a.column != LONG_MIN, F.abs(a.column)), LONG, a, a, doubtful=True)


def constant(number: int) -> ColumnValue:
    if not LONG_MIN <= number <= LONG_MAX:
        raise NotCompilable("a constant is beyond 64 bits")
    return ColumnValue(literal(number), LONG, nullable=False, constant=(number,))


def bitwise(op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a & b`, `a | b`, `a ^ b`: of two booleans a boolean."""
    names = {"&": "bitwiseAND", "|": "bitwiseOR", "^": "bitwiseXOR"}
    # Spark's AND and OR would not evaluate the second boolean where the first decides.
    booleans = a.type == b.type == BOOLEAN
    x, y = (v.column.cast("int") if booleans else as_long(v).column for v in (a, b))
    bits = getattr(x, names[op])(y)
    return strict(bits == 1, BOOLEAN, a, b) if booleans else strict(bits, LONG, a, b)


def shift(op: str, a: ColumnValue, n: ColumnValue) -> ColumnValue:
    """`a << n` and `a >> n` by a constant n."""
    by = n.constant[0] if n.constant is not None else None
    if not isinstance(by, int):
        raise NotCompilable("a shift by a computed number")
    if by < 0:
        raise NotCompilable("a negative shift")
    if op == ">>":
        return strict(F.shiftright(as_long(a).column, min(by, 63)), LONG, a)
    if by >= 63:
        raise NotCompilable("a shift by 63 or more")
    return multiply(a, constant(2**by))


def bound(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """An index or another bound, a long that is not None."""
    return scope.need(as_long(value))


def _combine(
    a: ColumnValue, b: ColumnValue, plain: Combine, tried: Combine, bits: int
) -> ColumnValue:
    if a.constant is not None and b.constant is not None:
        return constant(plain(int(a.constant[0]), int(b.constant[0])))
    x, y = as_long(a), as_long(b)
    may_overflow = bits > _BITS["long"]
    combine = tried if may_overflow else plain
    return strict(combine(x.column, y.column), LONG, x, y, doubtful=may_overflow)


def _bits(value: ColumnValue) -> int:
    """An exponent b: the value is at most 2**b in absolute value."""
    if value.constant is not None:
        return int(value.constant[0]).bit_length()
    return _BITS.get(str(value.type), _BITS["long"])


EXACT = 2**53
"""Integers up to this bound are exact as floats, and so is the nearest float to a quotient."""


def true_divide(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a / b`: for larger integers Spark, which divides floats, would round twice."""
    x, y = as_long(a), as_long(b)
    quotient = F.try_divide(x.column.cast("double"), y.column.cast("double"))
    column = F.when(_within(a, x.column) & _within(b, y.column), quotient)
    return strict(column, DOUBLE, a, b, doubtful=True).with_(size=2 * (a.size + b.size) + 4)


def floor_divide(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    x, y = as_long(a).column, _divisor(b)
    known, rest = _known(b), x % y
    off = rest < 0 if known is not None and known > 0 else _is_off(rest, y)
    column = F.call_function("div", x, y) - F.when(off, literal(1)).otherwise(literal(0))
    if known in (None, -1):
        # Only the smallest long by −1 passes 64 bits.
        column = F.when(y == -1, F.try_subtract(literal(0), x)).otherwise(column)
    return _divided(column, a, b, doubtful=known in (None, -1))


def modulo(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    x, y, known = as_long(a).column, _divisor(b), _known(b)
    if known is not None and known > 0:
        return strict(F.pmod(x, y), LONG, a, b)
    rest = x % y
    column = rest + F.when(_is_off(rest, y), y).otherwise(literal(0))
    return _divided(column, a, b, doubtful=known is None)


def float_floor_divide(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a // b` of floats: the quotient of the dividend without the remainder, which is nearly
    whole.
    """
    x, y = a.column, b.column
    rest = x % y
    whole = (x - rest) / y
    whole = F.when((rest != 0.0) & ((rest < 0.0) != (y < 0.0)), whole - 1.0).otherwise(whole)
    # For 0 Python gives the sign of the quotient, and never −0 for a quotient near 0.
    near = F.when(whole == 0.0, x / y * 0.0).otherwise(F.rint(whole) + 0.0)
    # Beyond 52 bits all floats are whole; just before, some are halfway.
    is_certain = (F.abs(whole) < 2.0**51) | (F.abs(whole) >= 2.0**52)
    column = F.when(y != 0.0, F.when(is_certain, near))
    return strict(column, DOUBLE, *[a, b] * 20, doubtful=True)


def float_modulo(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a % b` of floats: with the sign of the divisor, that of zero too."""
    x, y = a.column, b.column
    rest = x % y
    zero = F.when(y < 0.0, F.lit(-0.0)).otherwise(F.lit(0.0))
    other = F.when((rest < 0.0) != (y < 0.0), rest + y).otherwise(rest)
    column = F.when(rest == 0.0, zero).otherwise(other)
    may_be_zero = b.constant is None or b.constant[0] == 0
    column = F.when(y != 0.0, column) if may_be_zero else column
    return strict(column, DOUBLE, a, b, a, b, doubtful=may_be_zero)


def power(scope: ColumnScope, a: ColumnValue, exponent: ColumnValue) -> ColumnValue:
    """`a ** n` of an integer by a small constant n: a product."""
    n = exponent.constant[0] if exponent.constant is not None else None
    if a.constant is not None and isinstance(n, int) and 0 <= n <= 64:
        return constant(int(a.constant[0]) ** n)
    if not isinstance(n, int) or not 0 < n <= 16:
        raise NotCompilable("`**` by anything but a small constant")
    value = base = as_long(scope.need(a))
    for _ in range(n - 1):
        value = multiply(value, base)
    return value


def _divided(column: Column, a: ColumnValue, b: ColumnValue, *, doubtful: bool) -> ColumnValue:
    return strict(column, LONG, a, b, doubtful=doubtful).with_(size=2 * (a.size + b.size) + 8)


def _known(divisor: ColumnValue) -> int | None:
    """The divisor, if it is a constant and not 0."""
    return int(divisor.constant[0]) or None if divisor.constant is not None else None


def _divisor(value: ColumnValue) -> Column:
    """The divisor; null where it is 0."""
    column = as_long(value).column
    return column if _known(value) is not None else F.nullif(column, literal(0))


def _is_off(rest: Column, divisor: Column) -> Column:
    """True where the quotient, which Spark rounds towards 0, must be one less."""
    return (rest != 0) & ((rest < 0) != (divisor < 0))


def _within(value: ColumnValue, number: Column) -> Column:
    if value.constant is not None:
        return F.lit(abs(value.constant[0]) <= EXACT)
    return number.between(-EXACT, EXACT)
