"""The calendar of a flow: ticks 0, 1, 2, … as windows of time, each with a key.

Windows follow each other without a gap. Days and longer lengths, and several hours, keep the wall
clock's time of a zone, so that they are shorter or longer where its clocks are changed, and empty
where these skip all of them, as they may skip a day; minutes and single hours are always as long as
they say. A key is the window's start as the zone's clocks show it, or would; where an hour comes
twice, the second one's keys carry the offset from UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from hydro_core.errors import ProgramError
from hydro_core.lang.source import did_you_mean
from hydro_core.ticks.every import TickLength

_FIRST, _LAST = (end.replace(tzinfo=UTC) for end in (datetime.min, datetime.max))
"""What lies outside of what times can say begins at these."""
_SECOND = timedelta(seconds=1)
TimeRange = tuple[datetime, datetime]
"""When a tick begins and when it ends, in UTC."""


@dataclass(frozen=True)
class TickWindow:
    """A tick with its number, its key, and its window [start, end) in UTC."""

    tick: int
    key: str
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Calendar:
    """Windows of length `every` from `start` on.

    Args:
        start: where tick 0 begins; without an offset it is the zone's wall clock.
        every: the length, such as `1d`.
        end: where the last tick ends at the latest; None: there is always a next one.
        zone: the time zone whose wall clock the windows follow.
        delay: how long after its window has closed a tick may run, such as `2h`; empty: at once.

    Raises:
        ProgramError: the calendar has no ticks (code `config`).
    """

    start: datetime
    every: str = "1d"
    end: datetime | None = None
    zone: str = "UTC"
    delay: str = ""

    def __post_init__(self) -> None:
        # To list all zones takes some time, and nearly every calendar is in this one.
        if self.zone != "UTC" and self.zone not in _zones():
            near = did_you_mean(self.zone, _zones())
            raise _wrong(
                f"`zone`: there is no time zone {self.zone!r}", near or "such as `Europe/Amsterdam`"
            )
        if self.last is not None and self.window(0).end > self.last:
            when = "before the start" if self.last <= self.origin else "within the first tick"
            raise _wrong(
                f"`end`: {self.end} is {when}, so there is no tick",
                f"tick 0 is from {self.shown(self.origin)} to {self.shown(self.window(0).end)}",
            )
        _ = self.waits

    @cached_property
    def length(self) -> TickLength:
        """The length of a window."""
        return TickLength.parse(self.every, "every")

    @cached_property
    def waits(self) -> timedelta:
        """The delay as a length of time."""
        if not self.delay:
            return timedelta()
        length = TickLength.parse(self.delay, "delay")
        if length.unit == "mo":
            raise _wrong(f"`delay`: {self.delay!r} has no fixed length", "take m, h, d or w")
        return length.start_of(1, self.origin) - self.origin

    @cached_property
    def last(self) -> datetime | None:
        """When the last tick ends at the latest, in UTC."""
        return None if self.end is None else self._instant(self.end)

    @cached_property
    def origin(self) -> datetime:
        """When tick 0 begins, in UTC."""
        return self.start_of(0)

    @property
    def key_format(self) -> str:
        """The form of the keys, as `strftime` takes it."""
        return "%Y-%m-%d-%H:%M" if self.length.unit in "mh" else "%Y-%m-%d"

    @cached_property
    def count(self) -> int | None:
        """How many ticks there are; None where there is no end."""
        return None if self.last is None else max(0, self.tick_of(self.last))

    def start_of(self, tick: int) -> datetime:
        """When a tick begins, which is when the one before it ends, in UTC."""
        try:
            return self._start(tick)
        except (OverflowError, ValueError):
            # It is beyond the years that there are; a row may be of the last of them.
            return _LAST if tick > 0 else _FIRST

    def window(self, tick: int) -> TickWindow:
        """The window of a tick; those before tick 0 have negative numbers."""
        start = self.start_of(tick)
        return TickWindow(tick, self._key(tick), start, self.start_of(tick + 1))

    def times(self, first: int, last: int) -> dict[int, TimeRange]:
        """When the ticks `first` to `last` begin and end."""
        starts = [self.start_of(tick) for tick in range(first, last + 2)]
        return dict(zip(range(first, last + 1), pairwise(starts), strict=True))

    def window_of(self, key: str) -> TickWindow:
        """The window of a key.

        Raises:
            ProgramError: no tick has the key; which ones are near (code `config`).
        """
        named = self._named(key)
        tick = self.tick_of(self._instant(named))
        nearest = [tick, tick + 1]
        if not self._is_absolute:
            # A key may name a wall clock's time that is not, or a day whose tick begins later.
            shown = self.length.tick_of(named.replace(tzinfo=UTC), self._wall)
            nearest += [shown, shown + 1]
        for near in nearest:
            if near >= 0 and self._key(near) == key and self._is_tick(near):
                return self.window(near)
        raise _wrong(f"no tick has the key {key!r}", self._nearest(tick))

    def tick_of(self, moment: datetime) -> int:
        """The number of the tick whose window holds a moment; negative before tick 0."""
        if self._is_absolute:
            return self.length.tick_of(moment, self.origin)
        tick = self.length.tick_of(self._wall_at(moment), self._wall)
        # Wall clocks are changed within windows, so the guess may be off.
        while self.start_of(tick) > moment:
            tick -= 1
        while (end := self.start_of(tick + 1)) <= moment and end < _LAST:
            tick += 1
        return tick

    def closed(self, now: datetime) -> int:
        """How many ticks' windows have ended, and their delay passed, at `now`."""
        ended = max(0, self.tick_of(now - self.waits))
        return ended if self.count is None else min(ended, self.count)

    def shown(self, moment: datetime) -> str:
        """A moment as the zone's clocks show it."""
        return f"{moment.astimezone(self._zone):%Y-%m-%d %H:%M} {self.zone}"

    def _is_tick(self, tick: int) -> bool:
        return self.count is None or tick < self.count

    def _nearest(self, tick: int) -> str:
        last = tick if self.count is None else min(tick, self.count - 1)
        near = self.window(max(0, last)).key
        if tick < 0:
            return f"the first tick is {near}"
        return f"the nearest is {near}" if self._is_tick(tick) else f"the last tick is {near}"

    def _named(self, key: str) -> datetime:
        """What a key says, with an offset from UTC if it has one."""
        for form in (self.key_format, f"{self.key_format}%z"):
            try:
                return datetime.strptime(key, form)
            except ValueError:
                continue
        example = self.window(0).key
        raise _wrong(f"{key!r} is not a tick's key", f"a key is like {example}")

    def local(self, moment: datetime) -> datetime:
        """A moment by the zone's clocks."""
        return moment.astimezone(self._zone)

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    @property
    def _is_absolute(self) -> bool:
        return self.length.unit == "m" or (self.length.unit, self.length.count) == ("h", 1)

    @property
    def _is_plain(self) -> bool:
        """Whether a schedule has a word for it: every day, week or month."""
        is_last_day = self.length.unit == "mo" and self.first.day == 31
        return self.length.count == 1 and not is_last_day

    @cached_property
    def first(self) -> datetime:
        """Where tick 0 begins, as the zone's clocks show it."""
        return self._instant(self.start).astimezone(self._zone)

    @cached_property
    def _wall(self) -> datetime:
        return self.first.replace(tzinfo=UTC)

    def _wall_at(self, moment: datetime) -> datetime:
        """What the zone's clocks show, as if it were UTC."""
        try:
            return moment.astimezone(self._zone).replace(tzinfo=UTC)
        except OverflowError:
            return moment

    def _instant(self, moment: datetime) -> datetime:
        there = moment.replace(tzinfo=self._zone) if moment.tzinfo is None else moment
        return there.astimezone(UTC)

    def _start(self, tick: int) -> datetime:
        if self._is_absolute:
            return self.length.start_of(tick, self._instant(self.start))
        wall = self.length.start_of(tick, self._wall)
        if self._outlasted(tick, wall):
            return _after_skipped(wall, self._zone)
        # Where clocks are set back at midnight, a day begins when it first does, as in Dagster.
        return _resolved(wall, self._zone, later=wall.hour > 0 or not self._is_plain)

    def _key(self, tick: int) -> str:
        local = self.start_of(tick).astimezone(self._zone)
        if self._is_absolute:
            return local.strftime(f"{self.key_format}%z" if local.fold else self.key_format)
        wall = self.length.start_of(tick, self._wall)
        is_local = not _shows_skipped(wall) and self._outlasted(tick, wall) is None
        return (local if is_local else wall).strftime(self.key_format)

    def _outlasted(self, tick: int, wall: datetime) -> timedelta | None:
        """By how much clocks skip more than the tick that begins at a time; None: they do not."""
        early, late = (_offset(wall, self._zone, fold) for fold in (0, 1))
        length = self.length.start_of(tick + 1, self._wall) - wall if late > early else None
        return late - early - length if length and late - early >= length else None


