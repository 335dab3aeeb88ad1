"""The rows of a range that Spark's workers read, as `landed_pieces` reads them here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.files.arrived import Arrived, refuse_misfit
from hydro_core.ticks.axis import Axis
from hydro_core.spark.files.frames import first_misfit, item_of, refuse_unread
from hydro_core.files.rows import (
    FILE,
    MOMENT,
    NUMBER,
    PLACE,
    PROBLEM,
    ROW,
    Wanted,
)
from hydro_core.spark.files.workers import read_in_workers
from hydro_core.spark.frames.column_names import TICK


def read_by_workers(
    session: SparkSession,
    arrived: Arrived,
    made: Wanted,
    axis: Axis | None,
    files: Sequence[Path],
) -> tuple[DataFrame, Counter[int]]:
    """The rows of the range as a DataFrame (item, t), and how many each tick has.

    Raises:
        DataError: as `read_here`.
    """
    columns = made.columns
    frame = read_in_workers(session, files, arrived.found.form, made)
    refuse_unread(arrived, frame, columns)
    tick = F.lit(0).cast("long") if axis is None else axis.number(F.col(NUMBER), F.col(MOMENT))
    rows = frame.withColumn(TICK, tick)
    if axis is not None:
        rows = rows.where(F.col(TICK).between(axis.first, axis.last))
    _refuse_misfits(arrived, rows, files, list(columns))
    counts = Counter(dict(map(tuple, rows.groupBy(TICK).count().collect())))
    return rows.select(item_of(arrived.item, columns), TICK), counts


def _refuse_misfits(
    arrived: Arrived, rows: DataFrame, files: Sequence[Path], columns: Sequence[str]
) -> None:
    told = first_misfit(rows, F.col(TICK))
    if told is not None:
        at = told["at"]
        where = (files[at[FILE]], at[ROW], columns[at[PLACE]])
        refuse_misfit(arrived, at[TICK], told[PROBLEM], where)
