"""How late the rows of a batch are by the time of their event: by how much that lies before the
window of the tick with which they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.inputs.batches import Batch
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick_range import TickRange, micros, moment_of
from hydro_core.types.item import TIMESTAMP, ItemType, Row


@dataclass(frozen=True, slots=True)
class EventLateness:
    """Of the rows of a tick those whose event is of before its window, and the most by which."""

    rows: int
    most: timedelta


def event_lateness(batch: Batch, column: str, ticks: TickRange) -> Mapping[int, EventLateness]:
    """How late the rows of each tick are; ticks without such rows are left out.

    Args:
        batch: the rows.
        column: the one that has the time of the event: a date, or a timestamp.
        ticks: the ticks, which have windows.
    """
    of = batch.item.column(column) if isinstance(batch.item, Row) else None
    calendar = ticks.calendar
    if of is None or calendar is None:
        return {}
    if isinstance(batch.rows, pa.Table):
        return dict(_of_arrow(batch.rows, column, calendar))
    return dict(_of_spark(batch.rows, column, of, ticks.ticks, calendar))


def _of_arrow(
    rows: pa.Table, column: str, calendar: Calendar
) -> Iterator[tuple[int, EventLateness]]:
    items: Any = rows[ITEM].combine_chunks()
    events, tick_of = pc.struct_field(items, column), rows[TICK].combine_chunks()
    there = events.is_valid()
    events, tick_of = events.filter(there), tick_of.filter(there)
    every = TickRange(0, None, calendar)
    # What is of no tick is from before the first one: these have no end.
    early = pa.array(every.numbers(events) < tick_of.to_numpy()) if len(events) else None
    if early is None or not pc.any(early).as_py():
        return
    late = pa.table({TICK: tick_of.filter(early), ITEM: events.filter(early)})
    found = late.group_by(TICK).aggregate([(ITEM, "min"), (ITEM, "count")])
    for row in found.to_pylist():
        first = moment_of(row[f"{ITEM}_min"], calendar.zone)
        most = calendar.start_of(row[TICK]) - first
        yield row[TICK], EventLateness(row[f"{ITEM}_count"], most)


def _of_spark(
    rows: DataFrame, column: str, of: ItemType, ticks: range, calendar: Calendar
) -> Iterator[tuple[int, EventLateness]]:
    event = F.col(f"{ITEM}.{quoted(column)}").cast("timestamp")
    if of != TIMESTAMP and calendar.zone != "UTC":
        event = F.to_utc_timestamp(event, calendar.zone)
    starts = [F.lit(n) for t in ticks for n in (t, micros(calendar.start_of(t)))]
    by = F.create_map(*starts)[F.col(TICK)] - F.unix_micros(event)
    found = rows.select(TICK, by.alias("by")).where("by > 0")
    told = found.groupBy(TICK).agg(F.count(F.lit(1)).alias("n"), F.max("by").alias("by"))
    for row in told.collect():
        yield row[TICK], EventLateness(row["n"], timedelta(microseconds=row["by"]))
