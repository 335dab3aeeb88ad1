"""A plan against its program: both run on the reference and must give the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hydro_core.compile import Compiled
from hydro_core.errors import DataError
from hydro_core.reference.interpreter import run_ticks
from hydro_core.settings import Settings
from hydro_core.ticks.tick import Outputs
from hydro_core.types.item import Order
from hydro_core.validation.random_ticks import TickInputs, random_ticks
from hydro_core.validation.same_items import same_items


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A tick at which plan and program differ, with all ticks up to it."""

    ticks: TickInputs
    output: str
    tick: int
    program: Sequence[Any]
    plan: Sequence[Any]

    def __str__(self) -> str:
        batches = [dict(t.batches) for t in self.ticks]
        return (
            f"the plan gives {list(self.plan)} as {self.output} in tick {self.tick}, the program"
            f" {list(self.program)}; the ticks are {batches}"
        )


def validate(plan: Compiled, program: Compiled, ticks: TickInputs) -> Mismatch | None:
    """Where the plan differs from the program on these ticks; None where it does not.

    Where the program fails, the plan only has to agree up to there.
    """
    wanted, _ = outputs_before_failure(program, ticks)
    got, _ = outputs_before_failure(plan, ticks[: len(wanted)])
    failed: Outputs = {name: ["(the plan failed)"] for name in program.typed.outputs}
    got += [failed] * (len(wanted) - len(got))
    found = first_difference(program, wanted, got)
    if found is None:
        return None
    tick, name = found
    return Mismatch(ticks[: tick + 1], name, tick, wanted[tick][name], got[tick][name])


def first_difference(
    program: Compiled, wanted: Sequence[Outputs], got: Sequence[Outputs]
) -> tuple[int, str] | None:
    """The first tick at which two runs differ, as far as both go, and in which output."""
    for tick, (expected, given) in enumerate(zip(wanted, got, strict=False)):
        for name, items in expected.items():
            ordered = program.typed.outputs[name].order is Order.TOTAL
            if not same_items(items, given[name], ordered):
                return tick, name
    return None


def validate_randomly(
    plan: Compiled, program: Compiled, runs: int, seed: int = 0
) -> Mismatch | None:
    """The first mismatch in so many random runs."""
    for number in range(runs):
        ticks = random_ticks(program, Random(f"{seed}/{number}"))  # noqa: S311 - nothing is secret
        found = validate(plan, program, ticks)
        if found is not None:
            return found
    return None


def outputs_before_failure(
    compiled: Compiled, ticks: TickInputs, settings: Settings | None = None
) -> tuple[list[Outputs], DataError | None]:
    """The outputs of the ticks before the first that fails, and how it does."""
    found: list[Outputs] = []
    try:
        for tick in run_ticks(compiled.typed, compiled.strata, ticks, settings):
            found.append(tick)  # noqa: PERF402 - what came before a failure is kept
    except DataError as error:
        return found, error
    return found, None
