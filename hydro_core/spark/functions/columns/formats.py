"""Numbers, dates and times as texts: the formats of f-strings, `strftime`, `isoformat`."""

from __future__ import annotations

import re

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import integers, numbers, rounding
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import ColumnValue, NotCompilable, strict, string
from hydro_core.types.item import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ

_WHOLE = re.compile(r"(0?[1-9][0-9]{0,2}|,|)d?")
_REAL = re.compile(r"(,?)\.([0-9]|10)([f%])")
_DIRECTIVES = {
    "Y": "yyyy",
    "y": "yy",
    "m": "MM",
    "d": "dd",
    "j": "DDD",
    "H": "HH",
    "M": "mm",
    "S": "ss",
    "f": "SSSSSS",
}
"""Directives whose texts no locale changes, and Spark's patterns for them."""


def specified(scope: ColumnScope, value: ColumnValue, specification: str) -> ColumnValue:
    """`f"{value:specification}"`, where there is one."""
    if value.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ) and "%" in specification:
        return strftime(scope, value, specification)
    whole, real = _WHOLE.fullmatch(specification), _REAL.fullmatch(specification)
    if whole and integers.is_integer_type(value):
        number = scope.need(integers.as_long(value))
        column = F.format_string(f"%{whole[1]}d", number.column)
        return string(column, number, safe=True)
    if real and numbers.is_float(value):
        return _fixed(scope.need(numbers.as_double(value)), real[1], int(real[2]), real[3])
    raise NotCompilable("a format specification")


def strftime(scope: ColumnScope, value: ColumnValue, text: str) -> ColumnValue:
    """`moment.strftime(text)`; how long a year before 1000 is, the machine decides."""
    moment = scope.need(value)
    column = F.when(F.year(moment.column) >= 1000, F.date_format(moment.column, _pattern(text)))
    return strict(column, STRING, moment, moment, doubtful=True)


def iso(value: ColumnValue, between: str) -> ColumnValue:
    """`timestamp.isoformat()`, `str(timestamp)`: what is `between` differs."""
    moment = value.column
    micros = F.pmod(F.unix_micros(moment.cast("timestamp")), F.lit(1_000_000))
    parts = [
        F.date_format(moment, f"yyyy-MM-dd'{between}'HH:mm:ss"),
        F.when(micros == 0, F.lit("")).otherwise(F.date_format(moment, ".SSSSSS")),
        *([F.lit("+00:00")] if value.type == TIMESTAMP else []),
    ]
    return string(F.concat(*parts), value, value, value, safe=True)


def _pattern(text: str) -> str:
    """Spark's pattern for one of `strftime`."""
    found = ""
    for between, directive in re.findall(r"((?:[^%]|%%)+)|%(.?)", text, re.DOTALL):
        if directive not in _DIRECTIVES and not between:
            raise NotCompilable(f"`%{directive}` in a format")
        quoted = between.replace("%%", "%").replace("'", "''")
        found += f"'{quoted}'" if between else _DIRECTIVES[directive]
    return found


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
    column = F.when(rounding.is_told(x, digits), column)
    return strict(column, STRING, *[number] * 24, doubtful=True)
