"""A case: random ticks, and how they are run. It is made smaller as long as what is wrong stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, NamedTuple

from hydro_core.ticks.calendar import TickWindow
from hydro_core.ticks.tick import TickInput
from hydro_core.types.item import ItemType
from hydro_core.validation.random_ticks import NULLS, random_batches

LATEST_STEP = 12
"""A crash comes at most so many steps after a commit begins; where there are fewer, after it."""


class Ranked(NamedTuple):
    """An item of a batch, and where it comes when the batch arrives in another order."""

    rank: float
    item: Any


class Crash(NamedTuple):
    """Where the process ends: in which range, and at which step of its commit."""

    range: int
    step: int


RankedBatch = tuple[Ranked, ...]
Windows = Callable[[int], TickWindow]


@dataclass(frozen=True, slots=True)
class Case:
    """Ticks, the ranges that they are cut into, and the crash that there is."""

    ticks: tuple[Mapping[str, RankedBatch], ...]
    ranges: tuple[int, ...]
    """How many ticks each range has."""
    crash: Crash | None = None

    @property
    def rows(self) -> int:
        """How many items there are in all."""
        return sum(len(batch) for tick in self.ticks for batch in tick.values())

    def inputs(self, windows: Windows, *, reordered: bool = False) -> list[TickInput]:
        """The ticks as they come, or with the items of each batch in another order."""
        found = []
        for number, tick in enumerate(self.ticks):
            window = windows(number)
            batches = {}
            for name, batch in tick.items():
                order = sorted(batch, key=lambda ranked: ranked.rank) if reordered else batch
                batches[name] = [ranked.item for ranked in order]
            found.append(TickInput(batches, window.start, window.end))
        return found

    def until(self, count: int) -> Case:
        """The first ticks alone."""
        ranges, left = [], count
        for length in self.ranges:
            if left > 0:
                ranges.append(min(length, left))
            left -= length
        crash = self.crash if self.crash and self.crash.range < len(ranges) else None
        return Case(self.ticks[:count], tuple(ranges), crash)

    def without(self, number: int) -> Case:
        ranges, first = list(self.ranges), 0
        for i, length in enumerate(self.ranges):
            if first <= number < first + length:
                ranges[i] -= 1
            first += length
        crash = self.crash
        for i in reversed([i for i, length in enumerate(ranges) if not length]):
            del ranges[i]
            if crash is not None and crash.range >= i:
                crash = Crash(crash.range - 1, crash.step) if crash.range else None
        ticks = (*self.ticks[:number], *self.ticks[number + 1 :])
        return Case(ticks, tuple(ranges), crash)


def random_case(inputs: Mapping[str, ItemType], constants: Sequence[Any], rng: Random) -> Case:
    """Ticks of a few random items, cut into random ranges; half of the cases have a crash.

    Half of the cases have no nulls: many a program refuses them, and nothing is compared after.
    """
    nulls = rng.choice((0.0, NULLS))
    ticks = tuple(
        {name: tuple(Ranked(rng.random(), item) for item in items) for name, items in tick.items()}
        for tick in random_batches(inputs, rng, constants, nulls)
    )
    ranges: list[int] = []
    while sum(ranges) < len(ticks):
        ranges.append(rng.randint(1, len(ticks) - sum(ranges)))
    crash = Crash(rng.randrange(len(ranges)), rng.randint(0, LATEST_STEP))
    return Case(ticks, tuple(ranges), crash if rng.random() < 0.5 else None)


def smaller(case: Case) -> Iterator[Case]:
    """Cases that are a little smaller: first those with much less, last those without one item."""
    if case.crash is not None:
        yield replace(case, crash=None)
    single = (1,) * len(case.ticks)
    if case.ranges != single and case.crash is None:
        yield replace(case, ranges=single)
    if len(case.ticks) > 1:
        yield from (case.without(number) for number in range(len(case.ticks)))
    places = [(t, name) for t, tick in enumerate(case.ticks) for name in tick if tick[name]]
    yield from (_with(case, t, name, ()) for t, name in places if len(case.ticks[t][name]) > 1)
    for t, name in places:
        batch = case.ticks[t][name]
        for i in range(len(batch)):
            yield _with(case, t, name, (*batch[:i], *batch[i + 1 :]))


def _with(case: Case, tick: int, name: str, batch: RankedBatch) -> Case:
    ticks = list(case.ticks)
    ticks[tick] = {**ticks[tick], name: batch}
    return replace(case, ticks=tuple(ticks))
