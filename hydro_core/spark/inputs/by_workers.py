"""Rows of landed files that Spark's workers read piece by piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.files.arrived import Arrived
from hydro_core.files.inputs import FileRow, refuse_misfit
from hydro_core.files.rows import WantedColumns
from hydro_core.spark.files.frames import first_misfit, item_of, refuse_unread, within
from hydro_core.spark.files.workers import read_in_workers
from hydro_core.spark.frames.column_names import TICK
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.tick_range import TickRange


def read_by_workers(
    session: SparkSession,
    arrived: Arrived,
    made: WantedColumns,
    files: Sequence[DataPlace],
    ticks: TickRange | None,
) -> tuple[DataFrame, Counter[int]]:
    """The rows (item, t) of the range, and how many each tick has; else as `read_by_pieces`."""
    frame = read_in_workers(session, files, arrived.found.form, made)
    refuse_unread(arrived, frame, files)
    rows = within(frame, ticks, without_tick=arrived.found.form.tolerant)
    misfit = first_misfit(rows, F.col(TICK))
    if misfit is not None:
        place = FileRow(files[misfit.file], misfit.row)
        column = list(made.columns)[misfit.place]
        refuse_misfit(arrived.file, misfit.tick, misfit.problem, place, column)
    counts = Counter(dict(map(tuple, rows.groupBy(TICK).count().collect())))
    return rows.select(item_of(arrived.item, made.columns), TICK), counts
