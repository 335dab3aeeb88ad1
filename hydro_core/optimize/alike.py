"""Streams that are equal because they obey the same equations, where rules alone do not tell.

Two streams that feed themselves through `prev` are equal if each has a way to be computed that is
the same operator on streams of which the same holds. That is a proof by induction over the ticks,
as long as no two streams rest on each other within a tick: what an operator reads of the same tick
has to be proved before, only what it reads of earlier ticks may be what is being proved. So the
pairs are the greatest set of which each rests, through a least one, on itself a tick earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from hydro_core.optimize.shape import CHAIN, UNION
from hydro_core.optimize.space import ClassId, Definition, ENode, Space

MAX_PAIRS = 50_000
"""Pairs that are looked at; what is beyond them counts as different."""

Pair = tuple[ClassId, ClassId]
Kind = tuple[str, int | None]

SUM: Kind = ("sum", None)


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


def bisimilar(space: Space, definitions: Sequence[Definition]) -> Bisimilar:
    """What follows by induction from what the rules have found."""
    names: dict[ClassId, str] = {}
    for definition in definitions:
        names.setdefault(space.named[definition.name], definition.name)
    by = _proved(_matches(space, sorted(names)))
    named = ((one, other) for one, other in sorted(by) if one in names and other in names)
    return Bisimilar(tuple((names[one], names[other]) for one, other in named), by)


@dataclass(slots=True)
class _Search:
    space: Space
    by_kind: Sequence[Mapping[Kind, list[ENode]]]
    found: dict[Pair, tuple[Match, ...]] = field(default_factory=dict)


def _matches(space: Space, classes: Sequence[ClassId]) -> Mapping[Pair, tuple[Match, ...]]:
    """Every pair that may be equal, with the ways to prove it, and all pairs that these need."""
    by_kind: list[dict[Kind, list[ENode]]] = [{} for _ in space.of]
    for node in space.nodes:
        by_kind[node.cls].setdefault(_kind(node), []).append(node)
    sharing: dict[Kind, list[ClassId]] = {}
    for cls in classes:
        for kind in by_kind[cls]:
            sharing.setdefault(kind, []).append(cls)
    search = _Search(space, by_kind)
    todo = [pair for group in sharing.values() for pair in combinations(group, 2)]
    while todo and len(search.found) < MAX_PAIRS:
        pair = todo.pop()
        if pair in search.found:
            continue
        search.found[pair] = matches = tuple(_ways(search, pair))
        todo += [child for match in matches for child in (*match.now, *match.earlier)]
    return search.found


def _ways(search: _Search, pair: Pair) -> Iterator[Match]:
    one, other = (search.by_kind[cls] for cls in pair)
    for kind in one.keys() & other.keys():
        for a in one[kind]:
            for b in other[kind]:
                yield _match(a, b, b.inputs)
                if kind == SUM:
                    yield _match(a, b, tuple(reversed(b.inputs)))


def _kind(node: ENode) -> Kind:
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
    assumed: Mapping[Pair, object] = matches
    while True:
        proved = _within_a_tick(matches, assumed)
        if len(proved) == len(assumed):
            return proved
        assumed = proved


def _within_a_tick(
    matches: Mapping[Pair, tuple[Match, ...]], assumed: Mapping[Pair, object]
) -> dict[Pair, Match]:
    """The pairs that are equal in a tick if the assumed ones were in the ticks before."""
    proved: dict[Pair, Match] = {}
    readers: dict[Pair, list[Pair]] = {}
    for pair in assumed:
        for match in matches[pair]:
            for child in match.now:
                readers.setdefault(child, []).append(pair)
    todo = list(assumed)
    while todo:
        pair = todo.pop()
        if pair in proved or pair not in assumed:
            continue
        for match in matches[pair]:
            if all(p in proved for p in match.now) and all(p in assumed for p in match.earlier):
                proved[pair] = match
                todo += readers.get(pair, ())
                break
    return proved
