"""Runs a plan over a range of ticks: one pass, in which the tick is a column.

`run_range` starts no Spark job of its own where the plan has no cycles: it gives DataFrames, and the caller writes or
collects them, in one job or several.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.relation import Relation

Times = Mapping[int, tuple[datetime, datetime]]
"""Start and end of the ticks that have them."""


class Past(Protocol):
    """What earlier ranges left."""

    def rows(self, slot: StateSlot) -> DataFrame | None:
        """The committed rows `item, t[, ord]` of the slot as its mode says; None where there are none."""


@dataclass(frozen=True, slots=True)
class RangeResult:
    """What a range gives: all of it must be written or none."""

    outputs: Mapping[str, Relation]
    """By the outputs' names. Histories hold their past rows too: `Relation.new(first)` is what the range adds."""
    state: Mapping[str, DataFrame]
    """By the slots' ids, the rows `item, t[, ord]` that the range adds (APPEND) or leaves (LAST)."""


class NoPast:
    """Before the first tick there is nothing."""

    def rows(self, slot: StateSlot) -> DataFrame | None:
        """Nothing."""
        return None
