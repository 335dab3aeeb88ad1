"""Python's integers on Spark: exact, of any width on the way, of 64 bits as a result.

An expression of integers is two columns. The fast one computes with longs and is null where it
cannot tell: a result passed 64 bits, or an operand is None. The slow one is only evaluated for
those rows: it computes with decimals of 38 digits, which hold every sum and product of two longs,
and fails where Python fails. `result` and `narrow` end such an expression; comparisons, divisions
and texts read both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from pyspark.sql import Column

from hydro_core.spark.columns.dry import F
from hydro_core.spark.columns.scope import Scope
from hydro_core.spark.columns.value import NotCompilable, Value, Wide, computed, long
from hydro_core.types.item import BOOLEAN, LONG, ItemType, Scalar, is_integer

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
_BITS = {"boolean": 1, "byte": 7, "short": 15, "integer": 31, "long": 63}
_MOST = 10**38 - 1
"""The largest decimal."""
_DECIMAL = "decimal(38,0)"


def is_int(value: Value) -> bool:
    """Whether Python sees an int: a bool is one."""
    return not value.mixed and (value.type == BOOLEAN or is_integer_type(value))


def is_integer_type(value: Value) -> bool:
    """Whether it is an integer, and no boolean."""
    return isinstance(value.type, ItemType) and is_integer(value.type)


def as_long(value: Value) -> Value:
    """The same integer in 64 bits; null stays null."""
    if value.type == LONG:
        return value
    return value.with_(column=value.column.cast("long"), type=LONG, constant=None, path=None)


def literal(number: int) -> Column:
    """A constant of 64 bits."""
    return F.lit(number).cast("long")


def bits(value: Value) -> int:
    """A bound: the value is at most 2**bits in either direction."""
    if value.wide is not None:
        return value.wide.bits
    if value.constant is not None:
        return max(int(value.constant[0]).bit_length(), 0)
    return _BITS[value.type.name] if isinstance(value.type, Scalar) else 63


def slow(scope: Scope, value: Value) -> Callable[[], Column] | None:
    """The exact value as a decimal; it fails where an operand is None."""
    if value.wide is not None:
        return value.wide.slow
    narrow_value = as_long(value)
    return lambda: scope.need(narrow_value, "an operand").column.cast(_DECIMAL)


def add(scope: Scope, a: Value, b: Value) -> Value:
    """`a + b`."""
    return _combine(scope, a, b, F.try_add, lambda x, y: x + y, 2 ** bits(a) + 2 ** bits(b))


def subtract(scope: Scope, a: Value, b: Value) -> Value:
    """`a - b`."""
    return _combine(scope, a, b, F.try_subtract, lambda x, y: x - y, 2 ** bits(a) + 2 ** bits(b))


def multiply(scope: Scope, a: Value, b: Value) -> Value:
    """`a * b`; a product of several is beyond 64 bits for good once it is, unless a factor is 0."""
    value = _combine(scope, a, b, F.try_multiply, lambda x, y: x * y, 2 ** (bits(a) + bits(b)))
    factors = [*_factors(a), *_factors(b)]
    wide = value.wide
    if wide is None or any(f is None for f in factors):
        return value
    known = tuple(f for f in factors if f is not None)
    return value.with_(wide=Wide(wide.bits, wide.slow, wide.operands, known, wide.beyond))


def negate(scope: Scope, a: Value) -> Value:
    """`-a`."""
    return subtract(scope, constant(0), a)


def absolute(scope: Scope, a: Value) -> Value:
    """`abs(a)`."""
    a = as_long(a)
    fast = F.when(a.column == LONG_MIN, F.lit(None)).otherwise(F.abs(a.column))
    exact = slow(scope, a)
    made = None if exact is None else (lambda: F.abs(exact()))
    return _wide(fast, (a,), Wide(bits(a), made, may_be_none(a), beyond=a.wide is None))


def constant(number: int) -> Value:
    """A constant."""
    if not LONG_MIN <= number <= LONG_MAX:
        raise NotCompilable("a constant is beyond 64 bits")
    return Value(literal(number), LONG, nullable=False, constant=(number,))


def result(scope: Scope, value: Value) -> Value:
    """The integer as a result of the function: beyond 64 bits it fails the tick."""
    if value.wide is None:
        return value
    wide = value.wide
    beyond = scope.fail("OverflowError", "the result is an integer beyond 64 bits")
    if wide.beyond:
        last = unless_none(scope, wide.operands, beyond)
    elif wide.slow is not None:
        exact = wide.slow()
        last = F.when(exact.between(*_limits()), exact.cast("long")).otherwise(beyond)
    elif wide.factors:
        last = unless_none(scope, wide.operands, _product_beyond(wide.factors, beyond))
    else:
        raise NotCompilable("an integer on the way to the result may pass 126 bits")
    return long(F.coalesce(value.column, last), value)


def narrow(scope: Scope, value: Value) -> Value:
    """The integer where Python itself fails beyond 64 bits (an index, a number of days)."""
    value = as_long(value)
    if value.wide is None:
        return scope.need(value, "an integer")
    return result(scope, value).with_(size=value.size + 2)


def exactly(scope: Scope, value: Value) -> Value:
    """The integer as a long where it surely is one; refused where it may be wider."""
    if value.wide is None:
        return scope.need(as_long(value), "an operand")
    if not value.wide.fits and (value.wide.bits > 62 or value.wide.partial):
        raise NotCompilable("an integer that is not a result may pass 64 bits")
    return result(scope, value)


def either(scope: Scope, of: tuple[Value, ...], build: Callable[..., Column]) -> Column:
    """What `build` makes of the longs, or, where it gives null, of the exact decimals."""
    fast = build(*(as_long(v).column for v in of))
    if not any(v.wide or v.nullable for v in of):
        return fast
    exact = [slow(scope, v) for v in of]
    if any(e is None for e in exact) or any(v.wide and v.wide.partial for v in of):
        raise NotCompilable("an integer that is not a result may pass 126 bits")
    return F.coalesce(fast, build(*(e() for e in exact if e is not None)))


def bitwise(scope: Scope, op: str, a: Value, b: Value) -> Value:
    """`a & b`, `a | b`, `a ^ b`: of two booleans a boolean."""
    operations: dict[str, Callable[[Column, Column], Column]] = {
        "&": lambda x, y: x.bitwiseAND(y),
        "|": lambda x, y: x.bitwiseOR(y),
        "^": lambda x, y: x.bitwiseXOR(y),
    }
    if a.type == b.type == BOOLEAN:
        # Spark's AND and OR would leave out the second where the first decides.
        x, y = (scope.need(v, "an operand").column.cast("int") for v in (a, b))
        return computed(operations[op](x, y) == 1, BOOLEAN, a, b)
    x, y = exactly(scope, a).column, exactly(scope, b).column
    return long(operations[op](x, y), a, b)


def shift(scope: Scope, op: str, a: Value, by: int) -> Value:
    """`a << n` and `a >> n` by a constant n."""
    if by < 0:
        raise NotCompilable("a negative shift")
    if op == "<<":
        return multiply(scope, a, constant(2**by)) if by < 63 else _refuse_shift()
    return long(F.shiftright(exactly(scope, a).column, min(by, 63)), a)


def choose(scope: Scope, test: Column, a: Value, b: Value) -> Value:
    """`a if test else b` of two integers, one of them wide."""
    x, y = as_long(a), as_long(b)
    fast = F.when(test, x.column).otherwise(y.column)
    if (x.nullable and x.wide is None) or (y.nullable and y.wide is None):
        raise NotCompilable("a choice between None and an integer that may pass 64 bits")
    exact_x, exact_y = slow(scope, x), slow(scope, y)
    made = None
    if exact_x is not None and exact_y is not None:
        made = lambda: F.when(test, exact_x()).otherwise(exact_y())  # noqa: E731
    partial = any(v.wide is not None and v.wide.partial for v in (x, y))
    return _wide(fast, (a, b), Wide(max(bits(x), bits(y)), made, partial=partial))


def _combine(
    scope: Scope,
    a: Value,
    b: Value,
    fast: Callable[[Column, Column], Column],
    exact: Callable[[Any, Any], Any],
    bound: int,
) -> Value:
    if a.constant is not None and b.constant is not None:
        return constant(exact(int(a.constant[0]), int(b.constant[0])))
    x, y = as_long(a), as_long(b)
    wide = Wide(
        (bound - 1).bit_length(),
        _slow_of(scope, x, y, exact, bound),
        (*may_be_none(x), *may_be_none(y)),
        beyond=x.wide is None and y.wide is None,
    )
    return _wide(fast(x.column, y.column), (a, b), wide)


def _slow_of(
    scope: Scope, x: Value, y: Value, exact: Callable[[Any, Any], Any], bound: int
) -> Callable[[], Column] | None:
    left, right = slow(scope, x), slow(scope, y)
    partial = any(v.wide is not None and v.wide.partial for v in (x, y))
    if left is None or right is None or partial or bound > _MOST:
        return None
    # Spark gives the sum of two decimals a digit less after 38; a cast states that it fits.
    return lambda: exact(left(), right()).cast(_DECIMAL)


def _wide(fast: Column, of: tuple[Value, ...], wide: Wide) -> Value:
    # The column is null exactly where it cannot tell, never because the value is None.
    return computed(fast, LONG, *of, wide=wide)


def _product_beyond(factors: tuple[Column, ...], beyond: Column) -> Column:
    """A product that passed 64 bits on the way: 0, or the smallest long, or it stays beyond."""
    zero = reduce(lambda x, y: x | y, [f == 0 for f in factors])
    # Only powers of two make ±2**63, and of these the product of floats is exact.
    powers = reduce(lambda x, y: x & y, [_is_power_of_two(f) for f in factors])
    smallest = reduce(lambda x, y: x * y, [f.cast("double") for f in factors]) == -(2.0**63)
    return F.when(zero, literal(0)).when(powers & smallest, literal(LONG_MIN)).otherwise(beyond)


def _is_power_of_two(number: Column) -> Column:
    negative = F.try_subtract(literal(0), number)
    lowest = number.bitwiseAND(negative)
    # The smallest long has no negative.
    return F.coalesce((number == lowest) | (negative == lowest), F.lit(True))


def may_be_none(value: Value) -> tuple[Column, ...]:
    """The operands that may be None, of which the integer is computed."""
    if value.wide is not None:
        return value.wide.operands
    return (value.column,) if value.nullable else ()


def _factors(value: Value) -> tuple[Column | None, ...]:
    if value.wide is None:
        return (value.column.cast("long"),)
    return value.wide.factors or (None,)


def unless_none(scope: Scope, operands: tuple[Column, ...], otherwise: Column) -> Column:
    """`otherwise`, unless an operand is None, which fails."""
    if not operands:
        return otherwise
    missing = reduce(lambda x, y: x | y, [o.isNull() for o in operands])
    return F.when(missing, scope.fail("TypeError", "an operand is None")).otherwise(otherwise)


def _limits() -> tuple[Column, Column]:
    return literal(LONG_MIN).cast(_DECIMAL), literal(LONG_MAX).cast(_DECIMAL)


def _refuse_shift() -> Value:
    raise NotCompilable("a shift by 63 or more")
