"""Bodies of rules: joins from left to right over shared variables, and the rows of a head."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hydro_core import agg
from hydro_core.catalog.combine import CROSS, DIFFERENCE, JOIN
from hydro_core.catalog.group import AGGREGATE, UNIQUE
from hydro_core.catalog.itemwise import (
    DROP,
    FILTER,
    MAP,
    RENAME,
    SELECT,
    SINK,
    SOURCE,
    SOURCE_ITER,
    WITH_COLUMNS,
)
from hydro_core.catalog.spec import Aggregate, Args, OpSpec
from hydro_core.catalog.state import PERSIST
from hydro_core.errors import Diagnostic, ProgramError, Span, TypeProblem
from hydro_core.functions.allowed import BUILTINS
from hydro_core.functions.read import read_function
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Draft, free_name, source_args
from hydro_core.lang.methods import ValueReader
from hydro_core.lang.rules.predicates import Predicate, placed
from hydro_core.lang.rules.syntax import (
    Argument,
    BodyCondition,
    DedalusRule,
    Literals,
    Mention,
    RuleExpression,
    as_function,
    variable,
    variables_of,
)
from hydro_core.lang.signature import bind
from hydro_core.lang.source import did_you_mean

# Operators under construction: they refer to each other, in the order of their addition.


_READER = ValueReader()


@dataclass(eq=False, slots=True)
class NodeToBe:
    """A node under construction, and the nodes that it reads."""

    draft: Draft
    inputs: list[NodeToBe] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rows:
    """A stream of rows, their columns, and a flag that no row occurs twice."""

    node: NodeToBe
    columns: tuple[str, ...]
    is_set: bool


class Operators:
    def __init__(self) -> None:
        self.nodes: list[NodeToBe] = []

    def add(
        self,
        op: OpSpec,
        inputs: Sequence[NodeToBe],
        span: Span | None,
        *positional: Any,
        **keywords: Any,
    ) -> NodeToBe:
        """A new operator that reads `inputs`, with its arguments.

        Raises:
            ProgramError: the arguments are wrong.
        """
        try:
            args, _ = bind(op, positional, list(keywords.items()), _READER)
        except TypeProblem as wrong:
            cure = wrong.help or "an item is a number, a text, a time, a tuple, a row or an array"
            raise ProgramError.of(wrong.code, wrong.message, span, op.name, help=cure) from None
        return self.place(NodeToBe(Draft(op, args, span), list(inputs)))

    def place(self, node: NodeToBe) -> NodeToBe:
        """Appends a node to the order."""
        self.nodes.append(node)
        return node

    def source(self, name: str, span: Span, schema: Any, fds: Any) -> NodeToBe:
        """An input."""
        args = source_args(name, schema=schema, fds=fds)
        return self.place(NodeToBe(Draft(SOURCE, args, span, name)))

    def sink(self, node: NodeToBe, name: str, span: Span | None) -> None:
        """An output."""
        self.place(NodeToBe(Draft(SINK, Args((("name", name),)), span), [node]))

    def drafts(self) -> list[Draft]:
        """The drafts; references are numbers."""
        number = {id(node): i for i, node in enumerate(self.nodes)}
        for node in self.nodes:
            node.draft.inputs = [(number[id(read)], "") for read in node.inputs]
        return [node.draft for node in self.nodes]

    # Operators for bodies and heads

    def filter(self, rows: Rows, test: Fn, span: Span) -> Rows:
        """The rows for which a condition holds."""
        return Rows(self.add(FILTER, [rows.node], span, test), rows.columns, rows.is_set)

    def unique(self, rows: Rows, span: Span) -> Rows:
        """The rows, each once."""
        if rows.is_set:
            return rows
        return Rows(self.add(UNIQUE, [rows.node], span), rows.columns, is_set=True)

    def project(self, rows: Rows, columns: Mapping[str, str], span: Span) -> Rows:
        """The rows with other columns: from the new names to those of `rows`, each of them once."""
        node, old = rows.node, tuple(columns.values())
        if old != rows.columns:
            node = self.add(SELECT, [node], span, *old)
        renamed = {new: before for new, before in columns.items() if new != before}
        if renamed:
            node = self.add(RENAME, [node], span, **renamed)
        return Rows(node, tuple(columns), rows.is_set and set(old) == set(rows.columns))

    def joined(self, left: Rows, right: Rows, span: Span) -> Rows:
        """The pairs of rows that are equal in their common columns."""
        shared = [c for c in left.columns if c in right.columns]
        is_set = left.is_set and right.is_set
        if not shared:
            return self.crossed(left, right, span)
        node = self.add(JOIN, [left.node, right.node], span, on=shared)
        others = [c for side in (left, right) for c in side.columns if c not in shared]
        return Rows(node, (*shared, *others), is_set)

    def crossed(self, left: Rows, right: Rows, span: Span) -> Rows:
        """All pairs of rows, as rows of the columns of both."""
        node = self.add(CROSS, [left.node, right.node], span)
        parts = [f"{c!r}: a[{c!r}]" for c in left.columns]
        parts += [f"{c!r}: b[{c!r}]" for c in right.columns]
        both = function(f"lambda a, b: {{{', '.join(parts)}}}")
        columns = (*left.columns, *right.columns)
        return Rows(self.add(MAP, [node], span, both), columns, left.is_set and right.is_set)

    def without(self, rows: Rows, absent: Rows, span: Span) -> Rows:
        """The rows without a match in `absent` by its columns, which `rows` all have."""
        if set(absent.columns) == set(rows.columns):
            node = self.add(DIFFERENCE, [rows.node, absent.node], span)
        else:
            on = list(absent.columns)
            node = self.add(JOIN, [rows.node, absent.node], span, on=on, how="anti")
            rest = tuple(c for c in rows.columns if c not in on)
            return Rows(node, (*on, *rest), rows.is_set)
        return Rows(node, rows.columns, rows.is_set)


def function(text: str) -> Fn:
    """The function of a lambda's text."""
    return read_function(ast.parse(text, mode="eval").body, {})


