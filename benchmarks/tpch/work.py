"""The rows that Spark's operators read and make, as Spark itself counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

_ROWS = "number of output rows"
_SCANS = ("Scan", "LocalTableScan", "FileScan", "BatchScan")


@dataclass(frozen=True, slots=True)
class RowsTouched:
    """Rows that scans have read, of files and of what was handed to Spark, and that all other
    operators have made of them.
    """

    read: int
    made: int


COUNTED = (("spark.sql.ui.retainedExecutions", "1000"),)
"""What a session needs, so that Spark remembers what it has run."""


class RowCounter:
    """Counts the rows of what a Spark context runs."""

    def __init__(self, spark: SparkSession) -> None:
        java: Any = spark._jsparkSession  # noqa: SLF001 - Spark's counts have no face in Python
        self._bus = java.sparkContext().listenerBus()
        self._store = java.sharedState().statusStore()
        self._next = 0
        self.since()

    def since(self) -> RowsTouched:
        """What has been touched since this was last asked, or since the counter was made."""
        self._bus.waitUntilEmpty()
        ran = [run.executionId() for run in _each(self._store.executionsList())]
        read = made = 0
        for number in ran:
            for name, rows in self._nodes(number) if number >= self._next else ():
                if name.startswith(_SCANS):
                    read += rows
                else:
                    made += rows
        self._next = max(ran, default=-1) + 1
        return RowsTouched(read, made)

    def _nodes(self, number: int) -> list[tuple[str, int]]:
        counts, found = self._store.executionMetrics(number), []
        for node in _each(self._store.planGraph(number).allNodes()):
            for metric in _each(node.metrics()):
                value = counts.get(metric.accumulatorId())
                if metric.name() == _ROWS and value.isDefined():
                    found.append((node.name(), int(str(value.get()).replace(",", ""))))
        return found


def _each(of: Any) -> list[Any]:
    """The items of a Scala collection."""
    return [of.apply(i) for i in range(of.size())]
