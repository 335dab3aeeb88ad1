"""Calls on Spark: entries of the library as columns, and builtins and methods that need more."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any

from pyspark.sql import Column

from hydro_core.functions.constant import constant_value
from hydro_core.functions.kinds import TIMEDELTA, ExprType
from hydro_core.functions.library.entry import Expression, Operation, Parameter
from hydro_core.functions.library.registry import FUNCTIONS, members_of
from hydro_core.functions.tree import Bind, Expr, Op, constant_of
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns import (
    arrays,
    choices,
    compare,
    integers,
    lookup,
    moments,
    numbers,
    strings,
    structs,
)
from hydro_core.spark.functions.columns.structs import constant
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    NotCompilable,
    boolean,
    computed,
    long,
    strict,
)
from hydro_core.types.item import (
    BOOLEAN,
    DOUBLE,
    LONG,
    STRING,
    Array,
    Decimal,
    ItemType,
    Row,
    Tuple,
)

# Entries of the library as columns: their expressions on their arguments.


_TIMES_READ = 3
"""About how often an expression reads its arguments."""


def member_of(base: ColumnValue, name: str) -> Operation | None:
    """The entry of a method or property, None if values of that type have none."""
    if base.mixed or not isinstance(base.type, ItemType):
        return None
    return members_of(base.type).get(name)


def property_of(scope: ColumnScope, base: ColumnValue, name: str) -> ColumnValue:
    entry = member_of(base, name)
    if entry is None or entry.takes is not None or entry.column is None:
        raise NotCompilable(f"`.{name}` of {base.type}")
    assert not callable(entry.gives)
    return _computed(entry.gives, entry.column(F, _plain(scope, base).column), (base,))


def method_of(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    name = node.name[1:]
    entry = member_of(base, name)
    if entry is None or entry.column is None or node.keywords:
        raise NotCompilable(f"`.{name}` of {base.type}")
    subject = _plain(scope, base)
    given, of = _arguments(scope, entry.takes or (), name, node.args[1:], _plain)
    found = _found(entry.column, [subject.column, *given], name)
    return _computed(node.type, found, (subject, *of), may_fail=entry.may_fail)


def call_of(scope: ColumnScope, entry: Operation, node: Op) -> ColumnValue:
    if entry.column is None or node.keywords:
        raise NotCompilable(f"`{node.name}` has no column")
    plain = _known if entry.nulls == "strict" else _plain
    given, of = _arguments(scope, entry.takes or (), node.name, node.args, plain)
    found = _found(entry.column, given, node.name)
    if entry.nulls == "strict":
        return _strict(scope, entry, node.type, found, of)
    return _computed(node.type, found, tuple(of), may_fail=entry.may_fail)


def _strict(
    scope: ColumnScope, entry: Operation, gives: ExprType, found: Any, of: list[ColumnValue]
) -> ColumnValue:
    """The result of a strict function: null for a null argument.

    An expression with a second column, a condition that the result is known, may give null there.
    """
    if not isinstance(gives, ItemType):
        raise NotCompilable(f"{gives} is no item")
    column, known = found if isinstance(found, tuple) else (found, None)
    column = column.cast(spark_type(gives))
    nulls = [value.column.isNull() for value in of if value.nullable]
    if known is not None:
        column = F.when(known, column).otherwise(scope.ask())
    elif entry.may_fail and nulls:
        column = F.coalesce(column, scope.ask())
    if nulls:
        column = F.when(reduce(or_, nulls), F.lit(None)).otherwise(column)
    nullable = bool(nulls) or known is not None
    return computed(
        column,
        gives,
        *of * _TIMES_READ,
        safe=known is None and not (entry.may_fail and nulls),
        nullable=nullable,
        doubtful=entry.may_fail and not nullable,
    )


def _found(expression: Expression, given: Sequence[Any], name: str) -> Any:
    least, most = _takes(expression)
    found = expression(F, *given) if least <= len(given) <= most else None
    if found is None:
        raise NotCompilable(f"`{name}` with such arguments")
    return found


@lru_cache(maxsize=512)
def _takes(expression: Expression) -> tuple[int, int]:
    _, *parameters = inspect.signature(expression).parameters.values()
    return sum(p.default is p.empty for p in parameters), len(parameters)


def _arguments(
    scope: ColumnScope,
    takes: Sequence[Parameter],
    name: str,
    args: Sequence[Expr],
    plain: Callable[[ColumnScope, ColumnValue], ColumnValue],
) -> tuple[list[Any], list[ColumnValue]]:
    if len(args) > len(takes):
        raise NotCompilable(f"`{name}` of {len(args)} arguments")
    given: list[Any] = []
    of: list[ColumnValue] = []
    for parameter, argument in zip(takes, args, strict=False):
        if parameter.given_as == "strings":
            value = choices.array_of(scope, argument)
            if value.type != Array(STRING):
                raise NotCompilable(f"`{name}` of {value.type}")
            given.append(value.column)
            of.append(value)
            continue
        value = scope.compile(argument)
        if parameter.given_as == "constant":
            if value.constant is None:
                raise NotCompilable(f"`{name}` with a computed argument")
            given.append(value.constant[0])
            continue
        fits = isinstance(value.type, ItemType) and parameter.fits(value.type)
        if not fits or numbers.is_decimal(value):
            raise NotCompilable(f"`{name}` of {value.type}")
        several = value.parts if value.parts is not None else (value,)
        parts = [plain(scope, part) for part in several]
        columns = [part.column for part in parts]
        given.append(columns if parameter.given_as == "columns" else columns[0])
        of += parts
    return given, of


def _plain(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The value, which is not None: a number as a long or a double."""
    return scope.need(_known(scope, value))


