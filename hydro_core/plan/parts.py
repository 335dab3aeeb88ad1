"""Long ranges in parts, and what is left of a range in which a tick fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from hydro_core.errors import DataError, EngineEndedError, HydroError
from hydro_core.plan.repeated import repeated
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import Settings

T = TypeVar("T")


def longest_range(plan: TickPlan, settings: Settings) -> int | None:
    """How many ticks may be one job; None: any number."""
    return settings.repeated_ticks if repeated(plan) else None


def in_parts(
    first: int, last: int, longest: int | None, run: Callable[[int, int], T]
) -> Iterator[T]:
    """What `run` gives for ranges that are first … last together.

    If a tick fails, the ticks before it are run, then its error is raised. Only what a tick can be
    at fault for is searched for: what the machine does, and bugs, are told at once.

    >>> list(in_parts(0, 4, 2, lambda first, last: (first, last)))
    [(0, 1), (2, 3), (4, 4)]
    """
    failed: int | None = None
    while first <= last:
        end = last if longest is None else min(last, first + longest - 1)
        if failed is not None:
            # The tick that fails is one of first … failed.
            end = first + (failed - first) // 2
        try:
            found = run(first, end)
        except HydroError as error:
            if first == end or not _may_fewer_do(error):
                raise
            failed = end
            continue
        yield found
        first = end + 1
        if failed is not None and failed < first:
            failed = None


def _may_fewer_do(error: HydroError) -> bool:
    """Whether a part of the ticks may run where all together fail.

    A past that is not as it should be is that of every tick, and so is the machine; but what ended
    may have had too little memory for all of them.
    """
    if isinstance(error, EngineEndedError):
        return True
    return isinstance(error, DataError) and error.code != "state"
