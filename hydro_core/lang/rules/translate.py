"""Rules to the graph of a text program."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from hydro_core.catalog.combine import CROSS, UNION
from hydro_core.catalog.group import UNIQUE
from hydro_core.catalog.itemwise import FILTER, MAP, SELECT, SOURCE_ITER, TICK
from hydro_core.catalog.state import PERSIST, PREV
from hydro_core.errors import Diagnostic, ProgramError, Span, beginning
from hydro_core.ir.graph import Graph, build, components, free_name, reachable, shortest_path
from hydro_core.lang.rules.bodies import (
    Body,
    NodeToBe,
    Operators,
    Rows,
    RuleReader,
    body_of,
    check_head,
    function,
)
from hydro_core.lang.rules.parser import parse_rules_text
from hydro_core.lang.rules.predicates import (
    Predicate,
    PredicateFinder,
    head_columns,
    item_of,
    outputs_of,
)
from hydro_core.lang.rules.syntax import (
    Argument,
    DedalusRule,
    Literals,
    Mention,
    RuleExpression,
    RuleProgram,
    constant_of,
)
from hydro_core.lang.source import Source
from hydro_core.types.item import ItemType

# Cycles through a negation or an aggregate: a rule that needs a whole predicate contributes to it.


@dataclass(frozen=True, slots=True)
class Edge:
    """A head that reads a predicate of this tick; `whole`: the head needs all of it first."""

    head: str
    body: str
    whole: bool
    rule: DedalusRule
    span: Span


def edges_of(program: RuleProgram) -> Iterator[Edge]:
    """The dependencies between predicates within a tick."""
    for rule in program.rules:
        if rule.time == "now":
            for atom, negated in rule.body.atoms():
                whole = negated or rule.has_aggregates
                yield Edge(rule.head.predicate, atom.predicate, whole, rule, atom.span)


def recursive_groups(program: RuleProgram) -> list[frozenset[str]]:
    """The predicates that depend on each other within a tick; a group precedes its readers."""
    needs: dict[str, dict[str, None]] = {}
    for edge in edges_of(program):
        needs.setdefault(edge.head, {})[edge.body] = None
        needs.setdefault(edge.body, {})
    return [frozenset(group) for group in components({k: list(v) for k, v in needs.items()})]


def check_cycles(program: RuleProgram) -> list[Diagnostic]:
    """An error for each group of predicates without an order of evaluation."""
    edges = list(edges_of(program))
    problems = []
    for group in recursive_groups(program):
        inside = [e for e in edges if e.head in group and e.body in group]
        whole = [e for e in inside if e.whole]
        if whole:
            problems.append(_diagnostic(min(whole, key=lambda e: beginning(e.span)), inside))
    return problems


def _diagnostic(edge: Edge, inside: list[Edge]) -> Diagnostic:
    needs: dict[str, list[str]] = {e.head: [] for e in inside}
    for e in inside:
        needs[e.head].append(e.body)
    names = shortest_path(needs, edge.body, edge.head, needs)
    back = (next(e for e in inside if (e.head, e.body) == step) for step in pairwise(names))
    steps = [edge, *back]
    shown = "".join(f"{e.head} needs {'all of ' if e.whole else ''}{e.body}, " for e in steps)
    why = "aggregates" if edge.rule.has_aggregates else "negates"
    message = (
        f"`{edge.head}` {why} `{edge.body}`, which is made of `{edge.head}` in the same tick: "
        f"{shown.removesuffix(', ')}"
    )
    last = steps[-1]
    line = last.rule.head.span.line
    cure = (
        f"`{last.rule.head.predicate}(…)@next` in line {line} breaks the cycle: it then holds in "
        f"the tick after; else rewrite what {edge.head} {why}"
    )
    return Diagnostic("cycle", message, edge.span, edge.head, help=cure)


def check_beginnings(program: RuleProgram, predicates: Mapping[str, Predicate]) -> list[Diagnostic]:
    """An error for each predicate without declared types whose rules all read a predicate without
    rows.
    """
    begun = {name for name, p in predicates.items() if not p.rules or p.is_input or p.schema}
    before = -1
    while before != len(begun):
        before = len(begun)
        for rule in program.rules:
            if all(atom.predicate in begun for atom in rule.body.positive):
                begun.add(rule.head.predicate)
    return [
        Diagnostic(
            "type",
            f"no rule begins `{name}`: each of them needs `{name}` already, so it is always empty",
            predicate.rules[0].head.span,
            name,
            help=f"write a rule that does not need it, or declare it: `.decl {name}(x: long)`",
        )
        for name, predicate in predicates.items()
        if name not in begun
    ]


# Rules to the graph of text programs.
#
# A predicate has the rows of its rules, each once: a union of bodies and `unique`. Rows of the next
# tick pass through `prev`. Asynchronous rows are, with `delivery="next"`, the rows that were sent
# in the tick before, and with `delivery="open"` an input with the predicate's name and an output
# `NAME_async`.


Delivery = Literal["next", "open"]
ASYNC = "_async"
"""The suffix of the output with an asynchronous predicate's facts."""
NO_CONSTANTS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Rules:
    """A checked program of rules, before types are known."""

    program: RuleProgram
    predicates: Mapping[str, Predicate]
    bodies: Mapping[int, Body]
    """The bodies of the rules, by the rules' position in the text."""
    never: tuple[tuple[Body, Span], ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Any]

    @property
    def asynchronous(self) -> tuple[str, ...]:
        """The predicates some of whose rows arrive later than they were sent."""
        return tuple(name for name, p in self.predicates.items() if p.is_async)


