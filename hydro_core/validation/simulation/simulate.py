"""Runs a program in ways that must not matter, and finds where they do.

What the program, as it is written, gives tick by tick on the reference is what each way must give:
the optimized plan, rows that arrive in another order within their tick, and a pipeline on Spark
whose ticks are cut into ranges and whose process ends in the middle of a commit. A run that gives
something else is made as small as it can be.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any, Literal, NamedTuple

from hydro_core.compile import CompiledProgram, optimized
from hydro_core.errors import DataError, HydroError
from hydro_core.settings import Settings
from hydro_core.ticks.calendar import TickWindow
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.item import ItemType
from hydro_core.validation.random_ticks import (
    NULLS,
    constants_of,
    first_difference,
    outputs_before_failure,
    random_batches,
)

LATEST_STEP = 12
"""A crash comes at most so many steps after a commit begins; where there are fewer, after it."""


class RankedItem(NamedTuple):
    """An item of a batch, and where it comes when the batch arrives in another order."""

    rank: float
    item: Any


class Crash(NamedTuple):
    """Where the process ends: in which range, and at which step of its commit."""

    range: int
    step: int


RankedBatch = tuple[RankedItem, ...]
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
        {
            name: tuple(RankedItem(rng.random(), item) for item in items)
            for name, items in tick.items()
        }
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


Way = Literal["plan", "order", "pipeline"]
OnSpark = Callable[[Case], Sequence[Outputs]]
"""Runs a case as a pipeline on Spark, and gives what its outputs are as of each tick."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Program that is simulated, and the windows of its ticks."""

    program: CompiledProgram
    windows: Windows
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a way gives something else than the program."""

    way: Way
    tick: int
    output: str
    """The output that differs; empty where the way failed."""
    expected: Sequence[Any] = ()
    found: Sequence[Any] = ()
    error: HydroError | None = None
    """Error of the way, where the program raises none."""


@dataclass(frozen=True, slots=True)
class FailedSimulation:
    """A run that gives something else: as small as it was found to be."""

    run: int
    """Number of the run, from 0."""
    case: Case
    difference: Divergence
    whole: Case
    """The run as it was met."""
    tries: int
    """How many smaller runs were tried."""
    is_least: bool
    """Nothing of it can be left out; else there was no time to try all."""


@dataclass(slots=True)
class SimulationResult:
    """Counts of runs, and the first that differs."""

    runs: int = 0
    ticks: int = 0
    ranges: int = 0
    crashes: int = 0
    refused: int = 0
    """Runs that ended at an error of the program itself, up to which they were compared."""
    refusal: DataError | None = None
    """The first of these errors."""
    failed: FailedSimulation | None = None


class Simulation:
    """The runs of one program.

    Args:
        subject: the program.
        on_spark: what runs a case on Spark; None: the reference alone is used.
    """

    def __init__(self, subject: Subject, on_spark: OnSpark | None = None) -> None:
        self._subject, self._on_spark = subject, on_spark
        self._refusal: DataError | None = None

    def run(
        self, runs: int, seed: int, seconds: float, progress: Callable[[SimulationResult], None]
    ) -> SimulationResult:
        """Makes random runs until one differs.

        Args:
            runs: how many.
            seed: what the runs are made from: the same ones again with the same seed.
            seconds: how long a run that differs may be made smaller.
            progress: called after each run.
        """
        program = self._subject.program
        items = {name: stream.item for name, stream in program.typed.inputs.items()}
        constants = constants_of(program)
        done = SimulationResult()
        for number in range(runs):
            rng = Random(f"{seed}/{number}")  # noqa: S311 - nothing is secret
            case = random_case(items, constants, rng)
            done.failed = self.check(case, seconds, number)
            done.runs += 1
            done.ticks += len(case.ticks)
            done.ranges += len(case.ranges)
            done.crashes += case.crash is not None
            if self._refusal is not None:
                done.refused += 1
                done.refusal = done.refusal or self._refusal
            if done.failed is not None:
                break
            progress(done)
        return done

    def check(self, case: Case, seconds: float, run: int = 0) -> FailedSimulation | None:
        """Runs a case in all ways, and makes it smaller if one of them differs.

        Args:
            case: what is run.
            seconds: how long it may be made smaller.
            run: its number among others.
        """
        found = self._difference(case)
        if found is None:
            return None
        return self._least(run, case, found, time.monotonic() + seconds)

    def _least(self, run: int, case: Case, found: Divergence, deadline: float) -> FailedSimulation:
        whole, tries = case, 0
        case = case.until(found.tick + 1)
        while True:
            for candidate in smaller(case):
                if time.monotonic() > deadline:
                    return FailedSimulation(run, case, found, whole, tries, is_least=False)
                tries += 1
                difference = self._difference(candidate, (found.way,))
                if difference is not None:
                    case, found = candidate.until(difference.tick + 1), difference
                    break
            else:
                return FailedSimulation(run, case, found, whole, tries, is_least=True)

    def _difference(
        self, case: Case, ways: Sequence[Way] = ("plan", "order", "pipeline")
    ) -> Divergence | None:
        program, windows = self._subject.program, self._subject.windows
        ticks = case.inputs(windows)
        wanted, self._refusal = outputs_before_failure(program, ticks, self._subject.settings)
        # Of a tick that the program refuses nothing is said.
        case, ticks = case.until(len(wanted)), ticks[: len(wanted)]
        if not ticks:
            return None
        for way in ways:
            if way == "pipeline":
                found = self._on_pipeline(case, wanted)
            else:
                of = self._plan if way == "plan" else program
                given = case.inputs(windows, reordered=True) if way == "order" else ticks
                run = outputs_before_failure(of, given, self._subject.settings)
                found = self._compared(way, wanted, *run)
            if found is not None:
                return found
        return None

    @cached_property
    def _plan(self) -> CompiledProgram:
        return optimized(self._subject.program)

    def _on_pipeline(self, case: Case, wanted: Sequence[Outputs]) -> Divergence | None:
        if self._on_spark is None:
            return None
        try:
            found, error = self._on_spark(case), None
        except HydroError as problem:
            found, error = [], problem
        return self._compared("pipeline", wanted, found, error)

    def _compared(
        self,
        way: Way,
        wanted: Sequence[Outputs],
        found: Sequence[Outputs],
        error: HydroError | None,
    ) -> Divergence | None:
        differs = first_difference(self._subject.program, wanted, found)
        if differs is not None:
            tick, name = differs
            return Divergence(way, tick, name, wanted[tick][name], found[tick][name])
        if error is not None and len(found) < len(wanted):
            tick = len(found) if way != "pipeline" else len(wanted) - 1
            return Divergence(way, tick, "", error=error)
        return None
