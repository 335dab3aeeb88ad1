"""Outputs that are tables, brought to a commit by executors: too much changes for one process.

They tell by which rows the table and the output differ. Where these are few after all, they are
merged as those of a small tick are. Else executors write the rows that come, or, where rows go,
too, all that the output has by then; and the table takes the files over in one version.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from hydro_core.plan.tick_plan import Kind
from hydro_core.settings import ROWS_AT_ONCE
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.parquet import spark_name, write_parquet
from hydro_core.spark.frames.relation import expanded
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.store.outputs.differing import net, signed
from hydro_core.spark.store.outputs.net_changes import NetChanges
from hydro_core.spark.store.snapshot_frame import frame_as_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hydro_core.spark.store.ledger.commit import Commit
    from hydro_core.spark.store.outputs.published import PublishedTable
    from hydro_core.spark.store.schema import TableSpec
    from hydro_core.spark.store.store import Store
    from hydro_core.storage.remote import DataPlace


@dataclass(frozen=True, slots=True)
class LargerTables:
    """What executors do for the tables of a pipeline."""

    held: int
    """So many rows this process holds at once."""
    session: Callable[[], SparkSession]
    """Gives the Spark that runs them."""

    def is_large(self, spec: TableSpec, rows: int) -> bool:
        """Whether so many rows of an output are theirs; what has no type is not known to Spark."""
        return rows > self.held and not spec.has_unknown

    def add(self, table: PublishedTable, store: Store, commit: Commit, first: int) -> bool:
        """Adds what ticks from one on have changed; gives whether that could be done."""
        spec, spark = table.spec, self.session()
        frame = store.frame(spark, spec.name, first, commit.last)
        if frame is None or not (spec.is_log or spec.kind is Kind.H):
            return False
        if not spec.is_log:
            self._write(table, frame, commit, "append")
            return True
        rows, by = signed(None, frame, table.names, spec.count_column)
        if rows is None:
            return False
        changes = net(rows, by)
        few = self._few(changes, by)
        if few is not None:
            return table.apply(few.typed(table.schema), commit)
        if changes.where(F.col(by) < 0).limit(1).count():
            self._replace(table, store, commit)
        else:
            self._write(table, expanded(changes, by), commit, "append")
        return True

    def restate(self, table: PublishedTable, store: Store, commit: Commit) -> None:
        """Makes it hold the rows of the output and no others: by what differs, if that is less."""
        there = table.files_of_ours()
        if there is not None:
            before = _of_files(self.session(), there, table)
            rows, by = signed(before, self._now(table, store, commit), table.names)
            few = None if rows is None else self._few(net(rows, by), by)
            if few is not None and table.apply(few.typed(table.schema), commit):
                return
        self._replace(table, store, commit)

    def _few(self, changes: DataFrame, by: str) -> NetChanges | None:
        """Changes that are not many, in this process."""
        most = min(self.held, ROWS_AT_ONCE)
        found = changes.limit(most + 1).toArrow()
        if found.num_rows > most:
            return None
        rows = found.drop_columns([by])
        return NetChanges(rows, found[by].to_numpy())

    def _replace(self, table: PublishedTable, store: Store, commit: Commit) -> None:
        self._write(table, self._now(table, store, commit), commit, "overwrite")

    def _now(self, table: PublishedTable, store: Store, commit: Commit) -> DataFrame | None:
        """The rows of the output as of a commit; None where there are none."""
        if commit.last < 0:
            return None
        return frame_as_of(store, self.session(), table.spec, commit.last)

    def _write(
        self,
        table: PublishedTable,
        frame: DataFrame | None,
        commit: Commit,
        mode: Literal["append", "overwrite"],
    ) -> None:
        table.made()
        if frame is None:
            table.take({}, commit, mode)
            return
        folder = table.path / f"part-{uuid.uuid4()}"
        rows = frame.select(*map(quoted, table.names))
        table.take(write_parquet(rows, folder, table.schema), commit, mode)


def _of_files(
    spark: SparkSession, files: Sequence[DataPlace], table: PublishedTable
) -> DataFrame | None:
    if not files:
        return None
    schema = StructType([StructField(name, spark_type(item)) for name, item in table.columns])
    return spark.read.schema(schema).parquet(*(spark_name(spark, file) for file in files))
