"""Arithmetic on Spark: which numbers meet which, floats and decimals as Python computes them.

Decimals follow Python's default context of 28 digits: an operation whose digits may pass that is
refused, since Python rounds there.
"""

from __future__ import annotations

from pyspark.sql import Column

from hydro_core.spark.columns import division, integers, structs
from hydro_core.spark.columns.dry import F
from hydro_core.spark.columns.scope import Scope
from hydro_core.spark.columns.value import NotCompilable, Value, computed, double
from hydro_core.types.item import BOOLEAN, DOUBLE, Decimal, Scalar

_CONTEXT_DIGITS = 28
_FLOAT_BITS = 53


def is_float(value: Value) -> bool:
    """Whether Python sees a float."""
    return (
        isinstance(value.type, Scalar)
        and value.type.name in ("float", "double")
        and not value.mixed
    )


def is_decimal(value: Value) -> bool:
    """Whether Python sees a Decimal."""
    return isinstance(value.type, Decimal)


def is_number(value: Value) -> bool:
    """Whether Python calculates with it."""
    return integers.is_int(value) or is_float(value) or is_decimal(value) or bool(value.mixed)


def as_double(scope: Scope, value: Value) -> Value:
    """The number as a float; null stays null unless it is a computed integer."""
    if value.type == DOUBLE:
        return value
    if is_float(value):
        return value.with_(column=value.column.cast("double"), type=DOUBLE, path=None)
    if not integers.is_int(value):
        raise NotCompilable(f"{value.type} and float do not meet in Python")
    if value.constant is not None:
        number = float(value.constant[0])
        return Value(F.lit(number), DOUBLE, nullable=False, constant=(number,))
    if value.wide is not None:
        column = integers.either(scope, (value,), lambda x: x.cast("double"))
        return double(column, value)
    column = integers.as_long(value).column.cast("double")
    return value.with_(column=column, type=DOUBLE, path=None)


def arithmetic(scope: Scope, op: str, a: Value, b: Value) -> Value:
    """`a op b` of two numbers."""
    if integers.is_int(a) and integers.is_int(b):
        return _of_integers(scope, op, a, b)
    if is_decimal(a) or is_decimal(b):
        return _of_decimals(scope, op, a, b)
    if a.mixed or b.mixed:
        return _of_mixed(scope, op, a, b)
    return _of_floats(scope, op, as_double(scope, a), as_double(scope, b))


def minus(scope: Scope, a: Value) -> Value:
    """`-a`."""
    if integers.is_int(a):
        return integers.negate(scope, a)
    if a.constant is not None and is_float(a):
        return Value(F.lit(-a.constant[0]), DOUBLE, nullable=False, constant=(-a.constant[0],))
    return computed(-scope.need(a, "the operand of `-`").column, _float_or_decimal(a), a)


def absolute(scope: Scope, a: Value) -> Value:
    """`abs(a)`."""
    if integers.is_int(a):
        return integers.absolute(scope, a)
    if a.mixed:
        raise NotCompilable("`abs` of an int for some items and a float for others")
    return computed(F.abs(scope.need(a, "the operand of `abs`").column), _float_or_decimal(a), a)


def _float_or_decimal(a: Value) -> Scalar | Decimal:
    if is_float(a):
        return DOUBLE
    if isinstance(a.type, Decimal) and a.type.precision <= _CONTEXT_DIGITS:
        return a.type
    raise NotCompilable(f"arithmetic of {a.type}")


def _of_integers(scope: Scope, op: str, a: Value, b: Value) -> Value:  # noqa: PLR0911
    match op:
        case "+":
            return integers.add(scope, a, b)
        case "-":
            return integers.subtract(scope, a, b)
        case "*":
            return integers.multiply(scope, a, b)
        case "/":
            return division.true_divide(scope, a, b)
        case "//":
            return division.floor_divide(scope, a, b)
        case "%":
            return division.modulo(scope, a, b)
        case "**":
            return division.power(scope, a, b)
        case "&" | "|" | "^":
            return integers.bitwise(scope, op, a, b)
        case _:
            by = b.constant[0] if b.constant is not None else None
            if not isinstance(by, int):
                raise NotCompilable("a shift by a computed number")
            return integers.shift(scope, op, a, by)


def _of_floats(scope: Scope, op: str, a: Value, b: Value) -> Value:
    x, y = scope.need(a, "an operand").column, scope.need(b, "an operand").column
    match op:
        case "+":
            return double(x + y, a, b)
        case "-":
            return double(x - y, a, b)
        case "*":
            return double(x * y, a, b)
        case "/":
            return double(_unless_zero(scope, b, y, x / y), a, b)
        case "%":
            return double(_unless_zero(scope, b, y, _float_modulo(x, y)), a, b, a, b)
        case _:
            raise NotCompilable(f"`{op}` of floats")


def _of_mixed(scope: Scope, op: str, a: Value, b: Value) -> Value:
    """An int for some items, a float for others: the same while floats hold the ints."""
    bounds = [v.mixed or (0 if is_float(v) else integers.bits(v)) for v in (a, b)]
    bound = sum(bounds) if op == "*" else max(bounds) + 1
    if op not in ("+", "-", "*", "/") or max(bound, *bounds) > _FLOAT_BITS:
        raise NotCompilable("an operand is an int for some items and a float for others")
    x, y = (v.with_(mixed=0) if v.mixed else as_double(scope, v) for v in (a, b))
    result = _of_floats(scope, op, x, y)
    return result if op == "/" or is_float(a) or is_float(b) else result.with_(mixed=bound)


def _unless_zero(scope: Scope, b: Value, divisor: Column, otherwise: Column) -> Column:
    if b.constant is not None and b.constant[0] != 0:
        return otherwise
    zero = scope.fail("ZeroDivisionError", "float division by zero")
    return F.when(divisor == 0.0, zero).otherwise(otherwise)


def _float_modulo(x: Column, y: Column) -> Column:
    """A remainder with the sign of the divisor, that of zero too."""
    rest = x % y
    zero = F.when(y < 0.0, F.lit(-0.0)).otherwise(F.lit(0.0))
    other = F.when((rest < 0.0) != (y < 0.0), rest + y).otherwise(rest)
    return F.when(rest == 0.0, zero).otherwise(other)


def _of_decimals(scope: Scope, op: str, a: Value, b: Value) -> Value:
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
    if max(left.precision, right.precision, type_.precision) > _CONTEXT_DIGITS:
        raise NotCompilable("a decimal of more digits than Python's context keeps")
    x, y = as_decimal(scope, a, left), as_decimal(scope, b, right)
    column = {"+": x + y, "-": x - y, "*": x * y}[op]
    return computed(column.cast(f"decimal({type_.precision},{type_.scale})"), type_, a, b)


def as_decimal(scope: Scope, value: Value, to: Decimal) -> Column:
    """The number, never null, as a decimal that surely holds it."""
    exact = (
        integers.exactly(scope, value)
        if integers.is_int(value)
        else scope.need(value, "an operand")
    )
    return exact.column.cast(f"decimal({to.precision},{to.scale})")


def _decimal_type(value: Value) -> Decimal:
    if isinstance(value.type, Decimal):
        return value.type
    if not integers.is_int(value) or value.type == BOOLEAN:
        raise NotCompilable(f"a decimal and {value.type} do not meet in Python")
    if value.constant is not None:
        return Decimal(len(str(abs(value.constant[0]))), 0)
    return Decimal(structs.DIGITS[str(value.type)], 0)
