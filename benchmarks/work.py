"""The rows of stored state that ticks read, and those that Spark's operators make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pyarrow as pa
from pyspark.sql import SparkSession

from hydro_core.spark.executor import planned_rounds
from hydro_core.spark.store import store

_ROWS = "number of output rows"
_FILES = ("Scan parquet", "FileScan", "BatchScan")
_HANDED = ("Scan", "LocalTableScan")

COUNTED = (("spark.sql.ui.retainedExecutions", "1000"),)
"""What a session needs, so that Spark remembers what it has run."""


@dataclass(slots=True)
class RowsTouched:
    """Stored rows that Spark was handed or has scanned, and rows that its operators gave."""

    read: int = 0
    made: int = 0


class RowCounter:
    """Counts the rows of what a Spark context runs."""

    def __init__(self, spark: SparkSession) -> None:
        java: Any = spark._jsparkSession  # noqa: SLF001 - Spark's counts have no face in Python
        self._bus = java.sparkContext().listenerBus()
        self._store = java.sharedState().statusStore()

    @contextmanager
    def counting(self) -> Iterator[RowsTouched]:
        """What is touched inside; the counts are there at its end."""
        found, before = RowsTouched(), set(self._runs())
        with mock.patch.object(store, "framed", _counted(store.framed, found)):
            # A plan that is kept takes its rows as tables.
            past = store.CommittedPast
            with (
                mock.patch.object(past, "arrow", _counted(past.arrow, found)),
                mock.patch.object(planned_rounds, "met_by", _counted(planned_rounds.met_by, found)),
            ):
                yield found
        for number in set(self._runs()) - before:
            for name, rows in self._nodes(number):
                if name.startswith(_FILES):
                    found.read += rows
                elif not name.startswith(_HANDED):
                    found.made += rows

    def _runs(self) -> list[int]:
        self._bus.waitUntilEmpty()
        return [run.executionId() for run in _each(self._store.executionsList())]

    def _nodes(self, number: int) -> list[tuple[str, int]]:
        counts, found = self._store.executionMetrics(number), []
        for node in _each(self._store.planGraph(number).allNodes()):
            for metric in _each(node.metrics()):
                value = counts.get(metric.accumulatorId())
                if metric.name() == _ROWS and value.isDefined():
                    found.append((node.name(), int(str(value.get()).replace(",", ""))))
        return found


def _counted(hand: Callable[..., Any], found: RowsTouched) -> Callable[..., Any]:
    """What hands stored rows on, and counts them: those that it is given, or gives."""

    def counted(*args: Any) -> Any:
        given = hand(*args)
        tables = [table for table in (*args, given) if isinstance(table, pa.Table)]
        found.read += sum(table.num_rows for table in tables)
        return given

    return counted


def _each(of: Any) -> list[Any]:
    """The items of a Scala collection."""
    return [of.apply(i) for i in range(of.size())]
