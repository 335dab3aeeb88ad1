"""The ticks of rows in Spark, by the numbers or the moments that their tick columns hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from pyspark.sql import Column
from pyspark.sql import functions as F

from hydro_core.ticks.tick_range import TickRange, micros


def tick_of(ticks: TickRange, number: Column, moment: Column) -> Column:
    """The tick of a row, by the number or the moment that its tick column holds."""
    feed = ticks.feed
    if feed is not None:
        known = feed.needed(ticks.ticks[0], ticks.ticks[-1])
        pairs = [(F.lit(other), F.lit(feed.arrives(other))) for other in known]
        own = F.create_map(*(one for pair in pairs for one in pair))[number]
        return own.cast("long")
    if ticks.calendar is None:
        return number
    return F.coalesce(number, _window_of(moment, ticks.starts) + F.lit(ticks.first))


def _window_of(moment: Column, starts: Sequence[datetime]) -> Column:
    """The number of the window that holds a moment, by where windows begin.

    It is negative or too large where none does.
    """
    begin = [micros(start) for start in starts]
    steps = {later - start for start, later in pairwise(begin)}
    if len(steps) == 1:
        return _step_of(moment, begin[0], steps.pop())
    passed = F.filter(F.array(*map(F.lit, begin)), lambda start: start <= F.unix_micros(moment))
    return (F.size(passed) - 1).cast("long")


def _step_of(moment: Column, start: int, step: int) -> Column:
    """The number of the window that holds a moment, where all are of one length in microseconds.

    It is exact, as a division would not be, which is one of doubles.
    """
    since = F.unix_micros(moment) - F.lit(start)
    return F.call_function("div", since - F.pmod(since, F.lit(step)), F.lit(step))
