"""Readiness: the ticks that may run now, and what the next one waits for.

The sensor, `backfill`, `status` and the tick itself have one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from hydro_core.errors import TransientError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import Calendar, Feed, TickWindow

from .late_arrivals import LateArrivals, noticed

if TYPE_CHECKING:
    from hydro_core.spark.inputs.looks import LandingView


CommittedTicks = Callable[[str], int]
"""How many ticks of a flow are committed, by its name."""

Latest = Callable[[str], int | datetime | None]
"""The last tick, or the last moment, that a row of an input is of; None: it has no rows."""


@dataclass(frozen=True, slots=True)
class ReadyTicks:
    """The ticks before `until` may run; `why` says what tick `until` waits for."""

    calendar: Calendar
    until: int
    why: str
    held: bool = False
    """It waits for rows that were removed."""

    @property
    def last(self) -> str | None:
        """The key of the last tick that may run; None: none may."""
        return None if self.until == 0 else self.calendar.window(self.until - 1).key

    @property
    def has_ended(self) -> bool:
        """True if every tick of the flow may run."""
        return self.calendar.count == self.until

    def refuse(self, window: TickWindow) -> None:
        """Raises where the tick may not run yet.

        Raises:
            TransientError: what it waits for, and the last tick that may run (code `state`).
        """
        if window.tick < self.until:
            return
        why = self.why
        if window.tick > self.until:
            why = f"tick {self.calendar.window(self.until).key} before it may not: {why}"
        last = f"the last tick that may run is {self.last}"
        raise may_not_run(window, why, last if self.last else "no tick may run yet")


def may_not_run(window: TickWindow, why: str, cure: str) -> TransientError:
    """The error of a tick that waits for something."""
    return TransientError.of("state", f"tick {window.key} may not run yet: {why}", help=cure)


@dataclass(frozen=True, slots=True)
class HeldTick:
    """The flow waits at `tick`, the first that is not committed: rows that were read are gone."""

    tick: int
    why: str


def ready(
    flow: FlowAsset,
    latest: Latest,
    committed: CommittedTicks,
    now: datetime,
    held: Callable[[], HeldTick | None] = lambda: None,
) -> ReadyTicks:
    """The ticks that may run at `now`: their intervals have ended, and what they wait for is there.

    Args:
        flow: whose inputs may be waited for.
        latest: asked of each landing that is waited for.
        committed: asked of each flow that is read.
        held: asked where an input holds the flow while rows that were read are gone.
    """
    calendar = flow.ticks.calendar
    until = calendar.closed(now)
    why = _why_open(calendar, until)
    for name, read in flow.reads.items():
        feed = Feed(calendar, flow.numbered_by(name) or calendar)
        needed = feed.needed(0, until)
        missing = max(committed(read.flow), needed.start)
        has_ended = feed.other.count is not None and missing >= feed.other.count
        if has_ended or feed.arrives(missing) >= until:
            continue
        key = feed.other.window(missing).key
        until = feed.arrives(missing)
        why = f"it waits for tick {key} of `{read.flow}`, which gives `{name}`"
    for name, landing in flow.landings.items():
        if landing.wait != "landed":
            continue
        found = latest(name)
        # So many ticks have a row at or after their window's end.
        landed = calendar.tick_of(found) if isinstance(found, datetime) else found or 0
        landed = max(0, landed)
        if landed < until:
            until, why = landed, _why_missing(calendar, landed, name, found, landing.path)
    waits = held() if any(one.removed == "hold" for one in flow.landings.values()) else None
    if waits is not None and waits.tick <= until:
        return ReadyTicks(calendar, waits.tick, waits.why, held=True)
    return ReadyTicks(calendar, until, why)


def _why_open(calendar: Calendar, tick: int) -> str:
    if calendar.count is not None and tick >= calendar.count:
        return f"the flow ends with tick {calendar.window(calendar.count - 1).key}"
    late = f", and the tick may run {calendar.delay} later" if calendar.delay else ""
    return f"its window ends at {calendar.shown(calendar.window(tick).end)}{late}"


def _why_missing(
    calendar: Calendar, tick: int, name: str, found: int | datetime | None, path: str
) -> str:
    end = calendar.window(tick).end
    if found is None:
        return f"it waits for `{name}`: no row has landed at {path}"
    if isinstance(found, datetime):
        return (
            f"it waits for a row of `{name}` at or after {calendar.shown(end)}; the last one is of "
            f"{calendar.shown(found)}"
        )
    return f"it waits for a row of `{name}` of a later tick than {tick}; the last one is of {found}"


def held_by(flow: FlowAsset, seen: Mapping[str, LandingView], tick: int) -> HeldTick | None:
    """The reason why a tick is held, by what was seen in the landings; None: it is not."""
    holding = {name for name, landing in flow.landings.items() if landing.removed == "hold"}
    gone = {
        name: found
        for name, one in seen.items()
        if name in holding and (found := noticed(flow.ticks.calendar, {}, one.changed)).changed
    }
    return HeldTick(tick, _why(flow, gone)) if gone else None


def refuse_held(flow: FlowAsset, seen: Mapping[str, LandingView], tick: int) -> None:
    """Refuses a tick while rows are gone.

    Raises:
        TransientError: it goes on once they are back (code `state`).
    """
    waits = held_by(flow, seen, tick)
    if waits is not None:
        window = flow.ticks.calendar.window(tick)
        raise may_not_run(window, waits.why, "land them again, or decide")


def _why(flow: FlowAsset, gone: Mapping[str, LateArrivals]) -> str:
    listed = "; ".join(f"`{name}`: {one.says_changed}" for name, one in gone.items())
    first = min(one.first for one in gone.values())
    return (
        f"it waits for rows that committed ticks have read and that are gone: {listed}; it goes "
        f"on when they are back, or after `hydrotick accept {flow.name}` (these ticks stay as they "
        f"were read) or `hydrotick correct {flow.name} --from {first}` (they are computed again "
        "without them)"
    )
