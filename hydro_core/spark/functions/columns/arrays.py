"""Python's lists on Spark: made, read, cut, joined, looped over and summed up.

A tuple whose fields have one type can be looped over as an array. Elements may be None; a loop's
body fails where Python's would, and only for the elements that Python reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column

from hydro_core.functions.not_null import NotNull, where_true
from hydro_core.functions.tree import Call, Comprehension, Expr
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns import choices, integers, structs
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import (
    ColumnValue,
    NotCompilable,
    boolean,
    computed,
    strict,
)
from hydro_core.types.common import common_types
from hydro_core.types.item import DOUBLE, LONG, UNKNOWN, Array, ItemType, Tuple

NamedColumns = dict[str, ColumnValue]
_COMPARED = (
    *("boolean", "byte", "short", "integer", "long", "string", "binary", "date", "timestamp"),
    *("timestamp_ntz", str(UNKNOWN)),
)
"""The types whose values Spark compares as Python does."""
_MAX_RANGE = 1_000_000


def make(scope: ColumnScope, parts: Sequence[ColumnValue], *, final: bool = False) -> ColumnValue:
    """`[a, b]`."""
    types = [p.type for p in parts]
    if not all(isinstance(t, ItemType) for t in types):
        raise NotCompilable("a list of what are no items")
    element = common_types(t for t in types if isinstance(t, ItemType))
    if element is None:
        raise NotCompilable("a list of several types")
    columns = [structs.cast(scope, p, element, final=final) for p in parts]
    column = F.array(*columns).cast(spark_type(Array(element)))
    return computed(column, Array(element), *parts, safe=True)


def of_tuple(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The fields of a tuple as an array."""
    return make(scope, structs.fields_of(scope, structs.present(scope, value)))


def item(array: ColumnValue, column: Column) -> ColumnValue:
    """An element of an array; it may be None."""
    if not isinstance(array.type, Array):
        raise NotCompilable(f"an element of {array.type}")
    return ColumnValue(column, array.type.element)


def size(array: ColumnValue) -> Column:
    """The number of elements."""
    return F.size(array.column)


def element(scope: ColumnScope, value: ColumnValue, index: ColumnValue) -> ColumnValue:
    """`array[i]`."""
    if not integers.is_int(index) or not isinstance(value.type, Array):
        raise NotCompilable(f"{value.type} is indexed by {index.type}")
    array, i = scope.need(value), integers.bound(scope, index)
    count = size(array)
    inside = (i.column < count) & (i.column >= -count)
    place = F.when(i.column < 0, i.column + count).otherwise(i.column).cast("int")
    found = F.when(inside, F.get(array.column, place)).otherwise(scope.ask())
    return computed(found, value.type.element, array, array, array, i, i, nullable=True)


