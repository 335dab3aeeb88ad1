"""Streams that are equal because they obey the same equations, where rules alone do not tell.

Two streams that feed themselves through `prev` are equal if each has a way to be computed that is
the same operator on streams of which the same holds. That is a proof by induction over the ticks,
as long as no two streams rest on each other within a tick: what an operator reads of the same tick
has to be proved before, only what it reads of earlier ticks may be what is being proved. So the
pairs are the greatest set of which each rests, through a least one, on itself a tick earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

from hydro_core.optimize.egraph import ClassId, ENode, Space, StreamDefinition
from hydro_core.optimize.rule import CHAIN, UNION

MAX_PAIRS = 50_000
"""Pairs that are looked at; what is beyond them counts as different."""
MAX_WAYS = 1_000
"""Ways to prove a pair that are looked at: two sums that are split in many ways have their product.
"""

Pair = tuple[ClassId, ClassId]
Splitting = tuple[str, int | None]

SUM: Splitting = ("sum", None)


@dataclass(frozen=True, slots=True)
class Match:
    """A way to prove a pair: the pairs that must be equal in the same tick, and in earlier ones."""

    nodes: tuple[ENode, ENode]
    """How the streams of the pair are computed: by the same operator."""
    now: tuple[Pair, ...]
    earlier: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Bisimilar:
    """Streams, by their names, that are proved equal and are not of one class yet."""

    equal: tuple[tuple[str, str], ...]
    by: Mapping[Pair, Match]
    """How each pair was proved, those that have no names included."""


def bisimilar(space: Space, definitions: Sequence[StreamDefinition]) -> Bisimilar:
    """What follows by induction from what the rules have found."""
    names: dict[ClassId, str] = {}
    for definition in definitions:
        names.setdefault(space.named[definition.name], definition.name)
    by = _proved(_matches(space, sorted(names)))
    named = ((one, other) for one, other in sorted(by) if one in names and other in names)
    return Bisimilar(tuple((names[one], names[other]) for one, other in named), by)


def _matches(space: Space, classes: Sequence[ClassId]) -> Mapping[Pair, tuple[Match, ...]]:
    """Every pair that may be equal, with the ways to prove it, and all pairs that these need."""
    by_kind: list[dict[Splitting, list[ENode]]] = [{} for _ in space.of]
    for node in space.nodes:
        by_kind[node.cls].setdefault(_kind(node), []).append(node)
    sharing: dict[Splitting, list[ClassId]] = {}
    for cls in classes:
        for kind in by_kind[cls]:
            sharing.setdefault(kind, []).append(cls)
    found: dict[Pair, tuple[Match, ...]] = {}
    todo = [pair for group in sharing.values() for pair in combinations(group, 2)]
    while todo and len(found) < MAX_PAIRS:
        pair = todo.pop()
        if pair in found:
            continue
        ways = _ways(*(by_kind[cls] for cls in pair))
        found[pair] = matches = tuple(islice(ways, MAX_WAYS))
        todo += [child for match in matches for child in (*match.now, *match.earlier)]
    return found


def _ways(
    one: Mapping[Splitting, Sequence[ENode]], other: Mapping[Splitting, Sequence[ENode]]
) -> Iterator[Match]:
    # Not by a set: which way is found first is told, and must not depend on a seed of hashes.
    for kind in one:
        for a in one[kind]:
            for b in other.get(kind, ()):
                yield _match(a, b, b.inputs)
                if kind == SUM:
                    yield _match(a, b, tuple(reversed(b.inputs)))


def _kind(node: ENode) -> Splitting:
    """What must be the same; a sum of bags is one, whoever wrote it, and in either order."""
    if node.shape.is_bags and node.shape.name in {UNION, CHAIN}:
        return SUM
    return node.shape.name, node.payload


def _match(a: ENode, b: ENode, others: tuple[ClassId, ...]) -> Match:
    now: list[Pair] = []
    earlier: list[Pair] = []
    for x, y, strict in zip(a.inputs, others, a.shape.strict, strict=True):
        if x != y:
            (earlier if strict else now).append((min(x, y), max(x, y)))
    return Match((a, b), tuple(now), tuple(earlier))


def _proved(matches: Mapping[Pair, tuple[Match, ...]]) -> Mapping[Pair, Match]:
    """The pairs that are equal in a tick if they all were in the ticks before."""
    proofs = _Proofs(matches)
    proofs.prove(matches)
    dropped = {pair for pair in matches if pair not in proofs.by}
    while dropped:
        lost = proofs.drop(dropped)
        proofs.prove(lost)
        dropped = {pair for pair in lost if pair not in proofs.by}
    return proofs.by


class _Proofs:
    """The pairs that are proved in a tick if those that are not dropped were equal before it.

    What is dropped takes with it only what rests on it, so that each match is looked at about once.
    """

    def __init__(self, matches: Mapping[Pair, tuple[Match, ...]]) -> None:
        self.by: dict[Pair, Match] = {}
        self._ways = {pair: [_Way(pair, match) for match in of] for pair, of in matches.items()}
        self._now: dict[Pair, list[_Way]] = {}
        self._earlier: dict[Pair, list[_Way]] = {}
        self._chosen: dict[Pair, _Way] = {}
        for way in (way for ways in self._ways.values() for way in ways):
            for child in way.match.now:
                self._now.setdefault(child, []).append(way)
            for child in way.match.earlier:
                self._earlier.setdefault(child, []).append(way)
                way.holds &= child in matches

    def prove(self, pairs: Iterable[Pair]) -> None:
        """Finds a proof for each of some pairs that has one, and for those that rest on them."""
        todo = [way for pair in pairs for way in self._ways[pair] if way.is_proof]
        while todo:
            way = todo.pop()
            if way.pair in self.by or not way.is_proof:
                continue
            self.by[way.pair], self._chosen[way.pair] = way.match, way
            for reader in self._now.get(way.pair, ()):
                reader.open -= 1
                if reader.is_proof:
                    todo.append(reader)

    def drop(self, pairs: Iterable[Pair]) -> set[Pair]:
        """No more assumes that some pairs were equal before; gives those that lost their proofs."""
        failed = [way for pair in pairs for way in self._earlier.get(pair, ())]
        for way in failed:
            way.holds = False
        lost: set[Pair] = set()
        while failed:
            way = failed.pop()
            if self._chosen.get(way.pair) is not way:
                continue
            del self.by[way.pair], self._chosen[way.pair]
            lost.add(way.pair)
            for reader in self._now.get(way.pair, ()):
                reader.open += 1
                failed.append(reader)
        return lost


@dataclass(slots=True, eq=False)
class _Way:
    """A match of a pair, and whether it proves it by now."""

    pair: Pair
    match: Match
    open: int = field(init=False)
    """How many pairs it needs in the same tick that are not proved."""
    holds: bool = True
    """Whether no pair is dropped that it needs in earlier ticks."""

    def __post_init__(self) -> None:
        self.open = len(self.match.now)

    @property
    def is_proof(self) -> bool:
        """Whether the pair follows."""
        return self.holds and not self.open
