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


@dataclass(slots=True)
class RowsTouched:
    """Stored rows that Spark was handed or has scanned, and rows that its operators gave."""

    read: int = 0
    made: int = 0


class RowCounter:
    """Counts the rows of what a Spark context runs."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark._jsparkSession.sparkContext()  # noqa: SLF001 - no face in Python
        self._jvm: Any = spark.sparkContext._jvm  # noqa: SLF001

    @contextmanager
    def counting(self) -> Iterator[RowsTouched]:
        """What is touched inside; the counts are there at its end."""
        found, runs = RowsTouched(), self._remembered()
        with mock.patch.object(store, "framed", _counted(store.framed, found)):
            # A plan that is kept takes its rows as tables.
            past = store.CommittedPast
            with (
                mock.patch.object(past, "arrow", _counted(past.arrow, found)),
                mock.patch.object(planned_rounds, "met_by", _counted(planned_rounds.met_by, found)),
                self._hearing(runs.listener().get()),
            ):
                yield found
        for run in _each(runs.executionsList()):
            for name, rows in _nodes(runs, run.executionId()):
                if name.startswith(_FILES):
                    found.read += rows
                elif not name.startswith(_HANDED):
                    found.made += rows

    def _remembered(self) -> Any:
        """What remembers all that is run while its listener hears of it.

        The one of the session forgets: it keeps a few executions, and its counts of a stage may get
        lost where another execution ends while the stage begins, which a second thread looks after.
        """
        conf = self._context.conf().clone()
        conf.set("spark.sql.ui.retainedExecutions", "100000")
        conf.set("spark.appStateStore.asyncTracking.enable", "false")
        spark, ui = self._jvm.org.apache.spark, self._jvm.org.apache.spark.sql.execution.ui
        kept = spark.status.ElementTrackingStore(spark.util.kvstore.InMemoryStore(), conf)
        heard = ui.SQLAppStatusListener(conf, kept, True)
        return ui.SQLAppStatusStore(kept, self._jvm.scala.Some(heard))

    @contextmanager
    def _hearing(self, listener: Any) -> Iterator[None]:
        """Whatever is run inside, and nothing else, is heard."""
        bus = self._context.listenerBus()
        bus.waitUntilEmpty()
        self._context.addSparkListener(listener)
        try:
            yield
            bus.waitUntilEmpty()
        finally:
            self._context.removeSparkListener(listener)


def _nodes(runs: Any, number: int) -> list[tuple[str, int]]:
    """The operators of an execution, with the rows that each gave."""
    counts, found = runs.executionMetrics(number), []
    for node in _each(runs.planGraph(number).allNodes()):
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
