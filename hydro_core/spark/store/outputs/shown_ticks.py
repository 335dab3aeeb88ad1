"""The rows that a table has at some ticks: at hand where they are few, else as executors' files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from hydro_core.catalog.forms import Form

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hydro_core.spark.store.delta.write import WrittenRows
    from hydro_core.spark.store.schema import TableSpec
    from hydro_core.spark.store.store import Store


def shown_at(
    store: Store, spec: TableSpec, ticks: tuple[int, int], session: Callable[[], SparkSession]
) -> WrittenRows:
    """The rows that a table has at ticks; whoever is done with them has them discarded.

    Args:
        store: its tables.
        spec: the table.
        ticks: the first and the last tick.
        session: gives the Spark that is asked where the rows, or the changes that lead to them, are
            more than the store holds.
    """
    from hydro_core.spark.frames.column_names import quoted
    from hydro_core.spark.store.delta.write import WrittenRows, write_files
    from hydro_core.spark.store.snapshot_frame import shown_frame

    first, last = ticks
    begin = 0 if spec.is_log else first
    most = store.rows_within(spec.name, begin, last) * (last - first + 1 if spec.is_log else 1)
    # A log has no order; what is of no type is not known to Spark.
    at_hand = most <= store.held_rows or spec.has_unknown or (spec.is_log and spec.ordered)
    plain = replace(spec, form=Form.GROWTH)
    frame = None if at_hand else shown_frame(store, session(), spec, ticks)
    if frame is None:
        rows = store.rows(spec.name, first, last)
        return WrittenRows(plain, rows.num_rows, rows)
    columns = [quoted(name) for name, _ in plain.columns]
    return write_files(store.tables[spec.name], frame.select(*columns), ticks, plain)


@contextmanager
def shown_within(
    store: Store, spec: TableSpec, ticks: tuple[int, int], session: Callable[[], SparkSession]
) -> Iterator[WrittenRows]:
    """The same within a block, behind which they are discarded."""
    shown = shown_at(store, spec, ticks, session)
    try:
        yield shown
    finally:
        shown.discard()
