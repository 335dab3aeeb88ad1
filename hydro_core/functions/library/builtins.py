"""Python's builtins that functions may call, and what they may call of classes and of `math`."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal as DecimalValue
from typing import Any

from hydro_core.functions.constant_limits import MOST_FORMAT, Budget, LimitError, check_places
from hydro_core.functions.kinds import ANY, TIMEDELTA, ZONE, SetOf
from hydro_core.functions.library import builtin_types as types
from hydro_core.functions.library.data import DATA_FUNCTIONS, MATH, MATH_CONSTANTS
from hydro_core.functions.library.entry import (
    ANYTHING,
    NUMBER,
    REAL,
    TEXT,
    WHOLE,
    Column,
    Expression,
    LibraryFunction,
    constant,
    optional,
)
from hydro_core.functions.library.regex_types import OF_RE, RE
from hydro_core.functions.library.times import EPOCH_DAY, pattern
from hydro_core.types.item import (
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
)


def strptime(text: str, form: str) -> datetime:
    """`datetime.strptime`."""
    # Python's own imports on its first call, which it does where it is called from: here, where a
    # program's function has no import to lend.
    try:
        return datetime.strptime(text, form)
    except re.error as problem:
        raise ValueError(f"{form!r} is no format of times: {problem}") from None


_EXACT = 2.0**53
_PER_NUMBER = sys.getsizeof(0) + 16


# what is made of constants at most


def _range(limits: Budget, args: list[Any]) -> None:
    limits.foresee(len(range(*args)) * _PER_NUMBER)


def _digits(limits: Budget, args: list[Any]) -> None:
    if isinstance(args[0], str | bytes):
        check_places(len(args[0]))


def _sum(limits: Budget, args: list[Any]) -> None:
    # Python copies what it has, with every sequence that it adds.
    if len(args) > 1 and isinstance(args[1], list | tuple) and isinstance(args[0], list | tuple):
        limits.charge(limits.weight(args[0]) * (len(args[0]) + 1) // 2)


def _sorted(limits: Budget, args: list[Any]) -> None:
    if isinstance(args[0], list | tuple | set | dict):
        limits.charge(limits.weight(args[0]) * int(math.log2(len(args[0]) + 1)))


def _round(limits: Budget, args: list[Any]) -> None:
    if len(args) > 1 and isinstance(args[1], int):
        check_places(abs(args[1]))


def _text(limits: Budget, args: list[Any]) -> None:
    limits.foresee_text(args[0])


def _form(limits: Budget, args: list[Any]) -> None:
    if any(isinstance(a, str) and len(a) > MOST_FORMAT for a in args):
        raise LimitError(f"has a format of more than {MOST_FORMAT:,} characters")


# Spark's expressions


def _day(F: Any, text: Column) -> Column:
    """A plain date; of other forms Python knows."""
    plain = F.rlike(text, F.lit("\\A[0-9]{4}-[0-9]{2}-[0-9]{2}\\z"))
    found = F.when(plain, text.try_cast("date"))
    return F.when(F.year(found) >= 1, found)


def _day_of(F: Any, number: Column) -> Column:
    held = number.between(date.min.toordinal(), date.max.toordinal())
    return F.when(held, F.date_from_unix_date((number - EPOCH_DAY).cast("int")))


def _moment(F: Any, text: Column, form: str) -> Column | None:
    """A moment of which every field has its width; of other texts Python knows."""
    read = re.fullmatch(r"(?:%[YmdHMSf]|[-/:. T_])+", form)
    fields = re.findall("%(.)", form)
    if read is None or len(set(fields)) != len(fields) or not {"Y", "m", "d"} <= set(fields):
        return None
    widths = {"Y": 4, "f": 6}
    plain_form = form.replace(".", "[.]")
    digits = re.sub("%(.)", lambda m: f"[0-9]{{{widths.get(m[1], 2)}}}", plain_form)
    plain = F.rlike(text, F.lit(f"\\A{digits}\\z"))
    found = F.try_to_timestamp(F.when(plain, text), F.lit(pattern(form)))
    return F.when(F.year(found) >= 1, found.cast("timestamp_ntz"))


def _real(found: Callable[[Any, Column], Column]) -> Expression:
    """What is found of a float."""
    return lambda F, x: found(F, x.cast("double"))


def _whole(rounding: str) -> Expression:
    """A float as an integer; from 2**53 on Python is asked, as it may be an integer already."""

    def rounded(F: Any, x: Column) -> Column:
        real = x.cast("double")
        near = F.when(F.abs(real) < _EXACT, real)
        return near.cast("long") if rounding == "trunc" else getattr(F, rounding)(near)

    return rounded


_INFINITE = float("inf")
OF_MATH: Mapping[str, LibraryFunction] = {
    "math.ceil": LibraryFunction(math.ceil, LONG, (NUMBER,), _whole("ceil"), may_fail=True),
    "math.fabs": LibraryFunction(math.fabs, DOUBLE, (NUMBER,), _real(lambda F, x: F.abs(x))),
    "math.floor": LibraryFunction(math.floor, LONG, (NUMBER,), _whole("floor"), may_fail=True),
    "math.isfinite": LibraryFunction(
        math.isfinite, BOOLEAN, (NUMBER,), _real(lambda F, x: F.abs(x) < _INFINITE)
    ),
    "math.isinf": LibraryFunction(
        math.isinf, BOOLEAN, (NUMBER,), _real(lambda F, x: F.abs(x) == _INFINITE)
    ),
    "math.isnan": LibraryFunction(math.isnan, BOOLEAN, (NUMBER,), _real(lambda F, x: F.isnan(x))),
    "math.sqrt": LibraryFunction(
        math.sqrt,
        DOUBLE,
        (NUMBER,),
        _real(lambda F, x: F.when((x >= 0.0) & ~F.isnan(x), F.sqrt(x))),
        may_fail=True,
    ),
    "math.trunc": LibraryFunction(math.trunc, LONG, (NUMBER,), _whole("trunc"), may_fail=True),
    # The last digit of these the C library decides, or the JVM.
    **{
        f"math.{function.__name__}": LibraryFunction(function, DOUBLE, (NUMBER,))
        for function in (
            *(math.acos, math.asin, math.atan, math.cos, math.cosh, math.degrees, math.exp),
            *(math.expm1, math.log10, math.log1p, math.log2, math.radians, math.sin, math.sinh),
            *(math.tan, math.tanh),
        )
    },
    **{
        f"math.{function.__name__}": LibraryFunction(function, DOUBLE, (NUMBER, NUMBER))
        for function in (math.atan2, math.copysign, math.fmod, math.pow)
    },
    "math.log": LibraryFunction(math.log, DOUBLE, (NUMBER, optional(NUMBER))),
}
"""The functions of `math`, which a flow in Python imports, and a text program sees."""

_KEY = frozenset({"key"})
BUILTINS: Mapping[str, LibraryFunction] = {
    "abs": LibraryFunction(abs, types.of_abs),
    "all": LibraryFunction(all, types.of_parts(lambda _: BOOLEAN)),
    "any": LibraryFunction(any, types.of_parts(lambda _: BOOLEAN)),
    "bool": LibraryFunction(bool, BOOLEAN, (optional(ANYTHING),), nulls="own"),
    "dict": LibraryFunction(dict, types.of_dict),
    "enumerate": LibraryFunction(enumerate, types.of_enumerate),
    "float": LibraryFunction(float, types.of_number(DOUBLE), cost=_digits),
    "int": LibraryFunction(int, types.of_number(LONG), cost=_digits),
    "len": LibraryFunction(len, types.of_parts(lambda _: LONG)),
    "list": LibraryFunction(list, types.of_parts(types.array_of, 0)),
    "max": LibraryFunction(max, types.of_extreme, functions=_KEY),
    "min": LibraryFunction(min, types.of_extreme, functions=_KEY),
    "range": LibraryFunction(
        range, Array(LONG), (WHOLE, optional(WHOLE), optional(WHOLE)), cost=_range
    ),
    "reversed": LibraryFunction(reversed, types.of_parts(types.array_of)),
    "round": LibraryFunction(round, types.of_round, cost=_round),
    "set": LibraryFunction(set, types.of_parts(SetOf, 0)),
    "sorted": LibraryFunction(sorted, types.of_sorted, cost=_sorted, functions=_KEY),
    "str": LibraryFunction(str, STRING, (optional(ANYTHING),) * 3, cost=_text, nulls="own"),
    "sum": LibraryFunction(sum, types.of_sum, cost=_sum),
    "tuple": LibraryFunction(tuple, types.of_tuple),
    "zip": LibraryFunction(zip, types.of_zip),
    "date": LibraryFunction(date, types.of_date),
    "datetime": LibraryFunction(datetime, types.of_datetime),
    "timedelta": LibraryFunction(timedelta, TIMEDELTA, (optional(REAL),) * 7),
    "timezone": LibraryFunction(timezone, ZONE, (ANYTHING, optional(TEXT))),
    "Decimal": LibraryFunction(DecimalValue, types.of_decimal, cost=_digits),
    "math": MATH,
    "re": RE,
    **DATA_FUNCTIONS,
}
"""The names that every function sees."""

OF_CLASSES: Mapping[str, LibraryFunction] = {
    "date.fromisoformat": LibraryFunction(date.fromisoformat, DATE, (TEXT,), _day, may_fail=True),
    "date.fromordinal": LibraryFunction(date.fromordinal, DATE, (WHOLE,), _day_of, may_fail=True),
    "date.fromisocalendar": LibraryFunction(date.fromisocalendar, DATE, (WHOLE,) * 3),
    # What names no zone is meant in UTC, as it is in data.
    "datetime.fromisoformat": LibraryFunction(datetime.fromisoformat, TIMESTAMP, (TEXT,)),
    "datetime.fromordinal": LibraryFunction(datetime.fromordinal, TIMESTAMP_NTZ, (WHOLE,)),
    "datetime.strptime": LibraryFunction(
        strptime, types.of_strptime, (TEXT, constant(TEXT)), _moment, may_fail=True, cost=_form
    ),
    "datetime.combine": LibraryFunction(datetime.combine, types.of_combine),
    "datetime.fromtimestamp": LibraryFunction(
        datetime.fromtimestamp, TIMESTAMP, (REAL, optional(ANYTHING))
    ),
    "Decimal.from_float": LibraryFunction(DecimalValue.from_float, Decimal(38, 18), (REAL,)),
    "dict.fromkeys": LibraryFunction(dict.fromkeys, ANY, (ANYTHING, optional(ANYTHING))),
    "float.fromhex": LibraryFunction(float.fromhex, DOUBLE, (TEXT,), cost=_digits),
    "int.from_bytes": LibraryFunction(int.from_bytes, LONG, (ANYTHING, optional(TEXT))),
}
"""The methods of classes."""

CONSTANTS: Mapping[str, Any] = {
    "date.min": date.min,
    "date.max": date.max,
    "datetime.min": datetime.min,
    "datetime.max": datetime.max,
    "timezone.utc": UTC,
    "timedelta.max": timedelta.max,
    "timedelta.min": timedelta.min,
    **MATH_CONSTANTS,
}
"""The attributes of classes that are values."""
FUNCTIONS: Mapping[str, LibraryFunction] = {**BUILTINS, **OF_CLASSES, **OF_MATH, **OF_RE}
"""All that is called by a name."""
NAMES: Mapping[int, str] = {id(entry.function): name for name, entry in FUNCTIONS.items()}
"""The names of functions by their identities."""
