"""Ticks that read what ticks of another calendar have given."""

from __future__ import annotations

from dataclasses import dataclass

from hydro_core.ticks.calendar import Calendar

_COMPARED = 13
"""So many windows that are the same are all the same: a year of months."""


@dataclass(frozen=True, slots=True)
class Feed:
    """The ticks of `own`, which are fed by those of `other`.

    A tick of the other calendar arrives with the own tick that has the same window; a longer one,
    whose window no tick has, with the first tick after it, as rows would that land at its end.
    """

    own: Calendar
    other: Calendar

    @property
    def is_one_to_one(self) -> bool:
        """Whether every tick of the other calendar has the window of an own one."""
        shift = self.own.tick_of(self.other.origin)
        starts = ((self.own.start_of(shift + k), self.other.start_of(k)) for k in range(_COMPARED))
        return all(mine == theirs for mine, theirs in starts)

    @property
    def is_coarser(self) -> bool:
        """Whether the ticks of the other calendar are longer."""
        mine, theirs = (one.times(0, 0)[0] for one in (self.own, self.other))
        return theirs[1] - theirs[0] > mine[1] - mine[0]

    def arrives(self, tick: int) -> int:
        """The own tick that a tick of the other calendar arrives with; negative before tick 0."""
        start, end = self.other.times(tick, tick)[tick]
        own = self.own.tick_of(start)
        return own if self.own.start_of(own + 1) == end else self.own.tick_of(end)

    def needed(self, first: int, last: int) -> range:
        """The ticks of the other calendar that arrive with the own ticks `first` to `last`."""
        low = self.other.tick_of(self.own.start_of(first)) - 1
        while self.arrives(low) < first:
            low += 1
        high = self.other.tick_of(self.own.start_of(last + 1))
        while self.arrives(high) > last:
            high -= 1
        return range(max(low, 0), high + 1)
