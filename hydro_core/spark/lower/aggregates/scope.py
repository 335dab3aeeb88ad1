"""Of which rows an aggregate is: those of a group, or for each row those of a window around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import TICK


@dataclass(frozen=True, slots=True)
class AggregateScope:
    """How an aggregate function of Spark becomes a column."""

    of: Callable[[Column], Column]
    tick: Callable[[], Column]
    """The tick of its rows."""
    counts_different: bool = True
    """Whether Spark's function of different values can be asked."""


GROUP = AggregateScope(lambda aggregate: aggregate, lambda: F.max(TICK))
"""The rows of a group."""
