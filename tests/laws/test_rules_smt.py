"""Rules as laws over integer multiplicities, proved by a solver for all streams of a few ticks.

How often an item is in the result of a bag operator depends on how often some items are in its
inputs. So a pattern at an item is a term over unknown counts: `map` sums over the items that it
sends there, a join multiplies, `unique` stops at one. What holds for arbitrary counts of the items
involved holds for all streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
import z3

from hydro_core.optimize.rule import EqualClasses, Fact, Pat, Pattern, Rule, Var
from tests.support.patterns import all_rules

TICKS = 3
Stream = list[z3.ArithRef]
Path = tuple[str, ...]
KEPT = {"filter", "partition"}
SPREAD = {"map", "flat_map", "filter_map"}
PAIRED = {"join", "cross"}
NEGATED = {"difference", "anti_join", "join:anti"}
KNOWN = (
    {
        "chain",
        "union",
        "prev",
        "old",
        "persist",
        "delta",
        "unique",
        "window",
        "identity",
        "join:semi",
    }
    | {"next_stratum", "inspect"}
    | KEPT
    | SPREAD
    | PAIRED
    | NEGATED
)


@dataclass
class _Model:
    """The counts of a pattern at an item, named by the path to it from the result."""

    inputs: dict[tuple[str, Path], Stream] = field(default_factory=dict)
    bound: Mapping[str, Pattern] = field(default_factory=dict)
    cycles: dict[str, Stream] = field(default_factory=dict)
    facts: list[z3.BoolRef] = field(default_factory=list)
    growing: frozenset[str] = frozenset()

    def at(self, pattern: Pattern, path: Path) -> Stream:
        """How often the item is in the stream, tick by tick."""
        if isinstance(pattern, Var):
            return self._variable(pattern.name, path)
        children = pattern.inputs
        name = pattern.shape
        if name in PAIRED:
            left, right = (
                self.at(children[0], (*path, "left")),
                self.at(children[1], (*path, "right")),
            )
            return [x * y for x, y in zip(left, right, strict=True)]
        if name in SPREAD:
            f = pattern.payload.name if pattern.payload else ""
            one, two = (self.at(children[0], (*path, f"{f}{i}")) for i in "12")
            return [x + 2 * y for x, y in zip(one, two, strict=True)]
        if name in KEPT:
            f = pattern.payload.name if pattern.payload else ""
            kept = z3.Bool(f"{f}{path}")
            return [z3.If(kept, x, 0) for x in self.at(children[0], path)]
        streams = [self.at(c, path) for c in children]
        if name in NEGATED | {"join:semi"}:
            there = name == "join:semi"
            return [
                z3.If((n > 0) == there, p, 0) for p, n in zip(streams[0], streams[1], strict=True)
            ]
        return self._in_time(name, streams)

    def _in_time(self, name: str, streams: list[Stream]) -> Stream:
        a = streams[0]
        zero = z3.IntVal(0)
        before = [zero, *a[:-1]]
        match name:
            case "chain" | "union":
                return [x + y for x, y in zip(a, streams[1], strict=True)]
            case "prev":
                return before
            case "persist":
                return [z3.Sum(a[: t + 1]) for t in range(TICKS)]
            case "old":
                return [z3.Sum([zero, *a[:t]]) for t in range(TICKS)]
            case "window":
                return [z3.Sum([zero, *a[max(0, t - 1) : t + 1]]) for t in range(TICKS)]
            case "delta":
                return [z3.If(x > y, x - y, 0) for x, y in zip(a, before, strict=True)]
            case "unique":
                return [z3.If(x > 0, z3.IntVal(1), zero) for x in a]
            case _:
                return a

    def _variable(self, name: str, path: Path) -> Stream:
        key = (name, path)
        if name in self.bound:
            if key in self.inputs:
                return self.inputs[key]
            # a cycle through prev: its counts are unknowns that obey the equation
            self.inputs[key] = [z3.Int(f"{name}{path}{t}") for t in range(TICKS)]
            value = self.at(self.bound[name], path)
            self.facts += [x == y for x, y in zip(self.inputs[key], value, strict=True)]
            return self.inputs[key]
        if key not in self.inputs:
            counts = [z3.Int(f"{name}{path}{t}") for t in range(TICKS)]
            self.inputs[key] = counts
            self.facts += [c >= 0 for c in counts]
            if name in self.growing:
                self.facts += [x <= y for x, y in pairwise(counts)]
        return self.inputs[key]


def _speaks_of_counts(rule: Rule) -> bool:
    names = {s for p in rule.patterns() for s in _shapes(p)}
    conditions = {c.name for c in rule.when if isinstance(c, Fact)}
    return names <= KNOWN and conditions <= {"growing"}


def _shapes(pattern: Pattern) -> list[str]:
    if isinstance(pattern, Var):
        return []
    return [pattern.shape, *(s for c in pattern.inputs for s in _shapes(c))]


def _prove(rule: Rule) -> z3.CheckSatResult:
    """`unsat` where no streams tell the two sides apart."""
    growing = frozenset(
        c.args[0].name for c in rule.when if isinstance(c, Fact) and c.name == "growing"
    )
    equations = [c for c in rule.when if isinstance(c, EqualClasses) and isinstance(c.left, Var)]
    first = {c.left.name: c.right for c in reversed(equations) if isinstance(c.left, Var)}
    model = _Model(bound=first, growing=growing)
    for condition in equations:
        left, right = model.at(condition.left, ()), model.at(condition.right, ())
        model.facts += [x == y for x, y in zip(left, right, strict=True)]
    left = model.at(rule.lhs, ())
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    if isinstance(rule.rhs, Fact):
        claim = z3.And([x <= y for x, y in pairwise(left)])
    else:
        right = model.at(rule.rhs, ())
        claim = z3.And([x == y for x, y in zip(left, right, strict=True)])
    solver.add(*model.facts, z3.Not(claim))
    return solver.check()


LAWS = [r for r in all_rules() if _speaks_of_counts(r)]


@pytest.mark.parametrize("law", LAWS, ids=lambda r: r.name)
def test_a_rule_is_a_law_of_counts(law: Rule) -> None:
    assert _prove(law) == z3.unsat


def test_most_rules_about_time_are_proved() -> None:
    assert len(LAWS) >= 60


def test_a_wrong_law_has_a_counterexample() -> None:
    a = Var("a")
    persist = Pat("persist", None, (a,))
    wrong = Rule("wrong", Pat("persist", None, (persist,)), persist, "it is not")
    assert _prove(wrong) == z3.sat
