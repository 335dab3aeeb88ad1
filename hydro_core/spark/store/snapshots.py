"""Rows that a log of changes sums up to, in this process and in Spark."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from hydro_core.ir.graph import free_name
from hydro_core.plan.tick_plan import Kind
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.relation import expanded, exploded
from hydro_core.spark.store.schema import Int64s, TableSpec, comparable, stored
from hydro_core.types.arrow import from_arrow
from hydro_core.types.item import Array, ItemType, Row, Tuple
from hydro_core.types.values import canonical

if TYPE_CHECKING:
    from hydro_core.spark.store.store import Store


def snapshots(log: pa.Table, spec: TableSpec, ticks: Iterable[int]) -> pa.Table:
    """The rows that are there at each of these ticks, in ascending order, with the tick.

    `log` has all changes up to the last of them, with the columns of the stored table.
    """
    ids, firsts = groups(log, spec.items)
    at, by = _numbers(log[spec.tick]), _numbers(log[spec.count_column])
    order = np.argsort(at, kind="stable")
    at, ids, by = at[order], ids[order], by[order]
    counts = np.zeros(len(firsts), dtype=np.int64)
    done, parts = 0, [spec.plain_schema.empty_table()]
    for tick in ticks:
        end = int(np.searchsorted(at, tick, side="right"))
        np.add.at(counts, ids[done:end], by[done:end])
        done = end
        there = np.flatnonzero(counts > 0)
        parts.append(
            _at(log.take(pa.array(np.repeat(firsts[there], counts[there]), pa.int64())), spec, tick)
        )
    return pa.concat_tables(parts)


def summed(log: pa.Table, spec: TableSpec, tick: int) -> pa.Table:
    """The log with the changes up to a tick as one row for each item, at that tick."""
    old = _numbers(log[spec.tick]) <= tick
    firsts, counts = totals(log, spec.items, np.where(old, _numbers(log[spec.count_column]), 0))
    there = np.flatnonzero(counts)
    rows = _at(log.take(pa.array(firsts[there], pa.int64())), spec, tick)
    rows = rows.append_column(spec.count_column, pa.array(counts[there], pa.int64()))
    return pa.concat_tables([rows.select(log.column_names), log.filter(pa.array(~old))])


def _at(rows: pa.Table, spec: TableSpec, tick: int) -> pa.Table:
    """The rows without their counts, all of one tick."""
    columns = [
        pa.array([tick] * rows.num_rows, pa.int64()) if name == spec.tick else rows[name]
        for name in spec.plain_schema.names
    ]
    return pa.table(columns, schema=spec.plain_schema)


def totals(
    rows: pa.Table, columns: Iterable[tuple[str, ItemType]], counts: Int64s
) -> tuple[Int64s, Int64s]:
    """Of equal rows the place of one, and what their counts come to."""
    ids, firsts = groups(rows, columns)
    found = np.zeros(len(firsts), dtype=np.int64)
    np.add.at(found, ids, counts)
    return firsts, found


def groups(log: pa.Table, columns: Iterable[tuple[str, ItemType]]) -> tuple[Int64s, Int64s]:
    """A number for each row, the same for equal items; and for each number a row that has it."""
    ids = np.zeros(log.num_rows, dtype=np.int64)
    firsts = np.zeros(min(log.num_rows, 1), dtype=np.int64)
    for name, item in columns:
        for codes in _codes(log[name].combine_chunks(), stored(item)):
            both = ids * (int(codes.max(initial=0)) + 1) + codes
            _, firsts, ids = np.unique(both, return_index=True, return_inverse=True)
    return ids, firsts


def _codes(column: Any, item: ItemType) -> Iterator[Int64s]:
    """Int64s that are equal where the values are, for each part of a column."""
    match item:
        case Row() | Tuple():
            types: Sequence[ItemType] = (
                [f.type for f in item.fields] if isinstance(item, Row) else item.fields
            )
            yield _numbers(column.is_valid().cast(pa.int64()))
            for part, of in zip(column.flatten(), types, strict=True):
                yield from _codes(part, of)
        case Array():
            known: dict[Hashable, int] = {}
            values = map(canonical, from_arrow(column, item))
            yield _numbers(pa.array([known.setdefault(v, len(known)) for v in values], pa.int64()))
        case _:
            encoded: Any = pc.dictionary_encode(comparable(column), null_encoding="encode")
            yield _numbers(encoded.indices.cast(pa.int64()))


def _numbers(column: Any) -> Int64s:
    plain = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    found: Int64s = plain.to_numpy(zero_copy_only=False)
    return found


def shown_frame(
    store: Store, spark: SparkSession, spec: TableSpec, ticks: tuple[int, int]
) -> DataFrame | None:
    """The rows that a table has at each of the ticks from the first to the last, with the tick;
    None where it has none.
    """
    first, last = ticks
    frame = store.frame(spark, spec.name, 0 if spec.is_log else first, last)
    if frame is None or not spec.is_log:
        return frame
    return snapshot_frame(frame, spec, first, last)


def frame_as_of(store: Store, spark: SparkSession, spec: TableSpec, last: int) -> DataFrame | None:
    """The rows that a table has as of a tick, a history those of all ticks; None: none."""
    every = spec.kind is not Kind.E and not spec.is_log
    return shown_frame(store, spark, spec, (0 if every else last, last))


def snapshot_frame(log: DataFrame, spec: TableSpec, first: int, last: int) -> DataFrame:
    """The rows that are there at each of the ticks `first` to `last`, with the tick.

    `log` has all changes up to `last`.
    """
    tick, count = spec.tick, spec.count_column
    names = [quoted(name) for name, _ in spec.items]
    # What came before the first of these ticks is there at it.
    at = F.greatest(F.col(tick), F.lit(first)).cast("long").alias(tick)
    changes = log.select(at, *names, count).groupBy(*names, tick).agg(F.sum(count).alias(count))
    in_time = Window.partitionBy(*names).orderBy(tick)
    until = _free(spec)
    next_change = F.coalesce(F.lead(tick).over(in_time), F.lit(last + 1).cast("long"))
    there = changes.select(
        tick, *names, F.sum(count).over(in_time).alias(count), next_change.alias(until)
    ).where(F.col(count) > 0)
    ticks = F.explode(F.sequence(F.col(tick), F.col(until) - 1)).alias(tick)
    kept: list[str | Column] = [ticks, *names, count]
    return expanded(exploded(there, kept, reads=(tick, until)), count)


def _free(spec: TableSpec) -> str:
    """A name that no column has; Spark does not tell names apart by case."""
    return free_name("until", {name.lower() for name, _ in spec.columns})
