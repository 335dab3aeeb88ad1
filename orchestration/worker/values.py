"""Values as JSON and back: what a worker is asked, and how ticks ended.

Values are frozen dataclasses of texts, numbers, times, mappings and sequences. Their annotations
say how they are read, so nothing but such values can come of what another process has written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

from ..openlineage.events import Parent
from ..runner.tick_request import TickRequest


def as_json(value: Any) -> Any:
    """What `json` can write of a value."""
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Sequence | set | frozenset):
        return [as_json(one) for one in value]
    # A number of numpy's is one; whatever else a check has seen is shown as text.
    return as_json(value.item()) if hasattr(value, "item") else str(value)


def of_json(kind: Any, found: Any) -> Any:
    """The value of a type that `as_json` has made that of."""
    origin, of = get_origin(kind), get_args(kind)
    if found is None or kind is Any or origin is Literal:
        return found
    if isinstance(kind, type) and is_dataclass(kind):
        known = get_type_hints(kind)
        return kind(**{name: of_json(known[name], one) for name, one in found.items()})
    if origin in (Union, UnionType):
        return of_json(next(one for one in of if one is not NoneType), found)
    if origin is tuple and of[1:] != (...,):
        return tuple(of_json(one, part) for one, part in zip(of, found, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        return {key: of_json(of[1], one) for key, one in found.items()}
    if origin is not None:
        return tuple(of_json(of[0], one) for one in found)
    return datetime.fromisoformat(found) if kind is datetime else found


def asked_json(asked: TickRequest) -> dict[str, Any]:
    """What is asked for, by the ticks' keys."""
    return {
        "asked": _spans(asked.asked),
        "also": _spans(asked.also),
        "corrected": asked.corrected,
        "parent": None if asked.parent is None else as_json(asked.parent),
    }


def asked_of(flow: FlowAsset, found: Mapping[str, Any]) -> TickRequest:
    """What is asked for of a flow.

    Raises:
        HydroError: a key is of no tick of the flow.
    """
    parent = of_json(Parent, found["parent"])
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
