"""The language, its reference meaning, its optimizer and its Spark engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hydro_core import agg, over
    from hydro_core.flow import Flow
    from hydro_core.lang.flow import Stream
    from hydro_core.lang.values import typed
    from hydro_core.project.flow_asset import (
        Expect,
        FlowAsset,
        FlowOutput,
        FlowSpark,
        KeptOutput,
        Landing,
        OnError,
        Shards,
        Ticks,
    )

__all__ = [
    "Expect",
    "Flow",
    "FlowAsset",
    "FlowOutput",
    "FlowSpark",
    "KeptOutput",
    "Landing",
    "OnError",
    "Shards",
    "Stream",
    "Ticks",
    "agg",
    "fn",
    "over",
    "typed",
]

_HOMES = {
    "Expect": "hydro_core.project.flow_asset",
    "Flow": "hydro_core.flow",
    "FlowAsset": "hydro_core.project.flow_asset",
    "FlowSpark": "hydro_core.project.flow_asset",
    "FlowOutput": "hydro_core.project.flow_asset",
    "KeptOutput": "hydro_core.project.flow_asset",
    "Landing": "hydro_core.project.flow_asset",
    "OnError": "hydro_core.project.flow_asset",
    "Shards": "hydro_core.project.flow_asset",
    "Stream": "hydro_core.lang.flow",
    "Ticks": "hydro_core.project.flow_asset",
    "typed": "hydro_core.lang.values",
}


def __getattr__(name: str) -> Any:
    # Nothing is imported before it is asked for: `hydro_core.types` must not bring the whole
    # language along.
    if name in ("agg", "fn", "over"):
        return import_module(f"hydro_core.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
