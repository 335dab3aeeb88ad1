"""The names that an expression sees, and what is checked before it is evaluated.

A *guard* is a condition under which Python fails before anything else of the scope matters: a field
of a None is read, for instance. It is checked once for its whole scope, so the rest of the
expression stays what it is: a plain column, which Spark can prune, push down and partition by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Column

from hydro_core.functions.fn import Fn
from hydro_core.functions.tree import Expr
from hydro_core.spark.columns.dry import F
from hydro_core.spark.columns.value import Value
from hydro_core.spark.failures import AS_JSON, MARKER, payload

Compile = Callable[[Expr, "Scope"], Value]


@dataclass(frozen=True, slots=True)
class Site:
    """The function that is compiled, and what its failures show."""

    fn: Fn
    compile: Compile
    """Compiles an expression within it."""
    shown: tuple[Column, ...] = ()
    tick: Column | None = None
    results: frozenset[int] = frozenset()
    """The ids of the nodes whose values are results of the function, or stand in them."""
    _starts: dict[str, str] = field(default_factory=dict, init=False, compare=False, repr=False)

    def fail(self, kind: str, reason: str | Column) -> Column:
        """A column that fails the job with an error of Python's kind, item and tick named."""
        names = [f"_{i}" for i in range(1, len(self.shown) + 1)]
        shown = F.to_json(
            F.struct(*(c.alias(n) for c, n in zip(self.shown, names, strict=True))), AS_JSON
        )
        tick = (
            F.lit("null")
            if self.tick is None
            else F.coalesce(self.tick.cast("string"), F.lit("null"))
        )
        text = F.lit(json.dumps(reason)) if isinstance(reason, str) else reason
        parts = [F.lit(self._start(kind)), text, F.lit(', "tick": '), tick]
        if self.shown:
            parts += [F.lit(', "items": '), shown]
        return F.raise_error(F.concat(*parts, F.lit("}")))

    def _start(self, kind: str) -> str:
        """What is known of a failure beforehand, up to its reason."""
        if kind not in self._starts:
            known = payload(self.fn, kind, "")
            del known["reason"]
            self._starts[kind] = MARKER + json.dumps(known)[:-1] + ', "reason": '
        return self._starts[kind]


@dataclass(slots=True)
class Scope:
    """Names, and the guards found so far.

    An inner scope is evaluated only sometimes, or for each element of a loop.
    """

    site: Site
    names: Mapping[str, Value]
    outer: Scope | None = None
    guards: dict[object, tuple[Column, Column]] = field(default_factory=dict)

    def inner(self, names: Mapping[str, Value] | None = None) -> Scope:
        """A scope within: with further names, and guards of its own."""
        return Scope(self.site, {**self.names, **(names or {})}, self)

    def is_result(self, node: Expr) -> bool:
        """Whether the node's value is a result: its integers have 64 bits or the tick fails."""
        return id(node) in self.site.results

    def compile(self, node: Expr) -> Value:
        """The value of a sub-expression in this scope."""
        return self.site.compile(node, self)

    def branch(self, node: Expr, names: Mapping[str, Value] | None = None) -> Value:
        """The value of a sub-expression that is evaluated only sometimes, or with further names."""
        scope = self.inner(names)
        return scope.guarded(scope.compile(node))

    def fail(self, kind: str, reason: str) -> Column:
        """A column that fails the job."""
        return self.site.fail(kind, reason)

    def guard(self, key: object, condition: Column, failure: Column) -> None:
        """Fails where `condition` holds, before the rest of this scope is evaluated."""
        scope: Scope | None = self
        while scope is not None:
            if key in scope.guards:
                return
            scope = scope.outer
        self.guards[key] = (condition, failure)

    def guarded(self, value: Value) -> Value:
        """The value behind this scope's guards."""
        if not self.guards:
            return value
        if value.parts is not None:
            return value.with_(parts=tuple(map(self.guarded, value.parts)), path=None)
        wide = value.wide
        if wide is not None and wide.slow is not None:
            slow = wide.slow
            wide = replace(wide, slow=lambda: self.behind(slow()))
        size = value.size + 2 * len(self.guards)
        column = self.behind(value.column)
        return value.with_(column=column, wide=wide, safe=False, size=size, path=None)

    def behind(self, column: Column) -> Column:
        """The column behind this scope's guards."""
        conditions = list(self.guards.values())
        if not conditions:
            return column
        (condition, failure), *rest = conditions
        result = F.when(condition, failure)
        for condition, failure in rest:
            result = result.when(condition, failure)
        return result.otherwise(column)

    def need(self, value: Value, what: str = "a value") -> Value:
        """The value, where None in its place is Python's TypeError."""
        if not value.nullable:
            return value
        failure = self.fail("TypeError", f"{what} is None")
        column = F.coalesce(value.column, failure)
        return value.with_(
            column=column, nullable=False, safe=False, size=value.size + 1, path=None
        )
