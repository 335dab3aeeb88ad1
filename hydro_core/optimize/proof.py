"""Proofs that streams are equal: the rules that fired are replayed into a congruence closure.

Every rule logs the values of its variables. After each round of the e-graph the new entries are
replayed on terms, with every representative that a class had before: classes that were merged have
several. Each union is stored with its reason, a rule or congruence, so that the path between two
equal terms is their proof (Nieuwenhuis and Oliveras, RTA 2005).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydro_core.ir.graph import inputs_first, reachable
from hydro_core.optimize.egraph import ClassId, EGraph, Problem, Saturation, Space
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.rule import EqualClasses, Fact, Pattern, Rule, Var

MAX_REPLAYS = 64
"""The limit of combinations of representatives with which one rule application is replayed."""

MAX_REPLAYED = 400_000
"""The limit of nodes and rule applications that are visited, in all rounds together."""

KNOWN = "known"
"""The reason of equalities that the e-graph was given."""
DEFINITION = "definition"
"""The reason of a cut: it stands for a stream of the program."""

TermId = int
TermPair = tuple[TermId, TermId]
ClassValue = tuple[str, Any]
RuleBindings = Mapping[str, int]
"""By variable of a rule: its term, or the number of its arguments."""


@dataclass(frozen=True, slots=True)
class TermNode:
    """A term: a shape, its arguments, and its inputs."""

    shape: str
    payload: int | None
    inputs: tuple[TermId, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule that makes two terms equal; without one, they are equal since their inputs are."""

    rule: str = ""
    premises: tuple[TermPair, ...] = ()


@dataclass(frozen=True, slots=True)
class ProofStep:
    """A rule on the path from one term to another, and the two terms that it makes equal."""

    rule: str
    before: TermId
    after: TermId


class Closure:
    """Terms and their equalities."""

    def __init__(self) -> None:
        self.terms: list[TermNode] = []
        self.sizes: list[int] = []
        self._ids: dict[TermNode, TermId] = {}
        self._leader: list[TermId] = []
        self._parent: list[tuple[TermId, Reason] | None] = []
        self._users: dict[TermId, list[TermId]] = {}
        self._signatures: dict[TermNode, TermId] = {}

    def add(self, shape: str, payload: int | None, inputs: tuple[TermId, ...]) -> TermId:
        """The term, interned."""
        node = TermNode(shape, payload, inputs)
        known = self._ids.get(node)
        if known is not None:
            return known
        term = self._ids[node] = len(self.terms)
        self.terms.append(node)
        self.sizes.append(1 + sum(self.sizes[i] for i in inputs))
        self._leader.append(term)
        self._parent.append(None)
        for i in inputs:
            self._users.setdefault(self.find(i), []).append(term)
        same = self._signatures.setdefault(self._signature(term), term)
        if same != term:
            self.union(term, same, Reason())
        return term

    def find(self, term: TermId) -> TermId:
        """The leader of the term's class."""
        while self._leader[term] != term:
            self._leader[term] = self._leader[self._leader[term]]
            term = self._leader[term]
        return term

    def same(self, a: TermId, b: TermId) -> bool:
        """True if the terms are known to be equal."""
        return self.find(a) == self.find(b)

    def union(self, a: TermId, b: TermId, reason: Reason) -> None:
        """Makes the terms equal for this reason, and all terms that are equal by congruence."""
        todo = [(a, b, reason)]
        while todo:
            a, b, reason = todo.pop()
            if self.same(a, b):
                continue
            if len(self._users.get(self.find(a), ())) > len(self._users.get(self.find(b), ())):
                a, b = b, a
            self._link(a, b, reason)
            leader, other = self.find(b), self.find(a)
            self._leader[other] = leader
            for user in self._users.pop(other, ()):
                same = self._signatures.setdefault(self._signature(user), user)
                if not self.same(same, user):
                    todo.append((user, same, Reason()))
                self._users.setdefault(leader, []).append(user)

    def proof(self, pairs: Iterable[TermPair]) -> Iterator[ProofStep]:
        """The rules that make the terms of each pair equal, each followed by its premises.

        A step occurs once, in however many terms, so there are at most as many steps as unions. The
        equality of inputs is proved where it is used.
        """
        seen: set[tuple[TermId, TermId, Reason | None]] = set()
        todo: list[tuple[TermId, TermId, Reason | None]] = [(*pair, None) for pair in pairs]
        todo.reverse()
        while todo:
            before, after, reason = step = todo.pop()
            if before == after or step in seen:
                continue
            seen.add(step)
            if reason is None:
                todo += reversed(tuple(self._path(before, after)))
            elif reason.rule:
                yield ProofStep(reason.rule, before, after)
                todo += ((*pair, None) for pair in reversed(reason.premises))
            else:
                inputs = zip(self.terms[before].inputs, self.terms[after].inputs, strict=True)
                todo += ((*pair, None) for pair in reversed(tuple(inputs)))

    def _signature(self, term: TermId) -> TermNode:
        node = self.terms[term]
        return TermNode(node.shape, node.payload, tuple(map(self.find, node.inputs)))

    def _link(self, a: TermId, b: TermId, reason: Reason) -> None:
        """Makes `a` the root of its tree, and links it below `b`."""
        child: TermId | None = a
        parent, why = b, reason
        while child is not None:
            following = self._parent[child]
            self._parent[child] = (parent, why)
            if following is None:
                return
            parent, child, why = child, *following

    def _path(self, a: TermId, b: TermId) -> Iterator[tuple[TermId, TermId, Reason]]:
        """The unions on the path from one term to the other."""
        up = [a]
        while (above := self._parent[up[-1]]) is not None:
            up.append(above[0])
        place = {term: i for i, term in enumerate(up)}
        down = []
        term = b
        while term not in place:
            above = self._parent[term]
            if above is None:
                raise ValueError(f"terms {a} and {b} are not known to be equal")
            down.append((above[0], term, above[1]))
            term = above[0]
        for child in up[: place[term]]:
            above = self._parent[child]
            assert above is not None
            yield child, *above
        yield from reversed(down)


