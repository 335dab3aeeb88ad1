"""What a tick gives, from Spark to where it can be committed: as Arrow if small, as files if large.

A small result is collected, to be written through delta-rs in some milliseconds; of a large one
Spark writes Parquet files that no table names yet. Which way is decided before the job by what the
last tick gave; a job that was thought small but is not runs again as a large one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from hydro_core.files.parquet import files_as_dataset, opened_parquet
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.leaf import InOneJob, table_frame
from hydro_core.spark.frames.materialize import Materialize, checkpointed, exactly, loosely
from hydro_core.spark.frames.parquet import spark_name, write_parquet
from hydro_core.spark.frames.relation import COUNT, ITEM, ORD, TICK, Kind, Relation, consolidated
from hydro_core.spark.lower.changelogs import as_changes, changes_of
from hydro_core.spark.store.delta.table import STAGED, StoredTable, pieces_or_empty
from hydro_core.spark.store.schema import TableSpec, flattened
from hydro_core.storage.remote import DataPlace
from hydro_core.types.item import Row, Tuple

_JOBS = 2
"""Jobs at once: each has parts in which a single core is at work, or none."""

_FEW_PARTITIONS = 8
"""What so many partitions give at most is held at once."""

_ROWS_OF_A_PARTITION = 1 << 33
"""`monotonically_increasing_id` counts within a partition up to here."""


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Rows of one table that no commit names: what a tick adds, or what there is at some ticks.

    What executors wrote is not brought together here: whoever looks at it does so piece by piece.
    """

    spec: TableSpec
    rows: int
    table: pa.Table | None
    """The rows themselves, where they are few."""
    files: tuple[DataPlace, ...] = ()
    """The Parquet files that hold them, where they are many."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of their columns."""
        return self.spec.arrow_schema.names

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """All rows, with these columns; at least one piece, if one without rows."""
        if self.table is None:
            return self._pieces(columns, None)
        return iter([self.table.select(list(self.columns if columns is None else columns))])

    def at(self, tick: int, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows of one tick, in the order in which they are stored."""
        name = self.spec.tick
        if self.table is None:
            return self._pieces(columns, pc.field(name) == tick)
        there = pc.equal(self.table[name], pa.scalar(tick))
        return replace(self, table=self.table.filter(there)).pieces(columns)

    def _pieces(
        self, columns: Sequence[str] | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        rows = files_as_dataset(self.files, self.spec.arrow_schema)
        return pieces_or_empty(rows, columns, where)

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table with the columns of the stored table."""
        if self.table is not None:
            return self.table
        parts = [opened_parquet(file).read() for file in self.files]
        schema = self.spec.arrow_schema
        return pa.concat_tables([part.cast(schema) for part in parts] or [schema.empty_table()])

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows as a DataFrame with the columns of the stored table."""
        if self.table is not None or not self.files:
            return table_frame(spark, self.arrow(), self.spec.spark_schema)
        paths = [spark_name(spark, file) for file in self.files]
        return spark.read.schema(self.spec.spark_schema).parquet(*paths)

    def discard(self) -> None:
        """Removes what was written."""
        for file in self.files:
            file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class PendingRows:
    """The rows of one table as Spark would compute them."""

    table: StoredTable
    frame: DataFrame
    small: bool
    """Whether few rows are expected."""


def output_frame(relation: Relation, spec: TableSpec, first: int, last: int) -> DataFrame:
    """What a range adds to the table of an output, with its columns."""
    if spec.is_log:
        changes = exactly(changes_of(relation, first).frame, relation.item)
        rows = as_changes(relation.item, consolidated(changes))
    else:
        rows = relation.new(first) if spec.kind is Kind.H else relation.events(first, last)
    item = F.col(ITEM)
    parts = isinstance(spec.item, Tuple | Row)
    names = [name for name, _ in flattened(spec.item)]
    columns = [item.getField(name).alias(name) if parts else item for name in names]
    if spec.place:
        within = Window.partitionBy(TICK).orderBy(ORD)
        place = (F.row_number().over(within) - 1).cast("long")
        columns.append(place.alias(spec.place))
    if spec.is_log:
        columns.append(F.col(COUNT).alias(spec.count_column))
    return rows.frame.select(F.col(TICK).cast("long").alias(spec.tick), *columns)


def write_all(
    pending: Mapping[str, PendingRows], bound: int, ticks: tuple[int, int]
) -> Mapping[str, WrittenRows]:
    """Runs the jobs of a tick, several at once; if one fails, nothing of the others is left."""

    def write(one: PendingRows) -> WrittenRows:
        return _write(one, bound, ticks)

    if not pending:
        return {}
    done: dict[str, WrittenRows] = {}
    with ThreadPoolExecutor(_JOBS, thread_name_prefix="hydrotick-job") as pool:
        running = {name: pool.submit(write, one) for name, one in pending.items()}
    failure: BaseException | None = None
    for name, future in running.items():
        error = future.exception()
        failure = failure or error
        if error is None:
            done[name] = future.result()
    if failure is not None:
        for written in done.values():
            written.discard()
        raise failure
    return done


def collect_all(pending: Mapping[str, PendingRows], bound: int) -> Mapping[str, WrittenRows] | None:
    """What a range of few rows gives, by one job; None where a table gets more than `bound`."""
    specs = {name: one.table.spec for name, one in pending.items()}
    return few_written(InOneJob(first_rows_of(pending, bound)).collect(), specs, bound)


def first_rows_of(pending: Mapping[str, PendingRows], bound: int) -> Mapping[str, DataFrame]:
    """What each table gets; where it gets more than `bound` rows, one more than these."""
    return {name: first_rows(_columns(one), bound) for name, one in pending.items()}


def few_written(
    tables: Mapping[str, pa.Table], specs: Mapping[str, TableSpec], bound: int
) -> Mapping[str, WrittenRows] | None:
    """What was collected for tables, as their columns; None where one gets more than `bound`."""
    if any(rows.num_rows > bound for rows in tables.values()):
        return None
    return {
        name: WrittenRows(specs[name], rows.num_rows, rows.cast(specs[name].arrow_schema))
        for name, rows in tables.items()
    }


def few_rows(frame: DataFrame, bound: int) -> pa.Table | None:
    """The rows, or None where there are more than `bound`: one job, on few cores without a shuffle.

    Of more, each partition gives so many; where these are many, a task counts them first.
    """
    rows = first_rows(frame, bound)
    if frame.sparkSession.sparkContext.defaultParallelism > _FEW_PARTITIONS:
        rows = rows.limit(bound + 1)
    found = rows.toArrow()
    return found if found.num_rows <= bound else None


def first_rows(frame: DataFrame, bound: int) -> DataFrame:
    """So many rows of each partition that there is one more than `bound` if there can be."""
    within = F.monotonically_increasing_id() % F.lit(_ROWS_OF_A_PARTITION)
    return loosely(frame).where(within <= F.lit(bound))


def materialized_within(bound: int) -> Materialize:
    """Streams that are computed at once pass through the driver while they have few rows."""

    def materialize(frame: DataFrame) -> tuple[DataFrame, int]:
        rows = few_rows(frame, bound)
        if rows is None:
            return checkpointed(frame)
        return table_frame(frame.sparkSession, rows, frame.schema), rows.num_rows

    return materialize


def _write(one: PendingRows, bound: int, ticks: tuple[int, int]) -> WrittenRows:
    spec, frame = one.table.spec, _columns(one)
    if one.small:
        rows = few_rows(frame, bound)
        if rows is not None:
            return WrittenRows(spec, rows.num_rows, rows.cast(spec.arrow_schema))
    return write_files(one.table, frame, ticks)


def _columns(one: PendingRows) -> DataFrame:
    """The columns of the stored table."""
    return one.frame.select(*[F.col(quoted(name)) for name, _ in one.table.spec.columns])


def write_files(
    table: StoredTable, frame: DataFrame, ticks: tuple[int, int], of: TableSpec | None = None
) -> WrittenRows:
    """Lets executors write rows of some ticks below a table's directory; the table has none of them
    yet.

    Args:
        table: the table.
        frame: the rows.
        ticks: the first and the last tick.
        of: what the rows are; None: rows of the table.
    """
    first, last = ticks
    spec = of or table.spec
    if spec.has_unknown:
        frame = _typed(frame, spec.spark_schema)
    staged = table.path / STAGED / f"{first}-{last}-{uuid.uuid4().hex[:12]}"
    is_state = spec.role == "state"
    rows = write_parquet(frame, staged, spec.arrow_schema, in_small_groups=is_state)
    for file in (file for file, count in rows.items() if count == 0):
        file.unlink()
    files = tuple(file for file, count in rows.items() if count)
    return WrittenRows(spec, sum(rows.values()), None, files)


def _typed(frame: DataFrame, schema: spark_types.StructType) -> DataFrame:
    return frame.select(
        *[
            F.col(quoted(field.name)).cast(field.dataType).alias(field.name)
            for field in schema.fields
        ]
    )
