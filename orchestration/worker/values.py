"""What a worker is asked, as JSON and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow
from hydro_core.types.records import as_record, of_record

from ..openlineage.events import Parent
from ..runner.tick_request import TickRequest


def asked_json(asked: TickRequest) -> dict[str, Any]:
    """What is asked for, by the ticks' keys."""
    return {
        "asked": _spans(asked.asked),
        "also": _spans(asked.also),
        "corrected": asked.corrected,
        "parent": None if asked.parent is None else as_record(asked.parent),
    }


def asked_of(flow: FlowAsset, found: Mapping[str, Any]) -> TickRequest:
    """What is asked for of a flow.

    Raises:
        HydroError: a key is of no tick of the flow.
    """
    parent = of_record(Parent, found["parent"])
    asked, also = _windows(flow, found["asked"]), _windows(flow, found["also"])
    return TickRequest(asked, also, bool(found["corrected"]), parent)


def _spans(windows: Iterable[TickWindow]) -> list[list[str]]:
    """The ticks as ranges, by the keys of the first and the last of each."""
    found: list[list[TickWindow]] = []
    for window in sorted(windows, key=lambda window: window.tick):
        if found and window.tick == found[-1][1].tick + 1:
            found[-1][1] = window
        else:
            found.append([window, window])
    return [[first.key, last.key] for first, last in found]


def _windows(flow: FlowAsset, spans: Iterable[Sequence[str]]) -> frozenset[TickWindow]:
    calendar = flow.ticks.calendar
    return frozenset(
        calendar.window(tick)
        for first, last in spans
        for tick in range(calendar.window_of(first).tick, calendar.window_of(last).tick + 1)
    )
