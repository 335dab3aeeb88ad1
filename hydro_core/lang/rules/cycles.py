"""Cycles through a negation or an aggregate: what needs a whole predicate makes that predicate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from hydro_core.errors import Diagnostic, Span, beginning
from hydro_core.ir.walk import components, shortest_path
from hydro_core.lang.rules.predicates import Predicate
from hydro_core.lang.rules.syntax import DedalusRule, RuleProgram


@dataclass(frozen=True, slots=True)
class Edge:
    """A head that needs a predicate of this tick; `whole`: all of it, before it says anything."""

    head: str
    body: str
    whole: bool
    rule: DedalusRule
    span: Span


def edges_of(program: RuleProgram) -> Iterator[Edge]:
    """What needs what within a tick."""
    for rule in program.rules:
        if rule.time == "now":
            for atom, negated in rule.body.atoms():
                whole = negated or rule.has_aggregates
                yield Edge(rule.head.predicate, atom.predicate, whole, rule, atom.span)


def recursive_groups(program: RuleProgram) -> list[frozenset[str]]:
    """The predicates that need each other within a tick; a group comes before its readers."""
    needs: dict[str, dict[str, None]] = {}
    for edge in edges_of(program):
        needs.setdefault(edge.head, {})[edge.body] = None
        needs.setdefault(edge.body, {})
    return [frozenset(group) for group in components({k: list(v) for k, v in needs.items()})]


def check_cycles(program: RuleProgram) -> list[Diagnostic]:
    """An error for each group of predicates that cannot be put into an order."""
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
    """An error for each predicate without declared types of which every rule needs it already."""
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
