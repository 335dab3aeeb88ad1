"""Few rows: what Spark does around them is all that they cost, so it is given little to do.

In a session for few rows everything stands in one partition. There a join, a grouping or a window
finds its rows together as they come: no exchange is planned, and all results of a range are one
job of one task. Nothing is sent to other tasks, compiled to Java or planned anew while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.session.sessions import has_few_rows


def together(frame: DataFrame) -> DataFrame:
    """The frame, in one partition where its session is for few rows.

    Whatever reads data asks for it, and joins of which Spark forgets that they have one partition.
    """
    return frame.coalesce(1) if has_few_rows(frame.sparkSession) else frame


class InOneJob:
    """Several frames as one, whose rows are collected by one job each time."""

    def __init__(self, frames: Mapping[str, DataFrame]) -> None:
        self._columns = {name: frame.columns for name, frame in frames.items()}
        wide: DataFrame | None = None
        for i, (name, frame) in enumerate(frames.items()):
            columns = [F.col(quoted(c)).alias(f"{i}.{c}") for c in self._columns[name]]
            one = frame.select(F.lit(i).alias("of"), *columns)
            wide = one if wide is None else wide.unionByName(one, allowMissingColumns=True)
        self.frame = wide
        """All of them; None where there are none."""

    def collect(self) -> dict[str, pa.Table]:
        """The rows of each, as they are now."""
        if self.frame is None:
            return {}
        table = self.frame.toArrow()
        return {name: _part(table, i, of) for i, (name, of) in enumerate(self._columns.items())}


def _part(table: pa.Table, number: int, names: list[str]) -> pa.Table:
    """The rows of one frame out of the wide table."""
    rows = table.filter(pc.field("of") == number).select([f"{number}.{name}" for name in names])
    # Made anew, so that every column may hold nulls whatever Spark knows of it.
    return pa.Table.from_arrays(rows.columns, names=names)