# Bodies in the order of evaluation: joins from left to right over shared variables.
#
# The operators of a body follow these steps. Unbound variables are detected here.


StepKind = Literal["match", "absent", "bind", "test"]


@dataclass(frozen=True, slots=True)
class MatchedAtom:
    """An atom of a body: variables and constants by their columns."""

    atom: Mention
    predicate: Predicate
    variables: tuple[tuple[str, str], ...]
    """Columns and their variables; a variable may fill several."""
    constants: tuple[tuple[str, Argument], ...]

    @property
    def bound(self) -> frozenset[str]:
        """The variables."""
        return frozenset(variable for _, variable in self.variables)


@dataclass(frozen=True, slots=True)
class BodyStep:
    """A step: an atom is joined, or negated; a variable is computed, or tested."""

    kind: StepKind
    match: MatchedAtom | None = None
    condition: BodyCondition | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """The steps of a body, and the variables that they bind, in order."""

    steps: tuple[BodyStep, ...]
    variables: tuple[str, ...]


def body_of(
    body: Literals,
    predicates: Mapping[str, Predicate],
    constants: Collection[str],
) -> Body:
    """The steps of a body.

    Raises:
        ProgramError: arguments do not fit, or a variable is not bound.
    """
    return _Order(body, predicates, constants).ordered()


