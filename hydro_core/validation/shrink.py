"""Of the rows that can matter for an answer those that do: the others are left out, and the answer
is computed again.

Groups are tried first. Two rows may cancel each other out (5 and −5 in a sum), so a group is left
out only if random halves of it can be left out alone, too. What remains is tried row by row.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from hydro_core.errors import HydroError
from hydro_core.validation.same_items import same_items
from hydro_core.validation.sliced import ItemsByTick, SlicedRun


class LandedRow(NamedTuple):
    """A row of an input: the tick that it is of, and its place among those of the tick."""

    input: str
    tick: int
    place: int


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What is left of a slice."""

    rows: ItemsByTick
    left_out: int
    is_least: bool
    """Without any one of the rows the answer is another one; else there was no time to try all."""
    runs: int


def shrink(run: SlicedRun, seconds: float) -> Shrunk:
    """Leaves out rows of a slice, as long as its answer at the last tick stays what it is.

    Args:
        run: a slice of one tick whose rows are loaded; it has an answer.
        seconds: after so long no more is tried.
    """
    search = _Search(run, time.monotonic() + seconds)
    everything = list(search.kept)
    # last those inputs whose rows were told apart by values that were asked for
    names = sorted({row.input for row in everything}, key=lambda n: not run.wanted[n].is_all)
    for name in names:
        search.reduce([row for row in everything if row.input == name])
    while search.stale and search.has_time:
        for row in [row for row in search.kept if row in search.stale]:
            search.reduce([row])
    kept = dict(search.kept)
    return Shrunk(
        _rows(run.rows, kept), len(everything) - len(kept), not search.untried, search.runs
    )


@dataclass
class _Search:
    run: SlicedRun
    deadline: float
    kept: dict[LandedRow, None] = field(init=False)
    runs: int = 0
    untried: set[LandedRow] = field(init=False)
    """Rows that may be needed or not."""
    stale: set[LandedRow] = field(default_factory=set)
    """Rows that were needed, but others were left out since."""
    _random: Random = field(default_factory=lambda: Random(0))  # noqa: S311 - no secret
    _answer: Sequence[Any] = field(init=False)

    def __post_init__(self) -> None:
        rows = self.run.rows
        self.kept = {
            LandedRow(name, tick, i): None
            for name, ticks in rows.items()
            for tick, items in ticks.items()
            for i in range(len(items))
        }
        self.untried = set(self.kept)
        self._answer = self.run.run()[-1]

    @property
    def has_time(self) -> bool:
        return time.monotonic() < self.deadline

    def reduce(self, group: Sequence[LandedRow]) -> None:
        """Leaves out of the group what is not needed."""
        if not group or not self.has_time:
            return
        needed = self._is_needed(group)
        if len(group) == 1:
            self._settle(group[0], needed=needed)
            return
        shuffled = self._random.sample(group, len(group))
        halves = shuffled[: len(group) // 2], shuffled[len(group) // 2 :]
        if not needed and self.has_time and not any(map(self._is_needed, halves)):
            self._leave_out(group)
            return
        for half in halves:
            self.reduce(sorted(half))

    def _settle(self, row: LandedRow, *, needed: bool) -> None:
        self.stale.discard(row)
        if needed:
            self.untried.discard(row)
        else:
            self._leave_out([row])

    def _leave_out(self, group: Iterable[LandedRow]) -> None:
        for row in group:
            del self.kept[row]
            self.untried.discard(row)
            self.stale.discard(row)
        # What was needed beside these rows may be needed no more.
        self.stale |= self.kept.keys() - self.untried
        self.untried |= self.stale

    def _is_needed(self, group: Iterable[LandedRow]) -> bool:
        """Whether the answer is another one without the group."""
        without = dict.fromkeys(self.kept)
        for row in group:
            del without[row]
        self.runs += 1
        try:
            found = self.run.run(_rows(self.run.rows, without))[-1]
        except HydroError:
            return True
        return not same_items(found, self._answer, ordered=False)


def _rows(rows: ItemsByTick, kept: dict[LandedRow, None]) -> ItemsByTick:
    found: dict[str, dict[int, list[Any]]] = {name: {} for name in rows}
    for row in sorted(kept):
        found[row.input].setdefault(row.tick, []).append(rows[row.input][row.tick][row.place])
    return found
