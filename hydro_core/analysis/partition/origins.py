"""Where the fields that must meet come from: what the search tries. Only a proposal, never a proof.

A key is followed back to the inputs, through functions and around cycles. What is found there is
tried by the forward check, so it may be too much, and what is missing costs an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hydro_core.analysis.partition.steps import FlowStep, InputLeaves, Steps
from hydro_core.analysis.partition.terms import (
    HOLE,
    LARGEST,
    At,
    KeyTerm,
    TermTable,
    fields_of,
    is_computable,
    rewritten,
    simplicity,
    size_of,
)
from hydro_core.ir.graph import NodeId

_MOST_SHAPES = 4
_MOST_TIMES = 3
"""So often a function is followed back through one operator: a cycle would apply it for ever."""

Origins = Mapping[str, frozenset[KeyTerm]]
"""For each input the terms over its items that a value may come from."""


@dataclass
class Proposals:
    """What routings may serve an operator; asked for once for each."""

    steps: Steps
    _plain: dict[NodeId, tuple[Origins, ...]] = field(default_factory=dict)
    _tables: dict[NodeId, list[TermTable]] = field(default_factory=dict)

    def of(self, step: FlowStep) -> tuple[Origins, ...]:
        """The ways to serve the operator: of each input that it looks at one of the terms."""
        if step.node.id not in self._plain:
            self._plain[step.node.id] = tuple(self._of_key(step))
        return self._plain[step.node.id]

    def coarser(self, ways: Iterable[Origins], shapes: Iterable[KeyTerm]) -> Iterator[Origins]:
        """The same by functions of what is wanted, such as others look at."""
        ways = list(ways)
        found = (self._shaped(origins, shape) for shape in shapes for origins in ways)
        return (origins for origins in found if origins)

    def _of_key(self, step: FlowStep) -> Iterator[Origins]:
        """For every field of the key where it comes from."""
        if step.key is None:
            return
        for name in step.key.fields[0]:
            found: dict[str, set[KeyTerm]] = {}
            for node, fields in zip(step.inputs, step.key.fields, strict=True):
                for term in fields[name]:
                    self._follow(node, term, found)
            yield {source: frozenset(terms) for source, terms in found.items()}

    def _follow(self, node: NodeId, term: KeyTerm, found: dict[str, set[KeyTerm]]) -> None:
        todo, seen = [(node, term)], {(node, term)}
        times = Counter[NodeId]()
        while todo:
            name, looked = todo.pop()
            source = self.steps.sources.get(name)
            if source is not None:
                found.setdefault(source.name, set()).update(_ways(source, looked))
                continue
            step = self.steps.of.get(name)
            if step is None:
                continue
            times[name] += not isinstance(looked, At)
            if times[name] > _MOST_TIMES:
                continue
            if name not in self._tables:
                self._tables[name] = list(tables_back(step))
            for reads, table in zip(step.inputs, self._tables[name], strict=True):
                for before in rewritten(looked, table):
                    if (reads, before) not in seen and size_of(before) <= LARGEST:
                        seen.add((reads, before))
                        todo.append((reads, before))

    def _shaped(self, origins: Origins, shape: KeyTerm) -> Origins:
        """The same function of all of it: coarser, as another operator may want it."""
        named = {source.name: source.item for source in self.steps.sources.values()}
        found = {}
        for name, terms in origins.items():
            made = {new for t in terms for new in rewritten(shape, {HOLE: (t,)})}
            kept = frozenset(t for t in made if is_computable(t, named[name]))
            if not kept:
                return {}
            found[name] = kept
        return found


def shapes_of(ways: Iterable[Origins]) -> Sequence[KeyTerm]:
    """The functions of one field that are wanted, the simplest of them."""
    terms = {t for origins in ways for ts in origins.values() for t in ts}
    shapes = {shape for term in terms if (shape := _shape(term)) is not None}
    return sorted(shapes, key=simplicity)[:_MOST_SHAPES]


def tables_back(step: FlowStep) -> Iterator[TermTable]:
    """From the output's fields to those of each input, by way of the key, too."""
    for i, table in enumerate(step.backward):
        if step.key is None:
            yield table
            continue
        through_key = {
            out: (*table.get(out, ()), *step.key.fields[i][name])
            for name, outs in step.key.output.items()
            for out in outs
        }
        yield {**table, **through_key}


def _ways(source: InputLeaves, term: KeyTerm) -> Iterator[KeyTerm]:
    """The term, if something can be routed by it, and what its fields determine."""
    looked = fields_of(term)
    if not looked or not is_computable(term, source.item):
        return
    yield term
    known, size = set(looked), -1
    while len(known) != size:
        size = len(known)
        known |= {right for left, right in source.dependencies if not left.isdisjoint(known)}
    yield from (At(path) for path in sorted(known - looked))


def _shape(term: KeyTerm) -> KeyTerm | None:
    """The function that is applied to a field, where it is one field."""
    looked = fields_of(term)
    if isinstance(term, At) or len(looked) != 1:
        return None
    (shape,) = rewritten(term, {At(path): (HOLE,) for path in looked})[:1] or (None,)
    return shape
