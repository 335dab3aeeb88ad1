"""A small proof-producing congruence closure: which rules, in which order, make one term out of
another.

Terms are hash-consed. Every union is remembered in a proof forest with its reason, a rule or
congruence, so that the path between two equal terms is their proof (Nieuwenhuis and Oliveras, RTA
2005).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

TermId = int
AGAIN = "as above"


@dataclass(frozen=True, slots=True)
class TermNode:
    """A term: a shape, its arguments, and its inputs."""

    shape: str
    payload: int | None
    inputs: tuple[TermId, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why two terms are equal: by a rule (read backwards if `back`), or, without one, because their
    inputs are.
    """

    rule: str = ""
    """Its name; `AGAIN` stands for the steps of a proof that has been given already."""
    back: bool = False
    premises: tuple[tuple[TermId, TermId], ...] = ()

    def flipped(self) -> Reason:
        """The reason, read the other way."""
        return Reason(self.rule, not self.back, self.premises) if self.rule else self


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One step of a proof: a rule was applied in a whole term."""

    reason: Reason
    before: TermId
    after: TermId
    """What the rule made of `before`, which is a part of the whole term."""
    whole: TermId
    """The whole term after the step."""
    whole_before: TermId


@dataclass(frozen=True, slots=True)
class _Context:
    """Where in a term another one stands: in this input of a node, which stands elsewhere."""

    node: TermNode
    inputs: tuple[TermId, ...]
    place: int
    around: _Context | None


class Closure:
    """Terms, and which of them are equal."""

    def __init__(self) -> None:
        self.terms: list[TermNode] = []
        self.sizes: list[int] = []
        self._ids: dict[TermNode, TermId] = {}
        self._leader: list[TermId] = []
        self._parent: list[tuple[TermId, Reason] | None] = []
        self._users: dict[TermId, list[TermId]] = {}
        self._signatures: dict[TermNode, TermId] = {}
        self._closed: set[TermId] = set()
        """The terms that congruence knows."""

    def add(self, shape: str, payload: int | None, inputs: tuple[TermId, ...]) -> TermId:
        """The term, made if it is new."""
        term = self._interned(TermNode(shape, payload, inputs))
        if term in self._closed:
            return term
        self._closed.add(term)
        for i in inputs:
            self._users.setdefault(self.find(i), []).append(term)
        same = self._signatures.setdefault(self._signature(term), term)
        if same != term:
            self.union(term, same, Reason())
        return term

    def _interned(self, node: TermNode) -> TermId:
        """The term's number; nothing follows from it alone."""
        known = self._ids.get(node)
        if known is not None:
            return known
        term = len(self.terms)
        self.terms.append(node)
        self.sizes.append(1 + sum(self.sizes[i] for i in node.inputs))
        self._ids[node] = term
        self._leader.append(term)
        self._parent.append(None)
        return term

    def find(self, term: TermId) -> TermId:
        """The leader of the term's class."""
        while self._leader[term] != term:
            self._leader[term] = self._leader[self._leader[term]]
            term = self._leader[term]
        return term

    def same(self, a: TermId, b: TermId) -> bool:
        """Whether the terms are known to be equal."""
        return self.find(a) == self.find(b)

    def union(self, a: TermId, b: TermId, reason: Reason) -> None:
        """The terms are equal for this reason, and so is all that follows by congruence."""
        todo = [(a, b, reason)]
        while todo:
            a, b, reason = todo.pop()
            if self.same(a, b):
                continue
            if len(self._users.get(self.find(a), ())) > len(self._users.get(self.find(b), ())):
                a, b, reason = b, a, reason.flipped()
            self._link(a, b, reason)
            leader, other = self.find(b), self.find(a)
            self._leader[other] = leader
            for user in self._users.pop(other, ()):
                same = self._signatures.setdefault(self._signature(user), user)
                if not self.same(same, user):
                    todo.append((user, same, Reason()))
                self._users.setdefault(leader, []).append(user)

    def prove(self, a: TermId, b: TermId, most: int) -> tuple[list[Rewrite], bool]:
        """The steps from one term to an equal one, each a rule at one place, and whether these are
        all of them: only so many are looked at.
        """
        steps = list(itertools.islice(self._steps(a, b), most + 1))
        return _without_loops(steps[:most]), len(steps) <= most

    def _signature(self, term: TermId) -> TermNode:
        node = self.terms[term]
        return TermNode(node.shape, node.payload, tuple(map(self.find, node.inputs)))

    def _link(self, a: TermId, b: TermId, reason: Reason) -> None:
        """Makes `a` the root of its tree, and hangs it below `b`."""
        child: TermId | None = a
        parent, why = b, reason
        while child is not None:
            following = self._parent[child]
            self._parent[child] = (parent, why)
            if following is None:
                return
            parent, child, why = child, following[0], following[1].flipped()

    def _steps(self, a: TermId, b: TermId) -> Iterator[Rewrite]:
        """The rules on the way, those inside of terms before those around them.

        What has been proved in one place is not proved again in another, so there are as many steps
        as there are different pairs of terms, however often each stands in the whole.
        """
        proved: set[tuple[TermId, TermId]] = set()
        todo: list[tuple[TermId, TermId, Reason | None, _Context | None]] = [(a, b, None, None)]
        while todo:
            before, after, reason, context = todo.pop()
            if reason is None and (before, after) in proved and self._is_long(before, after):
                reason = Reason(AGAIN)
            if reason is None:
                proved.add((before, after))
                path = tuple(self._path(before, after))
                todo += [(x, y, why, context) for x, y, why in reversed(path)]
            elif reason.rule:
                wholes = self._whole(before, context), self._whole(after, context)
                yield Rewrite(reason, before, after, wholes[1], wholes[0])
            else:
                todo += reversed(tuple(self._inside(before, after, context)))

    def _is_long(self, before: TermId, after: TermId) -> bool:
        """Whether the proof takes more than one step."""
        path = tuple(itertools.islice(self._path(before, after), 2))
        return len(path) > 1 or not path[0][2].rule

    def _inside(
        self, before: TermId, after: TermId, context: _Context | None
    ) -> Iterator[tuple[TermId, TermId, None, _Context]]:
        """What is left to prove where two terms are equal since their inputs are."""
        node, goal = self.terms[before], self.terms[after]
        inputs = node.inputs
        for i, target in enumerate(goal.inputs):
            if inputs[i] != target:
                yield inputs[i], target, None, _Context(node, inputs, i, context)
                inputs = (*inputs[:i], target, *inputs[i + 1 :])

    def _whole(self, term: TermId, context: _Context | None) -> TermId:
        while context is not None:
            i = context.place
            inputs = (*context.inputs[:i], term, *context.inputs[i + 1 :])
            term = self._interned(TermNode(context.node.shape, context.node.payload, inputs))
            context = context.around
        return term

    def _path(self, a: TermId, b: TermId) -> Iterator[tuple[TermId, TermId, Reason]]:
        up = [a]
        while (above := self._parent[up[-1]]) is not None:
            up.append(above[0])
        place = {term: i for i, term in enumerate(up)}
        down = []
        term = b
        while term not in place:
            found = self._parent[term]
            if found is None:
                raise ValueError(f"terms {a} and {b} are not known to be equal")
            down.append((found[0], term, found[1].flipped()))
            term = found[0]
        for child in up[: place[term]]:
            found = self._parent[child]
            if found is not None:
                yield child, found[0], found[1]
        yield from reversed(down)


def _without_loops(steps: list[Rewrite]) -> list[Rewrite]:
    """The steps, without those that lead back to a term that was there before."""
    kept: list[Rewrite] = []
    place: dict[TermId, int] = {}
    for step in steps:
        if not kept:
            place = {step.whole_before: 0}
        kept.append(step)
        if step.whole in place:
            del kept[place[step.whole] :]
            place = {term: i for term, i in place.items() if i <= len(kept)}
        else:
            place[step.whole] = len(kept)
    return kept
