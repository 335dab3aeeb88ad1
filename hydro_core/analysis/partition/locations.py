"""Locations: where the items of every stream lie for a routing, and streams that are keyed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from hydro_core.analysis.partition.steps import FlowStep, InputLeaves, ShardKey, Steps
from hydro_core.analysis.partition.terms import (
    DETERMINED,
    MOST_TERMS,
    UNKNOWN,
    FieldAt,
    KeyTerm,
    all_rewritten,
    fewest,
    is_determined,
    opaque_term,
    rewritten,
    simplicity,
)
from hydro_core.ir.graph import NodeId
from hydro_core.types.item import FieldPath

# Locations: for a given routing of the inputs, the shard of every item of every stream.
#
# A stream is whole on every shard, or it is cut. A cut stream has a set of terms, and every item
# lies at each of them (`terms`). The check starts with all terms and goes down to the greatest
# fixpoint. Every item has a finite derivation, over ticks and within one, so claims that all
# operators confirm hold by induction on it. A choice is accepted by this check alone, however it
# was found.


RoutingTerms = Mapping[str, KeyTerm]
"""The inputs that are routed by a value of their items; other inputs are routed by any function of
the item.
"""
Located = frozenset[KeyTerm] | None
"""The terms of a stream; None stands for all terms, since no item of the stream is known."""


@dataclass(frozen=True)
class Locations:
    """The result for a choice: terms of the streams that are cut, and operators that fail."""

    terms: Mapping[NodeId, Located]
    failed: tuple[FlowStep, ...]
    """The operators whose items of one key would lie on different shards, in the order of the flow.
    """
    splits: Mapping[tuple[NodeId, int], KeyTerm | None]
    """Inputs of operators that every shard has whole while each shard may use a part only: the term
    over their items that selects the part; None: any one shard uses them.
    """


def locate(
    steps: Steps,
    choice: RoutingTerms,
    replicated: Collection[str] = (),
) -> Locations:
    """The locations of all streams under a choice; `replicated` inputs are whole on every shard."""
    check = _Check(steps, choice, steps.cut(replicated), ())
    failed = tuple(check.failing())
    return Locations(check.terms, failed, check.splits)


def first_failed(
    steps: Steps, choice: RoutingTerms, waived: Collection[NodeId] = ()
) -> FlowStep | None:
    """The first operator that a choice does not serve; None if the choice serves all.

    Waived operators count as served: their inputs are treated as gathered on every shard.
    """
    return next(_Check(steps, choice, steps.cut(), waived).failing(), None)


def apart(steps: Steps, choice: RoutingTerms) -> frozenset[NodeId]:
    """The operators that a choice does not serve, each checked with all others waived."""
    cut = steps.cut()
    return frozenset(_Check(steps, choice, cut, cut).apart())


class _Check:
    """The terms of the streams that are settled."""

    def __init__(
        self,
        steps: Steps,
        choice: RoutingTerms,
        cut: frozenset[NodeId],
        waived: Collection[NodeId],
    ) -> None:
        self._steps, self._choice, self._cut = steps, choice, cut
        self._waived = frozenset(waived)
        self.terms: dict[NodeId, Located] = dict.fromkeys(cut)
        self.splits: dict[tuple[NodeId, int], KeyTerm | None] = {}

    def failing(self) -> Iterator[FlowStep]:
        """Settles the streams, and gives the operators that are not served."""
        return (step for step, outcome in self._outcomes() if self._fails(step, outcome))

    def apart(self) -> Iterator[NodeId]:
        """Settles the streams, and gives the operators whose items of one key are on different
        shards.
        """
        return (step.node.id for step, found in self._outcomes() if isinstance(found, _KeyConflict))

    def _outcomes(self) -> Iterator[tuple[FlowStep, _Outcome]]:
        """The outcomes of all streams that are cut, group by group."""
        for group in self._steps.groups:
            cut = [step for step in group if step.node.id in self._cut]
            alone = len(cut) == 1 and cut[0].node.id not in cut[0].inputs
            yield from zip(cut, self._confirmed(cut, once=alone), strict=True)

    def _confirmed(self, group: Sequence[FlowStep], *, once: bool) -> list[_Outcome]:
        """Removes claims of the streams of a group until the operators confirm all that is left."""
        while True:
            outcomes = [self._take(step) for step in group]
            if once or not any(changed for _, changed in outcomes):
                return [outcome for outcome, _ in outcomes]

    def _take(self, step: FlowStep) -> tuple[_Outcome, bool]:
        """The confirmed terms of a stream, and True if its claim became smaller."""
        outcome = self._outcome(step)
        if outcome is None or (isinstance(outcome, _KeyConflict) and step.node.id in self._waived):
            return outcome, False
        found = frozenset[KeyTerm]() if isinstance(outcome, _KeyConflict) else outcome
        before = self.terms[step.node.id]
        after = found if before is None else before & found
        self.terms[step.node.id] = after
        return outcome, after != before

    def _fails(self, step: FlowStep, outcome: _Outcome) -> bool:
        """True if items of one key are on different shards."""
        if step.node.id in self._waived or not step.inputs:
            return False
        if outcome is None and not self._waived:
            # A merge with a whole input has no term by which that input could be cut.
            return not self._cut.issuperset(step.inputs)
        return isinstance(outcome, _KeyConflict)

    def _outcome(self, step: FlowStep) -> _Outcome:
        source = self._steps.sources.get(step.node.id)
        if source is not None:
            term, known = self._choice.get(source.name), self._steps.routed
            if (source.name, term) not in known:
                known[source.name, term] = _routed(source, term)
            return known[source.name, term]
        cut = [i for i, name in enumerate(step.inputs) if name in self._cut]
        if step.adds_up:
            return self._added(step, cut)
        if len(cut) == 1 and step.linear[cut[0]] and len(step.inputs) > 1:
            return self._carried(step, cut[0])
        return _APART if step.key is None else self._met(step, step.key, cut)

    def _carried(self, step: FlowStep, i: int) -> Located:
        terms = self.terms[step.inputs[i]]
        return None if terms is None else self._steps.carried(terms, step.forward[i])

    def _added(self, step: FlowStep, cut: list[int]) -> _Outcome:
        """Items of any input: they lie at the terms that all inputs share. An input that every
        shard has whole is cut by one term, so only that term is known of its items.
        """
        common = reduce(_intersected, (self._carried(step, i) for i in cut))
        if len(cut) == len(step.inputs):
            return common
        chosen = _one_of(common)
        for i in range(len(step.inputs)):
            if i not in cut:
                self._split(step, i, chosen)
        return chosen

    def _split(self, step: FlowStep, i: int, terms: Located) -> None:
        self.splits[step.node.id, i] = next(iter(terms), None) if terms else None

    def _met(self, step: FlowStep, key: ShardKey, cut: list[int]) -> _Outcome:
        """Items of equal keys lie together if all inputs lie at a common term of the key."""
        terms = [self.terms[step.inputs[i]] for i in cut]
        at_key = (
            None if t is None else self._steps.carried(t, key.inputs[i])
            for i, t in zip(cut, terms, strict=True)
        )
        common = reduce(_intersected, at_key)
        if common is not None and not common:
            return _APART
        if len(cut) < len(step.inputs):
            common = _one_of(common)
            if common is not None and not common:
                return _APART
        if common is None:
            return None
        for i in range(len(step.inputs)):
            if i not in cut:
                self._split(step, i, self._steps.carried(common, key.fields[i]))
        found = set(self._steps.carried(common, key.output))
        for i in range(len(step.inputs)):
            if not (step.linear[i] or len(step.inputs) == 1):
                continue
            whole = self._steps.carried(common, key.fields[i])
            carried = (
                self._carried(step, i) if i in cut else self._steps.carried(whole, step.forward[i])
            )
            if carried is None:
                return None
            found |= carried
        return fewest(found)


class _KeyConflict:
    """Items of one key lie on different shards."""


_APART = _KeyConflict()
_Outcome = Located | _KeyConflict


def _intersected(a: Located, b: Located) -> Located:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _one_of(terms: Located) -> Located:
    """One of the terms that can be computed, if there is any; always the same one."""
    if terms is None:
        return None
    known = (term for term in terms if not is_determined(term))
    return frozenset(sorted(known, key=simplicity)[:1])


def _routed(source: InputLeaves, term: KeyTerm | None) -> frozenset[KeyTerm]:
    """The terms of an input's items: the routing term, and its equivalents."""
    if term is None:
        term = opaque_term(UNKNOWN, (source.name,), source.leaves)
    table: dict[KeyTerm, tuple[KeyTerm, ...]] = {}
    for leaf in source.leaves:
        table[FieldAt(leaf)] = tuple(_equivalents(source, leaf, frozenset()))
    return all_rewritten([term], table)


def _equivalents(source: InputLeaves, leaf: FieldPath, seen: frozenset[FieldPath]) -> list[KeyTerm]:
    """A leaf, and the unknown functions of other leaves that equal it."""
    found: list[KeyTerm] = [FieldAt(leaf)]
    if leaf in seen:
        return found
    for number, (determining, determined) in enumerate(source.dependencies):
        if determined == leaf:
            table: dict[KeyTerm, tuple[KeyTerm, ...]] = {
                FieldAt(path): tuple(_equivalents(source, path, seen | {leaf}))
                for path in determining
            }
            plain = opaque_term(DETERMINED, (source.name, number), sorted(determining))
            found += rewritten(plain, table)
    return found[:MOST_TERMS]