class _Order:
    def __init__(
        self, body: Literals, predicates: Mapping[str, Predicate], constants: Collection[str]
    ) -> None:
        self.predicates, self.constants = predicates, constants
        self.conditions = list(body.conditions)
        taken = {v for atom, _ in body.atoms() for v in atom.variables}
        taken |= {v for c in body.conditions for v in (*c.variables, *filter(None, [c.target]))}
        self.names = (f"v{n}" for n in range(1, 1_000_000) if f"v{n}" not in taken)
        self.positive = [self.matched(atom) for atom in body.positive]
        self.negative = [self.matched(atom) for atom in body.negative]
        self.steps: list[BodyStep] = []
        self.bound: dict[str, None] = {}

    def matched(self, atom: Mention) -> MatchedAtom:
        """The atom; an expression of variables becomes a fresh variable that is equal to it."""
        variables: list[tuple[str, str]] = []
        constants: list[tuple[str, Argument]] = []
        predicate = self.predicates[atom.predicate]
        for column, argument in placed(atom, predicate).items():
            used = variables_of(argument.written.tree, self.constants)
            if argument.kind == "variable":
                variables.append((column, argument.name))
            elif used:
                name = next(self.names)
                variables.append((column, name))
                self.conditions.append(BodyCondition(argument.written, used, name))
            else:
                constants.append((column, argument))
        return MatchedAtom(atom, predicate, tuple(variables), tuple(constants))

    def ordered(self) -> Body:
        self.ready()
        while self.positive:
            shares = (m for m in self.positive if m.bound & self.bound.keys())
            match = next(shares, self.positive[0])
            self.positive.remove(match)
            self.steps.append(BodyStep("match", match))
            self.bound.update(dict.fromkeys(v for _, v in match.variables))
            self.ready()
        self.refuse_unbound()
        return Body(tuple(self.steps), tuple(self.bound))

    def ready(self) -> None:
        """Adds all conditions and negated atoms whose variables are bound."""
        before = -1
        while before != len(self.steps):
            before = len(self.steps)
            for condition in [c for c in self.conditions if c.variables <= self.bound.keys()]:
                self.conditions.remove(condition)
                is_new = condition.target is not None and condition.target not in self.bound
                self.steps.append(BodyStep("bind" if is_new else "test", condition=condition))
                if condition.target is not None:
                    self.bound.setdefault(condition.target)
            self.turned_round()
        for match in [m for m in self.negative if m.bound <= self.bound.keys()]:
            self.negative.remove(match)
            self.steps.append(BodyStep("absent", match))

    def turned_round(self) -> None:
        """`x = y` binds y where x is bound."""
        for condition in list(self.conditions):
            tree, target = condition.written.tree, condition.target
            if target in self.bound and isinstance(tree, ast.Name):
                self.conditions.remove(condition)
                other = replace(condition.written, tree=variable(str(target), tree))
                turned = BodyCondition(other, frozenset({str(target)}), tree.id)
                self.conditions.append(turned)

    def refuse_unbound(self) -> None:
        problems = []
        for match in self.negative:
            (missing, *_) = sorted(match.bound - self.bound.keys())
            span = next(a.span for a in match.atom.arguments if _has(a, missing, self.constants))
            message = f"`{missing}` stands in no positive predicate, so `!` has nothing to ask for"
            cure = f"write `_` if any value will do, or a predicate that says what `{missing}` is"
            problems.append(Diagnostic("undefined", message, span, match.atom.predicate, help=cure))
        for condition in self.conditions:
            missing = min(condition.variables - self.bound.keys())
            problems.append(unbound(missing, condition.written, None))
        if problems:
            raise ProgramError(*problems)


def _has(argument: Argument, variable: str, constants: Collection[str]) -> bool:
    return variable == argument.name or variable in variables_of(argument.written.tree, constants)


def unbound(variable: str, written: RuleExpression, operator: str | None) -> Diagnostic:
    """The diagnostic of an expression's variable that no positive atom of the body binds."""
    span = written.span
    calls = (n.func for n in ast.walk(written.tree) if isinstance(n, ast.Call))
    if any(isinstance(f, ast.Name) and f.id == variable for f in calls):
        cure = (
            did_you_mean(variable, BUILTINS)
            or "functions are the pure ones of Python, and those of the library"
        )
        message = f"there is no function `{variable}`"
        return Diagnostic("name", message, span, operator, help=cure)
    message = f"nothing says what `{variable}` is"
    cure = f"a predicate of the body that is not negated must have it, or `{variable} = …`"
    return Diagnostic("undefined", message, span, operator, help=cure)


def check_head(
    rule: DedalusRule, predicate: Predicate, bound: Iterable[str], constants: Collection[str]
) -> dict[str, Argument]:
    """The arguments of a head by their columns, with every variable bound.

    Raises:
        ProgramError: a variable is not bound, or the arguments do not fit the predicate.
    """
    known = set(bound)
    arguments = placed(rule.head, predicate, in_head=True)
    problems = []
    for argument in arguments.values():
        if argument.kind == "wildcard":
            message, cure = "`_` says nothing in a head", "write a variable of the body, or a value"
            problems.append(
                Diagnostic("undefined", message, argument.span, predicate.name, help=cure)
            )
            continue
        tree = argument.written.tree
        used = variables_of(tree, constants, known)
        if argument.kind == "gathered" and isinstance(tree, ast.Call):
            parts = [variables_of(a, constants, known) for a in tree.args]
            used = frozenset(v for part in parts for v in part) - {"_"}
        problems += [unbound(v, argument.written, predicate.name) for v in sorted(used - known)]
    if problems:
        raise ProgramError(*problems)
    return arguments


