"""Runs a program in ways that must not matter, and finds where they do.

What the program, as it is written, gives tick by tick on the reference is what each way must give:
the optimized plan, rows that arrive in another order within their tick, and a pipeline on Spark
whose ticks are cut into ranges and whose process ends in the middle of a commit. A run that gives
something else is made as small as it can be.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, Literal

from hydro_core.compile import Compiled, optimized
from hydro_core.errors import DataError, HydroError
from hydro_core.settings import Settings
from hydro_core.ticks.tick import Outputs
from hydro_core.validation.plans import first_difference, outputs_before_failure
from hydro_core.validation.random_ticks import constants_of
from hydro_core.validation.simulation.case import Case, Windows, random_case, smaller

Way = Literal["plan", "order", "pipeline"]
OnSpark = Callable[[Case], Sequence[Outputs]]
"""Runs a case as a pipeline on Spark, and gives what its outputs are as of each tick."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is simulated: a program, and when its ticks are."""

    program: Compiled
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
    """What the way raised, where the program raises nothing."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A run that gives something else: as small as it was found to be."""

    run: int
    """Which run it was, from 0."""
    case: Case
    difference: Divergence
    whole: Case
    """The run as it was met."""
    tries: int
    """How many smaller runs were tried."""
    is_least: bool
    """Nothing of it can be left out; else there was no time to try all."""


@dataclass(slots=True)
class Simulated:
    """What was run, and the first that differs."""

    runs: int = 0
    ticks: int = 0
    ranges: int = 0
    crashes: int = 0
    refused: int = 0
    """Runs that ended at an error of the program itself, up to which they were compared."""
    refusal: DataError | None = None
    """The first of these errors."""
    failed: Failed | None = None


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
        self, runs: int, seed: int, seconds: float, progress: Callable[[Simulated], None]
    ) -> Simulated:
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
        done = Simulated()
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

    def check(self, case: Case, seconds: float, run: int = 0) -> Failed | None:
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

    def _least(self, run: int, case: Case, found: Divergence, deadline: float) -> Failed:
        whole, tries = case, 0
        case = case.until(found.tick + 1)
        while True:
            for candidate in smaller(case):
                if time.monotonic() > deadline:
                    return Failed(run, case, found, whole, tries, is_least=False)
                tries += 1
                difference = self._difference(candidate, (found.way,))
                if difference is not None:
                    case, found = candidate.until(difference.tick + 1), difference
                    break
            else:
                return Failed(run, case, found, whole, tries, is_least=True)

    def _difference(
        self, case: Case, ways: Sequence[Way] = ("plan", "order", "pipeline")
    ) -> Divergence | None:
        """The first difference between the program and one of the ways."""
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
    def _plan(self) -> Compiled:
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
