"""Items as DataFrames: once, or as leaves of plans, whose rows are given anew for each job.

Spark plans a frame once, and runs what it planned as often as it is asked for its rows. A leaf is a
partition in the driver, which every job reads again: so other rows in it are all that a tick needs
whose plan is there. A partition's rows may be set in Spark; PySpark has no word for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from hydro_core.settings import MEBIBYTE
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.from_arrow import table_frame
from hydro_core.spark.frames.types import rows_type
from hydro_core.types.arrow import arrow_type, to_arrow
from hydro_core.types.item import ItemType

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
