"""Rules by their definition: all ways in which a body holds are tried, round by round, until no
fact is new. It shares the order of a body's steps with the rules' translation, and nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hydro_core.functions.call import compiled
from hydro_core.functions.tree import Fn
from hydro_core.lang.rules.bodies import Body, MatchedAtom, check_head
from hydro_core.lang.rules.syntax import Argument, DedalusRule, RuleExpression, constant_of
from hydro_core.lang.rules.translate import Rules, recursive_groups

Facts = dict[str, set[tuple[Any, ...]]]
Binding = Mapping[str, Any]


def _numbers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


AGGREGATES: Mapping[str, Callable[[list[Any]], Any]] = {
    "count": lambda values: len(_numbers(values)),
    "count_distinct": lambda values: len(set(_numbers(values))),
    "sum": lambda values: sum(_numbers(values)) if _numbers(values) else None,
    "min": lambda values: min(_numbers(values), default=None),
    "max": lambda values: max(_numbers(values), default=None),
}


@dataclass
class RulesByDefinition:
    """A program of rules, and what holds in the next tick."""

    rules: Rules
    following: Facts = field(default_factory=dict)

    def tick(self, number: int, given: Facts) -> tuple[Facts, Facts]:
        """All that holds in a tick, and what it sends; `given`: what comes in or arrives."""
        holds: Facts = {name: set() for name in self.rules.predicates}
        for facts in (self.following, given):
            for name, rows in facts.items():
                holds[name] |= rows
        for name, predicate in self.rules.predicates.items():
            if predicate.form == "clock":
                holds[name].add((number, None, None))
        for group in recursive_groups(self.rules.program):
            before = -1
            while before != sum(map(len, holds.values())):
                before = sum(map(len, holds.values()))
                for name in group:
                    holds[name] |= self._heads("now", holds, number).get(name, set())
        self.following = self._heads("next", holds, number)
        return holds, self._heads("async", holds, number)

    def _heads(self, time: str, holds: Facts, tick: int) -> Facts:
        found: Facts = {}
        for number, rule in enumerate(self.rules.program.rules):
            if rule.time == time and rule.at in (None, tick):
                rows = self._head(rule, self.rules.bodies[number], holds)
                found.setdefault(rule.head.predicate, set()).update(rows)
        return found

    def _head(self, rule: DedalusRule, body: Body, holds: Facts) -> Iterable[tuple[Any, ...]]:
        predicate = self.rules.predicates[rule.head.predicate]
        arguments = check_head(rule, predicate, body.variables, self.rules.constants)
        ways = list(self._ways(body, holds, {}))
        if not rule.has_aggregates:
            rows = {tuple(self._value(a.written, w) for a in arguments.values()) for w in ways}
            return {row or (True,) for row in rows}
        groups: dict[tuple[Any, ...], list[Binding]] = {}
        for way in {tuple(w.items()): w for w in ways}.values():
            key = tuple(
                self._value(a.written, way) for a in arguments.values() if a.kind != "gathered"
            )
            groups.setdefault(key, []).append(way)
        return {self._gathered(arguments, key, ways) for key, ways in groups.items()}

    def _gathered(
        self, arguments: Mapping[str, Argument], key: tuple[Any, ...], ways: list[Binding]
    ) -> tuple[Any, ...]:
        parts, row = iter(key), list[Any]()
        for argument in arguments.values():
            call = argument.written.tree
            if argument.kind != "gathered" or not isinstance(call, ast.Call):
                row.append(next(parts))
                continue
            of = [a for a in call.args if not (isinstance(a, ast.Name) and a.id == "_")]
            values = [self._computed(of[0], way) if of else True for way in ways]
            row.append(AGGREGATES[argument.name](values))
        return tuple(row)

    def _ways(self, body: Body, holds: Facts, bound: Binding, at: int = 0) -> Iterator[Binding]:
        if at == len(body.steps):
            yield bound
            return
        step = body.steps[at]
        if step.condition is not None:
            value, target = self._value(step.condition.written, bound), step.condition.target
            if target is None or step.kind == "test":
                if value if target is None else bound[target] == value:
                    yield from self._ways(body, holds, bound, at + 1)
            else:
                yield from self._ways(body, holds, {**bound, target: value}, at + 1)
        elif step.match is not None:
            matched = list(self._matched(step.match, holds, bound))
            if step.kind == "absent":
                matched = [] if matched else [bound]
            for more in matched:
                yield from self._ways(body, holds, more, at + 1)

    def _matched(self, match: MatchedAtom, holds: Facts, bound: Binding) -> Iterator[Binding]:
        columns = match.predicate.columns
        for row in holds[match.predicate.name]:
            values, found = dict(zip(columns, row, strict=True)), dict(bound)
            fits = all(
                values[column] == constant_of(argument.written, self.rules.constants)
                for column, argument in match.constants
            )
            if fits and all(
                found.setdefault(variable, values[column]) == values[column]
                for column, variable in match.variables
            ):
                yield found

    def _value(self, written: RuleExpression, bound: Binding) -> Any:
        return self._computed(written.tree, bound)

    def _computed(self, tree: ast.expr, bound: Binding) -> Any:
        arguments = ast.arguments([], [ast.arg(name) for name in bound], None, [], [], None, [])
        function = ast.copy_location(ast.Lambda(arguments, tree), tree)
        constants = self.rules.constants.items()
        called = {n: c.call if isinstance(c, Fn) else c for n, c in constants}
        return compiled(ast.fix_missing_locations(function), called)(**bound)
