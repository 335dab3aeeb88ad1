"""Inputs cut into ticks: a column holds the tick's number, or a time that a length cuts into ticks.

An input without such a column arrives whole at tick 0. Ticks without rows are ticks, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn, Protocol

from hydro_core.files.inputs import InputFile, refuse, refuse_mixed
from hydro_core.files.scan import Misfit, Scan
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.every import TickLength
from hydro_core.ticks.tick_range import TickRange
from hydro_core.types.values import print_moment

MAX_TICKS = 1_000_000
"""Ticks without rows run, too: one row of the year 9999 would make millions of them."""


@dataclass(frozen=True, slots=True)
class TickCut:
    """How many ticks there are, and their windows if a time tells them."""

    count: int
    calendar: Calendar | None

    @property
    def ticks(self) -> TickRange:
        return TickRange(0, self.count - 1, self.calendar)


@dataclass(frozen=True, slots=True)
class InputSummary:
    """What is known of the rows of an input when all of them have been seen once."""

    rows: int
    numbers: tuple[int, int] | None
    moments: tuple[datetime, datetime] | None


class UncutRows(Protocol):
    """The rows of an input, wherever they are."""

    @property
    def scan(self) -> Scan:
        """The input."""

    @property
    def summary(self) -> InputSummary:
        """What is known of its rows."""

    def misfit(self, cut: TickCut) -> Misfit | None:
        """The first value that is no item: of the earliest tick, column, file and row."""

    def refuse_before_start(self, start: datetime | None) -> NoReturn:
        """Names the first row that is before `start`, or has a negative number."""


def cut(inputs: Sequence[UncutRows], every: TickLength, start: datetime | None) -> TickCut:
    """Cuts the inputs into ticks.

    Raises:
        DataError: a row is of no tick or of one too far away, or a value is no item of its type
            (code `input`).
    """
    start = _start_of(inputs, every, start)
    calendar = None if start is None else Calendar(start, str(every))
    count = 1 + max((_last_tick(rows, calendar) for rows in inputs), default=-1)
    found = TickCut(count, calendar)
    misfits = [(rows.misfit(found), rows.scan) for rows in inputs]
    there = [(misfit, of) for misfit, of in misfits if misfit is not None]
    if there:
        # The first by tick, input, column and row.
        misfit, of = min(there, key=lambda each: each[0].tick)
        of.refuse_misfit(misfit, of.fileset.files)
    return found


def _start_of(
    inputs: Sequence[UncutRows], every: TickLength, start: datetime | None
) -> datetime | None:
    """When tick 0 begins, None where ticks are numbered; numbers and times do not go together."""
    times = {x.scan.file.name: x.scan.file for x in inputs if x.summary.moments}
    numbers = {x.scan.file.name: x.scan.file for x in inputs if x.summary.numbers}
    if times and numbers:
        refuse_mixed(_first(numbers), _first(times))
    if numbers and start is not None:
        message = "`--start` is a time, but the tick column holds numbers"
        refuse(_first(numbers), message, "leave `--start` out: ticks are numbered from 0")
    if times and start is None:
        return every.floor(min(x.summary.moments[0] for x in inputs if x.summary.moments))
    return start


def _first(files: Mapping[str, InputFile]) -> InputFile:
    return files[min(files)]


def _last_tick(rows: UncutRows, calendar: Calendar | None) -> int:
    """The number of the last tick of an input."""
    summary = rows.summary
    if rows.scan.file.column is None or not summary.rows:
        return 0 if summary.rows else -1
    if calendar is None:
        low, high = summary.numbers or (0, -1)
    else:
        ends = summary.moments or (calendar.origin, calendar.origin)
        low, high = map(calendar.tick_of, ends)
    if low < 0:
        rows.refuse_before_start(None if calendar is None else calendar.origin)
    if high >= MAX_TICKS:
        _refuse_far(rows.scan.file, high, calendar, summary.moments)
    return high


def _refuse_far(
    file: InputFile,
    tick: int,
    calendar: Calendar | None,
    moments: tuple[datetime, datetime] | None,
) -> NoReturn:
    """Refuses an input whose last row would make too many ticks."""
    most = f"more than {MAX_TICKS:,} ticks, as those without rows run, too"
    if calendar is None or moments is None:
        refuse(file, f"a row is of tick {tick}, which makes {most}", "mend the row")
    refuse(
        file,
        f"a row is of {print_moment(moments[1])}, which makes {most}: they begin at "
        f"{print_moment(calendar.origin)}, and each is {calendar.every} long",
        "mend the row, or let `--every` be longer",
    )
