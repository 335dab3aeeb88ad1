"""The methods and properties of integers, floats and decimals."""

from __future__ import annotations

from decimal import Decimal as DecimalValue
from typing import Any

from hydro_core.functions.constant_limits import Budget, check_places
from hydro_core.functions.kinds import ANY, ExprType
from hydro_core.functions.library.entry import (
    ANYTHING,
    TEXT,
    WHOLE,
    CallSite,
    Column,
    Parameter,
    members,
    method,
    methods,
    optional,
    read,
    same,
)
from hydro_core.types.common import fit_decimal
from hydro_core.types.item import BINARY, BOOLEAN, DOUBLE, LONG, STRING, Decimal

_LEAST = -(2**63)
_DECIMAL = Parameter("a decimal", lambda kind: isinstance(kind, Decimal) or WHOLE.fits(kind))


def _bytes_cost(limits: Budget, _: Any, args: list[Any]) -> None:
    limits.foresee(4 * max((a for a in args if isinstance(a, int)), default=8))


def _scaled(_: Budget, __: Any, args: list[Any]) -> None:
    check_places(max((abs(int(a)) for a in args if isinstance(a, int | DecimalValue)), default=0))


def _quantized(base: ExprType, site: CallSite) -> ExprType:
    exponent, to = site.constant(0), site.args[0] if site.args else ANY
    if not isinstance(base, Decimal) or not isinstance(to, Decimal):
        return Decimal(38, 18)
    scale = to.scale
    if exponent is not ... and hasattr(exponent, "as_tuple"):
        scale = max(0, -int(exponent.as_tuple().exponent))
    return fit_decimal(base.precision - base.scale + 1, scale)


def _whole(base: ExprType, _: CallSite) -> ExprType:
    return fit_decimal(base.precision - base.scale + 1, 0) if isinstance(base, Decimal) else ANY


def _bits(F: Any, number: Column) -> Column:
    size = F.length(F.bin(F.abs(F.when(number != _LEAST, number))))
    return F.when(number == 0, 0).when(number == _LEAST, 64).otherwise(size)


def _ones(F: Any, number: Column) -> Column:
    return F.when(number == _LEAST, 1).otherwise(
        F.bit_count(F.abs(F.when(number != _LEAST, number)))
    )


def _is_whole(F: Any, number: Column) -> Column:
    is_finite = F.abs(number) < float("inf")
    return is_finite & (F.rint(number) == number)


INT_MEMBERS = members(
    method("bit_count", gives=LONG, column=_ones),
    method("bit_length", gives=LONG, column=_bits),
    method("to_bytes", optional(WHOLE), optional(TEXT), gives=BINARY, cost=_bytes_cost),
    read("denominator", LONG),
    read("imag", LONG),
    read("numerator", LONG, lambda _, number: number),
    read("real", LONG, lambda _, number: number),
)
FLOAT_MEMBERS = members(
    method("hex", gives=STRING),
    method("is_integer", gives=BOOLEAN, column=_is_whole),
    read("imag", DOUBLE),
    read("real", DOUBLE, lambda _, number: number),
)
DECIMAL_MEMBERS = members(
    method("adjusted", gives=LONG),
    method("compare", _DECIMAL, optional(ANYTHING), gives=Decimal(38, 18)),
    *methods("copy_abs copy_negate", gives=same),
    method("is_nan", gives=BOOLEAN),
    method("is_signed", gives=BOOLEAN),
    method("is_zero", gives=BOOLEAN, column=lambda _, number: number == 0),
    method("normalize", optional(ANYTHING), gives=same),
    method("quantize", _DECIMAL, optional(ANYTHING), optional(ANYTHING), gives=_quantized),
    method("scaleb", _DECIMAL, optional(ANYTHING), gives=Decimal(38, 18), cost=_scaled),
    method("sqrt", optional(ANYTHING), gives=Decimal(38, 18)),
    method("to_integral_value", optional(ANYTHING), optional(ANYTHING), gives=_whole),
)