def read_rules(
    text: str, *, file: str = "<text>", constants: Mapping[str, Any] = NO_CONSTANTS
) -> Rules:
    """The rules of a text, checked.

    Args:
        text: the program.
        file: the name of the text, for errors.
        constants: names that its expressions may use, besides variables and builtins.

    Raises:
        ProgramError: all problems that one step detects.
    """
    source = Source(file, text.removeprefix("\ufeff"))
    program, problems = parse_rules_text(source, constants)
    _refuse(problems)
    if not program.rules:
        cure = "write an input and a rule: `.input edge(a: long, b: long)`, `to(b) :- edge(_, b).`"
        span = source.span(0, 0)
        raise ProgramError.of("syntax", "the program has no rules", span, help=cure)
    predicates, problems = PredicateFinder(program).found()
    _refuse(problems)
    bodies = {}
    for number, rule in enumerate(program.rules):
        try:
            body = body_of(rule.body, predicates, constants)
            check_head(rule, predicates[rule.head.predicate], body.variables, constants)
            bodies[number] = body
        except ProgramError as wrong:
            problems += wrong.diagnostics
    never = []
    for literals, span in program.never:
        try:
            never.append((body_of(literals, predicates, constants), span))
        except ProgramError as wrong:
            problems += wrong.diagnostics
    _refuse([*problems, *check_cycles(program), *check_beginnings(program, predicates)])
    outputs = outputs_of(program, predicates)
    return Rules(program, predicates, bodies, tuple(never), outputs, constants)


def with_invariants(
    rules: Rules, *, shown: bool = False
) -> tuple[Rules, tuple[tuple[str, tuple[str, ...]], ...]]:
    """The rules with an output for each invariant: the rows of its variables that violate it.

    Args:
        rules: the program.
        shown: True if all predicates with rules are outputs, too; else none of them is.

    Returns:
        The rules, and for each invariant the output's name and its columns.
    """
    program = replace(rules.program, rules=list(rules.program.rules))
    predicates, bodies = dict(rules.predicates), dict(rules.bodies)
    outputs = [name for name, p in predicates.items() if p.rules] if shown else []
    never = []
    for number, (body, span) in enumerate(rules.never):
        # No predicate has a space in its name.
        name, literals = f"never {number + 1}", rules.program.never[number][0]
        arguments = tuple(
            Argument("variable", _variable(v, program, span), v) for v in body.variables
        )
        rule = DedalusRule(Mention(name, arguments, span, span), "now", literals, span)
        bodies[len(program.rules)] = body
        program.rules.append(rule)
        predicates[name] = Predicate(
            name, head_columns(rule.head), "rows", span, False, {}, (rule,)
        )
        outputs.append(name)
        never.append((name, body.variables))
    observed = replace(
        rules, program=program, predicates=predicates, bodies=bodies, outputs=tuple(outputs)
    )
    return observed, tuple(never)


def _variable(name: str, program: RuleProgram, span: Span) -> RuleExpression:
    start = program.source.offset(span.line, span.column)
    return RuleExpression(ast.Name(name, ast.Load()), program.source, start, start + 1)


def _refuse(problems: list[Diagnostic]) -> None:
    if problems:
        raise ProgramError(*sorted(problems, key=lambda d: beginning(d.span)))


def graph_of_rules(
    rules: Rules,
    name: str = "flow",
    delivery: Delivery = "next",
    arriving: Mapping[str, ItemType] | None = None,
) -> Graph:
    """The graph of rules.

    Args:
        rules: the program.
        name: the name of the graph.
        delivery: how asynchronous facts arrive.
        arriving: the types of arriving rows, with `delivery="open"`, if they are not declared.

    Raises:
        ProgramError: the program has no output, or an argument is wrong.
    """
    return _Translation(rules, delivery, arriving or {}).graph(name)


