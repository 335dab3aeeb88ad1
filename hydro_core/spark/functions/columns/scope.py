"""The names that an expression sees, and what is checked before it is evaluated.

A *guard* is a condition under which Spark cannot tell what Python gives: a field of a None is read,
for instance. It is checked once for its whole scope, so the rest of the expression stays what it
is: a plain column, which Spark can prune, push down and partition by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column

from hydro_core.functions.fn import Fn
from hydro_core.functions.not_null import NotNull
from hydro_core.functions.tree import Expr, Op, Param, Part
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns.value import ColumnValue, NotCompilable
from hydro_core.spark.functions.guards import asked
from hydro_core.types.item import UNKNOWN

Compile = Callable[[Expr, "ColumnScope"], ColumnValue]


@dataclass(frozen=True, slots=True)
class FunctionSite:
    fn: Fn
    compile: Compile
    """Compiles an expression within it."""
    results: frozenset[int] = frozenset()
    """The ids of the nodes whose values are results of the function, or stand in them."""

    _asked: list[Column] = field(default_factory=list, init=False, compare=False, repr=False)

    def ask(self) -> Column:
        """A column that fails the job: Python is asked."""
        if not self._asked:
            self._asked.append(asked(self.fn))
        return self._asked[0]


@dataclass(slots=True)
class ColumnScope:
    """Names, and the guards found so far.

    An inner scope is evaluated only sometimes, or for each element of a loop.
    """

    site: FunctionSite
    names: Mapping[str, ColumnValue]
    outer: ColumnScope | None = None
    guards: dict[object, Column] = field(default_factory=dict)
    there: frozenset[tuple[str, ...]] = frozenset()
    """Paths into the parameters at which no None stands here."""

    def inner(
        self, names: Mapping[str, ColumnValue] | None = None, not_null: NotNull = ()
    ) -> ColumnScope:
        """A scope within: with further names, and guards of its own.

        It is evaluated only where the expressions are `not_null`.
        """
        scope = ColumnScope(self.site, {**self.names, **(names or {})}, self, there=self.there)
        for node in not_null:
            scope._learn(node)
        return scope

    def is_result(self, node: Expr) -> bool:
        """Whether the node's value is a result of the function, or stands in one."""
        return id(node) in self.site.results

    def compile(self, node: Expr) -> ColumnValue:
        """The value of a sub-expression in this scope; null is None."""
        return self.sure(self.doubtfully(node))

    def doubtfully(self, node: Expr) -> ColumnValue:
        """The same, for those who mind that null may be a doubt."""
        value = self.site.compile(node, self)
        return value.with_(nullable=False) if value.path in self.there else value

    def branch(self, node: Expr, not_null: NotNull = ()) -> ColumnValue:
        """The value, maybe doubtful, of a sub-expression that is evaluated only sometimes."""
        scope = self.inner(not_null=not_null)
        return scope.guarded(scope.doubtfully(node))

    def ask(self) -> Column:
        """A column that fails the job: Python is asked."""
        return self.site.ask()

    def guard(self, key: object, condition: Column) -> None:
        """Asks Python where `condition` holds, before the rest of this scope is evaluated."""
        scope: ColumnScope | None = self
        while scope is not None:
            if key in scope.guards:
                return
            scope = scope.outer
        self.guards[key] = condition

    def guarded(self, value: ColumnValue) -> ColumnValue:
        """The value behind this scope's guards."""
        if not self.guards:
            return value
        if value.parts is not None:
            return value.with_(parts=tuple(map(self.guarded, value.parts)), path=None)
        size = value.size + 2 * len(self.guards)
        return value.with_(column=self.behind(value.column), safe=False, size=size, path=None)

    def behind(self, column: Column) -> Column:
        if not self.guards:
            return column
        return F.when(reduce(lambda a, b: a | b, self.guards.values()), self.ask()).otherwise(
            column
        )

    def sure(self, value: ColumnValue) -> ColumnValue:
        """The value, where Python is asked if it is in doubt."""
        return self._asked(value) if value.doubtful else value

    def need(self, value: ColumnValue) -> ColumnValue:
        """The value, where Python is asked if it is None: most probably it fails."""
        return self._asked(value) if value.doubtful or value.nullable else value

    def use(self, *values: ColumnValue) -> None:
        """Has values computed of which nothing else may be read: Python computes them all."""
        for value in values:
            for part in value.parts or (value,):
                if part.parts is not None:
                    self.use(part)
                elif part.may_fail and part.nullable:
                    raise NotCompilable("a part that may fail is computed and not used")
                elif part.may_fail:
                    self.guard(object(), part.column.isNull())

    def _learn(self, node: Expr) -> None:
        """That a name, or a field of one, is not None."""
        if isinstance(node, Param) and node.name in self.names:
            value = self.names[node.name]
            if value.nullable and value.type != UNKNOWN:
                self.names = {**self.names, node.name: value.with_(nullable=False)}
        if isinstance(node, Param | Part) or (
            isinstance(node, Op) and node.family in ("index", "method")
        ):
            # What is read on the way is checked where the test stands, which comes first.
            path = ColumnScope(self.site, self.names, self).doubtfully(node).path
            self.there |= {path} if path is not None else set()

    def _asked(self, value: ColumnValue) -> ColumnValue:
        column = F.coalesce(value.column, self.ask())
        changes = {"nullable": False, "doubtful": False, "safe": False, "path": None}
        return value.with_(column=column, size=value.size + 1, **changes)
