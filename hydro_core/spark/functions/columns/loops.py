"""What runs over Python's lists on Spark: comprehensions, and what builtins are given.

A tuple whose fields have one type can be looped over as an array. A loop's body fails where
Python's would, and only for the elements that Python reaches.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column

from hydro_core.functions.not_null import NotNull, where_true
from hydro_core.functions.tree import Call, Comprehension, Expr
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import arrays, choices, structs
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import ColumnValue, NotCompilable, boolean, computed
from hydro_core.types.item import LONG, Array, ItemType, Tuple

NamedColumns = dict[str, ColumnValue]


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
        value = arrays.item(self.array, columns[0])
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
            return self.scope.sure(arrays.sequence(self.scope, node))
        value = self.scope.compile(node)
        if isinstance(value.type, Tuple):
            return arrays.of_tuple(self.scope, value)
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


def array_of(scope: ColumnScope, node: Expr) -> ColumnValue:
    """What a builtin runs over, as an array that is not None."""
    if isinstance(node, Comprehension) and node.kind != "set":
        return comprehension(scope, node)
    if isinstance(node, Call) and node.name == "range":
        return scope.sure(arrays.sequence(scope, node))
    value = scope.compile(node)
    if isinstance(value.type, Tuple):
        return arrays.of_tuple(scope, value)
    if not isinstance(value.type, Array):
        raise NotCompilable(f"a builtin runs over {value.type}")
    return scope.need(value)
