"""Python's divisions on Spark: rounded down, the remainder with the divisor's sign, a quotient of
integers exact.

`a / b` of two integers is the float nearest to the true quotient. Spark divides two floats instead,
which is the same while both are at most 2**53; beyond, the quotient is computed with 59 bits of
integers, the last of them odd where something is left over, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column

from hydro_core.spark.columns.dry import F
from hydro_core.spark.columns.integers import (
    as_long,
    bits,
    literal,
    may_be_none,
    multiply,
    slow,
    unless_none,
)
from hydro_core.spark.columns.scope import Scope
from hydro_core.spark.columns.value import NotCompilable, Value, Wide, computed, double, long
from hydro_core.types.item import LONG

_EXACT = 2**53
_DECIMAL = "decimal(38,0)"
_QUOTIENT_BITS = 58
_WIDEST = 126
_LONG_BITS = 62
"""A number that is at most 2 to the power of so many surely is a long."""


def true_divide(scope: Scope, a: Value, b: Value) -> Value:
    """`a / b` of two integers."""
    x, y = as_long(a), as_long(b)
    plain = _within(x) & _within(y) & (y.column != 0)
    exact_x, exact_y = slow(scope, x), slow(scope, y)
    partial = any(v.wide is not None and v.wide.partial for v in (x, y))
    if exact_x is None or exact_y is None or partial or bits(y) + _QUOTIENT_BITS + 2 > _WIDEST:
        raise NotCompilable("a quotient of integers that may pass 64 bits")
    zero = scope.fail("ZeroDivisionError", "division by zero")

    def of(top: Column, bottom: Column) -> Column:
        negative = F.when(bottom < 0, F.lit(-0.0)).otherwise(F.lit(0.0))
        nothing = F.when(bottom == 0, zero).when(top == 0, negative)
        return nothing.otherwise(_nearest_quotient(top, bottom))

    exact = _of_values(exact_x(), exact_y(), of)
    fast = x.column.cast("double") / y.column.cast("double")
    return double(F.when(plain, fast).otherwise(exact), a, b).with_(size=a.size + b.size + 40)


def floor_divide(scope: Scope, a: Value, b: Value) -> Value:
    """`a // b` of two integers."""
    x, y = as_long(a), as_long(b)
    fast = _floor_long(scope, x.column, y)
    size = 2 * (a.size + b.size) + 8
    wide: Wide | None
    if x.wide is not None or y.wide is not None:
        known = int(b.constant[0]).bit_length() - 1 if b.constant is not None else 0
        bound = max(bits(x) - max(known, 0), 0)
        operands = _exact_operands(scope, x, y)
        made = None
        if operands is not None and bits(y) <= 64:
            small = known > 0 and bound <= _LONG_BITS
            floor = _floor_of_small if small else _floor_decimal
            made = lambda: floor(scope, *operands)  # noqa: E731
        wide = Wide(bound, made, partial=bound > 62)
    elif b.constant is not None and b.constant[0] != -1:
        return long(scope.need(computed(fast, LONG, a, nullable=a.nullable)).column, a, b)
    else:
        # Only the smallest long by −1 passes 64 bits.
        only = F.lit(2**62).cast(_DECIMAL) * 2
        operands_ = (*may_be_none(x), *may_be_none(y))

        def exact() -> Column:
            passed = unless_none(scope, operands_, only).cast(_DECIMAL)
            return F.coalesce(fast.cast(_DECIMAL), passed)

        wide = Wide(63, exact, operands_, beyond=True)
    return computed(fast, LONG, a, b, wide=wide).with_(size=size)


def modulo(scope: Scope, a: Value, b: Value) -> Value:
    """`a % b` of two integers: it has 64 bits if `b` has."""
    x, y = as_long(a), as_long(b)
    fast = _modulo(scope, x.column, y.column, y)
    size = 2 * (a.size + b.size) + 8
    if x.wide is None and y.wide is None:
        nullable = a.nullable or b.nullable
        return long(scope.need(computed(fast, LONG, a, b, nullable=nullable)).column, a, b)
    operands = _exact_operands(scope, x, y)
    if operands is None:
        raise NotCompilable("a remainder of an integer that may pass 126 bits")
    wide = Wide(bits(y), lambda: _modulo(scope, *operands, y), fits=y.wide is None)
    return computed(fast, LONG, a, b, wide=wide).with_(size=size)


def power(scope: Scope, a: Value, exponent: Value) -> Value:
    """`a ** n` of an integer by a small constant n: a product."""
    n = exponent.constant[0] if exponent.constant is not None else None
    if not isinstance(n, int) or not 0 <= n <= 16:
        raise NotCompilable("`**` by anything but a small constant")
    if n == 0:
        raise NotCompilable("`** 0`")
    value = as_long(a)
    if n == 1 and value.wide is None:
        return scope.need(value, "an operand of `**`")
    base = value
    for _ in range(n - 1):
        value = multiply(scope, value, base)
    return value


def _within(value: Value) -> Column:
    if value.constant is not None:
        return F.lit(abs(value.constant[0]) <= _EXACT)
    return value.column.between(-_EXACT, _EXACT)


def _exact_operands(scope: Scope, x: Value, y: Value) -> tuple[Column, Column] | None:
    exact_x, exact_y = slow(scope, x), slow(scope, y)
    if exact_x is None or exact_y is None:
        return None
    if any(v.wide is not None and v.wide.partial for v in (x, y)):
        return None
    return exact_x(), exact_y()


def _checked(scope: Scope, divisor: Value, column: Column, otherwise: Column) -> Column:
    if divisor.constant is not None and divisor.constant[0] != 0:
        return otherwise
    zero = scope.fail("ZeroDivisionError", "integer division or modulo by zero")
    return F.when(column == 0, zero).otherwise(otherwise)


def _modulo(scope: Scope, a: Column, b: Column, divisor: Value) -> Column:
    known = divisor.constant[0] if divisor.constant is not None else None
    if known is not None and known > 0:
        return F.pmod(a, b)
    rest = a % b
    signed = rest + F.when((rest != 0) & ((rest < 0) != (b < 0)), b).otherwise(F.lit(0))
    return _checked(scope, divisor, b, signed)


def _floor_long(scope: Scope, a: Column, b: Value) -> Column:
    known = b.constant[0] if b.constant is not None else None
    rest = a % b.column
    off = (
        rest < 0
        if known is not None and known > 0
        else (rest != 0) & ((rest < 0) != (b.column < 0))
    )
    quotient = _whole(a, b.column) - F.when(off, literal(1)).otherwise(literal(0))
    if known is None or known == -1:
        quotient = F.when(b.column == -1, F.try_subtract(literal(0), a)).otherwise(quotient)
    return _checked(scope, b, b.column, quotient)


def _floor_decimal(scope: Scope, a: Column, b: Column) -> Column:
    zero = scope.fail("ZeroDivisionError", "integer division or modulo by zero")

    def of(a: Column, b: Column) -> Column:
        large = F.abs(a) >= F.abs(b) * _decimal(2**62)
        quotient = F.when(large, _large_quotient(scope, a, b)).otherwise(floor_of_decimals(a, b))
        return F.when(b == 0, zero).otherwise(quotient.cast(_DECIMAL))

    return _of_values(a, b, of)


def _floor_of_small(_: Scope, a: Column, b: Column) -> Column:
    """A quotient of less than 63 bits, by a constant that is not 0."""
    return _of_values(a, b, floor_of_decimals)


def _of_values(a: Column, b: Column, build: Callable[[Column, Column], Column]) -> Column:
    """What `build` makes of two columns that it reads many times, each written down once.

    Spark plans and compiles every copy of a column; the steps of an array have variables.
    """
    pair = F.array(F.struct(a.alias("a"), b.alias("b")))
    return F.get(F.transform(pair, lambda p: build(p.getField("a"), p.getField("b"))), F.lit(0))


def floor_of_decimals(a: Column, b: Column) -> Column:
    """The quotient, rounded down, of two decimals without fraction; it has 64 bits."""
    rest = a % b
    off = (rest != 0) & ((rest < 0) != (b < 0))
    return (_whole(a, b) - F.when(off, literal(1)).otherwise(literal(0))).cast(_DECIMAL)


def _large_quotient(scope: Scope, a: Column, b: Column) -> Column:
    """A quotient of 62 bits or more, which Spark's integer division may not hold."""
    beyond = scope.fail("OverflowError", "a quotient is an integer beyond 64 bits")
    small = F.abs(b) <= _decimal(2**62)
    far = F.when(small, F.abs(a) >= F.abs(b) * _decimal(2**62) * _decimal(4)).otherwise(
        F.lit(False)
    )
    # a = 4·b·coarse + left, so a // b = 4·coarse + left // b.
    coarse = _whole(a, b * _decimal(4)).cast(_DECIMAL)
    left = a - b * _decimal(4) * coarse
    whole = (coarse * _decimal(4) + floor_of_decimals(left, b)).cast(_DECIMAL)
    fits = whole.between(_decimal(-(2**63)), _decimal(2**63 - 1))
    return F.when(far, beyond).when(fits, whole).otherwise(beyond)


