"""Search for all minimal routings, and obstacles where none exists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, product

from hydro_core.analysis.partition.locations import RoutingTerms, apart, first_failed
from hydro_core.analysis.partition.steps import FlowStep, InputLeaves, Steps
from hydro_core.analysis.partition.terms import (
    HOLE,
    LARGEST,
    FieldAt,
    KeyTerm,
    TermTable,
    fields_of,
    is_computable,
    rewritten,
    simplicity,
    size_of,
    text_of,
    text_of_choice,
)
from hydro_core.ir.graph import NodeId, reachable

# Origins of the fields that a key needs: proposals for the search, never a proof.
#
# A key is followed back to the inputs, through functions and around cycles. The forward check tries
# each proposal, so a superfluous one is harmless, and a missing one costs an answer.


_MOST_SHAPES = 4
_MOST_TIMES = 3
"""Most times a function is followed back through one operator: a cycle would apply it for ever."""

Origins = Mapping[str, frozenset[KeyTerm]]
"""For each input, the terms over its items from which a value may originate."""


@dataclass
class Proposals:
    """Routings that may serve an operator; computed once for each operator."""

    steps: Steps
    _plain: dict[NodeId, tuple[Origins, ...]] = field(default_factory=dict)
    _tables: dict[NodeId, list[TermTable]] = field(default_factory=dict)

    def of(self, step: FlowStep) -> tuple[Origins, ...]:
        """The ways to serve the operator: for each input that it depends on, one of the terms."""
        if step.node.id not in self._plain:
            self._plain[step.node.id] = tuple(self._of_key(step))
        return self._plain[step.node.id]

    def coarser(self, ways: Iterable[Origins], shapes: Iterable[KeyTerm]) -> Iterator[Origins]:
        """The same ways by functions of the wanted terms, such as other operators need."""
        ways = list(ways)
        found = (self._shaped(origins, shape) for shape in shapes for origins in ways)
        return (origins for origins in found if origins)

    def _of_key(self, step: FlowStep) -> Iterator[Origins]:
        """For every field of the key its origins."""
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
            times[name] += not isinstance(looked, FieldAt)
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
        """The same function of all terms: coarser, as another operator may need it."""
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
    """The functions of one field that the ways contain, the simplest of them."""
    terms = {t for origins in ways for ts in origins.values() for t in ts}
    shapes = {shape for term in terms if (shape := _shape(term)) is not None}
    return sorted(shapes, key=simplicity)[:_MOST_SHAPES]


def tables_back(step: FlowStep) -> Iterator[TermTable]:
    """Tables from the output's fields to those of each input, also by way of the key."""
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
    """The term, if an input can be routed by it, and the terms that its fields determine."""
    looked = fields_of(term)
    if not looked or not is_computable(term, source.item):
        return
    yield term
    known, size = set(looked), -1
    while len(known) != size:
        size = len(known)
        known |= {right for left, right in source.dependencies if not left.isdisjoint(known)}
    yield from (FieldAt(path) for path in sorted(known - looked))


def _shape(term: KeyTerm) -> KeyTerm | None:
    """The function that is applied to a field, where it is one field."""
    looked = fields_of(term)
    if isinstance(term, FieldAt) or len(looked) != 1:
        return None
    (shape,) = rewritten(term, {FieldAt(path): (HOLE,) for path in looked})[:1] or (None,)
    return shape


# Search of all minimal choices, and of the obstacles where there is none.


MOST_CHECKS = 400
"""Most choices that are tried of a part before the search answers that there may be more."""
MOST_CHOICES = 256
"""Most choices that an answer lists: independent parts of a program multiply theirs."""
MOST_REPLICATED = 200
"""Most sets of inputs that are tried as whole on every shard."""


