"""Python's builtins on Spark."""

from __future__ import annotations

from collections.abc import Callable

from hydro_core.functions.failing_constants import constant_value
from hydro_core.functions.library.registry import FUNCTIONS
from hydro_core.functions.tree import Bind, Expr, Op, constant_of
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import (
    arrays,
    choices,
    compare,
    integers,
    library,
    loops,
    moments,
    numbers,
    rounding,
    strings,
    structs,
    sums,
)
from hydro_core.spark.functions.columns.constants import constant
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import (
    ColumnValue,
    NotCompilable,
    boolean,
    computed,
    long,
    strict,
)
from hydro_core.types.item import BOOLEAN, DOUBLE, STRING, Array, Decimal, Row, Tuple


def call(scope: ColumnScope, node: Op) -> ColumnValue:
    """A call of a builtin."""
    folded = _folded(node)
    if folded is not None:
        return folded
    if node.name not in _BUILTINS and node.name in FUNCTIONS:
        return library.call_of(scope, FUNCTIONS[node.name], node)
    if node.name not in _BUILTINS or (
        node.keywords and node.name not in ("sum", "min", "max", "sorted", "timedelta")
    ):
        raise NotCompilable(f"`{node.name}` has no column")
    return _BUILTINS[node.name](scope, node)


def _folded(node: Op) -> ColumnValue | None:
    """A call on constants: computed here, unless it makes an array, or fails if an item comes."""
    value = constant_value(node) if node.operands else ...
    return None if value is ... or value is None or isinstance(value, list) else constant(value)


def _only(scope: ColumnScope, node: Op) -> ColumnValue:
    return scope.compile(_argument(node))


def _argument(node: Op) -> Expr:
    if len(node.args) != 1:
        raise NotCompilable(f"`{node.name}` of {len(node.args)} arguments")
    return node.args[0]


def _len(scope: ColumnScope, node: Op) -> ColumnValue:
    array = loops.set_of(scope, _argument(node))
    if array is None:
        value = _only(scope, node)
        if value.type == STRING:
            return strings.length(scope, value)
        if isinstance(value.type, Tuple | Row):
            scope.use(value)
            return integers.constant(structs.arity(structs.present(scope, value)))
        if not isinstance(value.type, Array):
            raise NotCompilable(f"the length of {value.type}")
        array = scope.need(value)
    return long(F.size(array.column).cast("long"), array, safe=True)


def _abs(scope: ColumnScope, node: Op) -> ColumnValue:
    value = scope.doubtfully(_argument(node))
    if not numbers.is_number(value):
        raise NotCompilable(f"`abs` of {value.type}")
    return numbers.absolute(value)


def _bool(scope: ColumnScope, node: Op) -> ColumnValue:
    return choices.test(scope, _argument(node))


def _str(scope: ColumnScope, node: Op) -> ColumnValue:
    return strings.text_of(scope, _only(scope, node))


def _int(scope: ColumnScope, node: Op) -> ColumnValue:
    value = _only(scope, node)
    if value.type == STRING:
        return strings.whole_number(scope, value)
    return rounding.truncated(scope, value)


def _float(scope: ColumnScope, node: Op) -> ColumnValue:
    value = _only(scope, node)
    if value.type == STRING:
        return strings.real_number(scope, value)
    if isinstance(value.type, Decimal):
        number = scope.need(value)
        column = number.column.cast("double")
        # What is computed may be a −0 in Python.
        column = column if value.path is not None else F.nullif(column, F.lit(0.0))
        return strict(column, DOUBLE, number, doubtful=True)
    if not (integers.is_int(value) or numbers.is_float(value)):
        raise NotCompilable(f"`float` of {value.type}")
    return scope.need(numbers.as_double(value))


def _round(scope: ColumnScope, node: Op) -> ColumnValue:
    if not 1 <= len(node.args) <= 2:
        raise NotCompilable(f"`round` of {len(node.args)} arguments")
    value, *digits = (scope.compile(a) for a in node.args)
    return rounding.rounded(scope, value, digits[0] if digits else None)


def _extreme(scope: ColumnScope, node: Op) -> ColumnValue:
    op = "<" if node.name == "min" else ">"
    if len(node.args) == 1:
        return _extreme_of_array(scope, node, op)
    if node.keywords:
        raise NotCompilable(f"`{node.name}` with a key")
    result, *others = (scope.compile(a) for a in node.args)
    for other in others:
        result = _better(scope, op, result, other)
    return result


