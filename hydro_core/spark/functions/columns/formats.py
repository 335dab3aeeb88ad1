"""Numbers, dates and times as texts: the formats of f-strings."""

from __future__ import annotations

import re

from pyspark.sql import Column

from hydro_core.functions.library.texts import padded
from hydro_core.functions.library.times import formatted
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import integers, numbers, rounding
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import ColumnValue, NotCompilable, strict, string
from hydro_core.types.item import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ

_WHOLE = re.compile(r"(0?[1-9][0-9]{0,2}|,|)d?")
_PADDED = re.compile(r"(?:(.)?([<>]))?([1-9][0-9]{0,3})([sd])?", re.DOTALL)
_REAL = re.compile(r"(,?)\.([0-9]|10)([f%])")


def specified(scope: ColumnScope, value: ColumnValue, specification: str) -> ColumnValue:
    """`f"{value:specification}"`, where there is one."""
    if value.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ) and "%" in specification:
        moment = scope.need(value)
        column = formatted(F, moment.column, specification)
        if column is None:
            raise NotCompilable("a format specification")
        return strict(column, STRING, moment, moment, doubtful=True)
    whole, real = _WHOLE.fullmatch(specification), _REAL.fullmatch(specification)
    if whole and integers.is_integer_type(value):
        number = scope.need(integers.as_long(value))
        column = F.format_string(f"%{whole[1]}d", number.column)
        return string(column, number, safe=True)
    aligned = _PADDED.fullmatch(specification)
    if aligned and (value.type == STRING or integers.is_integer_type(value)):
        return _aligned(scope, value, aligned)
    if real and numbers.is_float(value):
        return _fixed(scope.need(numbers.as_double(value)), real[1], int(real[2]), real[3])
    raise NotCompilable("a format specification")


def _aligned(scope: ColumnScope, value: ColumnValue, form: re.Match[str]) -> ColumnValue:
    """`f"{value:*<10}"`: a text to the left, a number to the right unless it says so."""
    is_text = value.type == STRING
    if (form[4] or "s") != "s" if is_text else (form[4] or "d") != "d" or value.mixed:
        raise NotCompilable("a format specification")
    whole = scope.need(value)
    text = whole.column if is_text else whole.column.cast("string")
    side = "right" if (form[2] or ("<" if is_text else ">")) == "<" else "left"
    column: Column | None = padded(side)(F, text, int(form[3]), form[1] or " ")
    if column is None:
        raise NotCompilable("a wide format")
    return string(column, whole, whole, safe=True)


def _fixed(number: ColumnValue, grouped: str, digits: int, kind: str) -> ColumnValue:
    """`f"{x:.2f}"`: the number in units of its last digit, and the point put in."""
    x: Column = number.column * 100.0 if kind == "%" else number.column
    units = rounding.units(x, digits)
    count = F.abs(units).cast("long")
    whole = F.call_function("div", count, integers.literal(10**digits))
    text = F.format_string(f"%{grouped}d", whole)
    if digits:
        rest = F.lpad((count % 10**digits).cast("string"), digits, "0")
        text = F.concat(text, F.lit("."), rest)
    minus = (x < 0.0) | ((x == 0.0) & (x.cast("string") == "-0.0"))
    sign = F.when(minus, F.lit("-")).otherwise(F.lit(""))
    column = F.concat(sign, text, *([F.lit("%")] if kind == "%" else []))
    column = F.when(rounding.is_certain(x, digits), column)
    return strict(column, STRING, *[number] * 24, doubtful=True)
