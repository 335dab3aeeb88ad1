"""The compiled value of a sub-expression of a function, and its scope.

It is a column with known facts about its values. Two things make a column of Spark and a value of
Python differ. Null may represent None (`nullable`), or an unknown result (`doubtful`): an operand
was None, a result exceeded 64 bits, a divisor was 0. And its evaluation may fail the job (`safe` is
False), so it must be evaluated exactly where Python does.

A *guard* is a condition under which Spark cannot compute Python's result: a field of a None is
read, for instance. It is checked once for its whole scope, so the rest of the expression stays a
plain column, which Spark can prune, push down and partition by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeGuard

from pyspark.sql import Column

from hydro_core.functions.kinds import ANY, TIMEDELTA, Place
from hydro_core.functions.totality import NotNull
from hydro_core.functions.tree import Expr, Fn, Op, Param, Part
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.guards import asked
from hydro_core.types.item import BOOLEAN, LONG, UNKNOWN, ItemType

MAX_SIZE = 3_000
"""Largest number of parts: a larger expression is slower to plan and compile than Python is
to run.
"""


class NotCompilable(Exception):  # noqa: N818 - it is an answer: this function runs in Python
    """The reason why a function cannot be a Spark column with exactly Python's result."""

    def __init__(self, reason: str, place: Place = (0, 0)) -> None:
        super().__init__(reason)
        self.reason, self.place = reason, place


@dataclass(frozen=True, slots=True)
class Generator:
    """The type of a value that is no item, for builtins and operators only: sets and dicts."""

    kind: str

    def __str__(self) -> str:
        return self.kind


ValueType = ItemType | Generator
"""A timedelta is a long of microseconds, and no item, either."""


def is_item(kind: object) -> TypeGuard[ItemType]:
    """True if values of the type may be items, as far as the type is known."""
    return isinstance(kind, ItemType) and kind not in (ANY, TIMEDELTA)


@dataclass(frozen=True, slots=True)
class ColumnValue:
    column: Column
    type: ValueType
    nullable: bool = True
    doubtful: bool = False
    """The value is never None; null means that Python must compute it. A doubtful value is not
    nullable.
    """
    safe: bool = True
    size: int = 1
    parts: tuple[ColumnValue, ...] | None = None
    """The fields of a tuple or row that the function builds; `structs.whole` combines them."""
    constant: tuple[Any] | None = None
    """The Python value, in a tuple of one, if it is constant."""
    mixed: bool = False
    """It is an int for some items and a float for others: a double, its ints within 53 bits."""
    path: tuple[str, ...] | None = None
    """Its path in the parameters, if nothing is computed."""

    @property
    def may_fail(self) -> bool:
        return self.doubtful or not self.safe

    def with_(self, **changes: Any) -> ColumnValue:
        return replace(self, **changes)


def computed(
    column: Column, item: ValueType, *of: ColumnValue, safe: bool = False, **more: Any
) -> ColumnValue:
    """A value that is never None, computed from others whose nulls are no doubts."""
    size = 1 + sum(v.size for v in of)
    if size > MAX_SIZE:
        raise NotCompilable("it is too large an expression")
    more.setdefault("nullable", False)
    return ColumnValue(column, item, safe=safe and all(v.safe for v in of), size=size, **more)


def strict(
    column: Column, item: ValueType, *of: ColumnValue, doubtful: bool = False
) -> ColumnValue:
    """The result of an operation on values that must not be None; null where one of them is
    null.
    """
    doubtful = doubtful or any(v.nullable or v.doubtful for v in of)
    return computed(column, item, *of, safe=True, doubtful=doubtful)


def boolean(column: Column, *of: ColumnValue, safe: bool = True) -> ColumnValue:
    return computed(column, BOOLEAN, *of, safe=safe)


def long(column: Column, *of: ColumnValue, safe: bool = False) -> ColumnValue:
    """An integer that certainly fits 64 bits."""
    return computed(column, LONG, *of, safe=safe)


