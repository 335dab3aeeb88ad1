"""Python's texts on Spark, their methods aside: by code point, as Python counts them."""

from __future__ import annotations

from pyspark.sql import Column

from hydro_core.functions.library.times import iso
from hydro_core.functions.tree import Op
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import formats, integers
from hydro_core.spark.functions.columns.constants import constant
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import (
    ColumnValue,
    NotCompilable,
    boolean,
    computed,
    long,
    strict,
    string,
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
)

_INT = 2**31 - 1


def length(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """`len(text)`."""
    text = scope.need(value)
    return long(F.length(text.column).cast("long"), text, safe=True)


def concatenate(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a + b` of two texts, `a * n`."""
    if op == "+":
        if not a.type == b.type == STRING:
            raise NotCompilable(f"`+` of {a.type} and {b.type}")
        x, y = scope.need(a), scope.need(b)
        return string(F.concat(x.column, y.column), x, y, safe=True)
    text, times = (a, b) if a.type == STRING else (b, a)
    if not integers.is_int(times):
        raise NotCompilable(f"`*` of {a.type} and {b.type}")
    text, times = scope.need(text), integers.bound(scope, times)
    count = F.greatest(times.column, F.lit(0))
    bounded = F.when(count <= _INT, count).cast("int")
    return strict(F.repeat(text.column, bounded), STRING, text, times, doubtful=True)


def contains(scope: ColumnScope, text: ColumnValue, part: ColumnValue) -> ColumnValue:
    """`part in text`."""
    if part.type != STRING:
        raise NotCompilable(f"`in` of {part.type} and a text")
    x, y = scope.need(text), scope.need(part)
    return boolean(F.contains(x.column, y.column), x, y)


def character(scope: ColumnScope, text: ColumnValue, index: ColumnValue) -> ColumnValue:
    """`text[i]`."""
    if not integers.is_int(index):
        raise NotCompilable(f"a text is indexed by {index.type}")
    x, i = scope.need(text), integers.bound(scope, index)
    known = i.constant[0] if i.constant is not None else None
    if known is not None and abs(known) < _INT:
        found = F.substring(x.column, int(known) + 1 if known >= 0 else int(known), 1)
        return string(F.when(found == "", scope.ask()).otherwise(found), x, x)
    size = F.length(x.column)
    inside = (i.column < size) & (i.column >= -size)
    place = F.when(i.column < 0, i.column + size).otherwise(i.column) + 1
    found = F.substr(x.column, place.cast("int"), F.lit(1))
    return string(F.when(inside, found).otherwise(scope.ask()), x, i, x, i)


def characters(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The characters of a text as an array."""
    text = scope.need(value)
    none = F.array().cast("array<string>")
    column = F.when(text.column == "", none).otherwise(F.split(text.column, ""))
    return computed(column, Array(STRING), text, text, safe=True)


def formatted(scope: ColumnScope, node: Op) -> ColumnValue:
    """An f-string."""
    parts = list(map(scope.compile, node.args))
    if not parts:
        return constant("")
    return string(F.concat(*(p.column for p in parts)), *parts, safe=True)


def format_of(scope: ColumnScope, node: Op) -> ColumnValue:
    """A value in an f-string."""
    value, conversion, specification = map(scope.compile, node.args)
    (shown,), (spec,) = conversion.constant or ("r",), specification.constant or ("",)
    if shown not in ("", "s"):
        raise NotCompilable("a format specification")
    value = text_of(scope, value) if shown and spec else value
    return formats.specified(scope, value, spec) if spec else text_of(scope, value)


def text_of(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """`str(value)`."""
    if value.mixed:
        raise NotCompilable("the text of an int for some items and a float for others")
    if value.constant is not None and isinstance(
        value.constant[0], bool | int | str | float | None
    ):
        return constant(str(value.constant[0]))
    if value.type == UNKNOWN:
        return string(F.lit("None"), value, safe=True)
    text = _text(value)
    text = F.coalesce(text, F.lit("None")) if value.nullable else text
    return string(text, value, safe=True)


def whole_number(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """`int(text)` of plain digits; of underscores and other scripts Python knows."""
    text = scope.need(value)
    plain = F.rlike(text.column, F.lit("\\A[ \\t-\\r]*[+-]?[0-9]{1,18}[ \\t-\\r]*\\z"))
    number = F.when(plain, text.column.cast("bigint"))
    return strict(number, LONG, text, text, doubtful=True)


def real_number(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """`float(text)` of plain digits; of underscores, other scripts and `nan` Python knows."""
    text = scope.need(value)
    digits = "(?:[0-9]{1,99}(?:[.][0-9]{0,99})?|[.][0-9]{1,99})(?:[eE][+-]?[0-9]{1,9})?"
    plain = F.rlike(text.column, F.lit(f"\\A[ \\t-\\r]*[+-]?{digits}[ \\t-\\r]*\\z"))
    number = F.when(plain, text.column.cast("double"))
    return strict(number, DOUBLE, text, text, doubtful=True)


def _text(value: ColumnValue) -> Column:
    """The value's text; null stays null."""
    if value.type == BOOLEAN:
        return F.when(value.column, F.lit("True")).when(~value.column, F.lit("False"))
    if value.type in (TIMESTAMP, TIMESTAMP_NTZ):
        zone = "+00:00" if value.type == TIMESTAMP else ""
        text: Column = iso(F, value.column, " ", zone)
        return text
    # What is computed may be −0, or have fewer digits after the point than its type.
    is_certain = (
        isinstance(value.type, Decimal) and value.type.scale <= 6 and value.path is not None
    )
    if is_certain or value.type in (STRING, DATE) or integers.is_integer_type(value):
        return value.column.cast("string")
    raise NotCompilable(f"the text of {value.type}")
