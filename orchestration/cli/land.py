"""`hydrotick land`: the data that a flow brings with it."""

from __future__ import annotations

from hydro_core.cli.command import Asked
from hydro_core.errors import DataError

from ..project.console import Console, asked_flow


def land(options: Asked) -> int:
    flow, settings = asked_flow(options)
    if flow.land is None:
        message = f"`{flow.name}` brings no data with it"
        cure = f"what its inputs read is to land below {settings.landing_store or settings.landing}"
        raise DataError.of("config", message, help=cure)
    if settings.landing_store is not None:
        message = f"the data of `{flow.name}` cannot be landed in {settings.landing_store}"
        cure = "a store is only read: put the data there, or take `landing` out of `[paths]`"
        raise DataError.of("config", message, help=cure)
    flow.land(settings.landing)
    told = {"flow": flow.name, "landing": str(settings.landing)}
    Console(options).give(told, f"{flow.name}: landed below {settings.landing}")
    return 0
