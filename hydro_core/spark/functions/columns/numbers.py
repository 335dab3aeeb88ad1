"""Arithmetic on Spark: which numbers meet which, floats and decimals as Python computes them.

Decimals follow Python's default context of 28 digits: of a result with more digits, which Python
rounds, Python is asked.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import division, integers, structs
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import ColumnValue, NotCompilable, computed, strict
from hydro_core.types.item import BOOLEAN, DOUBLE, Decimal, Scalar

_CONTEXT_DIGITS = 28
_SPARK_DIGITS = 38


def is_float(value: ColumnValue) -> bool:
    """Whether Python sees a float."""
    return (
        isinstance(value.type, Scalar)
        and value.type.name in ("float", "double")
        and not value.mixed
    )


def is_decimal(value: ColumnValue) -> bool:
    """Whether Python sees a Decimal."""
    return isinstance(value.type, Decimal)


def is_number(value: ColumnValue) -> bool:
    """Whether Python calculates with it."""
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
    """The number as a double that may stand for an int: then it has 53 bits."""
    if value.mixed or is_float(value):
        return as_double(value)
    if value.constant is not None and abs(value.constant[0]) <= division.EXACT:
        return as_double(value)
    number = scope.sure(value).column
    held = number.cast("long").between(-division.EXACT, division.EXACT) | number.isNull()
    column = F.when(held, number.cast("double")).otherwise(scope.ask())
    return computed(column, DOUBLE, value, value, nullable=value.nullable)


def arithmetic(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a op b` of two numbers."""
    if integers.is_int(a) and integers.is_int(b):
        return _of_integers(scope, op, a, b)
    if is_decimal(a) or is_decimal(b):
        return _of_decimals(op, a, b)
    if a.mixed or b.mixed:
        return _of_mixed(scope, op, a, b)
    return _of_floats(op, as_double(a), as_double(b))


def minus(a: ColumnValue) -> ColumnValue:
    """`-a`."""
    if integers.is_int(a):
        return integers.negate(a)
    if a.constant is not None and is_float(a):
        return ColumnValue(
            F.lit(-a.constant[0]), DOUBLE, nullable=False, constant=(-a.constant[0],)
        )
    return strict(-a.column, _float_or_decimal(a), a)


def absolute(a: ColumnValue) -> ColumnValue:
    """`abs(a)`."""
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


_OF_INTEGERS: dict[str, Callable[[ColumnValue, ColumnValue], ColumnValue]] = {
    "+": integers.add,
    "-": integers.subtract,
    "*": integers.multiply,
    "/": division.true_divide,
    "//": division.floor_divide,
    "%": division.modulo,
}


def _of_integers(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    if op in _OF_INTEGERS:
        return _OF_INTEGERS[op](a, b)
    if op == "**":
        return division.power(scope, a, b)
    return integers.shift(op, a, b) if op in ("<<", ">>") else integers.bitwise(op, a, b)


def _of_floats(op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    x, y = a.column, b.column
    may_be_zero = b.constant is None or b.constant[0] == 0
    match op:
        case "+":
            return strict(x + y, DOUBLE, a, b)
        case "-":
            return strict(x - y, DOUBLE, a, b)
        case "*":
            return strict(x * y, DOUBLE, a, b)
        case "/":
            return strict(F.try_divide(x, y), DOUBLE, a, b, doubtful=may_be_zero)
        case "%":
            return division.float_modulo(a, b)
        case "//":
            return division.float_floor_divide(a, b)
        case _:
            raise NotCompilable(f"`{op}` of floats")


def _of_mixed(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """An int for some items, a float for others: the same while floats hold the ints."""
    if op not in ("+", "-", "*", "/"):
        raise NotCompilable("an operand is an int for some items and a float for others")
    x, y = (as_mixed(scope, v).with_(mixed=False) for v in (a, b))
    result = _of_floats(op, x, y)
    if op == "/" or is_float(a) or is_float(b):
        return result
    held = F.abs(result.column) <= float(division.EXACT)
    # A float may be −0, an int never.
    held = held & (result.column != 0.0) if op == "*" else held
    column = F.when(held, result.column)
    return strict(column, DOUBLE, result, result, doubtful=True).with_(mixed=True)


def _of_decimals(op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    left, right = _decimal_type(a), _decimal_type(b)
    match op:
        case "+" | "-":
            scale = max(left.scale, right.scale)
            whole = max(left.precision - left.scale, right.precision - right.scale)
            type_ = Decimal(whole + scale + 1, scale)
        case "*":
            scale = left.scale + right.scale
            type_ = Decimal(left.precision + right.precision, scale)
        case _:
            raise NotCompilable(f"`{op}` of decimals")
    if max(left.precision, right.precision, type_.precision) >= _SPARK_DIGITS or (
        type_.scale > _CONTEXT_DIGITS
    ):
        raise NotCompilable("a decimal of more digits than Spark keeps")
    x, y = _as_decimal(a, left), _as_decimal(b, right)
    column = {"+": x + y, "-": x - y, "*": x * y}[op]
    column = column.cast(f"decimal({type_.precision},{type_.scale})")
    if type_.precision <= _CONTEXT_DIGITS:
        return strict(column, type_, a, b)
    least = F.lit(f"1{'0' * (_CONTEXT_DIGITS - type_.scale)}").cast("decimal(38,0)")
    return strict(F.when(F.abs(column) < least, column), type_, a, b, a, b, doubtful=True)


def _as_decimal(value: ColumnValue, to: Decimal) -> Column:
    """The number as a decimal that surely holds it; null stays null."""
    return value.column.cast(f"decimal({to.precision},{to.scale})")


def _decimal_type(value: ColumnValue) -> Decimal:
    if isinstance(value.type, Decimal):
        return value.type
    if not integers.is_int(value) or value.type == BOOLEAN:
        raise NotCompilable(f"a decimal and {value.type} do not meet in Python")
    if value.constant is not None:
        return Decimal(len(str(abs(value.constant[0]))), 0)
    return Decimal(structs.DIGITS[str(value.type)], 0)