Compile = Callable[[Expr, "ColumnScope"], ColumnValue]
InScope = Callable[["ColumnScope", Expr], ColumnValue]


@dataclass(frozen=True, slots=True)
class FunctionSite:
    fn: Fn
    compile: Compile
    """Compiles an expression within it."""
    results: frozenset[int] = frozenset()
    """The ids of the nodes whose values are results of the function, or parts of them."""

    _asked: list[Column] = field(default_factory=list, init=False, compare=False, repr=False)

    def ask(self) -> Column:
        """A column that fails the job, so that Python computes the result."""
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
    """Paths into the parameters that are not None here."""

    def inner(
        self, names: Mapping[str, ColumnValue] | None = None, not_null: NotNull = ()
    ) -> ColumnScope:
        """An inner scope, with further names, and guards of its own.

        It is evaluated only where the expressions are `not_null`.
        """
        scope = ColumnScope(self.site, {**self.names, **(names or {})}, self, there=self.there)
        for node in not_null:
            scope._learn(node)
        return scope

    def is_result(self, node: Expr) -> bool:
        return id(node) in self.site.results

    def compile(self, node: Expr) -> ColumnValue:
        """The value of a sub-expression in this scope; null is None."""
        return self.sure(self.doubtfully(node))

    def doubtfully(self, node: Expr) -> ColumnValue:
        """The same, for callers that handle doubtful nulls."""
        value = self.site.compile(node, self)
        return value.with_(nullable=False) if value.path in self.there else value

    def branch(
        self, node: Expr, not_null: NotNull = (), compiled: InScope | None = None
    ) -> ColumnValue:
        """The value, possibly doubtful, of a sub-expression that is evaluated only sometimes."""
        scope = self.inner(not_null=not_null)
        return scope.guarded((compiled or ColumnScope.doubtfully)(scope, node))

    def ask(self) -> Column:
        """A column that fails the job, so that Python computes the result."""
        return self.site.ask()

    def guard(self, key: object, condition: Column) -> None:
        """Fails the job where `condition` holds, before the rest of this scope is evaluated."""
        scope: ColumnScope | None = self
        while scope is not None:
            if key in scope.guards:
                return
            scope = scope.outer
        self.guards[key] = condition

    def guarded(self, value: ColumnValue) -> ColumnValue:
        """The value after this scope's guards."""
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
        """The value; a doubtful null fails the job."""
        return self._asked(value) if value.doubtful else value

    def need(self, value: ColumnValue) -> ColumnValue:
        """The value; a null fails the job: most probably Python fails there."""
        return self._asked(value) if value.doubtful or value.nullable else value

    def use(self, *values: ColumnValue) -> None:
        """Evaluates values that nothing else may read, as Python evaluates them all."""
        for value in values:
            for part in value.parts or (value,):
                if part.parts is not None:
                    self.use(part)
                elif part.may_fail and part.nullable:
                    raise NotCompilable("a part that may fail is computed and not used")
                elif part.may_fail:
                    self.guard(object(), part.column.isNull())

    def _learn(self, node: Expr) -> None:
        """Records that a name, or a field of one, is not None."""
        if isinstance(node, Param) and node.name in self.names:
            value = self.names[node.name]
            if value.nullable and value.type != UNKNOWN:
                self.names = {**self.names, node.name: value.with_(nullable=False)}
        if isinstance(node, Param | Part) or (
            isinstance(node, Op) and node.family in ("index", "method")
        ):
            # Parts that are read on the way are checked at the test, which comes first.
            path = ColumnScope(self.site, self.names, self).doubtfully(node).path
            self.there |= {path} if path is not None else set()

    def _asked(self, value: ColumnValue) -> ColumnValue:
        column = F.coalesce(value.column, self.ask())
        changes = {"nullable": False, "doubtful": False, "safe": False, "path": None}
        return value.with_(column=column, size=value.size + 1, **changes)
