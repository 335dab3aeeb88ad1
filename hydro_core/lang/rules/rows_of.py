"""From a body to the rows of its variables, and from these to the rows of a head."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hydro_core import agg
from hydro_core.catalog.combine import CROSS
from hydro_core.catalog.group import AGGREGATE
from hydro_core.catalog.io import SOURCE_ITER
from hydro_core.catalog.itemwise import DROP, FILTER, MAP, SELECT, WITH_COLUMNS
from hydro_core.catalog.spec import Aggregate
from hydro_core.catalog.state import PERSIST
from hydro_core.errors import Span
from hydro_core.functions.fn import Fn
from hydro_core.lang.rules.bodies import Body, BodyStep, Matched, check_head
from hydro_core.lang.rules.expressions import as_function, variable
from hydro_core.lang.rules.operators import Operators, Rows, function
from hydro_core.lang.rules.predicates import Predicate
from hydro_core.lang.rules.syntax import Argument, BodyCondition, DedalusRule, RuleExpression

UNIT = "v0"
"""The column of what has no variables."""

RowsOfPredicate = Callable[[Predicate], Rows]
"""The rows of a predicate, with its columns."""


class RuleReader:
    """Makes operators of rules."""

    def __init__(
        self, operators: Operators, base: RowsOfPredicate, constants: Mapping[str, Any]
    ) -> None:
        self.operators, self.base, self.constants = operators, base, constants

    def body(self, body: Body, span: Span) -> Rows:
        """The rows of the variables of a body."""
        rows: Rows | None = None
        for step in body.steps:
            rows = self._step(step, rows, span)
        return self._unit(span) if rows is None else rows

    def head(self, rule: DedalusRule, predicate: Predicate, body: Body) -> Rows:
        """What a rule says of its head: rows of the predicate's columns."""
        arguments = check_head(rule, predicate, body.variables, self.constants)
        if rule.has_aggregates:
            return self._aggregated(self.body(body, rule.span), arguments, rule)
        return self._copied(body, arguments, rule) or self._selected(
            self.body(body, rule.span), arguments, rule.head.span
        )

    def _copied(
        self, body: Body, arguments: Mapping[str, Argument], rule: DedalusRule
    ) -> Rows | None:
        """A head that takes columns of the one atom of its body: the names between are left out."""
        match = body.steps[0].match if len(body.steps) == 1 else None
        if match is None or body.steps[0].kind != "match" or match.constants or not arguments:
            return None
        columns = {name: column for column, name in match.variables}
        wanted = {c: columns[a.name] for c, a in arguments.items() if a.kind == "variable"}
        once = len(columns) == len(match.variables)
        if not once or not len(arguments) == len(wanted) == len(set(wanted.values())):
            return None
        return self.operators.project(self.base(match.predicate), wanted, rule.head.span)

    def _unit(self, span: Span) -> Rows:
        """One row each tick."""
        node = self.operators.add(SOURCE_ITER, [], span, [{UNIT: True}])
        return Rows(self.operators.add(PERSIST, [node], span), (UNIT,), is_set=True)

    def _step(self, step: BodyStep, rows: Rows | None, span: Span) -> Rows:
        if step.match is not None:
            return self._matched(step, step.match, rows, span)
        condition = step.condition
        assert condition is not None
        rows = rows or self._unit(span)
        if step.kind == "test":
            return self.operators.filter(rows, self._test(condition, rows), condition.span)
        computed = {str(condition.target): self._function(condition.written, rows)}
        node = self.operators.add(WITH_COLUMNS, [rows.node], condition.span, **computed)
        return Rows(node, (*rows.columns, *computed), rows.is_set)

    def _matched(self, step: BodyStep, match: Matched, rows: Rows | None, span: Span) -> Rows:
        place = match.atom.span
        found = self.atom(match)
        if step.kind == "absent":
            return self._without(rows or self._unit(span), found, place)
        if rows is None:
            return found
        if found.columns != (UNIT,):
            return self.operators.joined(rows, found, place)
        there = self.operators.unique(found, place)
        node = self.operators.add(CROSS, [rows.node, there.node], place)
        node = self.operators.add(MAP, [node], place, function("lambda a, b: a"))
        return Rows(node, rows.columns, rows.is_set)

    def _without(self, rows: Rows, absent: Rows, place: Span) -> Rows:
        if absent.columns != (UNIT,) or UNIT in rows.columns:
            return self.operators.without(rows, absent, place)
        marked = self.operators.add(
            WITH_COLUMNS, [rows.node], place, **{UNIT: function("lambda r: True")}
        )
        wide = Rows(marked, (*rows.columns, UNIT), rows.is_set)
        node = self.operators.without(wide, absent, place).node
        return Rows(self.operators.add(DROP, [node], place, UNIT), rows.columns, rows.is_set)

    def atom(self, match: Matched) -> Rows:
        """The rows of an atom: of its variables, where its constants are what they are."""
        rows, place = self.base(match.predicate), match.atom.span
        tests = [_equals(c, a.written.tree, a.written) for c, a in match.constants]
        first: dict[str, str] = {}
        for column, name in match.variables:
            if name in first:
                at = match.atom.arguments[0].written
                tests.append(_equals(first[name], variable(column, at.tree), at))
            first.setdefault(name, column)
        for test in tests:
            columns = {c: c for c in rows.columns}
            rows = self.operators.filter(rows, as_function(test, columns, self.constants), place)
        said = {c for c, _ in (*match.variables, *match.constants)}
        is_set = rows.is_set and said == set(rows.columns)
        if first:
            found = self.operators.project(rows, first, place)
            return Rows(found.node, found.columns, is_set)
        node = self.operators.add(SELECT, [rows.node], place, **{UNIT: function("lambda r: True")})
        return Rows(node, (UNIT,), is_set)

    def _test(self, condition: BodyCondition, rows: Rows) -> Fn:
        written = condition.written
        if condition.target is not None:
            written = _equals(condition.target, written.tree, written)
        return self._function(written, rows)

    def _function(self, written: RuleExpression, rows: Rows) -> Fn:
        return as_function(written, {c: c for c in rows.columns}, self.constants)

    def _selected(self, rows: Rows, arguments: Mapping[str, Argument], span: Span) -> Rows:
        variables = [a.name for a in arguments.values()]
        plain = all(a.kind == "variable" for a in arguments.values())
        if plain and arguments and len(set(variables)) == len(variables):
            columns = {column: a.name for column, a in arguments.items()}
            return self.operators.project(rows, columns, span)
        computed = {c: self._function(a.written, rows) for c, a in arguments.items()}
        computed = computed or {"holds": function("lambda r: True")}
        node = self.operators.add(SELECT, [rows.node], span, **computed)
        return Rows(node, tuple(computed), is_set=False)

    def _aggregated(self, rows: Rows, arguments: Mapping[str, Argument], rule: DedalusRule) -> Rows:
        """Each way in which the body holds counts once."""
        span = rule.head.span
        rows = self.operators.unique(rows, span)
        names = {c: f"v{i}" for i, c in enumerate(arguments, 1)}
        taken = set(rows.columns)
        names = {c: n if n not in taken else f"{n}_{c}" for c, n in names.items()}
        group: dict[str, str] = {}
        for column, argument in arguments.items():
            if argument.kind == "variable":
                group[column] = argument.name
            elif argument.kind == "expression":
                computed = {names[column]: self._function(argument.written, rows)}
                node = self.operators.add(WITH_COLUMNS, [rows.node], span, **computed)
                rows = Rows(node, (*rows.columns, *computed), rows.is_set)
                group[column] = names[column]
        totals = {
            names[c]: self._aggregate(a, rows) for c, a in arguments.items() if a.kind == "gathered"
        }
        made = self._grouped(rows, list(dict.fromkeys(group.values())), totals, span)
        return self._named(made, {c: group.get(c, names[c]) for c in arguments}, span)

    def _grouped(self, rows: Rows, by: list[str], totals: dict[str, Aggregate], span: Span) -> Rows:
        if by:
            node = self.operators.add(AGGREGATE, [rows.node], span, by=by, **totals)
            return Rows(node, (*by, *totals), is_set=True)
        # A head holds where its body does: of nothing there is no total.
        totals = {**totals, UNIT: agg.count()}
        node = self.operators.add(AGGREGATE, [rows.node], span, **totals)
        some = function(f"lambda r: r.{UNIT} > 0")
        node = self.operators.add(FILTER, [node], span, some)
        return Rows(node, tuple(totals), is_set=True)

    def _named(self, rows: Rows, columns: Mapping[str, str], span: Span) -> Rows:
        if len(set(columns.values())) == len(columns):
            return self.operators.project(rows, columns, span)
        computed = {new: function(f"lambda r: r[{old!r}]") for new, old in columns.items()}
        node = self.operators.add(SELECT, [rows.node], span, **computed)
        return Rows(node, tuple(columns), is_set=True)

    def _aggregate(self, argument: Argument, rows: Rows) -> Aggregate:
        call = argument.written.tree
        assert isinstance(call, ast.Call)
        parts: list[str | Fn] = []
        for tree in call.args:
            if isinstance(tree, ast.Name) and tree.id in rows.columns:
                parts.append(tree.id)
            elif not (isinstance(tree, ast.Name) and tree.id == "_"):
                parts.append(self._function(replace(argument.written, tree=tree), rows))
        return Aggregate(argument.name, tuple(parts))


def _equals(name: str, other: ast.expr, at: RuleExpression) -> RuleExpression:
    """The condition that a variable or column is what an expression is."""
    is_none = isinstance(other, ast.Constant) and other.value is None
    compares = ast.Is() if is_none else ast.Eq()
    tree = ast.Compare(variable(name, at.tree), [compares], [other])
    return replace(at, tree=ast.copy_location(tree, at.tree))