def zone_of(calendar: Calendar | None) -> str:
    """That of dates, and of times that name none: UTC where ticks have no windows."""
    return "UTC" if calendar is None else calendar.zone


def window_ranges(windows: Iterable[TickWindow]) -> list[tuple[TickWindow, TickWindow]]:
    """First and last window of each range without gaps; the windows come in order."""
    ranges: list[tuple[TickWindow, TickWindow]] = []
    for window in windows:
        if ranges and window.tick == ranges[-1][1].tick + 1:
            ranges[-1] = ranges[-1][0], window
        else:
            ranges.append((window, window))
    return ranges


def span(keys: Iterable[str] | None) -> str:
    """Ticks that follow each other, by their keys, in words; None: which ones nobody knows.

    >>> span(["2026-01-01", "2026-01-02", "2026-01-03"]), span(["2026-01-01"]), span(None)
    ('2026-01-01 to 2026-01-03', '2026-01-01', 'a tick')
    """
    if keys is None:
        return "a tick"
    known = list(keys)
    return known[0] if known[0] == known[-1] else f"{known[0]} to {known[-1]}"


@cache
def _zones() -> frozenset[str]:
    """The time zones that there are; their files are searched once."""
    return frozenset(available_timezones())


def _resolved(wall: datetime, zone: ZoneInfo, *, later: bool) -> datetime:
    """The moment at which the clocks show a time: of two the `later` one, or when they skip it."""
    local = wall.replace(tzinfo=zone, fold=int(later))
    moment = local.astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return moment
    if _shows_skipped(wall):
        return local.replace(fold=0).astimezone(UTC)
    # Clocks are changed at a whole hour: what they skip is all of that one moment.
    return local.replace(minute=0, fold=0).astimezone(UTC)


