"""Batches from stored tables: the items that a state or an output has at each tick, as an input."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hydro_core.plan.bootstrap import Leaf
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.inputs.batches import Batch, batch_of
from hydro_core.spark.store.ledger.input_reads import InputRead
from hydro_core.spark.store.store import Store

_SMALL = 100_000


def stored_batches(
    store: Store, leaves: Mapping[str, Leaf], ticks: tuple[int, int], spark: SparkSession
) -> Mapping[str, Batch]:
    """The rows of tables in the ticks of a range, by the names of the inputs they stand for.

    Args:
        store: the tables that serve.
        leaves: the tables, by the inputs' names.
        ticks: the first and the last tick.
        spark: reads the tables that are not small.
    """
    return {name: _batch(store, leaf.table, ticks, spark, name) for name, leaf in leaves.items()}


def _batch(
    store: Store, table: str, ticks: tuple[int, int], spark: SparkSession, name: str
) -> Batch:
    spec = store.tables[table].spec
    files = [file for file in store.tables[table].files() if file.may_hold(*ticks)]
    if sum(file.rows or 0 for file in files) <= min(_SMALL, store.held_rows):
        rows = store.arrow(table, *ticks)
        read = InputRead(name, rows.num_rows, table)
        if spec.role == "output":
            return batch_of(name, rows, spec.item, spec.tick, read)
        return Batch(rows.select([ITEM, TICK]), spec.item, read)
    frame = store.frame(spark, table, *ticks)
    read = InputRead(name, None, table)
    if frame is None:
        raise AssertionError(f"{table} has files without rows")
    if spec.role == "output":
        return batch_of(name, frame, spec.item, spec.tick, read)
    return Batch(frame.select(F.col(ITEM), F.col(TICK)), spec.item, read)
