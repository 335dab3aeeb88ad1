"""Methods of values on Spark: by the library, but for those that read more than columns."""

from __future__ import annotations

from collections.abc import Callable

from hydro_core.functions.tree import Op
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import (
    arrays,
    compare,
    library,
    lookup,
    moments,
    numbers,
    rounding,
    structs,
)
from hydro_core.spark.functions.columns.constants import constant
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import ColumnValue, NotCompilable, long, strict
from hydro_core.types.item import LONG, Array, Decimal, Row


def method(scope: ColumnScope, node: Op) -> ColumnValue:
    """`base.name(arguments)`."""
    base = scope.compile(node.args[0])
    if lookup.table_of(base) is not None or isinstance(base.type, Row):
        return _of_row(scope, base, node)
    if moments.is_moment(base) and node.name == ".replace":
        return _replaced(scope, base, node)
    if isinstance(base.type, Array) and node.name in _OF_ARRAYS and not node.keywords:
        return _OF_ARRAYS[node.name](scope, base, node)
    if isinstance(base.type, Decimal) and node.name in _OF_DECIMALS and not node.keywords:
        return _OF_DECIMALS[node.name](scope, base, node)
    return library.method_of(scope, base, node)


def _of_row(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    if node.name == ".copy" and len(node.args) == 1 and isinstance(base.type, Row):
        return structs.present(scope, base)
    if node.name != ".get" or node.keywords or len(node.args) not in (2, 3):
        raise NotCompilable(f"`{node.name}` of a dict")
    key, *rest = (scope.compile(a) for a in node.args[1:])
    names = base.type.names if isinstance(base.type, Row) else ()
    if key.constant is not None and key.constant[0] in names:
        scope.use(*rest)
        return structs.field_at(scope, base, names.index(key.constant[0]))
    table = lookup.table_of(base)
    if table is None:
        raise NotCompilable("`.get` of a column that is not there")
    return lookup.entry(scope, table, key, rest[0] if rest else constant(None))


def _replaced(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    named = {name: scope.compile(a).constant for name, a in node.keywords}
    if len(node.args) > 1 or not named or any(known is None for known in named.values()):
        raise NotCompilable("`.replace` by what is computed")
    fields = {name: known[0] for name, known in named.items() if known is not None}
    if "tzinfo" in fields:
        base = moments.zoned(scope, base, fields.pop("tzinfo"))
    return moments.cut(scope, base, fields) if fields else base


def _element(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    """What is looked for in an array: a NaN may equal itself there."""
    if len(node.args) != 2:
        raise NotCompilable(f"`{node.name}` of a part of a list")
    value = scope.compile(node.args[1])
    scope.use(value)
    if compare.holds_float(base.type) or compare.holds_float(value.type):
        value = compare.not_nan(scope, value)
    return value


def _count(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    array, value = scope.need(base), _element(scope, base, node)
    found = F.filter(
        array.column, lambda e: compare.equal(scope, arrays.item(array, e), value).column
    )
    return long(F.size(found).cast("long"), array, value, value)


def _index(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    array, value = scope.need(base), _element(scope, base, node)
    tests = F.transform(
        array.column, lambda e: compare.equal(scope, arrays.item(array, e), value).column
    )
    place = F.array_position(tests, True)
    return strict(F.when(place > 0, place - 1), LONG, array, value, value, doubtful=True)


def _copy(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    if len(node.args) > 1:
        raise NotCompilable("`.copy` takes nothing")
    return scope.need(base)


def _quantized(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    known = scope.compile(node.args[1]).constant if len(node.args) == 2 else None
    if known is None or not hasattr(known[0], "as_tuple"):
        raise NotCompilable("`.quantize` by a computed exponent, or in another way")
    exponent = known[0].as_tuple().exponent
    if not isinstance(exponent, int) or exponent > 0:
        raise NotCompilable("`.quantize` to tens")
    return rounding.rounded(scope, base, constant(-exponent))


def _absolute(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    return numbers.absolute(scope.need(base))


SpecialMethod = Callable[[ColumnScope, ColumnValue, Op], ColumnValue]
_OF_ARRAYS: dict[str, SpecialMethod] = {".count": _count, ".index": _index, ".copy": _copy}
_OF_DECIMALS: dict[str, SpecialMethod] = {".quantize": _quantized, ".copy_abs": _absolute}
