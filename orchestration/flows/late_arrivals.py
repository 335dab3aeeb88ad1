"""Reports of late rows, and of committed ticks whose rows were changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import Calendar, TickWindow, span

if TYPE_CHECKING:
    from hydro_core.spark.inputs.batches import Batch
    from hydro_core.spark.store.ledger.records import ChangedRange, Commit, InputRead


_NAMED = 5
"""A sentence names so many ticks at most."""


@dataclass(frozen=True, slots=True)
class ChangedTicks:
    """Committed ticks, by their keys, whose rows in a landing are not what they were.

    So many rows were `removed`, and `added` in their place; None: that cannot be told.
    """

    first: str
    last: str
    removed: int | None = None
    added: int | None = None

    def __str__(self) -> str:
        ticks = span([self.first, self.last])
        if self.removed is None:
            return f"{ticks} (rewritten; which rows cannot be told)"
        added = f", {self.added:,} added" if self.added else ""
        return f"{ticks} ({self.removed:,} removed{added})"


@dataclass(frozen=True, slots=True)
class LateArrivals:
    """Late rows of an input by the keys of their ticks, and committed ticks that changed; and
    how many of its rows are from before the `start`, and so of no tick.
    """

    late: Mapping[str, int] = field(default_factory=dict)
    changed: tuple[ChangedTicks, ...] = ()
    early: int = 0

    @property
    def rows(self) -> int:
        return sum(self.late.values())

    @property
    def first(self) -> str:
        """The first tick that is concerned; empty where none is."""
        return min([*self.late, *(change.first for change in self.changed)], default="")

    @property
    def says_late(self) -> str:
        """The late rows, in words."""
        if len(self.late) == 1:
            return f"{self.rows:,} row(s) of {next(iter(self.late))}"
        return f"{self.rows:,} rows of {_listed(f'{k} ({n:,})' for k, n in self.late.items())}"

    @property
    def says_changed(self) -> str:
        """The changed ticks, in words."""
        return _listed(map(str, self.changed))

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata for the UI."""
        return {
            **({"late rows": self.rows, "late rows are of": self.says_late} if self.late else {}),
            **({"changed ticks": self.says_changed} if self.changed else {}),
            **({"rows before the start": self.early} if self.early else {}),
        }


UNCHANGED = LateArrivals()


def noticed(
    calendar: Calendar, late: Mapping[int, int], changed: Iterable[ChangedRange], early: int = 0
) -> LateArrivals:
    """A report, with the ticks by their keys."""

    def key(tick: int) -> str:
        return calendar.window(tick).key

    return LateArrivals(
        {key(tick): rows for tick, rows in sorted(late.items())},
        tuple(ChangedTicks(key(c.first), key(c.last), c.removed, c.added) for c in changed),
        early,
    )


def noticed_at(
    calendar: Calendar, reads: Iterable[InputRead], *, is_first: bool
) -> dict[str, LateArrivals]:
    """The reports of a tick by input, of those where there is something to report.

    Args:
        reads: what its commit has read.
        is_first: whether it is the first tick of its commit: that is where late rows arrive.
    """
    found = {
        read.name: noticed(calendar, read.late, read.changed, read.early)
        if is_first
        else noticed(calendar, {}, read.changed)
        for read in reads
    }
    return {name: one for name, one in found.items() if one != UNCHANGED}


def _listed(parts: Iterable[str]) -> str:
    listed = list(parts)
    more = f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


KEPT = "events"
"""Where the ledger keeps it, among what it keeps for checks."""


@dataclass(frozen=True, slots=True)
class LateEvents:
    """So many `rows` are of events from before their tick's window, by `seconds` at most."""

    rows: int
    seconds: float

    def __str__(self) -> str:
        by = timedelta(seconds=round(self.seconds))
        return f"{self.rows:,} row(s) are of events from before it, the earliest by {by}"

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata for the UI, which draws numbers over the ticks."""
        return {"rows of earlier events": self.rows, "most seconds before": self.seconds}


EventsByTick = Mapping[int, Mapping[str, LateEvents]]
"""By tick, what is late of each input."""


def late_events(
    flow: FlowAsset, windows: Sequence[TickWindow], batches: Mapping[str, Batch]
) -> EventsByTick:
    """Late events by tick, of the inputs that name a column of their events' time."""
    asked = {n: of.event for n, of in flow.landings.items() if of.event is not None}
    found: dict[int, dict[str, LateEvents]] = {}
    if not asked:
        return found
    from hydro_core.spark.inputs.batches import event_lateness
    from hydro_core.ticks.tick_range import TickRange

    ticks = TickRange(windows[0].tick, windows[-1].tick, flow.ticks.calendar)
    for name, column in asked.items():
        late = event_lateness(batches[name], column, ticks) if name in batches else {}
        for tick, one in late.items():
            found.setdefault(tick, {})[name] = LateEvents(one.rows, one.most.total_seconds())
    return found


def as_kept(found: EventsByTick) -> dict[str, Any]:
    """The same as the ledger keeps it."""
    return {
        str(tick): {name: [one.rows, one.seconds] for name, one in of.items()}
        for tick, of in found.items()
    }


def kept_events(commit: Commit | None, tick: int) -> Mapping[str, LateEvents]:
    kept = {} if commit is None else commit.checks.get(KEPT, {})
    return {name: LateEvents(*one) for name, one in kept.get(str(tick), {}).items()}