def _after_skipped(wall: datetime, zone: ZoneInfo) -> datetime:
    """The moment at which clocks that skip a time go on."""
    before = _offset(wall, zone, 0)
    low, high = wall - _offset(wall, zone, 1), wall - before
    while half := (high - low) // 2 // _SECOND * _SECOND:
        is_before = (low + half).astimezone(zone).utcoffset() == before
        low, high = (low + half, high) if is_before else (low, low + half)
    return high


def _offset(wall: datetime, zone: ZoneInfo, fold: int) -> timedelta:
    """How far the clocks that show a time are ahead of UTC; of a skipped one, before or after."""
    return wall.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta()


def _shows_skipped(wall: datetime) -> bool:
    """Whether a time that clocks skip names a window all the same: at midnight, as in Dagster."""
    return wall.hour not in (1, 2, 3)


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


_DIVIDED = {"m": 60, "h": 24, "d": 1, "w": 1, "mo": 12}
"""What the count of each unit must divide: a schedule names minutes of an hour, hours of a day."""
_LENGTHS = "1m to 30m and 1h to 12h that divide the hour or the day, 1d, 1w, 1mo to 12mo"


def scheduled(calendar: Calendar) -> Calendar:
    """The calendar, if a schedule can name the starts of its windows.

    Raises:
        ProgramError: none can, and what can be named (code `config`).
    """
    length, first = calendar.length, calendar.first
    if _DIVIDED[length.unit] % length.count:
        raise _wrong(f"`every`: ticks of {calendar.every} have no schedule", f"take {_LENGTHS}")
    if first.second or first.microsecond:
        raise _wrong(f"`start`: {calendar.start} is within a minute", "begin at a whole minute")
    if length.unit == "mo" and first.day in (29, 30):
        raise _wrong(
            f"`start`: not every month has a day {first.day}",
            "begin on a day from 1 to 28, or on a 31st for the last day of each month",
        )
    return calendar


def cron_of(calendar: Calendar) -> str:
    """The starts of the windows as a cron schedule in the calendar's zone."""
    first, length = calendar.first, calendar.length
    minute, hour, day = str(first.minute), str(first.hour), str(first.day)
    match length.unit:
        case "m":
            return f"{_listed(first.minute, length.count, 0, 60)} * * * *"
        case "h":
            hours = "*" if length.count == 1 else _listed(first.hour, length.count, 0, 24)
            return f"{minute} {hours} * * *"
        case "d":
            return f"{minute} {hour} * * *"
        case "w":
            return f"{minute} {hour} * * {first.isoweekday() % 7}"
        case "mo":
            months = "*" if length.count == 1 else _listed(first.month, length.count, 1, 12)
            return f"{minute} {hour} {'L' if first.day == 31 else day} {months} *"


def _listed(first: int, step: int, lowest: int, size: int) -> str:
    found = sorted((first - lowest + k * step) % size + lowest for k in range(size // step))
    return ",".join(map(str, found))


def _wrong(message: str, cure: str) -> ProgramError:
    return ProgramError.of("config", message, help=cure)