# From a body to the rows of its variables, and from these to the rows of a head.


RowsOfPredicate = Callable[[Predicate], Rows]
"""The rows of a predicate, with its columns."""


class RuleReader:
    """Builds the operators of rules."""

    def __init__(
        self,
        operators: Operators,
        base: RowsOfPredicate,
        constants: Mapping[str, Any],
        bodies: Iterable[Body],
    ) -> None:
        self.operators, self.base, self.constants = operators, base, constants
        self.unit = free_name("v0", {v for body in bodies for v in body.variables})
        """The column of a body without variables."""

    def body(self, body: Body, span: Span) -> Rows:
        """The rows of the variables of a body."""
        rows: Rows | None = None
        for step in body.steps:
            rows = self._step(step, rows, span)
        return self._unit(span) if rows is None else rows

    def head(self, rule: DedalusRule, predicate: Predicate, body: Body) -> Rows:
        """The rows of a rule's head, with the predicate's columns."""
        arguments = check_head(rule, predicate, body.variables, self.constants)
        if rule.has_aggregates:
            return self._aggregated(self.body(body, rule.span), arguments, rule)
        return self._copied(body, arguments, rule) or self._selected(
            self.body(body, rule.span), arguments, rule.head.span
        )

    def _copied(
        self, body: Body, arguments: Mapping[str, Argument], rule: DedalusRule
    ) -> Rows | None:
        """A head that copies columns of the one atom of its body: no intermediate names are
        needed.
        """
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
        node = self.operators.add(SOURCE_ITER, [], span, [{self.unit: True}])
        return Rows(self.operators.add(PERSIST, [node], span), (self.unit,), is_set=True)

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

    def _matched(self, step: BodyStep, match: MatchedAtom, rows: Rows | None, span: Span) -> Rows:
        place = match.atom.span
        found = self.atom(match)
        if step.kind == "absent":
            return self._without(rows or self._unit(span), found, place)
        if rows is None:
            return found
        if found.columns != (self.unit,):
            return self.operators.joined(rows, found, place)
        there = self.operators.unique(found, place)
        node = self.operators.add(CROSS, [rows.node, there.node], place)
        node = self.operators.add(MAP, [node], place, function("lambda a, b: a"))
        return Rows(node, rows.columns, rows.is_set)

    def _without(self, rows: Rows, absent: Rows, place: Span) -> Rows:
        if absent.columns != (self.unit,) or self.unit in rows.columns:
            return self.operators.without(rows, absent, place)
        marked = self.operators.add(
            WITH_COLUMNS, [rows.node], place, **{self.unit: function("lambda r: True")}
        )
        wide = Rows(marked, (*rows.columns, self.unit), rows.is_set)
        node = self.operators.without(wide, absent, place).node
        return Rows(self.operators.add(DROP, [node], place, self.unit), rows.columns, rows.is_set)

    def atom(self, match: MatchedAtom) -> Rows:
        """The rows of an atom's variables, filtered by its constants."""
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
        node = self.operators.add(
            SELECT, [rows.node], place, **{self.unit: function("lambda r: True")}
        )
        return Rows(node, (self.unit,), is_set)

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
        """Each way to satisfy the body counts once."""
        span = rule.head.span
        rows = self.operators.unique(rows, span)
        names = {c: f"v{i}" for i, c in enumerate(arguments, 1)}
        taken = set(rows.columns)
        names = {c: n if n not in taken else free_name(f"{n}_{c}", taken) for c, n in names.items()}
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
        # A head holds only where its body does: there is no total of nothing.
        totals = {**totals, self.unit: agg.count()}
        node = self.operators.add(AGGREGATE, [rows.node], span, **totals)
        some = function(f"lambda r: r.{self.unit} > 0")
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
    """The condition that a variable or column equals an expression."""
    is_none = isinstance(other, ast.Constant) and other.value is None
    compares = ast.Is() if is_none else ast.Eq()
    tree = ast.Compare(variable(name, at.tree), [compares], [other])
    return replace(at, tree=ast.copy_location(tree, at.tree))
