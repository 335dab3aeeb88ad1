"""The greatest set of pairs of which each rests, through a least one, on itself a tick earlier."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from hydro_core.optimize.compare import Match, Pair, _proved

Ways = Mapping[Pair, tuple[Match, ...]]
NODES: Any = (None, None)
CHAIN = 20_000
"""So many that looking at all of them for each of them would take minutes."""


def pair(number: int) -> Pair:
    return number, number


def way(now: tuple[int, ...] = (), earlier: tuple[int, ...] = ()) -> Match:
    return Match(NODES, tuple(map(pair, now)), tuple(map(pair, earlier)))


def by_definition(ways: Ways) -> set[Pair]:
    """Takes out what does not follow, until everything does."""
    assumed = set(ways)
    while True:
        proved: set[Pair] = set()
        before = -1
        while len(proved) > before:
            before = len(proved)
            proved |= {
                p
                for p in assumed
                if any(proved >= {*w.now} and assumed >= {*w.earlier} for w in ways[p])
            }
        if proved == assumed:
            return proved
        assumed = proved


def random_ways(rng: Random) -> Ways:
    size = rng.randint(1, 12)

    def some(most: int) -> tuple[int, ...]:
        # one more than there are: what was not looked at
        return tuple(rng.randint(0, size) for _ in range(rng.randint(0, most)))

    return {
        pair(n): tuple(way(some(2), some(2)) for _ in range(rng.randint(0, 3))) for n in range(size)
    }


@pytest.mark.parametrize("seed", range(20))
def test_random_pairs_are_proved_as_by_definition(seed: int) -> None:
    rng = Random(f"alike {seed}")
    some = none = 0
    for _ in range(200):
        ways = random_ways(rng)
        proved = _proved(ways)
        assert set(proved) == by_definition(ways), ways
        assert all(match in ways[p] for p, match in proved.items())
        assert set(proved) == by_definition({p: (match,) for p, match in proved.items()})
        some += 0 < len(proved) < len(ways)
        none += not proved
    assert some > 20
    assert none > 10


def test_what_rests_on_one_that_does_not_follow_falls_in_one_go() -> None:
    earlier = {pair(n): (way(earlier=(n + 1,)),) for n in range(CHAIN)}
    assert _proved({**earlier, pair(CHAIN): (way(now=(CHAIN,)),)}) == {}
    assert len(_proved({**earlier, pair(CHAIN): (way(),)})) == CHAIN + 1
    now = {pair(n): (way(now=(n + 1,)), way(now=(n + 1, 0))) for n in range(CHAIN)}
    assert len(_proved({**now, pair(CHAIN): (way(earlier=(0,)),)})) == CHAIN + 1
