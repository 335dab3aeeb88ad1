"""Long ranges in parts, and what is left of a range in which a tick fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from hydro_core.errors import DataError
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

    If one fails, the ticks before the first that fails are run, then the error of that tick is
    raised.

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
        except DataError as error:
            # A past that is not as it should be is that of every tick; else fewer may do.
            if first == end or error.code == "state":
                raise
            failed = end
            continue
        yield found
        first = end + 1
        if failed is not None and failed < first:
            failed = None
