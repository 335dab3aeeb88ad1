"""Functions that made ranges of ticks run again in Python, as the ledger stores them.

See `hydro_core.spark.functions.guards`. The ledger counts them, so that a new process knows the
functions whose guards fail repeatedly, and a person can find the reason why a range took twice as
long.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from hydro_core.types.records import INLINE

CURE = (
    "the results are right. Spark leaves to Python: items on which the function fails, integers of "
    "more than 64 bits on the way (in `r.a * r.b % 97`, say), integers beyond 2**53 that are "
    "divided by `/`, texts that are no plain numbers, NaN and −0 where floats are ordered. Where "
    "items have these, bound or test for them before they get there"
)
"""The help for a user."""


@dataclass(frozen=True, slots=True)
class GuardedFunction:
    """A function whose guard has failed: its identity, and its location for people."""

    key: str
    name: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = (
            "" if self.line is None else f" ({PurePath(self.file or '').name}, line {self.line})"
        )
        return f"{self.name}{place}"


@dataclass(frozen=True, slots=True)
class RerunCount:
    """The number of ranges that ran again for a function, and the last of them."""

    function: GuardedFunction = field(metadata=INLINE)
    times: int
    commit: int
    """The commit of the last of these ranges, by its number in the ledger."""
    first: int
    last: int
    """The ticks of that range."""

    def __str__(self) -> str:
        return f"{self.function}, {self.times:,} {'time' if self.times == 1 else 'times'} in all"


def says(reruns: Iterable[RerunCount]) -> str:
    """The reason why the ticks of a commit ran twice; empty if they did not."""
    told = "; ".join(map(str, reruns))
    return told and (
        f"Spark cannot tell for some items what these functions give: {told}; so its range ran "
        f"again with Python computing them; {CURE}"
    )


def counted(
    known: Iterable[RerunCount], failed: Iterable[GuardedFunction], commit: int, ticks: range
) -> tuple[RerunCount, ...]:
    """The repeated runs up to a commit: those known before, and the functions for which it ran
    again.
    """
    made = (RerunCount(function, 1, commit, ticks[0], ticks[-1]) for function in failed)
    return added_up(known, made)


def added_up(known: Iterable[RerunCount], more: Iterable[RerunCount]) -> tuple[RerunCount, ...]:
    """The repeated runs of both, by function; `more` are the later ones."""
    found = {one.function.key: one for one in known}
    for one in more:
        before = found.get(one.function.key)
        times = one.times + (before.times if before else 0)
        found[one.function.key] = replace(one, times=times)
    return tuple(found.values())
