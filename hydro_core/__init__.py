"""The language, its reference meaning, its optimizer and its Spark engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hydro_core import agg, over
    from hydro_core.flow import Flow
    from hydro_core.lang.flow import Stream
    from hydro_core.lang.methods import typed
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
    "Flow": "hydro_core.flow",
    "Stream": "hydro_core.lang.flow",
    "typed": "hydro_core.lang.methods",
}


def __getattr__(name: str) -> Any:
    # Nothing is imported before it is asked for: `hydro_core.types` must not bring the whole
    # language along.
    if name in ("agg", "fn", "over"):
        return import_module(f"hydro_core.{name}")
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, "hydro_core.project.flow_asset")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
