"""Python's texts on Spark, without their methods, and the texts of values in f-strings.

Texts are counted by code point, as Python does.
"""

from __future__ import annotations

import re

from pyspark.sql import Column

from hydro_core.functions.library import times
from hydro_core.functions.library.entry import MOST_MADE
from hydro_core.functions.library.texts import padded
from hydro_core.functions.tree import Op
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import integers, numbers
from hydro_core.spark.functions.columns.structs import constant
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    NotCompilable,
    boolean,
    computed,
    strict,
)
from hydro_core.types.item import (
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNKNOWN,
    Array,
    Decimal,
    Scalar,
)

_INT = 2**31 - 1
_DIGITS = {
    LONG: "[0-9]{1,18}",
    DOUBLE: "(?:[0-9]{1,99}(?:[.][0-9]{0,99})?|[.][0-9]{1,99})(?:[eE][+-]?[0-9]{1,9})?",
}


def concatenate(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a + b` of two texts, `a * n`."""
    if op == "+":
        if not a.type == b.type == STRING:
            raise NotCompilable(f"`+` of {a.type} and {b.type}")
        x, y = scope.need(a), scope.need(b)
        return computed(F.concat(x.column, y.column), STRING, x, y, safe=True)
    text, times = (a, b) if a.type == STRING else (b, a)
    if not integers.is_int(times):
        raise NotCompilable(f"`*` of {a.type} and {b.type}")
    text, times = scope.need(text), integers.bound(scope, times)
    count = F.greatest(times.column, F.lit(0))
    # Larger repetitions are left to Python, which refuses them.
    bounded = F.when(count <= MOST_MADE, count)
    bounded = F.when(bounded * F.length(text.column) <= MOST_MADE, bounded).cast("int")
    return strict(F.repeat(text.column, bounded), STRING, text, times, doubtful=True)


def contains(scope: ColumnScope, text: ColumnValue, part: ColumnValue) -> ColumnValue:
    if part.type != STRING:
        raise NotCompilable(f"`in` of {part.type} and a text")
    x, y = scope.need(text), scope.need(part)
    return boolean(F.contains(x.column, y.column), x, y)


def character(scope: ColumnScope, text: ColumnValue, index: ColumnValue) -> ColumnValue:
    if not integers.is_int(index):
        raise NotCompilable(f"a text is indexed by {index.type}")
    x, i = scope.need(text), integers.bound(scope, index)
    known = i.constant[0] if i.constant is not None else None
    if known is not None and abs(known) < _INT:
        found = F.substring(x.column, int(known) + 1 if known >= 0 else int(known), 1)
        return computed(F.when(found == "", scope.ask()).otherwise(found), STRING, x, x)
    size = F.length(x.column)
    inside = (i.column < size) & (i.column >= -size)
    place = F.when(i.column < 0, i.column + size).otherwise(i.column) + 1
    found = F.substr(x.column, place.cast("int"), F.lit(1))
    return computed(F.when(inside, found).otherwise(scope.ask()), STRING, x, i, x, i)


def characters(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    text = scope.need(value)
    none = F.array().cast("array<string>")
    column = F.when(text.column == "", none).otherwise(F.split(text.column, ""))
    return computed(column, Array(STRING), text, text, safe=True)


def formatted(scope: ColumnScope, node: Op) -> ColumnValue:
    parts = list(map(scope.compile, node.args))
    if not parts:
        return constant("")
    return computed(F.concat(*(p.column for p in parts)), STRING, *parts, safe=True)


def format_of(scope: ColumnScope, node: Op) -> ColumnValue:
    """A value in an f-string."""
    value, conversion, specification = map(scope.compile, node.args)
    (shown,), (spec,) = conversion.constant or ("r",), specification.constant or ("",)
    if shown not in ("", "s"):
        raise NotCompilable("a format specification")
    value = text_of(scope, value) if shown and spec else value
    return specified(scope, value, spec) if spec else text_of(scope, value)


def text_of(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    if value.mixed:
        raise NotCompilable("the text of an int for some items and a float for others")
    if value.constant is not None and isinstance(
        value.constant[0], bool | int | str | float | None
    ):
        return constant(str(value.constant[0]))
    if value.type == UNKNOWN:
        return computed(F.lit("None"), STRING, value, safe=True)
    text = _text(value)
    text = F.coalesce(text, F.lit("None")) if value.nullable else text
    return computed(text, STRING, value, safe=True)


def number_of(scope: ColumnScope, value: ColumnValue, to: Scalar) -> ColumnValue:
    """`int(text)`, `float(text)` of plain digits; texts with underscores, other scripts and `nan`
    are left to Python.
    """
    text = scope.need(value)
    plain = F.rlike(text.column, F.lit(f"\\A[ \\t-\\r]*[+-]?{_DIGITS[to]}[ \\t-\\r]*\\z"))
    number = F.when(plain, text.column.cast(str(to)))
    return strict(number, to, text, text, doubtful=True)


def _text(value: ColumnValue) -> Column:
    """The value's text; null stays null."""
    if value.type == BOOLEAN:
        return F.when(value.column, F.lit("True")).when(~value.column, F.lit("False"))
    if value.type in (TIMESTAMP, TIMESTAMP_NTZ):
        zone = "+00:00" if value.type == TIMESTAMP else ""
        text: Column = times.iso(F, value.column, " ", zone)
        return text
    # A computed decimal may be −0, or have fewer digits after the point than its type.
    is_certain = (
        isinstance(value.type, Decimal) and value.type.scale <= 6 and value.path is not None
    )
    if is_certain or value.type in (STRING, DATE) or integers.is_integer_type(value):
        return value.column.cast("string")
    raise NotCompilable(f"the text of {value.type}")


_WHOLE = re.compile(r"(0?[1-9][0-9]{0,2}|,|)d?")
_PADDED = re.compile(r"(?:(.)?([<>]))?([1-9][0-9]{0,3})([sd])?", re.DOTALL)
_REAL = re.compile(r"(,?)\.([0-9]|10)([f%])")


def specified(scope: ColumnScope, value: ColumnValue, specification: str) -> ColumnValue:
    """`f"{value:specification}"`, where there is one."""
    if value.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ) and "%" in specification:
        moment = scope.need(value)
        column = times.formatted(F, moment.column, specification)
        if column is None:
            raise NotCompilable("a format specification")
        return strict(column, STRING, moment, moment, doubtful=True)
    whole, real = _WHOLE.fullmatch(specification), _REAL.fullmatch(specification)
    if whole and integers.is_integer_type(value):
        number = scope.need(integers.as_long(value))
        column = F.format_string(f"%{whole[1]}d", number.column)
        return computed(column, STRING, number, safe=True)
    aligned = _PADDED.fullmatch(specification)
    if aligned and (value.type == STRING or integers.is_integer_type(value)):
        return _aligned(scope, value, aligned)
    if real and numbers.is_float(value):
        return _fixed(scope.need(numbers.as_double(value)), real[1], int(real[2]), real[3])
    raise NotCompilable("a format specification")


def _aligned(scope: ColumnScope, value: ColumnValue, form: re.Match[str]) -> ColumnValue:
    """`f"{value:*<10}"`: a text is aligned left, a number right, unless the format says
    otherwise.
    """
    is_text = value.type == STRING
    if (form[4] or "s") != "s" if is_text else (form[4] or "d") != "d" or value.mixed:
        raise NotCompilable("a format specification")
    whole = scope.need(value)
    text = whole.column if is_text else whole.column.cast("string")
    side = "right" if (form[2] or ("<" if is_text else ">")) == "<" else "left"
    column: Column | None = padded(side)(F, text, int(form[3]), form[1] or " ")
    if column is None:
        raise NotCompilable("a wide format")
    return computed(column, STRING, whole, whole, safe=True)


def _fixed(number: ColumnValue, grouped: str, digits: int, kind: str) -> ColumnValue:
    """`f"{x:.2f}"`: the number in units of its last digit, with the point inserted."""
    x: Column = number.column * 100.0 if kind == "%" else number.column
    units = numbers.units(x, digits)
    count = F.abs(units).cast("long")
    whole = F.call_function("div", count, integers.literal(10**digits))
    text = F.format_string(f"%{grouped}d", whole)
    if digits:
        rest = F.lpad((count % 10**digits).cast("string"), digits, "0")
        text = F.concat(text, F.lit("."), rest)
    minus = (x < 0.0) | ((x == 0.0) & (x.cast("string") == "-0.0"))
    sign = F.when(minus, F.lit("-")).otherwise(F.lit(""))
    column = F.concat(sign, text, *([F.lit("%")] if kind == "%" else []))
    column = F.when(numbers.is_certain(x, digits), column)
    return strict(column, STRING, *[number] * 24, doubtful=True)