class _Translation:
    def __init__(self, rules: Rules, delivery: Delivery, arriving: Mapping[str, ItemType]) -> None:
        self.rules, self.delivery, self.arriving = rules, delivery, arriving
        self.operators = Operators()
        self.reader = RuleReader(self.operators, self.base, rules.constants, rules.bodies.values())
        self.bases: dict[str, Rows] = {}
        self.whole: dict[str, NodeToBe] = {}
        """The operators that give each predicate's rows, before they are placed."""

    def graph(self, name: str) -> Graph:
        needed = self._needed()
        numbered = list(enumerate(self.rules.program.rules))
        made = [p for p in needed if p.rules]
        for predicate in made:
            self._announce(predicate)
        for predicate in needed:
            if not predicate.rules:
                self.base(predicate)
        for predicate in made:
            own = [(n, rule) for n, rule in numbered if rule.head.predicate == predicate.name]
            self._define(predicate, own)
        for output in self.rules.outputs:
            found = self.base(self.rules.predicates[output])
            rows = self.operators.unique(found, self.rules.predicates[output].span)
            self.operators.sink(rows.node, output, self.rules.predicates[output].span)
        self._check_outputs()
        return build(self.operators.drafts(), name, self._unread(needed))

    def _needed(self) -> list[Predicate]:
        """The predicates that outputs depend on, and all inputs; a predicate precedes its
        readers.
        """
        program, predicates = self.rules.program, self.rules.predicates
        found = self._needs((*self.rules.outputs, *self.rules.asynchronous))
        order = [n for group in recursive_groups(program) for n in predicates if n in group]
        order += [n for n in predicates if n not in order]
        return [predicates[n] for n in order if n in found or predicates[n].is_input]

    def _needs(self, names: Iterable[str]) -> set[str]:
        """Predicates, with all that they depend on."""

        def of(name: str) -> Iterator[str]:
            for rule in self.rules.predicates[name].rules:
                yield from (atom.predicate for atom, _ in rule.body.atoms())

        return reachable(names, of)

    def _announce(self, predicate: Predicate) -> None:
        """The operator that will give the predicate's rows; rules may refer to it before."""
        node = Operators().add(UNIQUE, [], predicate.span)
        reads_input = self._has_source(predicate)
        name = predicate.name
        node.draft.name = free_name(f"{name}_now", self.rules.predicates) if reads_input else name
        self.whole[predicate.name] = node
        self.bases[predicate.name] = Rows(node, predicate.columns, is_set=True)

    def _has_source(self, predicate: Predicate) -> bool:
        return predicate.is_input or (self.delivery == "open" and predicate.is_async)

    def base(self, predicate: Predicate) -> Rows:
        if predicate.name not in self.bases:
            if predicate.form == "clock":
                node = self.operators.add(TICK, [], predicate.span)
                self.bases[predicate.name] = Rows(node, predicate.columns, is_set=True)
            else:
                self.bases[predicate.name] = self._source(predicate)
        return self.bases[predicate.name]

    def _source(self, predicate: Predicate) -> Rows:
        """The input of the predicate's name, as rows of its columns."""
        name, columns, span = predicate.name, predicate.columns, predicate.span
        dependencies = [d for d in self.rules.program.dependencies if d.name == name]
        fds = tuple((d.left, d.right) for d in dependencies)
        schema = item_of(predicate) or self.arriving.get(name)
        node = self.operators.source(name, span, schema, fds)
        if predicate.form == "positional":
            parts = ", ".join(f"{c!r}: {c}" for c in columns)
            spread = function(f"lambda {', '.join(columns)}: {{{parts}}}")
            node = self.operators.add(MAP, [node], span, spread)
        elif schema is None and columns:
            node = self.operators.add(SELECT, [node], span, *columns)
        return Rows(node, columns, is_set=False)

    def _define(self, predicate: Predicate, rules: list[tuple[int, DedalusRule]]) -> None:
        parts: list[NodeToBe] = []
        if self._has_source(predicate):
            parts.append(self._source(predicate).node)
        facts = [rule for _, rule in rules if _is_fact(rule)]
        parts += self._facts(predicate, facts)
        for number, rule in rules:
            if not _is_fact(rule):
                rows = self.reader.head(rule, predicate, self.rules.bodies[number])
                parts += self._in_time(rule, rows)
        if predicate.schema is not None and not predicate.is_input:
            # A source without rows has the declared types: the rows of the rules must fit them.
            schema = {"schema": item_of(predicate)}
            node = self.operators.add(SOURCE_ITER, [], predicate.span, [], **schema)
            parts.append(self.operators.add(PERSIST, [node], predicate.span))
        node = self.whole[predicate.name]
        if len(parts) != 1:
            parts = [self.operators.add(UNION, parts, predicate.span)]
        node.inputs = parts
        self.operators.place(node)

    def _in_time(self, rule: DedalusRule, rows: Rows) -> list[NodeToBe]:
        """The rows that a rule gives its predicate: now, in the next tick, or on arrival."""
        span = rule.span
        if rule.time == "now":
            return [rows.node]
        if rule.time == "async" and self.delivery == "open":
            sent = self.operators.unique(rows, span)
            self.operators.sink(sent.node, f"{rule.head.predicate}{ASYNC}", span)
            return []
        return [self.operators.add(PREV, [rows.node], span)]

    def _facts(self, predicate: Predicate, facts: list[DedalusRule]) -> list[NodeToBe]:
        """Facts without a tick hold in every tick, those with one in that tick."""
        found = []
        schema = {"schema": item_of(predicate)} if item_of(predicate) is not None else {}
        for always in (True, False):
            rows = [
                self._values(predicate, rule)
                for rule in facts
                if rule.at == (None if always else 0)
            ]
            if rows:
                node = self.operators.add(SOURCE_ITER, [], predicate.span, rows, **schema)
                found.append(
                    self.operators.add(PERSIST, [node], predicate.span) if always else node
                )
        return [*found, *(self._at(predicate, rule) for rule in facts if rule.at)]

    def _at(self, predicate: Predicate, rule: DedalusRule) -> NodeToBe:
        values = self._values(predicate, rule)
        node = self.operators.add(TICK, [], rule.span)
        then = function(f"lambda r: r.tick == {rule.at}")
        node = self.operators.add(FILTER, [node], rule.span, then)
        one = self.operators.add(SOURCE_ITER, [], rule.span, [values])
        held = self.operators.add(PERSIST, [one], rule.span)
        node = self.operators.add(CROSS, [node, held], rule.span)
        return self.operators.add(MAP, [node], rule.span, function("lambda a, b: b"))

    def _values(self, predicate: Predicate, rule: DedalusRule) -> dict[str, Any]:
        """The row of a fact."""
        arguments = check_head(rule, predicate, (), self.rules.constants)
        return {c: constant_of(a.written, self.rules.constants) for c, a in arguments.items()} or {
            "holds": True
        }

    def _check_outputs(self) -> None:
        if not any(node.draft.op.outputs == "none" for node in self.operators.nodes):
            span = self.rules.program.rules[0].head.span
            cure = "name one: `.output path`"
            message = "the program has no output: all its predicates are read by rules"
            raise ProgramError.of("name", message, span, help=cure)

    def _unread(self, needed: list[Predicate]) -> list[Diagnostic]:
        """Warnings of predicates that no output needs."""
        known = {p.name for p in needed}
        never = [a.predicate for body, _ in self.rules.program.never for a, _ in body.atoms()]
        watched = self._needs(never)
        return [
            Diagnostic(
                "name",
                f"no output needs `{name}`: its rules are left out",
                predicate.span,
                name,
                help="name it in `.output`, or remove its rules",
                severity="warning",
            )
            for name, predicate in self.rules.predicates.items()
            if name not in known and name not in watched and predicate.rules
        ]


def _is_fact(rule: DedalusRule) -> bool:
    return rule.body == Literals() and rule.time == "now" and not rule.has_aggregates


def carrying(rules: Rules) -> Iterator[DedalusRule]:
    """The rules that carry facts of a predicate to the next tick, but not all of them unchanged.

    A tick reads all facts to apply such a rule. A rule that carries all (`p(x)@next :- p(x).`)
    makes its predicate grow only, so a tick reads the new facts alone.
    """
    for rule in rules.program.rules:
        own = [a for a in rule.body.positive if a.predicate == rule.head.predicate]
        if rule.time == "next" and own and not _keeps_all(rule):
            yield rule


def _keeps_all(rule: DedalusRule) -> bool:
    body = rule.body
    if len(body.positive) != 1 or body.negative or body.conditions:
        return False
    head, kept = rule.head.arguments, body.positive[0].arguments
    same = [(a.column, a.name) for a in head] == [(a.column, a.name) for a in kept]
    names = {a.name for a in head}
    return same and all(a.kind == "variable" for a in head) and len(names) == len(head)
