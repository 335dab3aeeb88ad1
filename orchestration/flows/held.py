"""A flow that waits while rows are gone from a landing that its committed ticks have read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hydro_core.project.flow_asset import FlowAsset, Landing

from .late_arrivals import LateArrivals, noticed
from .readiness import HeldTick, may_not_run

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals.landings import LandingView


def held_by(flow: FlowAsset, seen: Mapping[str, LandingView], tick: int) -> HeldTick | None:
    """What a tick waits for, by what was seen in the landings."""
    gone = {
        name: found
        for name, one in seen.items()
        if _holds(flow, name) and (found := noticed(flow.ticks.calendar, {}, one.changed)).changed
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


def _holds(flow: FlowAsset, name: str) -> bool:
    where = flow.inputs[name]
    return isinstance(where, Landing) and where.removed == "hold"


def _why(flow: FlowAsset, gone: Mapping[str, LateArrivals]) -> str:
    listed = "; ".join(f"`{name}`: {one.says_changed}" for name, one in gone.items())
    first = min(one.first for one in gone.values())
    return (
        f"it waits for rows that committed ticks have read and that are gone: {listed}; it goes "
        f"on when they are back, or after `hydrotick accept {flow.name}` (these ticks stay as they "
        f"were read) or `hydrotick correct {flow.name} --from {first}` (they are computed again "
        "without them)"
    )