@dataclass
class ChoiceSearch:
    """Searches the choices of one program; `complete` is false once the search stopped early."""

    steps: Steps
    complete: bool = True
    _parts: dict[frozenset[str], list[_Part]] = field(default_factory=dict)
    _proposals: Proposals = field(init=False)

    def __post_init__(self) -> None:
        self._proposals = Proposals(self.steps)

    def choices(self, replicated: Collection[str] = ()) -> list[RoutingTerms]:
        """All minimal choices that serve all operators; `[{}]` if any routing does."""
        ways = [part.choices() for part in self._of(replicated)]
        self._note(replicated)
        names = [source.name for source in self.steps.sources.values()]
        found = [_merged(some, names) for some in islice(product(*ways), MOST_CHOICES + 1)]
        self.complete = self.complete and len(found) <= MOST_CHOICES
        return found[:MOST_CHOICES]

    def exists(self, replicated: Collection[str] = ()) -> bool:
        """True if there is a choice that serves all operators."""
        found = all(part.exists() for part in self._of(replicated))
        self._note(replicated)
        return found

    def blockers(self) -> list[FlowStep]:
        """The operators that prevent every choice, in the order of the flow.

        They are those that no choice serves even if all others are waived; else those that need
        different routings.
        """
        found = [step for part in self._blocked() for step in part.blockers()]
        self._note(())
        return found

    def partial(self) -> list[tuple[tuple[str, ...], list[RoutingTerms]]]:
        """The smallest sets of inputs that, whole on every shard, let the others be cut.

        Operators that cannot be served together stay so until an input that leads to them is whole
        on every shard: one of these is in every set that is looked for.
        """
        names = [source.name for source in self.steps.sources.values()]
        found: list[frozenset[str]] = []
        todo: list[frozenset[str]] = [frozenset()]
        seen = set(todo)
        for some in todo:
            if len(some) == len(names) or any(less <= some for less in found):
                continue
            ways = (part.in_the_way() for part in self._of(some))
            stuck = next((way for way in ways if way is not None), None)
            self._note(some)
            if stuck is None:
                found.append(some)
                continue
            more = [some | {name} for name in names if name in stuck]
            todo += [new for new in more if new not in seen]
            seen.update(more)
            if len(seen) > MOST_REPLICATED:
                self.complete = False
                break
        ordered = [tuple(name for name in names if name in some) for some in found if some]
        return [(some, self.choices(some)) for some in ordered]

    def wants(self, step: FlowStep) -> tuple[Origins, ...]:
        """The routings that the operator needs; each of them serves it alone."""
        return next((p.wants(step) for p in self._of(()) if step.node.id in p.steps.of), ())

    def _blocked(self) -> list[_Part]:
        return [part for part in self._of(()) if not part.exists()]

    def _of(self, replicated: Collection[str]) -> list[_Part]:
        known = frozenset(replicated)
        if known not in self._parts:
            parts = self.steps.parts(known)
            self._parts[known] = [_Part(steps, self._proposals) for steps in parts]
        return self._parts[known]

    def _note(self, replicated: Collection[str]) -> None:
        self.complete = self.complete and all(part.complete for part in self._of(replicated))