def _known(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The value, which may be None: a number as a long or a double."""
    if value.mixed:
        raise NotCompilable("an int for some items and a float for others is looked into")
    if numbers.is_float(value):
        value = numbers.as_double(value)
    elif integers.is_int(value):
        value = integers.as_long(value)
    return scope.sure(value)


def _computed(
    gives: ExprType, found: Any, of: tuple[ColumnValue, ...], *, may_fail: bool = False
) -> ColumnValue:
    if isinstance(gives, Tuple):
        parts = zip(gives.fields, found, strict=True)
        return structs.make_tuple([_computed(f, c, of, may_fail=may_fail) for f, c in parts])
    column = found.cast("long") if gives in (LONG, TIMEDELTA) else found
    if not isinstance(gives, ItemType):
        raise NotCompilable(f"{gives} is no item")
    return strict(column, gives, *of * _TIMES_READ, doubtful=may_fail)


# Calls on Spark: by the library, except for builtins and methods that read more than columns.


def call(scope: ColumnScope, node: Op) -> ColumnValue:
    folded = _folded(node)
    if folded is not None:
        return folded
    if node.name in _NAMED or (node.name in _BUILTINS and not node.keywords):
        return _BUILTINS[node.name](scope, node)
    if node.name in _BUILTINS or node.name not in FUNCTIONS:
        raise NotCompilable(f"`{node.name}` has no column")
    return call_of(scope, FUNCTIONS[node.name], node)


def _folded(node: Op) -> ColumnValue | None:
    """A call on constants: computed here, unless it makes an array, or fails for every item."""
    value = constant_value(node) if node.operands else ...
    return None if value is ... or value is None or isinstance(value, list) else constant(value)


def _only(scope: ColumnScope, node: Op) -> ColumnValue:
    return scope.compile(_argument(node))


def _argument(node: Op) -> Expr:
    if len(node.args) != 1:
        raise NotCompilable(f"`{node.name}` of {len(node.args)} arguments")
    return node.args[0]


def _len(scope: ColumnScope, node: Op) -> ColumnValue:
    whole = choices.set_of(scope, _argument(node))
    if whole is None:
        value = _only(scope, node)
        if isinstance(value.type, Tuple | Row):
            scope.use(value)
            return integers.constant(structs.arity(structs.present(scope, value)))
        if value.type != STRING and not isinstance(value.type, Array):
            raise NotCompilable(f"the length of {value.type}")
        whole = scope.need(value)
    size = F.length if whole.type == STRING else F.size
    return long(size(whole.column).cast("long"), whole, safe=True)


def _abs(scope: ColumnScope, node: Op) -> ColumnValue:
    value = scope.doubtfully(_argument(node))
    if not numbers.is_number(value):
        raise NotCompilable(f"`abs` of {value.type}")
    return numbers.absolute(value)


def _int(scope: ColumnScope, node: Op) -> ColumnValue:
    value = _only(scope, node)
    if value.type == STRING:
        return strings.number_of(scope, value, LONG)
    return numbers.truncated(scope, value)


def _float(scope: ColumnScope, node: Op) -> ColumnValue:
    value = _only(scope, node)
    if value.type == STRING:
        return strings.number_of(scope, value, DOUBLE)
    if isinstance(value.type, Decimal):
        number = scope.need(value)
        column = number.column.cast("double")
        # A computed decimal may be −0 in Python.
        column = column if value.path is not None else F.nullif(column, F.lit(0.0))
        return strict(column, DOUBLE, number, doubtful=True)
    if not (integers.is_int(value) or numbers.is_float(value)):
        raise NotCompilable(f"`float` of {value.type}")
    return scope.need(numbers.as_double(value))


def _round(scope: ColumnScope, node: Op) -> ColumnValue:
    value, *digits = (scope.compile(a) for a in node.args)
    return numbers.rounded(scope, value, digits[0] if digits else None)


def _extreme(scope: ColumnScope, node: Op) -> ColumnValue:
    if len(node.args) == 1:
        return _extreme_of_array(scope, node)
    if node.keywords:
        raise NotCompilable(f"`{node.name}` with a key")
    result, *others = (scope.compile(a) for a in node.args)
    for other in others:
        result = _better(scope, node, result, other)
    return result


def _better(scope: ColumnScope, node: Op, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """Python returns the first unless the next one is certainly better."""
    if integers.is_int(a) and integers.is_int(b) and BOOLEAN not in (a.type, b.type):
        function = F.least if node.name == "min" else F.greatest
        x, y = (scope.need(integers.as_long(v)) for v in (a, b))
        return long(function(x.column, y.column), x, y, safe=True)
    if a.size + b.size > 200:
        raise NotCompilable("`min` or `max` of long expressions")
    test = scope.sure(compare.order(scope, "<" if node.name == "min" else ">", b, a))
    pair = b.with_(nullable=False), a.with_(nullable=False)
    return choices.choose(scope, test, pair, node.type)


def _extreme_of_array(scope: ColumnScope, node: Op) -> ColumnValue:
    keywords, least = dict(node.keywords), node.name == "min"
    array, given = _in_order(scope, node.args[0], keywords.get("key"), descending=not least)
    element = arrays.element_type(array)
    if "default" in keywords:
        default = scope.compile(keywords["default"])
        scope.use(default)
        empty = structs.cast(scope, default, element)
    else:
        empty = scope.ask()
    best = given((F.array_min if least else F.array_max)(array.column))
    column = F.when(F.size(array.column) == 0, empty).otherwise(best)
    return computed(column, element, array, array, nullable=True)


def _in_order(
    scope: ColumnScope, source: Expr, key: Expr | None, *, descending: bool
) -> tuple[ColumnValue, Callable[[Column], Column]]:
    """Elements as Spark orders them, and a function that restores one: with a key, they are
    tuples.
    """
    array = choices.set_of(scope, source) or choices.array_of(scope, source)
    if key is None:
        return arrays.ordered(scope, array), lambda e: e
    keyed = choices.by_key(scope, array, key, descending=descending)
    return keyed.with_(type=array.type), lambda entry: entry.getField("_3")


def _any_all(scope: ColumnScope, node: Op) -> ColumnValue:
    argument = _argument(node)
    every = node.name == "all"
    if isinstance(argument, Bind) and argument.kind == "generator":
        return choices.exists(scope, argument, every=every)
    array = choices.array_of(scope, argument)
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
    key = keywords.get("key")
    array, given = _in_order(scope, _argument(node), key, descending=reverse)
    column = F.sort_array(array.column, asc=not reverse)
    return computed(column if key is None else F.transform(column, given), array.type, array)


def _list(scope: ColumnScope, node: Op) -> ColumnValue:
    if not node.args:
        return arrays.make(scope, [])
    return choices.array_of(scope, _argument(node))


def _as_it_is(scope: ColumnScope, node: Op) -> ColumnValue:
    """`tuple(x)` of a tuple, `dict(x)` of a row."""
    value = _only(scope, node)
    if not isinstance(value.type, Tuple if node.name == "tuple" else Row):
        raise NotCompilable(f"`{node.name}` of {value.type}")
    return structs.present(scope, value)


def _unpack(scope: ColumnScope, node: Op) -> ColumnValue:
    value = scope.compile(node.args[0])
    count, star = map(constant_of, node.args[1:])
    if not isinstance(value.type, Tuple) or star is not None or count != structs.arity(value):
        raise NotCompilable("unpacking what is no tuple of that many fields")
    return structs.make_tuple(structs.fields_of(scope, structs.present(scope, value)))


def _flatten(scope: ColumnScope, node: Op) -> ColumnValue:
    value = choices.array_of(scope, node.args[0])
    if not isinstance(value.type, Array) or not isinstance(value.type.element, Array):
        raise NotCompilable("lists that are no lists of lists")
    # Spark gives null if an inner list is null; these come from comprehensions and are never null.
    return computed(F.flatten(value.column), value.type.element, value, safe=True)


_BUILTINS: dict[str, Callable[[ColumnScope, Op], ColumnValue]] = {
    "len": _len,
    "abs": _abs,
    "bool": lambda scope, node: choices.test(scope, _argument(node)),
    "str": lambda scope, node: strings.text_of(scope, _only(scope, node)),
    "int": _int,
    "float": _float,
    "round": _round,
    "min": _extreme,
    "max": _extreme,
    "coalesce": choices.of_what_is_there,
    "greatest": choices.of_what_is_there,
    "least": choices.of_what_is_there,
    "sum": choices.total,
    "any": _any_all,
    "all": _any_all,
    "sorted": _sorted,
    "list": _list,
    "tuple": _as_it_is,
    "dict": _as_it_is,
    "timedelta": moments.duration,
    "(unpack)": _unpack,
    "(flatten)": _flatten,
}
_NAMED = ("sum", "min", "max", "sorted", "timedelta")
"""Functions with keyword arguments."""


def method(scope: ColumnScope, node: Op) -> ColumnValue:
    base = scope.compile(node.args[0])
    if lookup.table_of(base) is not None or isinstance(base.type, Row):
        return _of_row(scope, base, node)
    if moments.is_moment(base) and node.name == ".replace":
        return _replaced(scope, base, node)
    special = _METHODS.get((type(base.type), node.name))
    if special is None or node.keywords:
        return method_of(scope, base, node)
    return special(scope, base, node)


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
    return lookup.entry(scope, table, key, rest or [constant(None)])


def _replaced(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    named = {name: scope.compile(a).constant for name, a in node.keywords}
    if len(node.args) > 1 or not named or any(known is None for known in named.values()):
        raise NotCompilable("`.replace` by what is computed")
    fields = {name: known[0] for name, known in named.items() if known is not None}
    if "tzinfo" in fields:
        base = moments.zoned(scope, base, fields.pop("tzinfo"))
    return moments.cut(scope, base, fields) if fields else base


def _sought(
    scope: ColumnScope, base: ColumnValue, node: Op
) -> tuple[ColumnValue, ColumnValue, Callable[[Column], Column]]:
    if len(node.args) != 2:
        raise NotCompilable(f"`{node.name}` of a part of a list")
    return lookup.sought(scope, base, scope.compile(node.args[1]))


def _count(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    array, value, is_it = _sought(scope, base, node)
    return long(F.size(F.filter(array.column, is_it)).cast("long"), array, value, value)


def _index(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    array, value, is_it = _sought(scope, base, node)
    place = F.array_position(F.transform(array.column, is_it), True)
    return strict(F.when(place > 0, place - 1), LONG, array, value, value, doubtful=True)


def _quantized(scope: ColumnScope, base: ColumnValue, node: Op) -> ColumnValue:
    known = scope.compile(node.args[1]).constant if len(node.args) == 2 else None
    if known is None or not hasattr(known[0], "as_tuple"):
        raise NotCompilable("`.quantize` by a computed exponent, or in another way")
    exponent = known[0].as_tuple().exponent
    if not isinstance(exponent, int) or exponent > 0:
        raise NotCompilable("`.quantize` to tens")
    return numbers.rounded(scope, base, constant(-exponent))


_METHODS: dict[tuple[type, str], Callable[[ColumnScope, ColumnValue, Op], ColumnValue]] = {
    (Array, ".count"): _count,
    (Array, ".index"): _index,
    (Decimal, ".quantize"): _quantized,
}