@dataclass(frozen=True, slots=True)
class Derivation:
    """The rules by which an output's plan follows from the program."""

    output: str
    rules: tuple[Rule, ...]
    """Each once, in the order of its first use."""

    def as_json(self) -> dict[str, Any]:
        """The derivation as `--format json` prints it."""
        rules = [
            {
                "rule": rule.name,
                "because": rule.because,
                "before": str(rule.lhs),
                "after": str(rule.rhs),
                "when": [str(condition) for condition in rule.when],
            }
            for rule in self.rules
        ]
        return {"output": self.output, "rules": rules}

    def render(self) -> str:
        """The derivation as text."""
        lines = [
            f"{self.output}: {'these rules lead' if self.rules else 'no rule leads'} to the plan"
        ]
        for rule in self.rules:
            lines += [f"  {rule.name}: {rule.because}", f"    {rule}"]
        return "\n".join(lines)


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
        """True if all rules that fired were replayed; else nothing can be proved."""
        return self._replayed <= MAX_REPLAYED

    def saturate(self) -> Saturation:
        """Saturates the e-graph, replaying each iteration."""
        self._representatives = self._members()[1]
        return self._egraph.saturate(self._replay)

    def derivations(self, space: Space, plan: Plan) -> Iterator[Derivation]:
        """For every output, the rules that make the program's term equal to the plan's.

        A plan may feed itself through `prev`. A stream on the cycle is then a term that is known to
        be equal; a separate proof shows that it satisfies the plan's equation.
        """
        rules = {rule.name: rule for rule in self._egraph.rules}
        inputs = inputs_in(space, plan)
        broken = _feedback(space, plan)
        known = self.known()
        terms = {cls: known[cls] for cls in broken}
        roots = (*space.roots, *(c for cls in broken for c in inputs(cls)))
        for cls in inputs_first(roots, inputs, broken):
            terms[cls] = self._chosen(space, plan, cls, terms)
        for name, root in zip(self.problem.roots, space.roots, strict=True):
            behind = reachable([root], inputs)
            cycles = (cls for cls in broken if cls in behind)
            pairs = [(terms[c], self._chosen(space, plan, c, terms)) for c in cycles]
            steps = self.closure.proof([(self.streams[name], terms[root]), *pairs])
            used = dict.fromkeys(step.rule for step in steps)
            yield Derivation(name, tuple(rules[rule] for rule in used if rule in rules))

    def _chosen(
        self, space: Space, plan: Plan, cls: ClassId, terms: Mapping[ClassId, TermId]
    ) -> TermId:
        """The plan's node of a class over the terms of its inputs."""
        node = space.nodes[plan.choice[cls]]
        return self.closure.add(node.shape.name, node.payload, tuple(terms[c] for c in node.inputs))

    def _define(self) -> None:
        cuts = {c: self.closure.add(f"cut {c}", None, ()) for c in self.problem.cuts}
        for d in self.problem.definitions:
            inputs = tuple(cuts[i] if i in cuts else self.streams[i] for i in d.inputs)
            self.streams[d.name] = self.closure.add(d.shape, d.payload, inputs)
        for cut, name in self.problem.cuts.items():
            self.closure.union(cuts[cut], self.streams[name], Reason(DEFINITION))
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
            if isinstance(condition, EqualClasses):
                pair = self._term(condition.left, bound), self._term(condition.right, bound)
                if not self.closure.same(*pair):
                    return False
                premises.append(pair)
        if isinstance(rule.rhs, Fact):
            return True
        reason = Reason(rule.name, tuple(premises))
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