def _decimal(number: int) -> Column:
    return literal(number).cast(_DECIMAL)


def _whole(a: Column, b: Column) -> Column:
    return F.call_function("div", a, b)


def _nearest_quotient(a: Column, b: Column) -> Column:
    """The float nearest to a / b, of two decimals without fraction, b not 0.

    The code of it is kept short: Java does not compile methods of more than 8,000 bytes.
    """
    ratio = F.abs(a.cast("double") / b.cast("double"))
    # So many binary places give the quotient 57 to 60 bits. Of 0 there is no logarithm.
    places = F.coalesce(F.lit(_QUOTIENT_BITS) - F.floor(F.log2(ratio)), F.lit(0)).cast("int")
    numerator = (a * _power_of_two(places)).cast(_DECIMAL)
    denominator = (b * _power_of_two(-places)).cast(_DECIMAL)
    quotient = _whole(numerator, denominator)
    # Rounded towards 0, and a last bit that says whether something is left over.
    left_over = numerator - quotient.cast(_DECIMAL) * denominator
    away = (
        F.when(left_over == 0, literal(0))
        .when((a < 0) == (b < 0), literal(1))
        .otherwise(literal(-1))
    )
    return (quotient * 2 + away).cast("double") * F.pow(F.lit(2.0), (-places - 1).cast("double"))


def _power_of_two(exponent: Column) -> Column:
    """2 ** exponent, and 1 where the exponent is negative."""
    powers = F.array(*(F.lit(str(2**n)).cast(_DECIMAL) for n in range(_WIDEST + 1)))
    return F.get(powers, F.greatest(exponent, F.lit(0)))