@dataclass
class _Part:
    """A connected part of a program: its streams share inputs or readers."""

    steps: Steps
    proposals: Proposals
    complete: bool = True
    _choices: list[RoutingTerms] | None = None
    _wants: dict[NodeId, tuple[Origins, ...]] = field(default_factory=dict)
    _asked: dict[frozenset[tuple[str, KeyTerm]], frozenset[NodeId]] = field(default_factory=dict)
    """For each choice, the operators that it does not serve."""

    def choices(self) -> list[RoutingTerms]:
        if self._choices is None:
            found = self._found(coarser=False)
            self._choices = _least(found or self._found(coarser=True))
        return self._choices

    def exists(self, waived: Collection[NodeId] = ()) -> bool:
        return self._stuck(waived) is None

    def _stuck(self, waived: Collection[NodeId] = ()) -> set[NodeId] | None:
        """Operators that no choice serves together; None if one serves all that are not waived."""
        found = set()
        for failed in self._failing(lambda choice: first_failed(self.steps, choice, waived)):
            if failed is None:
                return None
            found.add(failed.node.id)
        return found

    def wants(self, step: FlowStep) -> tuple[Origins, ...]:
        """The routings that serve the operator, limited to the inputs that are cut."""
        if step.node.id not in self._wants:
            cut = {source.name for source in self.steps.sources.values()}
            self._wants[step.node.id] = tuple(
                {name: terms for name, terms in origins.items() if name in cut}
                for origins in self.proposals.of(step)
            )
        return self._wants[step.node.id]

    @cached_property
    def _shapes(self) -> Sequence[KeyTerm]:
        return shapes_of(origins for step in self.steps for origins in self.wants(step))

    def blockers(self) -> list[FlowStep]:
        needy = self._needy
        names = frozenset(step.node.id for step in needy)
        alone = [s for s in needy if not self._is_served_alone(s)]
        found = {step.node.id for step in alone}
        while not alone and not self.exists(waived=found):
            found |= self._conflict([s for s in needy if s.node.id not in found], names)
        return [step for step in needy if step.node.id in found]

    def in_the_way(self) -> set[str] | None:
        """The inputs that lead to operators which cannot be served together; None: all can."""
        found = self._stuck()
        if found is None:
            return None
        reads = {step.node.id: list(step.inputs) for step in self.steps}
        known = {name: [n for n in read if n in reads] for name, read in reads.items()}
        leading = reachable(found, known.__getitem__)
        return {source.name for name, source in self.steps.sources.items() if name in leading}

    @property
    def _needy(self) -> list[FlowStep]:
        return [step for step in self.steps if step.inputs and not step.adds_up]

    def _is_served_alone(self, step: FlowStep) -> bool:
        """True if a choice serves the operator with all others waived."""

        def failing(choice: RoutingTerms) -> FlowStep | None:
            known = frozenset(choice.items())
            if known not in self._asked:
                self._asked[known] = apart(self.steps, choice)
            return step if step.node.id in self._asked[known] else None

        return None in self._failing(failing)

    def _failing(
        self, failing: Callable[[RoutingTerms], FlowStep | None]
    ) -> Iterator[FlowStep | None]:
        """For each tried choice the operator that it fails at, coarser choices last; None for a
        choice that serves all.
        """
        for coarser in (False, True):
            yield from (failed for _, failed in self._tried(failing, coarser=coarser))

    def _conflict(self, among: list[FlowStep], names: frozenset[NodeId]) -> set[NodeId]:
        """A smallest set of operators that no choice serves together: without any one, the others
        are served.
        """
        # Operators with equal needs are served together: the first of them represents all.
        first = {
            tuple(frozenset(origins.items()) for origins in self.wants(step)): step.node.id
            for step in reversed(among)
        }
        kept = [step.node.id for step in among if step.node.id in first.values()]
        stuck = self._stuck(names.difference(kept))
        if stuck is None:
            kept = [step.node.id for step in among]
            stuck = self._stuck(names.difference(kept)) or set(kept)
        kept = [name for name in kept if name in stuck]
        for name in reversed(list(kept)):
            fewer = [other for other in kept if other != name]
            if not self.exists(waived=names.difference(fewer)):
                kept = fewer
        return set(kept)

    def _found(self, *, coarser: bool) -> list[RoutingTerms]:
        found = []
        for choice, failed in self._tried(lambda c: first_failed(self.steps, c), coarser=coarser):
            if failed is None:
                found += self._smaller(choice)
        return found

    def _tried(
        self, failing: Callable[[RoutingTerms], FlowStep | None], *, coarser: bool
    ) -> Iterator[tuple[RoutingTerms, FlowStep | None]]:
        """Choices, each with an operator that it does not serve, or None; the next choices route
        more inputs to serve that operator.
        """
        todo: list[RoutingTerms] = [{}]
        seen: set[frozenset[tuple[str, KeyTerm]]] = set()
        while todo:
            choice = todo.pop()
            known = frozenset(choice.items())
            if known in seen:
                continue
            if len(seen) >= MOST_CHECKS:
                self.complete = False
                return
            seen.add(known)
            failed = failing(choice)
            yield choice, failed
            if failed is not None:
                todo += self._next(failed, choice, coarser=coarser)

    def _next(
        self, step: FlowStep, choice: RoutingTerms, *, coarser: bool
    ) -> Iterator[RoutingTerms]:
        """The choice with more inputs routed, so that the operator may be served."""
        ways = list(self.wants(step))
        if coarser:
            ways += self.proposals.coarser(ways, self._shapes)
        for origins in ways:
            if any(n in origins and term not in origins[n] for n, term in choice.items()):
                continue
            new = [name for name in origins if name not in choice]
            for terms in product(*(sorted(origins[name], key=text_of) for name in new)):
                if new:
                    yield {**choice, **dict(zip(new, terms, strict=True))}

    def _smaller(self, choice: RoutingTerms) -> list[RoutingTerms]:
        """The choice without inputs that it does not need, in every way."""
        found = []
        for name in choice:
            less = {n: t for n, t in choice.items() if n != name}
            if first_failed(self.steps, less) is None:
                found += self._smaller(less)
        return found or [choice]


def _merged(choices: tuple[RoutingTerms, ...], names: list[str]) -> RoutingTerms:
    """The choices of all parts as one, in the order of the names."""
    routed = {name: term for choice in choices for name, term in choice.items()}
    return {name: routed[name] for name in names if name in routed}


def _least(choices: list[RoutingTerms]) -> list[RoutingTerms]:
    """The choices that do not follow from others by more inputs or by functions of the routing
    terms.
    """
    distinct = list({frozenset(c.items()): c for c in choices}.values())
    least = [
        choice
        for choice in distinct
        if not any(other is not choice and follows(choice, other) for other in distinct)
    ]
    return sorted(least, key=text_of_choice)


def follows(choice: RoutingTerms, other: RoutingTerms) -> bool:
    """True if `choice` routes all inputs of `other`, by one function of the terms of `other`."""
    if not other.keys() <= choice.keys():
        return False
    shapes = {_function(choice[name], term) for name, term in other.items()}
    return len(shapes) <= 1 and None not in shapes


def _function(value: KeyTerm, of: KeyTerm) -> KeyTerm | None:
    """The function f with value = f(of)."""
    if value == of:
        return HOLE
    shape = next(iter(rewritten(value, {of: (HOLE,)})), None)
    return shape if shape is not None and fields_of(shape) == {HOLE.path} else None
