"""Rules evaluated tick by tick over sets: semi-naive, with indices, each rule compiled once.

It is judged by the reference interpreter, which runs the operators that the same rules become.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from hydro_core.errors import DataError, Span
from hydro_core.lang.rules.bodies import Body, check_head
from hydro_core.lang.rules.cycles import recursive_groups
from hydro_core.lang.rules.expressions import constant_of
from hydro_core.lang.rules.predicates import Predicate
from hydro_core.lang.rules.syntax import Argument, DedalusRule, Literals, RuleExpression
from hydro_core.lang.rules.translate import Rules
from hydro_core.reference.definitions.aggregates import AGGREGATES, GroupValues
from hydro_core.types.item import LONG, UNKNOWN
from hydro_core.validation.simulation.schedules.loops import LoopMaker, RuleLoop
from hydro_core.validation.simulation.schedules.table import FactRow, FactTable

GroundFact = tuple[int, FactRow]
"""The number of a predicate, and a row of it."""
HeldFacts = tuple[frozenset[FactRow], ...]
"""What holds from the tick before, by the numbers of the predicates."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What must never hold, and does: the number of the invariant, its variables."""

    never: int
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a tick leaves: what holds in the next one, what is sent, and what must not hold."""

    state: HeldFacts
    sent: frozenset[GroundFact]
    violation: Violation | None


@dataclass(frozen=True, slots=True)
class _CompiledRule:
    head: int
    loops: tuple[tuple[int, RuleLoop], ...]
    """Each with the predicate of which it goes through what is new only."""
    whole: RuleLoop
    gather: _Gather | None
    span: Span


class RuleMachine:
    """A program that is run one tick after another, from any state."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.predicates: tuple[Predicate, ...] = tuple(rules.predicates.values())
        self.numbers = {p.name: i for i, p in enumerate(self.predicates)}
        self._maker = LoopMaker(self.numbers, rules.constants)
        self._always: list[set[FactRow]] = [set() for _ in self.predicates]
        self._at: dict[int, list[GroundFact]] = {}
        self._now: dict[str, list[_CompiledRule]] = {}
        self._next: list[_CompiledRule] = []
        self._async: list[_CompiledRule] = []
        self._groups = recursive_groups(rules.program)
        self._group_of = {name: group for group in self._groups for name in group}
        for number, rule in enumerate(rules.program.rules):
            self._add(rule, rules.bodies[number])
        self._never = [self._invariant(body, span) for body, span in rules.never]
        self._steps = []
        for group in self._groups:
            own = [rule for name in sorted(group) for rule in self._now.get(name, ())]
            if own:
                self._steps.append((own, any(rule.loops for rule in own)))
        self.reads_clock = any(p.form == "clock" for p in self.predicates)
        self.last_special_tick = max(self._at, default=-1)

    @property
    def start(self) -> HeldFacts:
        """Before the first tick, nothing holds."""
        return tuple(frozenset() for _ in self.predicates)

    def _add(self, rule: DedalusRule, body: Body) -> None:
        predicate = self.rules.predicates[rule.head.predicate]
        arguments = check_head(rule, predicate, body.variables, self.rules.constants)
        if rule.body == Literals() and rule.time == "now" and not rule.has_aggregates:
            values = [constant_of(a.written, self.rules.constants) for a in arguments.values()]
            fact = (self.numbers[predicate.name], tuple(values) or (True,))
            if rule.at is None:
                self._always[fact[0]].add(fact[1])
            else:
                self._at.setdefault(rule.at, []).append(fact)
            return
        made = self._compiled(rule, body, arguments)
        match rule.time:
            case "now":
                self._now.setdefault(predicate.name, []).append(made)
            case "next":
                self._next.append(made)
            case "async":
                self._async.append(made)

    def _compiled(
        self, rule: DedalusRule, body: Body, arguments: Mapping[str, Argument]
    ) -> _CompiledRule:
        gather = None
        if rule.has_aggregates:
            gather = _Gather.of(arguments, body)
            emitted = gather.emitted
        else:
            emitted = [a.written for a in arguments.values()] or [_true(rule)]
        group = self._group_of.get(rule.head.predicate, frozenset())
        recursive = [
            (self.numbers[step.match.predicate.name], position)
            for position, step in enumerate(body.steps)
            if step.match is not None and step.kind == "match"
            if rule.time == "now" and step.match.predicate.name in group
        ]
        loops = tuple((n, self._maker.loop(body, emitted, at)) for n, at in recursive)
        head = self.numbers[rule.head.predicate]
        return _CompiledRule(head, loops, self._maker.loop(body, emitted), gather, rule.span)

    def _invariant(self, body: Body, span: Span) -> tuple[RuleLoop, tuple[str, ...], Span]:
        emitted = [_variable(name, self.rules, span) for name in body.variables]
        return self._maker.loop(body, emitted), body.variables, span

    def step(
        self,
        state: HeldFacts,
        arrived: Iterable[GroundFact],
        tick: int,
        given: Iterable[GroundFact] = (),
    ) -> Stepped:
        """One tick: from what holds, what arrives and what comes in.

        Raises:
            DataError: an expression fails (code `runtime`).
        """
        tables = self.tables(state, arrived, tick, given)
        following = [frozenset[FactRow]()] * len(self.predicates)
        for number, rows in self._heads(self._next, tables).items():
            following[number] = frozenset(rows)
        sent = self._heads(self._async, tables)
        messages = frozenset((number, row) for number, rows in sent.items() for row in rows)
        return Stepped(tuple(following), messages, self._violation(tables))

    def tables(
        self,
        state: HeldFacts,
        arrived: Iterable[GroundFact],
        tick: int,
        given: Iterable[GroundFact] = (),
    ) -> list[FactTable]:
        """All that holds in a tick, by the predicates' numbers."""
        tables = [
            FactTable(before | always) for before, always in zip(state, self._always, strict=True)
        ]
        for facts in (arrived, given, self._at.get(tick, ())):
            for number, row in facts:
                tables[number].rows.add(row)
        for number, predicate in enumerate(self.predicates):
            if predicate.form == "clock":
                tables[number].rows.add((tick, None, None))
        for rules, is_recursive in self._steps:
            _reach(rules, is_recursive, tables)
        return tables

    def _heads(
        self, rules: Sequence[_CompiledRule], tables: Sequence[FactTable]
    ) -> dict[int, set[FactRow]]:
        found: dict[int, set[FactRow]] = {}
        for rule in rules:
            found.setdefault(rule.head, set()).update(_rows(rule, rule.whole, tables, None))
        return found

    def _violation(self, tables: Sequence[FactTable]) -> Violation | None:
        for number, (loop, variables, span) in enumerate(self._never):
            rows = _called(loop, tables, None, span)
            if rows:
                row = min(rows, key=repr)
                return Violation(number, tuple(zip(variables, row, strict=True)))
        return None


