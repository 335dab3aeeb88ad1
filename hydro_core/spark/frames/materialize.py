"""Streams that are computed now, once: the plan that led to them is cut off."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.leaf import table_frame, together
from hydro_core.spark.frames.relation import ITEM, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.session.session import has_few_rows
from hydro_core.types.item import ItemType

_ONCE = re.compile(
    r"^\W*\w*(?:Exchange|Subquery|CollectLimit|TakeOrdered|InMemory)\w*", re.MULTILINE
)
"""Nodes whose rows Spark keeps, or sends through an exchange that it does not show."""

_for_each_job: ContextVar[HeldRows | None] = ContextVar("for_each_job", default=None)
_until_the_end: ContextVar[list[DataFrame] | None] = ContextVar("until_the_end", default=None)
"""The frames whose rows stay with the executors, within `held_until_the_end`."""

Materialize = Callable[[DataFrame], tuple[DataFrame, int]]
"""From a frame to one with the same rows and no plan behind it, and the number of its rows.

It runs a job.
"""


def checkpointed(frame: DataFrame) -> tuple[DataFrame, int]:
    """The rows stay with Spark's executors; for data of any size."""
    kept = _cut_off(frame)
    _note(kept)
    return kept, kept.count()


def _cut_off(frame: DataFrame) -> DataFrame:
    """The frame without the plan behind it; the first job that reads it computes the rows."""
    return _without_constraints(_with_own_columns(frame).localCheckpoint(eager=False))


def _without_constraints(kept: DataFrame) -> DataFrame:
    """A frame that is checkpointed, of whose columns Spark assumes nothing.

    Spark 4.2 keeps the constraints of the plan before, and renames the columns in them by a map in
    which a column that is never null is not the same that may be null. The rows of a union have
    columns that may be null, and its constraints name those of its first part, which may not. These
    stay as they are, and name columns that do not exist. Whatever derives the constraints of a
    union with such rows then fails with `key not found: t#12`.
    """
    session = kept.sparkSession
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001 - Spark offers Python no other way
    rows: Any = kept._jdf.queryExecution().logical()  # noqa: SLF001
    none, sizes = jvm.scala.Option.empty(), jvm.scala.Option.apply(rows.stats())
    lie = rows.outputPartitioning(), rows.outputOrdering()
    own: Any = session._jsparkSession  # noqa: SLF001
    plan = rows.copy(rows.output(), rows.rdd(), *lie, rows.isStreaming(), none, own, sizes, none)
    frames = jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(frames.ofRows(own, plan), session)


def _with_own_columns(frame: DataFrame) -> DataFrame:
    """The frame with columns that Spark knows by numbers of their own.

    What is checkpointed keeps the numbers of its columns. Where it is added to rows that it was
    made of, of which Spark sees that there are none, a column that is set anew gets the number of
    the one that it takes the place of, and is taken for it (Spark 4.2).
    """
    return frame.toDF(*frame.columns)


@contextmanager
def released(spark: SparkSession) -> Iterator[None]:
    """What is kept with the executors within, by `checkpointed` or else, is given up at the end."""
    before = set(_kept(spark))
    try:
        yield
    finally:
        for number, rows in _kept(spark).items():
            if number not in before:
                rows.unpersist(False)


@contextmanager
def held_until_the_end() -> Iterator[None]:
    """What is computed once within, by `checkpointed` or `held`, is given up at the end.

    Spark itself finds out that nobody needs it when the JVM has collected its garbage: until then
    a range would have half of its memory at most, and the rows of those before it the rest.
    """
    frames: list[DataFrame] = []
    token = _until_the_end.set(frames)
    try:
        yield
    finally:
        _until_the_end.reset(token)
        with suppress(Py4JError, OSError):  # a JVM that has ended holds nothing
            for frame in frames:
                _rows_of(frame).unpersist(False)


def _note(kept: DataFrame) -> None:
    frames = _until_the_end.get()
    if frames is not None:
        frames.append(kept)


def _rows_of(kept: DataFrame) -> Any:
    """The RDD of a frame that is checkpointed."""
    rows: Any = kept._jdf.queryExecution().logical()  # noqa: SLF001
    return rows.rdd()


