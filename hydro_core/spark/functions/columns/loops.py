"""What runs over Python's lists on Spark: comprehensions, sums, and what builtins are given.

A tuple whose fields have one type can be looped over as an array. A loop's body fails where
Python's would, and only for the elements that Python reaches.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column

from hydro_core.functions.totality import NotNull, where_true
from hydro_core.functions.tree import Bind, Expr, Make, Op, is_function
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import arrays, choices, integers, numbers, strings, structs
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    NotCompilable,
    boolean,
    computed,
    is_item,
    strict,
)
from hydro_core.types.item import DOUBLE, LONG, STRING, Array, Scalar, Tuple

NamedColumns = dict[str, ColumnValue]
INTEGER = Scalar("integer")
_LARGEST_START = 2**40


def _recorded(
    scope: ColumnScope,
    names: Callable[[Column], NamedColumns],
    compiled: Callable[[ColumnScope], ColumnValue],
    not_null: NotNull = (),
) -> tuple[Callable[[Column], Column], list[ColumnValue]]:
    """What is computed of each element, as a function of it, and the values that it has made."""
    made: list[ColumnValue] = []

    def of_element(element: Column) -> Column:
        inner = scope.inner(names(element), not_null)
        value = compiled(inner)
        made.append(value)
        return inner.behind(value.column)

    return of_element, made


def comprehension(scope: ColumnScope, node: Bind) -> ColumnValue:
    loop, final = ComprehensionLoop(scope, node), scope.is_result(node)
    body, made = _recorded(
        *(scope, loop.names),
        lambda inner: structs.whole(inner, inner.compile(node.body), final=final),
        loop.not_null,
    )
    kept = F.filter(loop.array.column, loop.condition) if node.conditions else loop.array.column
    column, element = F.transform(kept, body), made[0].type
    if not is_item(element) or made[0].mixed:
        raise NotCompilable("a list of what are no items")
    return computed(column, Array(element), loop.array, *made, *loop.tests)


class ComprehensionLoop:
    """What a comprehension runs over, and under which condition."""

    def __init__(self, scope: ColumnScope, node: Bind) -> None:
        self.scope, self.node = scope, node
        self.array = array_of(scope, node.value)
        test = Op("and", node.conditions)
        self.condition, self.tests = _recorded(
            scope, self.names, lambda inner: choices.test(inner, test)
        )
        self.not_null = where_true(test)
        """What is not None of an element that is kept."""

    def names(self, column: Column) -> NamedColumns:
        targets, value = self.node.names, arrays.item(self.array, column)
        made_by = self.node.value.name if isinstance(self.node.value, Op) else ""
        if made_by in ("enumerate", "zip"):
            value = value.with_(nullable=False)
        if len(targets) == 1:
            return {targets[0]: value}
        if not isinstance(value.type, Tuple) or structs.arity(value) != len(targets):
            raise NotCompilable("a loop unpacks what are no tuples of that many fields")
        fields = structs.fields_of(self.scope, self.scope.need(value))
        if made_by == "enumerate":
            fields[0] = fields[0].with_(nullable=False)
        return dict(zip(targets, fields, strict=True))


def exists(scope: ColumnScope, node: Bind, *, every: bool) -> ColumnValue:
    """`any(…)` or `all(…)` of a generator: up to the first element that decides."""
    loop = ComprehensionLoop(scope, node)
    body, tests = _recorded(
        scope, loop.names, lambda inner: choices.test(inner, node.body), loop.not_null
    )

    def decides(element: Column) -> Column:
        result = body(element)
        if not node.conditions:
            return result
        return F.when(loop.condition(element), result).otherwise(F.lit(every))

    column = (F.forall if every else F.exists)(loop.array.column, decides)
    return boolean(column, loop.array, *tests, *loop.tests, safe=False)


def array_of(scope: ColumnScope, node: Expr) -> ColumnValue:
    """What is run over, as an array that is not None."""
    match node:
        case Bind("list" | "generator"):
            return comprehension(scope, node)
        case Op("range"):
            return scope.sure(arrays.sequence(scope, node))
        case Op("enumerate", (source, *start), keywords):
            return _numbered(scope, source, [*start, *(value for _, value in keywords)])
        case Op("zip", (_, *_) as sources, ()):
            return _zipped([array_of(scope, source) for source in sources])
        case Op("reversed", (source,), ()):
            array = array_of(scope, source)
            return computed(F.reverse(array.column), array.type, array, safe=True)
    value = scope.compile(node)
    if isinstance(value.type, Tuple):
        return arrays.of_tuple(scope, value)
    if value.type == STRING:
        return strings.characters(scope, value)
    if not isinstance(value.type, Array):
        raise NotCompilable(f"a loop over {value.type}")
    return scope.need(value)


def set_of(scope: ColumnScope, node: Expr) -> ColumnValue | None:
    """The elements of what is a set, each once; None of anything else."""
    match node:
        case Op("set", (source,), ()):
            return arrays.distinct(scope, array_of(scope, source))
        case Bind("set"):
            return arrays.distinct(scope, comprehension(scope, replace(node, kind="list")))
        case Make("set"):
            return arrays.distinct(scope, array_of(scope, replace(node, kind="list")))
    return None


def by_key(scope: ColumnScope, array: ColumnValue, key: Expr, *, descending: bool) -> ColumnValue:
    """The elements as tuples that Spark orders as Python does by a key: key, place, element.

    What comes first in the array comes first among equal ones.
    """
    if not is_function(key) or len(key.names) != 1:
        raise NotCompilable("a key that is no function of an element")
    key_of, found = _recorded(
        scope,
        lambda e: {key.names[0]: arrays.item(array, e)},
        lambda inner: structs.whole(inner, inner.compile(key.body)),
    )
    column = F.transform(array.column, key_of)
    of, element = found[0].type, arrays.element_type(array)
    if not is_item(of) or found[0].mixed:
        raise NotCompilable(f"elements in the order of {of}")
    keys = arrays.ordered(scope, computed(column, Array(of), array, *found))
    sign = -1 if descending else 1

    entries = F.transform(
        keys.column, lambda k, i: structs.tuple_of(k, i * sign, F.get(array.column, i))
    )
    return computed(entries, Array(Tuple((of, INTEGER, element))), keys, array, safe=True)


def _numbered(scope: ColumnScope, source: Expr, start: list[Expr]) -> ColumnValue:
    """`enumerate(source, start)`."""
    known = scope.compile(start[0]).constant if start else (0,)
    if known is None or type(known[0]) is not int or abs(known[0]) > _LARGEST_START:
        raise NotCompilable("`enumerate` from a computed number")
    array, first = array_of(scope, source), known[0]
    column = F.transform(array.column, lambda e, i: structs.tuple_of(i.cast("long") + first, e))
    item = Tuple((LONG, arrays.element_type(array)))
    return computed(column, Array(item), array, array, safe=True)


def _zipped(sources: list[ColumnValue]) -> ColumnValue:
    """`zip(a, b)`: as many tuples as the shortest has elements."""
    first, *others = (source.column for source in sources)
    sizes = [F.size(source.column) for source in sources]
    count = F.least(*sizes) if others else sizes[0]

    column = F.transform(
        F.slice(first, 1, count), lambda e, i: structs.tuple_of(e, *(F.get(o, i) for o in others))
    )
    item = Tuple(tuple(map(arrays.element_type, sources)))
    return computed(column, Array(item), *sources, *sources, safe=True)


_ADDS_PLAINLY = sys.version_info < (3, 12)
"""From 3.12 on Python carries along what the rounding of each partial sum of floats took away."""


def total(scope: ColumnScope, node: Op) -> ColumnValue:
    """`sum(…)`: of an array, a tuple or a loop."""
    written = dict(node.keywords).get("start") or (node.args[1] if len(node.args) == 2 else None)
    start = None if written is None else scope.need(scope.compile(written))
    argument = node.args[0]
    if not isinstance(argument, Bind) or not argument.is_loop:
        array = array_of(scope, argument)
        return _total(array, lambda e: arrays.item(array, e), lambda _: None, start)
    loop = ComprehensionLoop(scope, argument)

    def element(e: Column) -> ColumnValue:
        body = scope.inner(loop.names(e), loop.not_null)
        return body.guarded(body.doubtfully(argument.body))

    kept = loop.condition if argument.conditions else lambda _: None
    return _total(loop.array, element, kept, start)


def _total(
    array: ColumnValue,
    element: Callable[[Column], ColumnValue],
    kept: Callable[[Column], Column | None],
    start: ColumnValue | None,
) -> ColumnValue:
    first = element(F.get(array.column, F.lit(0)))
    if numbers.is_float(first) and _ADDS_PLAINLY:
        zero, combine = F.lit(0.0), operator.add
    elif integers.is_int(first):
        first, zero, combine = integers.as_long(first), integers.literal(0), F.try_add
    else:
        raise NotCompilable(f"`sum` of {first.type}")
    of, parts = first.type, list[ColumnValue]()
    if start is not None:
        if not (integers.is_int(start) if of == LONG else numbers.is_float(start)):
            raise NotCompilable(f"`sum` of {of} from {start.type}")
        start = integers.as_long(start) if of == LONG else numbers.as_double(start)
        zero = start.column
        parts.append(start)

    def step(total: Column, e: Column) -> Column:
        value = element(e)
        parts.append(value)
        value = integers.as_long(value) if of == LONG else numbers.as_double(value)
        added, test = combine(total, value.column), kept(e)
        return added if test is None else F.when(test, added).otherwise(total)

    column = F.aggregate(array.column, zero, step)
    if of == LONG:
        return strict(column, LONG, array, *parts, doubtful=True)
    # Of no floats at all it is the int 0.
    return strict(column, DOUBLE, array, *parts, doubtful=True).with_(mixed=start is None)