def _reach(rules: Sequence[_CompiledRule], is_recursive: bool, tables: Sequence[FactTable]) -> None:
    """The least fixpoint of predicates that need each other."""
    news: dict[int, FactTable] = {}
    for rule in rules:
        _add(news, rule.head, tables[rule.head].add(_rows(rule, rule.whole, tables, None)))
    while is_recursive and news:
        before, news = news, {}
        for rule in rules:
            for number, loop in rule.loops:
                if number in before:
                    found = _rows(rule, loop, tables, before[number])
                    _add(news, rule.head, tables[rule.head].add(found))


def _add(news: dict[int, FactTable], number: int, rows: set[FactRow]) -> None:
    if rows:
        news.setdefault(number, FactTable()).add(rows)


def _rows(
    rule: _CompiledRule, loop: RuleLoop, tables: Sequence[FactTable], news: FactTable | None
) -> Iterable[FactRow]:
    rows = _called(loop, tables, news, rule.span)
    return rows if rule.gather is None else rule.gather.gathered(rows, rule.span)


def _called(
    loop: RuleLoop, tables: Sequence[FactTable], news: FactTable | None, span: Span
) -> list[FactRow]:
    try:
        return loop(tables, news)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
        message = f"an expression of the rule fails: {type(problem).__name__}: {problem}"
        cure = "test what it needs in the body, before it: `x != 0, y = n // x`"
        raise DataError.of("runtime", message, span, help=cure) from None


def _true(rule: DedalusRule) -> RuleExpression:
    span = rule.head.arguments[0].written if rule.head.arguments else None
    source = span.source if span else cast("Any", None)
    return RuleExpression(ast.Constant(value=True), source, 0, 0)


def _variable(name: str, rules: Rules, span: Span) -> RuleExpression:
    source = rules.program.source
    start = source.offset(span.line, span.column)
    return RuleExpression(ast.Name(name, ast.Load()), source, start, start + 1)


@dataclass(frozen=True, slots=True)
class _Gather:
    """How a head with aggregates is made of the ways in which its body holds."""

    emitted: list[RuleExpression]
    """The parts of the group, then the arguments of the aggregates, then all variables."""
    places: tuple[tuple[str | None, int, int], ...]
    """Of each column the aggregate, or None for a part of the group, and where it stands."""
    group: int

    @staticmethod
    def of(arguments: Mapping[str, Argument], body: Body) -> _Gather:
        grouped = [a for a in arguments.values() if a.kind != "gathered"]
        emitted = [a.written for a in grouped]
        places: list[tuple[str | None, int, int]] = []
        for argument in arguments.values():
            if argument.kind != "gathered":
                places.append((None, grouped.index(argument), 0))
                continue
            call = argument.written.tree
            assert isinstance(call, ast.Call)
            parts = [p for p in call.args if not (isinstance(p, ast.Name) and p.id == "_")]
            at = argument.written
            places.append((argument.name, len(emitted), len(parts)))
            emitted += [RuleExpression(p, at.source, at.start, at.end) for p in parts]
        at = next(iter(arguments.values())).written
        emitted += [
            RuleExpression(ast.Name(v, ast.Load()), at.source, at.start, at.end)
            for v in body.variables
        ]
        return _Gather(emitted, tuple(places), len(grouped))

    def gathered(self, rows: Iterable[FactRow], span: Span) -> Iterable[FactRow]:
        """The rows of the head."""
        groups: dict[FactRow, list[FactRow]] = {}
        for row in set(rows):
            groups.setdefault(row[: self.group], []).append(row)
        for key, members in groups.items():
            yield tuple(
                key[at] if name is None else _aggregate(name, at, count, members, span)
                for name, at, count in self.places
            )


def _aggregate(name: str, at: int, count: int, rows: Sequence[FactRow], span: Span) -> Any:
    columns = [[row[c] for row in rows] for c in range(at, at + count)]
    whole = all(type(v) is int for column in columns for v in column if v is not None)
    of = LONG if whole else UNKNOWN
    site = cast("Any", _Place(span))
    values = GroupValues(site, len(rows), columns, of, is_ordered=False)
    return AGGREGATES[name](values)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an aggregate fails."""

    span: Span
    node: Any = field(default=None)

    def fail(self, reason: str, cure: str) -> NoReturn:
        """Says that it does."""
        raise DataError.of("runtime", reason, self.span, help=cure)
