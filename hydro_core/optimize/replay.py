"""Replays what the rules did to the e-graph into a congruence closure that can prove it.

Every rule logs what its variables stood for. After each iteration the new entries are replayed with
every representative that a class had before: classes that have met since have several.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hydro_core.ir.graph import inputs_first
from hydro_core.optimize.egraph import ClassId, EGraph, Problem, Saturation, Space
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.proof import Closure, Reason, TermId
from hydro_core.optimize.rule import Equal, Fact, Pattern, Rule, Var

MAX_REPLAYS = 64
"""Combinations of representatives that one rule application is replayed with."""

MAX_REPLAYED = 400_000
"""Nodes and rule applications that are looked at, in all rounds together."""

KNOWN = "known"
"""The reason of what the e-graph was told to be equal."""

ClassValue = tuple[str, Any]
RuleBindings = Mapping[str, int]
"""What the variables of a rule stand for: terms, and numbers of arguments."""


class Replay:
    """The closure of one e-graph's run."""

    def __init__(self, egraph: EGraph) -> None:
        self.problem: Problem = egraph.problem
        self.closure = Closure()
        self.streams: dict[str, TermId] = {}
        self._egraph = egraph
        self._seen: set[tuple[str, tuple[tuple[str, Any], ...]]] = set()
        self._pending: list[tuple[Rule, RuleBindings]] = []
        self._representatives: list[TermId] = []
        self._replayed = 0
        self._define()

    @property
    def is_whole(self) -> bool:
        """Whether all that was done was replayed: otherwise nothing can be proved."""
        return self._replayed <= MAX_REPLAYED

    def saturate(self) -> Saturation:
        """Saturates the e-graph, replaying each iteration."""
        self._representatives = self._members()[1]
        return self._egraph.saturate(self._replay)

    def terms_of(
        self, space: Space, plan: Plan
    ) -> tuple[Mapping[ClassId, TermId], tuple[ClassId, ...]]:
        """A term for every class of the plan, and the classes that break its cycles.

        It is the plan's own term, but one that is known equal for the classes that break cycles.
        """
        found: dict[ClassId, TermId] = {}
        broken = _feedback(space, plan)
        known = self.known()
        for cls in broken:
            found[cls] = known[cls]
        inputs = inputs_in(space, plan)
        roots = (*space.roots, *(c for cls in broken for c in inputs(cls)))
        for cls in inputs_first(roots, inputs, broken):
            found[cls] = self.body(space, plan, cls, found)
        return found, broken

    def body(
        self, space: Space, plan: Plan, cls: ClassId, terms: Mapping[ClassId, TermId]
    ) -> TermId:
        """The chosen node of a class over the terms of its inputs."""
        node = space.nodes[plan.choice[cls]]
        return self.closure.add(node.shape.name, node.payload, tuple(terms[c] for c in node.inputs))

    def _define(self) -> None:
        cuts = {c: self.closure.add(f"cut {c}", None, ()) for c in self.problem.cuts}
        for d in self.problem.definitions:
            inputs = tuple(cuts[i] if i in cuts else self.streams[i] for i in d.inputs)
            self.streams[d.name] = self.closure.add(d.shape, d.payload, inputs)
        for cut, name in self.problem.cuts.items():
            self.closure.union(cuts[cut], self.streams[name], Reason("definition"))
        for one, other in self._egraph.equal:
            self.closure.union(self.streams[one], self.streams[other], Reason(KNOWN))
        self._cuts = cuts

    def _members(self) -> tuple[dict[ClassValue, list[TermId]], list[TermId]]:
        """The known terms of every class, from the iteration before; new ones for new classes."""
        rows = {}
        for shape, payload, inputs, output in self._egraph.rows(subsumed=True):
            read = tuple(zip((s.value for s in shape.inputs), inputs, strict=True))
            rows[shape.name, payload, read] = (shape.output.value, output)
        classes: dict[TermId, ClassValue] = {}
        shapes = {d.name: d.shape for d in self.problem.definitions}
        for cut, term in self._cuts.items():
            name = self.problem.cuts[cut]
            sort = self.problem.shapes[shapes[name]].output.value
            classes[term] = (sort, self._egraph.value_of(name))
        members: dict[ClassValue, list[TermId]] = {}
        for term in self._representatives or [*self._cuts.values(), *self.streams.values()]:
            members.setdefault(self._class(term, classes, rows), []).append(term)
        changed = True
        while changed:
            changed = False
            for (name, payload, read), output in rows.items():
                if output not in members and all(i in members for i in read):
                    made = self.closure.add(name, payload, tuple(members[i][0] for i in read))
                    members[output] = [made]
                    changed = True
        return members, [self._smallest(terms) for terms in members.values()]

    def _smallest(self, terms: Sequence[TermId]) -> TermId:
        return min(terms, key=lambda t: (self.closure.sizes[t], t))

    def _class(
        self,
        term: TermId,
        classes: dict[TermId, ClassValue],
        rows: Mapping[tuple[str, int | None, tuple[ClassValue, ...]], ClassValue],
    ) -> ClassValue:
        if term not in classes:
            node = self.closure.terms[term]
            inputs = tuple(self._class(i, classes, rows) for i in node.inputs)
            classes[term] = rows[node.shape, node.payload, inputs]
        return classes[term]

    def known(self) -> Mapping[ClassId, TermId]:
        """A term for every class of the last space."""
        members, _ = self._members()
        ids = {key: number for number, key in enumerate(self._egraph.numbering)}
        return {ids[key]: self._smallest(terms) for key, terms in members.items() if key in ids}

    def _replay(self) -> None:
        if not self.is_whole:
            return
        members, best = self._members()
        self._replayed += self._egraph.size()
        for rule, values in self._egraph.firings():
            self._replayed += 1
            self._queue(rule, values, members)
        waiting: list[tuple[Rule, RuleBindings]] | None = None
        while waiting is None or len(self._pending) < len(waiting):
            waiting, self._pending = self._pending, []
            self._pending += [instance for instance in waiting if not self._apply(*instance)]
        self._representatives = best

    def _queue(
        self,
        rule: Rule,
        given: tuple[tuple[str, Any], ...],
        members: Mapping[ClassValue, list[TermId]],
    ) -> None:
        domains = [[value] if isinstance(value, int) else members[value] for _, value in given]
        names = [name for name, _ in given]
        for values in itertools.islice(itertools.product(*domains), MAX_REPLAYS):
            key = (rule.name, tuple(zip(names, values, strict=True)))
            if key not in self._seen:
                self._seen.add(key)
                self._pending.append((rule, dict(key[1])))

    def _apply(self, rule: Rule, bound: RuleBindings) -> bool:
        premises = []
        for condition in rule.when:
            if isinstance(condition, Equal):
                pair = self._term(condition.left, bound), self._term(condition.right, bound)
                if not self.closure.same(*pair):
                    return False
                premises.append(pair)
        if isinstance(rule.rhs, Fact):
            return True
        reason = Reason(rule.name, premises=tuple(premises))
        self.closure.union(self._term(rule.lhs, bound), self._term(rule.rhs, bound), reason)
        return True

    def _term(self, pattern: Pattern, bound: RuleBindings) -> TermId:
        if isinstance(pattern, Var):
            return bound[pattern.name]
        payload = None if pattern.payload is None else bound[pattern.payload.name]
        inputs = tuple(self._term(i, bound) for i in pattern.inputs)
        return self.closure.add(pattern.shape, payload, inputs)


def inputs_in(space: Space, plan: Plan) -> Callable[[ClassId], Sequence[ClassId]]:
    return lambda cls: space.nodes[plan.choice[cls]].inputs


def _feedback(space: Space, plan: Plan) -> tuple[ClassId, ...]:
    """Classes of the plan that break all its cycles."""
    inputs = inputs_in(space, plan)
    place = {cls: i for i, cls in enumerate(inputs_first(space.roots, inputs))}
    late = (read for cls in place for read in inputs(cls) if place[read] >= place[cls])
    return tuple(dict.fromkeys(late))
