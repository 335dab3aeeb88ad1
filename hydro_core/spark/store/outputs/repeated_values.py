"""Values of a column that a tick of an output has more than once, told by executors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hydro_core.spark.frames.column_names import quoted

_COUNT = "n"


@dataclass(frozen=True, slots=True)
class RepeatedValues:
    """Values that are there more than once."""

    rows: int
    """How many rows have one of them."""
    some: tuple[tuple[int, Any], ...]
    """Some of them, each with its tick."""


def repeated(rows: DataFrame, tick: str, column: str, most: int) -> RepeatedValues:
    """The values of a column that stand in several rows of one tick; nulls are none.

    Args:
        rows: the rows of an output.
        tick: the column of the tick.
        column: the one whose values are compared.
        most: so many of them are told.
    """
    named = F.col(quoted(column))
    known = rows.where(named.isNotNull())
    counted = known.groupBy(F.col(quoted(tick)), named).agg(F.count(F.lit(1)).alias(_COUNT))
    several = counted.where(F.col(_COUNT) > 1)
    found = several.agg(F.sum(_COUNT)).collect()[0][0] or 0
    some = several.limit(most).toArrow().to_pylist() if found else []
    return RepeatedValues(int(found), tuple((row[tick], row[column]) for row in some))
