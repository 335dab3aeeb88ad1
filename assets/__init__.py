"""Pipelines that run as they stand: a folder each.

`ALL_ASSETS` is what the code location shows. Add a folder and its name here, and it is scheduled,
checked and backfillable.
"""

from __future__ import annotations

from assets.chat.asset import CHAT
from assets.flights.asset import FLIGHTS
from assets.spec import FlowAsset

ALL_ASSETS: tuple[FlowAsset, ...] = (FLIGHTS, CHAT)