def _better(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """Python keeps the first unless the next one is surely better."""
    if integers.is_int(a) and integers.is_int(b) and BOOLEAN not in (a.type, b.type):
        function = F.least if op == "<" else F.greatest
        x, y = (scope.need(integers.as_long(v)) for v in (a, b))
        return long(function(x.column, y.column), x, y, safe=True)
    if a.size + b.size > 200:
        raise NotCompilable("`min` or `max` of long expressions")
    test = scope.sure(compare.order(scope, op, b, a))
    return choices.choose(scope, test, b.with_(nullable=False), a.with_(nullable=False))


def _extreme_of_array(scope: ColumnScope, node: Op, op: str) -> ColumnValue:
    keywords = dict(node.keywords)
    function = F.array_min if op == "<" else F.array_max
    array = loops.set_of(scope, node.args[0]) or loops.array_of(scope, node.args[0])
    element = arrays.element_type(array)
    if "key" in keywords:
        array = loops.by_key(scope, array, keywords["key"], descending=op == ">")
        best = function(array.column).getField("_3")
    else:
        array = arrays.ordered(scope, array)
        best = function(array.column)
    if "default" in keywords:
        default = scope.compile(keywords["default"])
        scope.use(default)
        empty = structs.cast(scope, default, element)
    else:
        empty = scope.ask()
    column = F.when(F.size(array.column) == 0, empty).otherwise(best)
    return computed(column, element, array, array, nullable=True)


def _any_all(scope: ColumnScope, node: Op) -> ColumnValue:
    argument = _argument(node)
    every = node.name == "all"
    if isinstance(argument, Bind) and argument.kind == "generator":
        return loops.exists(scope, argument, every=every)
    array = loops.array_of(scope, argument)
    function = F.forall if every else F.exists
    column = function(array.column, lambda e: compare.truth(scope, arrays.item(array, e)).column)
    return boolean(column, array)


def _sorted(scope: ColumnScope, node: Op) -> ColumnValue:
    keywords = dict(node.keywords)
    reverse = False
    if "reverse" in keywords:
        known = scope.compile(keywords.pop("reverse")).constant
        if known is None:
            raise NotCompilable("`sorted` in a computed direction")
        reverse = bool(known[0])
    argument = _argument(node)
    array = loops.set_of(scope, argument) or loops.array_of(scope, argument)
    if "key" in keywords:
        entries = loops.by_key(scope, array, keywords["key"], descending=reverse)
        best_first = F.sort_array(entries.column, asc=not reverse)
        column = F.transform(best_first, lambda entry: entry.getField("_3"))
        return computed(column, array.type, entries)
    array = arrays.ordered(scope, array)
    return computed(F.sort_array(array.column, asc=not reverse), array.type, array)


def _list(scope: ColumnScope, node: Op) -> ColumnValue:
    if not node.args:
        return arrays.make(scope, [])
    return loops.array_of(scope, _argument(node))


def _tuple(scope: ColumnScope, node: Op) -> ColumnValue:
    value = _only(scope, node)
    if not isinstance(value.type, Tuple):
        raise NotCompilable(f"`tuple` of {value.type}")
    return structs.present(scope, value)


def _dict(scope: ColumnScope, node: Op) -> ColumnValue:
    value = _only(scope, node)
    if not isinstance(value.type, Row):
        raise NotCompilable(f"`dict` of {value.type}")
    return structs.present(scope, value)


def _unpack(scope: ColumnScope, node: Op) -> ColumnValue:
    value = scope.compile(node.args[0])
    count, star = map(constant_of, node.args[1:])
    if not isinstance(value.type, Tuple) or star is not None or count != structs.arity(value):
        raise NotCompilable("unpacking what is no tuple of that many fields")
    return structs.make_tuple(structs.fields_of(scope, structs.present(scope, value)))


def _flatten(scope: ColumnScope, node: Op) -> ColumnValue:
    value = loops.array_of(scope, node.args[0])
    if not isinstance(value.type, Array) or not isinstance(value.type.element, Array):
        raise NotCompilable("lists that are no lists of lists")
    # Spark gives null where an inner list is null; these come from comprehensions and are none.
    return computed(F.flatten(value.column), value.type.element, value, safe=True)


_BUILTINS: dict[str, Callable[[ColumnScope, Op], ColumnValue]] = {
    "len": _len,
    "abs": _abs,
    "bool": _bool,
    "str": _str,
    "int": _int,
    "float": _float,
    "round": _round,
    "min": _extreme,
    "max": _extreme,
    "coalesce": choices.coalesced,
    "greatest": choices.extreme,
    "least": choices.extreme,
    "sum": sums.total,
    "any": _any_all,
    "all": _any_all,
    "sorted": _sorted,
    "list": _list,
    "tuple": _tuple,
    "dict": _dict,
    "timedelta": moments.duration,
    "(unpack)": _unpack,
    "(flatten)": _flatten,
}
