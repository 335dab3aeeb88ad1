"""Streams that are computed now, once: the plan that led to them is cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from hydro_core.spark.frames.arrow_frame import arrow_frame
from hydro_core.spark.frames.few_rows import has_few_rows
from hydro_core.spark.frames.paths import quoted
from hydro_core.spark.frames.relation import ITEM, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.types.item import ItemType

Materialize = Callable[[DataFrame], tuple[DataFrame, int]]
"""From a frame to one with the same rows and no plan behind it, and the number of its rows.

It runs a job.
"""


def checkpointed(frame: DataFrame) -> tuple[DataFrame, int]:
    """The rows stay with Spark's executors; for data of any size."""
    kept = frame.localCheckpoint(eager=False)
    return kept, kept.count()


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


def _kept(spark: SparkSession) -> dict[int, Any]:
    context = spark.sparkContext._jsc  # noqa: SLF001 - Spark offers Python no other way
    return {} if context is None else dict(context.getPersistentRDDs())


def collected(frame: DataFrame) -> tuple[DataFrame, int]:
    """The rows pass through the driver: for small data, where this is the fastest."""
    rows = frame.toArrow()
    return arrow_frame(frame.sparkSession, rows, frame.schema), rows.num_rows


def held(frame: DataFrame) -> DataFrame:
    """The rows for several readers: the job that reads them first computes them."""
    return frame.localCheckpoint(eager=False)


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
