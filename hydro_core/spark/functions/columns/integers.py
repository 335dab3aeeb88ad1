"""Python's integers on Spark: longs, null where one would pass 64 bits or an operand is None."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import ColumnValue, NotCompilable, strict
from hydro_core.types.item import BOOLEAN, LONG, ItemType, Scalar, is_integer

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
_BITS = {"boolean": 1, "byte": 7, "short": 15, "integer": 31, "long": 63}

Combine = Callable[[Any, Any], Any]


def is_int(value: ColumnValue) -> bool:
    """Whether Python sees an int: a bool is one."""
    return not value.mixed and (value.type == BOOLEAN or is_integer_type(value))


def is_integer_type(value: ColumnValue) -> bool:
    """Whether it is an integer, and no boolean."""
    return isinstance(value.type, ItemType) and is_integer(value.type)


def as_long(value: ColumnValue) -> ColumnValue:
    """The same integer in 64 bits; null stays null."""
    if value.type == LONG:
        return value
    return value.with_(column=value.column.cast("long"), type=LONG, constant=None, path=None)


def literal(number: int) -> Column:
    """A constant of 64 bits."""
    return F.lit(number).cast("long")


def add(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a + b`."""
    return _combine(a, b, operator.add, F.try_add, max(_bits(a), _bits(b)) + 1)


def subtract(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a - b`."""
    return _combine(a, b, operator.sub, F.try_subtract, max(_bits(a), _bits(b)) + 1)


def multiply(a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a * b`."""
    return _combine(a, b, operator.mul, F.try_multiply, _bits(a) + _bits(b))


def negate(a: ColumnValue) -> ColumnValue:
    """`-a`."""
    return subtract(constant(0), a)


def absolute(a: ColumnValue) -> ColumnValue:
    """`abs(a)`."""
    a = as_long(a)
    return strict(F.when(a.column != LONG_MIN, F.abs(a.column)), LONG, a, a, doubtful=True)


def constant(number: int) -> ColumnValue:
    """A constant."""
    if not LONG_MIN <= number <= LONG_MAX:
        raise NotCompilable("a constant is beyond 64 bits")
    return ColumnValue(literal(number), LONG, nullable=False, constant=(number,))


def bitwise(op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a & b`, `a | b`, `a ^ b`: of two booleans a boolean."""
    operations: dict[str, Callable[[Column, Column], Column]] = {
        "&": lambda x, y: x.bitwiseAND(y),
        "|": lambda x, y: x.bitwiseOR(y),
        "^": lambda x, y: x.bitwiseXOR(y),
    }
    if a.type == b.type == BOOLEAN:
        # Spark's AND and OR would leave out the second where the first decides.
        bits = operations[op](a.column.cast("int"), b.column.cast("int"))
        return strict(bits == 1, BOOLEAN, a, b)
    return strict(operations[op](as_long(a).column, as_long(b).column), LONG, a, b)


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
    """The value is at most 2**bits in either direction."""
    if value.constant is not None:
        return int(value.constant[0]).bit_length()
    return _BITS[value.type.name] if isinstance(value.type, Scalar) else _BITS["long"]