def _kept(spark: SparkSession) -> dict[int, Any]:
    context = spark.sparkContext._jsc  # noqa: SLF001 - Spark offers Python no other way
    return {} if context is None else dict(context.getPersistentRDDs())


def collected(frame: DataFrame) -> tuple[DataFrame, int]:
    """The rows pass through the driver: for small data, where this is the fastest."""
    table = frame.toArrow()
    return table_frame(frame.sparkSession, table, frame.schema), table.num_rows


def held(frame: DataFrame) -> DataFrame:
    """The rows for several readers: the job that reads them first computes them."""
    kept = _cut_off(together(frame))
    for_each_job = _for_each_job.get()
    if for_each_job is not None:
        for_each_job.add(kept, frame)
    else:
        _note(kept)
    return kept


def is_of_each_job(frame: DataFrame) -> bool:
    """Whether each job of the frame computes all of its plan.

    What passes an exchange, or a query within an expression, Spark computes once for all jobs.
    """
    plan: Any = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001
    return _ONCE.search(plan.toString()) is None


class HeldRows:
    """Rows that are held while a job runs, and computed anew by the next one."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext._jsc  # noqa: SLF001 - Spark offers Python no other way
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
        self._blocks = context.sc().env().blockManager().master()
        self._none = jvm.scala.Option.empty()
        self._numbers: list[int] = []
        self.of_each_job = True
        """Whether each job computes all that they are made of."""

    def add(self, kept: DataFrame, planned: DataFrame) -> None:
        """Notes a frame that no job has computed yet, and the one that it was made of."""
        self.of_each_job &= is_of_each_job(planned)
        rows = _rows_of(kept)
        # What is checkpointed forgets what it is made of, and could not be computed again.
        getattr(rows, "checkpointData_$eq")(self._none)
        self._numbers.append(rows.id())

    def forget(self) -> None:
        """Drops the rows; they are gone when it returns."""
        for number in self._numbers:
            self._blocks.removeRdd(number, True)


@contextmanager
def held_for_each_job(spark: SparkSession) -> Iterator[HeldRows]:
    """What is `held` within is held for each job anew."""
    rows = HeldRows(spark)
    token = _for_each_job.set(rows)
    try:
        yield rows
    finally:
        _for_each_job.reset(token)


def counted(frame: DataFrame, materialize: Materialize) -> tuple[DataFrame, int | None]:
    """The rows for several readers, and how many they are; None: few, which nobody counts."""
    if has_few_rows(frame.sparkSession):
        return held(frame), None
    return materialize(loosely(frame))


def exactly(frame: DataFrame, item: ItemType) -> DataFrame:
    """The frame with items of exactly the Spark type of `item`.

    Spark takes what is never null for another type.
    """
    return frame.withColumn(ITEM, F.col(ITEM).cast(spark_type(item)))


def loosely(frame: DataFrame) -> DataFrame:
    """The frame with columns of which every part may be null.

    Arrow has a null struct hold nulls, also where Spark knows that a part of it is never null.
    """
    wanted = {f.name: _loose(f.dataType) for f in frame.schema.fields}
    strict = {f.name for f in frame.schema.fields if f.dataType != wanted[f.name]}
    if not strict:
        return frame
    return frame.select(
        *(
            F.col(quoted(name)).cast(of).alias(name) if name in strict else F.col(quoted(name))
            for name, of in wanted.items()
        )
    )


def _loose(of: spark_types.DataType) -> spark_types.DataType:
    match of:
        case spark_types.StructType():
            fields = [spark_types.StructField(f.name, _loose(f.dataType)) for f in of.fields]
            return spark_types.StructType(fields)
        case spark_types.ArrayType():
            return spark_types.ArrayType(_loose(of.elementType))
        case _:
            return of


def materialized(relation: Relation, materialize: Materialize) -> tuple[Relation, int]:
    """The relation without the plan behind it, and the number of its rows."""
    frame, rows = materialize(exactly(relation.frame, relation.item))
    return relation.with_(frame=frame), rows
