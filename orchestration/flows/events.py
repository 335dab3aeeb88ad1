"""How late the events of rows are, for people: where an input names the column of their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

if TYPE_CHECKING:
    from hydro_core.spark.inputs.batches import Batch
    from hydro_core.spark.store.ledger.commit import Commit

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
        """What the UI shows: it draws numbers over the ticks."""
        return {"rows of earlier events": self.rows, "most seconds before": self.seconds}


EventsByTick = Mapping[int, Mapping[str, LateEvents]]
"""By tick, what is late of each input."""


def late_events(
    flow: FlowAsset, windows: Sequence[TickWindow], batches: Mapping[str, Batch]
) -> EventsByTick:
    """What is late of the inputs that name a column of their events' time, by tick."""
    asked = {n: of.event for n, of in flow.landings.items() if of.event is not None}
    found: dict[int, dict[str, LateEvents]] = {}
    if not asked:
        return found
    from hydro_core.spark.inputs.event_times import event_lateness
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
