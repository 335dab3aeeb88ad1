"""Methods of values on Spark, by the kind of the value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column

from hydro_core.functions.tree import Expr, Method
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import casing, formats, lookup, loops, moments, structs
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
from hydro_core.types.item import LONG, STRING, Array, Row

_REGEX_SPECIAL = frozenset("\\.[]{}()<>*+-=!?^$|&#")


def method(scope: ColumnScope, node: Method) -> ColumnValue:
    """`base.name(arguments)`."""
    base = scope.compile(node.base)
    if moments.is_moment(base):
        return _of_moment(scope, base, node)
    if node.keywords:
        raise NotCompilable(f"`.{node.name}` with named arguments")
    table = lookup.table_of(base)
    if table is not None:
        if node.name == "get" and len(node.args) in (1, 2):
            values = [scope.compile(a) for a in node.args]
            default = values[1] if len(values) == 2 else constant(None)
            return lookup.entry(scope, table, values[0], default)
        raise NotCompilable(f"`.{node.name}` of a dict")
    if isinstance(base.type, Row):
        return _of_row(scope, base, node)
    if base.type == STRING:
        return _of_text(scope, base, node)
    return moments.method(scope, base, node.name, len(node.args))


def _of_moment(scope: ColumnScope, base: ColumnValue, node: Method) -> ColumnValue:
    named = {name: scope.compile(a).constant for name, a in node.keywords}
    if node.name == "replace" and named and not node.args:
        return moments.cut(scope, base, {name: k and k[0] for name, k in named.items()})
    if node.name == "strftime" and not named:
        return formats.strftime(scope, base, _text_constant(list(map(scope.compile, node.args)), 0))
    if named:
        raise NotCompilable(f"`.{node.name}` with named arguments")
    return moments.method(scope, base, node.name, len(node.args))


def _of_row(scope: ColumnScope, base: ColumnValue, node: Method) -> ColumnValue:
    keys = [a.constant for a in map(scope.compile, node.args)]
    if node.name != "get" or not keys or keys[0] is None or not isinstance(base.type, Row):
        raise NotCompilable(f"`.{node.name}` of a row")
    if keys[0][0] in base.type.names:
        return structs.field_at(scope, base, base.type.names.index(keys[0][0]))
    raise NotCompilable("`.get` of a column that is not there")


def _of_text(scope: ColumnScope, base: ColumnValue, node: Method) -> ColumnValue:
    if node.name in ("upper", "lower") and not node.args:
        return casing.changed(scope, base, node.name)
    if node.name in casing.KINDS and not node.args:
        return casing.has_kind(scope, base, node.name)
    if node.name == "isascii" and not node.args:
        return casing.is_ascii(scope, base)
    if node.name == "join" and len(node.args) == 1:
        return _join(scope, base, node.args[0])
    if node.name not in _TEXT_METHODS:
        raise NotCompilable(f"`.{node.name}` of a text")
    arguments = [scope.compile(a) for a in node.args]
    return _TEXT_METHODS[node.name](scope, scope.need(base), arguments)


def _join(scope: ColumnScope, base: ColumnValue, node: Expr) -> ColumnValue:
    separator, array = scope.need(base), loops.array_of(scope, node)
    if array.type != Array(STRING):
        raise NotCompilable(f"`.join` of {array.type}")
    joined = F.call_function("array_join", array.column, separator.column)
    column = F.when(F.exists(array.column, lambda e: e.isNull()), scope.ask()).otherwise(joined)
    return string(column, separator, array, array)


def _strip(trim: Callable[[Column, Column], Column]) -> TextMethod:
    def stripped(
        scope: ColumnScope, text: ColumnValue, arguments: list[ColumnValue]
    ) -> ColumnValue:
        if not arguments or arguments[0].constant == (None,):
            characters = casing.blanks()
        else:
            characters = _text_constant(arguments, 0)
        if characters == "":
            return text
        return string(trim(text.column, F.lit(characters)), text, safe=True)

    return stripped


def _begins(test: Callable[[Column, Column], Column]) -> TextMethod:
    def begun(scope: ColumnScope, text: ColumnValue, arguments: list[ColumnValue]) -> ColumnValue:
        parts = (arguments[0].parts or (arguments[0],)) if len(arguments) == 1 else ()
        if not parts or any(part.type != STRING for part in parts):
            raise NotCompilable("`.startswith` or `.endswith` of other than texts")
        parts = tuple(map(scope.need, parts))
        found = reduce(operator.or_, (test(text.column, part.column) for part in parts))
        return boolean(found, text, *parts)

    return begun


def _replace(scope: ColumnScope, text: ColumnValue, arguments: list[ColumnValue]) -> ColumnValue:
    old = _text_constant(arguments, 0)
    if len(arguments) != 2 or arguments[1].type != STRING or old == "":
        raise NotCompilable("`.replace` of an empty text, or a number of times")
    new = scope.need(arguments[1])
    return string(F.replace(text.column, F.lit(old), new.column), text, new, safe=True)


def _split(scope: ColumnScope, text: ColumnValue, arguments: list[ColumnValue]) -> ColumnValue:
    limit = -1
    if len(arguments) == 2:
        known = arguments[1].constant
        if known is None or type(known[0]) is not int:
            raise NotCompilable("`.split` a computed number of times")
        limit = known[0] + 1 if known[0] >= 0 else -1
    if not arguments or arguments[0].constant == (None,):
        if limit != -1:
            raise NotCompilable("`.split` at blanks a number of times")
        return computed(casing.words(text.column), Array(STRING), text, text, safe=True)
    separator = _text_constant(arguments, 0)
    if separator == "" or limit > 2**31 - 1:
        raise NotCompilable("`.split` at an empty text")
    column = F.split(text.column, _quoted(separator), limit)
    return computed(column, Array(STRING), text, safe=True)


def _find(scope: ColumnScope, text: ColumnValue, arguments: list[ColumnValue]) -> ColumnValue:
    part = _only_text(scope, arguments)
    found = F.call_function("locate", part.column, text.column)
    return long((found - 1).cast("long"), text, part, safe=True)


def _index(scope: ColumnScope, text: ColumnValue, arguments: list[ColumnValue]) -> ColumnValue:
    found = _find(scope, text, arguments)
    return strict(F.when(found.column >= 0, found.column), LONG, found, found, doubtful=True)


def _partition(text: ColumnValue, part: str) -> ColumnValue:
    place = F.call_function("locate", F.lit(part), text.column)
    before = F.substr(text.column, F.lit(1), place - 1)
    after = F.substr(text.column, place + len(part))
    columns = ((before, text.column), (F.lit(part), F.lit("")), (after, F.lit("")))
    return structs.make_tuple(
        [
            string(F.when(place > 0, there).otherwise(other), text, text, text, safe=True)
            for there, other in columns
        ]
    )


def _count(text: ColumnValue, part: str) -> ColumnValue:
    without = F.length(F.replace(text.column, F.lit(part), F.lit("")))
    column = F.call_function("div", F.length(text.column) - without, F.lit(len(part)))
    return long(column.cast("long"), text, text, safe=True)


def _without_prefix(text: ColumnValue, part: str) -> ColumnValue:
    rest = F.substr(text.column, F.lit(len(part) + 1))
    found = F.when(F.startswith(text.column, F.lit(part)), rest).otherwise(text.column)
    return string(found, text, text, text, safe=True)


def _without_suffix(text: ColumnValue, part: str) -> ColumnValue:
    rest = F.substr(text.column, F.lit(1), F.length(text.column) - len(part))
    found = F.when(F.endswith(text.column, F.lit(part)), rest).otherwise(text.column)
    return string(found, text, text, text, safe=True)


def _of_constant(make: Callable[[ColumnValue, str], ColumnValue], *, least: int = 0) -> TextMethod:
    """A method with one constant text, of so many characters at least."""

    def made(scope: ColumnScope, text: ColumnValue, arguments: list[ColumnValue]) -> ColumnValue:
        part = _text_constant(arguments, 0)
        if len(arguments) != 1 or len(part) < least:
            raise NotCompilable("a method of a text with an empty text")
        return make(text, part)

    return made


def _padded(*, left: bool) -> TextMethod:
    def padded(scope: ColumnScope, text: ColumnValue, arguments: list[ColumnValue]) -> ColumnValue:
        fill = _text_constant(arguments, 1) if len(arguments) == 2 else " "
        if len(fill) != 1:
            raise NotCompilable("a text is padded with other than one character")
        filling = _filling(text, arguments, fill)
        parts = (filling, text.column) if left else (text.column, filling)
        return string(F.concat(*parts), text, text, safe=True)

    return padded


def _zero_filled(
    scope: ColumnScope, text: ColumnValue, arguments: list[ColumnValue]
) -> ColumnValue:
    zeros = _filling(text, arguments if len(arguments) == 1 else [], "0")
    sign = F.rlike(text.column, F.lit("\\A[+-]"))
    signed = F.concat(
        F.substr(text.column, F.lit(1), F.lit(1)), zeros, F.substr(text.column, F.lit(2))
    )
    column = F.when(sign, signed).otherwise(F.concat(zeros, text.column))
    return string(column, text, text, text, safe=True)


def _filling(text: ColumnValue, arguments: list[ColumnValue], fill: str) -> Column:
    """What a text lacks of the width that is the first argument."""
    width = arguments[0].constant if arguments else None
    if width is None or type(width[0]) is not int or width[0] > 10_000:
        raise NotCompilable("a text is filled to a computed width")
    return F.repeat(F.lit(fill), F.greatest(F.lit(width[0]) - F.length(text.column), F.lit(0)))


def _text_constant(arguments: list[ColumnValue], position: int) -> str:
    known = arguments[position].constant if len(arguments) > position else None
    if known is None or not isinstance(known[0], str):
        raise NotCompilable("a method of a text with a computed argument")
    return known[0]


def _only_text(scope: ColumnScope, arguments: list[ColumnValue]) -> ColumnValue:
    if len(arguments) != 1 or arguments[0].type != STRING:
        raise NotCompilable("a method of a text with other arguments")
    return scope.need(arguments[0])


def _quoted(text: str) -> str:
    return "".join(f"\\{c}" if c in _REGEX_SPECIAL else c for c in text)


TextMethod = Callable[[ColumnScope, ColumnValue, list[ColumnValue]], ColumnValue]
_TEXT_METHODS: dict[str, TextMethod] = {
    "strip": _strip(F.btrim),
    "lstrip": _strip(F.ltrim),
    "rstrip": _strip(F.rtrim),
    "startswith": _begins(F.startswith),
    "endswith": _begins(F.endswith),
    "replace": _replace,
    "split": _split,
    "find": _find,
    "index": _index,
    "partition": _of_constant(_partition, least=1),
    "count": _of_constant(_count, least=1),
    "removeprefix": _of_constant(_without_prefix),
    "removesuffix": _of_constant(_without_suffix),
    "ljust": _padded(left=False),
    "rjust": _padded(left=True),
    "zfill": _zero_filled,
}
