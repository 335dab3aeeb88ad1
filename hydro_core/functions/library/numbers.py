"""Numbers: builtins that make numbers, their methods and properties, and `math`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal as DecimalValue
from decimal import InvalidOperation
from typing import Any

from hydro_core.functions.kinds import ANY, TIMEDELTA, ExprType, computed_of, is_open, number
from hydro_core.functions.library import entry
from hydro_core.functions.library.entry import (
    ANYTHING,
    NUMBER,
    REAL,
    TEXT,
    WHOLE,
    Budget,
    CallSite,
    CallTyping,
    Column,
    Expression,
    Members,
    Operation,
    Parameter,
    check_places,
    method,
    no_call,
    optional,
    read,
    same,
    several,
)
from hydro_core.types.common import as_decimal, fit_decimal, type_of
from hydro_core.types.item import BINARY, BOOLEAN, DOUBLE, LONG, STRING, Decimal

_LEAST = -(2**63)
_EXACT = 2.0**53
_INFINITE = float("inf")
_WIDE = Decimal(38, 18)
_IN_CONTEXT = optional(ANYTHING)
_DECIMAL = Parameter("a decimal", lambda kind: isinstance(kind, Decimal) or WHOLE.fits(kind))


# Bounds of results of constants.


def _scaled(_: Budget, args: list[Any]) -> None:
    given = (abs(int(a)) for a in args[1:] if isinstance(a, int | DecimalValue))
    check_places(max(given, default=0))


def _round(limits: Budget, args: list[Any]) -> None:
    if len(args) > 1 and isinstance(args[1], int):
        check_places(abs(args[1]))


# the types of calls


def _of_abs(site: CallSite) -> ExprType:
    site.count(1, 1)
    kind = site.args[0]
    found = kind if is_open(kind) or kind == TIMEDELTA else number(kind)
    if found is None:
        raise site.problem(f"`abs` takes a number, not {kind}")
    return found


def _of_number(result: ExprType) -> CallTyping:
    def rule(site: CallSite) -> ExprType:
        site.count(0, 2 if site.name == "int" else 1)
        kind = site.args[0] if site.args else LONG
        if not is_open(kind) and kind not in (STRING, BINARY) and number(kind) is None:
            raise site.problem(f"`{site.name}` takes a number or a string, not {kind}")
        return result

    return rule


def _of_round(site: CallSite) -> ExprType:
    site.count(1, 2)
    kind, digits = site.args[0], site.constant(1)
    if is_open(kind):
        return computed_of(kind)
    found = number(kind)
    if found is None:
        raise site.problem(f"`round` takes a number, not {kind}")
    if len(site.args) == 1 or digits is None or found == LONG:
        return LONG
    if isinstance(found, Decimal) and isinstance(digits, int):
        return fit_decimal(found.precision - found.scale + 1, max(0, min(digits, found.scale)))
    return found


def _of_decimal(site: CallSite) -> ExprType:
    site.count(0, 1)
    value = site.constant(0)
    kind = site.args[0] if site.args else LONG
    if isinstance(value, str | int) and not isinstance(value, bool):
        try:
            return type_of(DecimalValue(value))
        except InvalidOperation:
            raise site.problem(f"{value!r} is not a decimal number") from None
    if isinstance(kind, Decimal):
        return kind
    return as_decimal(LONG) if number(kind) == LONG else _WIDE


def _quantized(site: CallSite) -> ExprType:
    base, exponent, to = site.base, site.constant(0), site.args[0] if site.args else ANY
    if not isinstance(base, Decimal) or not isinstance(to, Decimal):
        return _WIDE
    scale = to.scale
    if exponent is not ... and hasattr(exponent, "as_tuple"):
        scale = max(0, -int(exponent.as_tuple().exponent))
    return fit_decimal(base.precision - base.scale + 1, scale)


def _to_whole(site: CallSite) -> ExprType:
    base = site.base
    return fit_decimal(base.precision - base.scale + 1, 0) if isinstance(base, Decimal) else ANY


# Spark's expressions


def _bits(F: Any, number: Column) -> Column:
    size = F.length(F.bin(F.abs(F.when(number != _LEAST, number))))
    return F.when(number == 0, 0).when(number == _LEAST, 64).otherwise(size)


def _ones(F: Any, number: Column) -> Column:
    return F.when(number == _LEAST, 1).otherwise(
        F.bit_count(F.abs(F.when(number != _LEAST, number)))
    )


def _is_whole(F: Any, number: Column) -> Column:
    return (F.abs(number) < _INFINITE) & (F.rint(number) == number)


def _real(found: Callable[[Any, Column], Column]) -> Expression:
    """The expression, applied to a float."""
    return lambda F, x: found(F, x.cast("double"))


def _root(F: Any, x: Column) -> Column:
    return F.when((x >= 0.0) & ~F.isnan(x), F.sqrt(x))


def _whole(rounding: str) -> Expression:
    """A float as an integer; from 2**53 on Python computes it, as the value may be an integer
    already.
    """

    def rounded(F: Any, x: Column) -> Column:
        real = x.cast("double")
        near = F.when(F.abs(real) < _EXACT, real)
        return near.cast("long") if rounding == "trunc" else getattr(F, rounding)(near)

    return rounded


INT_MEMBERS: Members = {
    "bit_count": method(LONG, column=_ones),
    "bit_length": method(LONG, column=_bits),
    "to_bytes": method(BINARY, optional(WHOLE), optional(TEXT), cost=entry.width),
    **several("denominator imag", read(LONG)),
    **several("numerator real", read(LONG, lambda _, number: number)),
}
FLOAT_MEMBERS: Members = {
    "hex": method(STRING),
    "is_integer": method(BOOLEAN, column=_is_whole),
    "imag": read(DOUBLE),
    "real": read(DOUBLE, lambda _, number: number),
}
DECIMAL_MEMBERS: Members = {
    "adjusted": method(LONG),
    "compare": method(_WIDE, _DECIMAL, _IN_CONTEXT),
    "copy_abs": method(same, column=lambda F, number: F.abs(number)),
    "copy_negate": method(same),
    **several("is_nan is_signed", method(BOOLEAN)),
    "is_zero": method(BOOLEAN, column=lambda _, number: number == 0),
    "normalize": method(same, _IN_CONTEXT),
    "quantize": method(_quantized, _DECIMAL, _IN_CONTEXT, _IN_CONTEXT),
    "scaleb": method(_WIDE, _DECIMAL, _IN_CONTEXT, cost=_scaled),
    "sqrt": method(_WIDE, _IN_CONTEXT),
    "to_integral_value": method(_to_whole, _IN_CONTEXT, _IN_CONTEXT),
}
OF_NUMBERS: Mapping[str, Operation] = {
    "abs": Operation(_of_abs, None, abs),
    "bool": Operation(BOOLEAN, (optional(ANYTHING),), bool, nulls="own"),
    "float": Operation(_of_number(DOUBLE), None, float, cost=entry.digits),
    "int": Operation(_of_number(LONG), None, int, cost=entry.digits),
    "round": Operation(_of_round, None, round, cost=_round),
}
OF_NUMBER_TYPES: Mapping[str, Operation] = {
    "Decimal.from_float": Operation(_WIDE, (REAL,), DecimalValue.from_float),
    "float.fromhex": Operation(DOUBLE, (TEXT,), float.fromhex, cost=entry.digits),
    "int.from_bytes": Operation(LONG, (ANYTHING, optional(TEXT)), int.from_bytes),
}
DECIMAL = Operation(_of_decimal, None, DecimalValue, cost=entry.digits)


class MathModule:
    """The value of `math` in a text program: a name with functions."""


MathModule.__name__ = "math"
MATH_ITSELF = Operation(no_call, None, MathModule)


def _of_math(
    names: str,
    *takes: Parameter,
    gives: ExprType = DOUBLE,
    column: Expression | None = None,
    may_fail: bool = False,
) -> dict[str, Operation]:
    return {
        f"math.{name}": Operation(gives, takes, getattr(math, name), column, may_fail)
        for name in names.split()
    }


OF_MATH: Mapping[str, Operation] = {
    **_of_math("ceil", NUMBER, gives=LONG, column=_whole("ceil"), may_fail=True),
    **_of_math("fabs", NUMBER, column=_real(lambda F, x: F.abs(x))),
    **_of_math("floor", NUMBER, gives=LONG, column=_whole("floor"), may_fail=True),
    **_of_math("isfinite", NUMBER, gives=BOOLEAN, column=_real(lambda F, x: F.abs(x) < _INFINITE)),
    **_of_math("isinf", NUMBER, gives=BOOLEAN, column=_real(lambda F, x: F.abs(x) == _INFINITE)),
    **_of_math("isnan", NUMBER, gives=BOOLEAN, column=_real(lambda F, x: F.isnan(x))),
    **_of_math("sqrt", NUMBER, column=_real(_root), may_fail=True),
    **_of_math("trunc", NUMBER, gives=LONG, column=_whole("trunc"), may_fail=True),
    # The last digit of these results differs between the C library and the JVM.
    **_of_math("acos asin atan cos cosh degrees exp expm1 log10 log1p log2 radians", NUMBER),
    **_of_math("sin sinh tan tanh", NUMBER),
    **_of_math("atan2 copysign fmod pow", NUMBER, NUMBER),
    **_of_math("log", NUMBER, optional(NUMBER)),
}
"""Functions that a flow in Python imports, and that a text program reads."""
MATH_CONSTANTS: Mapping[str, float] = {
    f"math.{name}": getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")
}
