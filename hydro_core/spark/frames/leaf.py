"""Items and Arrow tables as DataFrames: once, or as leaves of plans that run for many ticks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from hydro_core.settings import MEBIBYTE
from hydro_core.spark.frames.column_names import ITEM, TICK, quoted
from hydro_core.spark.frames.types import rows_type
from hydro_core.spark.session.session import has_few_rows
from hydro_core.types.arrow import arrow_type, to_arrow
from hydro_core.types.item import ItemType

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


# Few rows: what Spark does around them is all that they cost, so it is given little to do.
#
# In a session for few rows everything stands in one partition. There a join, a grouping or a
# window finds its rows together as they come: no exchange is planned, and all results of a range
# are one job of one task. Nothing is sent to other tasks, compiled to Java or planned anew while
# it runs.


def together(frame: DataFrame) -> DataFrame:
    """The frame, in one partition where its session is for few rows.

    Whatever reads data asks for it, and joins of which Spark forgets that they have one partition.
    """
    return frame.coalesce(1) if has_few_rows(frame.sparkSession) else frame


class InOneJob:
    """Several frames as one, whose rows are collected by one job each time."""

    def __init__(self, frames: Mapping[str, DataFrame]) -> None:
        self._columns = {name: frame.columns for name, frame in frames.items()}
        wide: DataFrame | None = None
        for i, (name, frame) in enumerate(frames.items()):
            columns = [F.col(quoted(c)).alias(f"{i}.{c}") for c in self._columns[name]]
            one = frame.select(F.lit(i).alias("of"), *columns)
            wide = one if wide is None else wide.unionByName(one, allowMissingColumns=True)
        self.frame = wide
        """All of them; None where there are none."""

    def collect(self) -> dict[str, pa.Table]:
        """The rows of each, as they are now."""
        if self.frame is None:
            return {}
        table = self.frame.toArrow()
        return {name: _part(table, i, of) for i, (name, of) in enumerate(self._columns.items())}


def _part(table: pa.Table, number: int, names: list[str]) -> pa.Table:
    """The rows of one frame out of the wide table."""
    rows = table.filter(pc.field("of") == number).select([f"{number}.{name}" for name in names])
    # Made anew, so that every column may hold nulls whatever Spark knows of it.
    return pa.Table.from_arrays(rows.columns, names=names)


# Arrow tables as DataFrames, without the loss of rows that follow an empty chunk.


def table_frame(
    spark: SparkSession, table: pa.Table, schema: StructType | None = None
) -> DataFrame:
    """The rows of a table.

    Spark ends at an empty chunk, but for a first one, and passes over all rows behind it: what is
    read of several files has such chunks. So each column is one chunk. A table without any array is
    what Spark refuses. Without a schema a timestamp that has no zone stays one that has none.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    whole = table.combine_chunks() if table.num_rows else table.schema.empty_table()
    if schema is None:
        schema = from_arrow_schema(whole.schema, prefer_timestamp_ntz=True)
    return spark.createDataFrame(whole, schema)


# Items as DataFrames: once, or as leaves of plans, whose rows are given anew for each job.
#
# Spark plans a frame once, and runs what it planned as often as it is asked for its rows. A leaf
# is a partition in the driver, which every job reads again: so other rows in it are all that a
# tick needs whose plan is there. A partition's rows may be set in Spark; PySpark has no word for
# it.


_STAY = 1_000
"""More rows than these are not kept until the next job."""

_IN_A_MESSAGE = MEBIBYTE
"""More bytes than these reach the JVM by a file: a message is a line of text, and copied often."""


def frame_of(spark: SparkSession, items: Iterable[tuple[int, Any]], item: ItemType) -> DataFrame:
    """The DataFrame (item, t) of pairs (tick, item); the items conform to the type."""
    pairs = list(items)
    table = pa.table(
        {
            ITEM: to_arrow([x for _, x in pairs], item),
            TICK: pa.array([t for t, _ in pairs], pa.int64()),
        }
    )
    schema = rows_type(item, nullable=any(x is None for _, x in pairs))
    return together(table_frame(spark, table, schema))


def item_leaf(spark: SparkSession, item: ItemType) -> PlanLeaf:
    """A leaf of rows (item, t)."""
    arrow = pa.schema([(ITEM, arrow_type(item)), (TICK, pa.int64())])
    return PlanLeaf(spark, rows_type(item), arrow)


class PlanLeaf:
    """A frame in one partition, at first without rows."""

    def __init__(
        self, spark: SparkSession, schema: spark_types.StructType, arrow: pa.Schema
    ) -> None:
        """Makes it.

        Args:
            spark: the session of the plan.
            schema: the columns of the frame.
            arrow: the same as they are given.
        """
        # What Spark offers Python copies rows into a plan; here the plan is to outlive them.
        self._java: Any = spark._jsparkSession  # noqa: SLF001
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
        context: Any = spark.sparkContext._jsc  # noqa: SLF001
        self._single, self._decoded = jvm.scala.collection.Iterator.single, jvm.PythonSQLUtils
        self._spark, self._columns, self._arrow = spark, schema, arrow
        self._schema, self._count = schema.json(), 0
        rdd = self._partition_in_the_driver(jvm, context)
        self._partition = rdd.partitions()[0]
        self._nothing = self._partition.values()
        rows = self._java.internalCreateDataFrame(
            rdd, self._java.parseDataType(self._schema), False
        )
        self.frame = together(DataFrame(rows, spark))
        """What is planned with it reads the rows that it has when a job runs."""

    @staticmethod
    def _partition_in_the_driver(jvm: Any, context: Any) -> Any:
        """An RDD of one partition, without rows.

        It says where its rows lie. For a task Spark asks all that it is made of until one says so:
        of a large plan that would take a second.
        """
        tag = context.parallelize(jvm.java.util.ArrayList(), 1).rdd().elementClassTag()
        none = jvm.PythonUtils.toSeq(jvm.java.util.ArrayList())
        place = jvm.java.util.ArrayList()
        place.add("driver")
        places = jvm.java.util.HashMap()
        places.put(0, jvm.PythonUtils.toSeq(place))
        return jvm.org.apache.spark.rdd.ParallelCollectionRDD(
            context.sc(), none, 1, jvm.PythonUtils.toScalaMap(places), tag
        )

    def give(self, rows: pa.Table | None) -> None:
        """Exchanges the rows; None: there are none."""
        count = 0 if rows is None else rows.num_rows
        if rows is not None and count:
            self._set(self._rows(rows))
        elif self._count:
            self._set(self._nothing)
        self._count = count

    def done(self) -> None:
        """Gives up rows that are many: no job runs until there are others."""
        if self._count > _STAY:
            self.give(None)

    def _rows(self, rows: pa.Table) -> Any:
        made: Any
        rows = rows.cast(self._arrow).combine_chunks()
        if rows.nbytes > _IN_A_MESSAGE:
            made = table_frame(self._spark, rows, self._columns)._jdf  # noqa: SLF001
        else:
            [batch] = rows.to_batches()
            message = self._single(batch.serialize().to_pybytes())
            made = self._decoded.toDataFrame(message, self._schema, self._java)
        return made.queryExecution().logical().data()

    def _set(self, rows: Any) -> None:
        getattr(self._partition, "values_$eq")(rows)