def concatenate(scope: ColumnScope, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a + b` of two lists, or of two tuples."""
    if isinstance(a.type, Tuple) and isinstance(b.type, Tuple):
        sides = (structs.present(scope, a), structs.present(scope, b))
        return structs.make_tuple([f for side in sides for f in structs.fields_of(scope, side)])
    if not isinstance(a.type, Array) or not isinstance(b.type, Array):
        raise NotCompilable(f"`+` of {a.type} and {b.type}")
    to = common_types((a.type, b.type))
    if to is None:
        raise NotCompilable(f"`+` of {a.type} and {b.type}")
    x, y = scope.need(a), scope.need(b)
    column = F.concat(structs.cast(scope, x, to), structs.cast(scope, y, to))
    return computed(column, to, x, y, safe=True)


def comprehension(scope: ColumnScope, node: Comprehension) -> ColumnValue:
    """`[element for targets in source if conditions]`."""
    loop = ComprehensionLoop(scope, node)
    result: list[ColumnValue] = []

    def body(*columns: Column) -> Column:
        inner = scope.inner(loop.names(*columns), loop.not_null)
        value = structs.whole(inner, inner.compile(node.element), final=scope.is_result(node))
        if not isinstance(value.type, ItemType) or value.mixed:
            raise NotCompilable("a list of what are no items")
        result.append(value)
        return inner.behind(value.column)

    column = loop.transform(body)
    element_type = result[0].type
    if not isinstance(element_type, ItemType):
        raise NotCompilable("a list of what are no items")
    return computed(column, Array(element_type), loop.array, *result, *loop.tests)


class ComprehensionLoop:
    """What a comprehension runs over, and under which conditions."""

    def __init__(self, scope: ColumnScope, node: Comprehension) -> None:
        self.scope, self.node = scope, node
        self.tests: list[ColumnValue] = []
        self.numbered = False
        self.start: ColumnValue | None = None
        self.array = self._source(node.source)
        self.not_null = tuple(part for test in node.conditions for part in where_true(test))
        """What is not None of an element that is kept."""

    def names(self, *columns: Column) -> NamedColumns:
        """The targets' values for an element, and its position where that is a target."""
        targets = self.node.targets
        value = item(self.array, columns[0])
        if self.numbered:
            number = ColumnValue(columns[1].cast("long"), LONG, nullable=False)
            return self._number_and(number, value, targets)
        if len(targets) == 1:
            return {targets[0]: value}
        return self._unpacked(value, targets)

    def transform(self, body: Callable[..., Column]) -> Column:
        """The elements' results."""
        # Spark counts the parameters of its lambdas: they name as many as the element has.
        if not self.node.conditions:
            if self.numbered:
                return F.transform(self.array.column, lambda e, i: body(e, i))  # noqa: PLW0108
            return F.transform(self.array.column, lambda e: body(e))  # noqa: PLW0108
        if self.numbered:
            raise NotCompilable("`enumerate` with a condition")
        kept = F.filter(self.array.column, lambda e: self.condition(e))  # noqa: PLW0108
        return F.transform(kept, lambda e: body(e))  # noqa: PLW0108

    def condition(self, *columns: Column) -> Column:
        """Whether an element is kept."""
        inner = self.scope.inner(self.names(*columns))
        result: ColumnValue | None = None
        not_null: NotNull = ()
        for node in self.node.conditions:
            branch = inner if result is None else inner.inner(not_null=not_null)
            not_null += where_true(node)
            kept = choices.test(branch, node)
            kept = kept if result is None else branch.guarded(kept)
            result = kept if result is None else choices.both(result, kept)
        if result is None:
            return F.lit(True)
        self.tests.append(result)
        return inner.behind(result.column)

    def _source(self, node: Expr) -> ColumnValue:
        if isinstance(node, Call) and node.name == "enumerate" and len(node.args) == 1:
            if node.keywords or len(self.node.targets) != 2:
                raise NotCompilable("`enumerate` with a start or one target")
            self.numbered = True
            return self._source(node.args[0])
        if isinstance(node, Call) and node.name == "range":
            return self.scope.sure(sequence(self.scope, node))
        value = self.scope.compile(node)
        if isinstance(value.type, Tuple):
            return of_tuple(self.scope, value)
        if not isinstance(value.type, Array):
            raise NotCompilable(f"a loop over {value.type}")
        return self.scope.need(value)

    def _number_and(
        self, number: ColumnValue, value: ColumnValue, targets: tuple[str, ...]
    ) -> NamedColumns:
        return {targets[0]: number, targets[1]: value}

    def _unpacked(self, value: ColumnValue, targets: tuple[str, ...]) -> NamedColumns:
        if not isinstance(value.type, Tuple) or structs.arity(value) != len(targets):
            raise NotCompilable("a loop unpacks what are no tuples of that many fields")
        whole = self.scope.need(value)
        return dict(zip(targets, structs.fields_of(self.scope, whole), strict=True))


def sequence(scope: ColumnScope, node: Call) -> ColumnValue:
    """`range(n)`, `range(low, high)`."""
    if node.keywords or len(node.args) not in (1, 2):
        raise NotCompilable("a range with a step")
    bounds = [integers.bound(scope, _int(scope.compile(a))) for a in node.args]
    low = integers.constant(0) if len(bounds) == 1 else bounds[0]
    high = bounds[-1]
    count = F.try_subtract(high.column, low.column)
    empty = F.array().cast("array<bigint>")
    column = F.when(high.column <= low.column, empty).when(
        count <= _MAX_RANGE, F.sequence(low.column, high.column - 1)
    )
    return strict(column, Array(LONG), low, high, low, high, doubtful=True)


def exists(scope: ColumnScope, node: Comprehension, *, every: bool) -> ColumnValue:
    """`any(…)` or `all(…)` of a generator: up to the first element that decides."""
    loop = ComprehensionLoop(scope, node)
    tests: list[ColumnValue] = []

    def body(*columns: Column) -> Column:
        inner = scope.inner(loop.names(*columns), loop.not_null)
        test = choices.test(inner, node.element)
        tests.append(test)
        result = inner.behind(test.column)
        if not node.conditions:
            return result
        return F.when(loop.condition(*columns), result).otherwise(F.lit(every))

    if loop.numbered:
        raise NotCompilable("`enumerate` within `any` or `all`")
    function = F.forall if every else F.exists
    column = function(loop.array.column, lambda e: body(e))  # noqa: PLW0108
    return boolean(column, loop.array, *tests, *loop.tests, safe=False)


def distinct(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The distinct elements, as `set` keeps them: for `len` and `sorted` only."""
    # Of −0 alone Spark makes 0.
    array = _compared(scope, value, lambda e: F.lit(False), least=1)
    return computed(F.array_distinct(array.column), array.type, array)


def ordered(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The array, of which Spark orders the elements as Python does."""
    return _compared(scope, value, lambda e: e.isNull(), least=2)


def _compared(
    scope: ColumnScope, value: ColumnValue, refused: Callable[[Column], Column], *, least: int
) -> ColumnValue:
    """The array; Python is asked where Spark compares elements otherwise, if there are `least`."""
    if not isinstance(value.type, Array):
        raise NotCompilable(f"a builtin runs over {value.type}")
    element, array = value.type.element, scope.need(value)
    if element != DOUBLE and str(element) not in _COMPARED:
        raise NotCompilable(f"elements of {element} are compared")

    def is_odd(e: Column) -> Column:
        if element != DOUBLE:
            return refused(e)
        # To Spark NaN is a number, and −0 another one than 0.
        return refused(e) | F.isnan(e) | ((e == 0.0) & (e.cast("string") == "-0.0"))

    odd = (F.size(array.column) >= least) & F.exists(array.column, is_odd)
    column = F.when(odd, scope.ask()).otherwise(array.column)
    return computed(column, array.type, array, array, array)


def array_of(scope: ColumnScope, node: Expr) -> ColumnValue:
    """What a builtin runs over, as an array that is not None."""
    if isinstance(node, Comprehension) and node.kind != "set":
        return comprehension(scope, node)
    if isinstance(node, Call) and node.name == "range":
        return scope.sure(sequence(scope, node))
    value = scope.compile(node)
    if isinstance(value.type, Tuple):
        return of_tuple(scope, value)
    if not isinstance(value.type, Array):
        raise NotCompilable(f"a builtin runs over {value.type}")
    return scope.need(value)


def _int(value: ColumnValue) -> ColumnValue:
    if not integers.is_int(value):
        raise NotCompilable(f"a range of {value.type}")
    return value
