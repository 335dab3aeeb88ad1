"""Outputs of a range as Parquet, and how many rows each has in each tick."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.spark.lower.algebra import positioned
from hydro_core.spark.paths import literal
from hydro_core.spark.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.store_schema import stored
from hydro_core.spark.types import spark_type
from hydro_core.ticks.outputs import POSITION, columns_of
from hydro_core.ticks.outputs import TICK as OUTPUT_TICK
from hydro_core.types.item import Row, Tuple

Counts = Mapping[str, Mapping[int, int]]
"""By the outputs' names and the ticks, where there are any rows."""


def write(output: Relation, folder: Path, first: int, last: int) -> None:
    """Adds what the ticks first … last put out to the files of the folder."""
    frame = written(output, first, last)
    frame.write.mode("append").option("compression", "snappy").parquet(str(folder))
    # Only data is left: what Spark writes beside it is of no use here.
    for file in folder.iterdir():
        if file.suffix != ".parquet":
            file.unlink()


def written(output: Relation, first: int, last: int) -> DataFrame:
    """The rows as files have them: `tick`, the item's columns, and maybe `position`."""
    events = output.events(first, last)
    # The mark by which a later run knows the files as ours.
    columns = [F.col(TICK).alias(OUTPUT_TICK, metadata={"hydrotick": "output"})]
    whole = isinstance(output.item, Row | Tuple)
    for name, of in columns_of(output.item).items():
        column = F.col(ITEM).getField(name) if whole else F.col(ITEM)
        # A column of nulls alone has no type, and Parquet asks for one.
        columns.append(column.cast(spark_type(stored(of))).alias(name))
    if events.ordered:
        columns.append(F.col(ORD).alias(POSITION))
    frame = positioned(events) if events.ordered else events.frame
    return frame.select(*columns)


def counts_of_files(spark: SparkSession, folders: Mapping[str, Path], first: int) -> Counts:
    """The rows of the ticks from `first` on, from the files."""
    frames = {}
    for name, folder in folders.items():
        rows = spark.read.schema(f"{OUTPUT_TICK} long").parquet(literal(folder))
        frames[name] = rows.where(F.col(OUTPUT_TICK) >= first)
    return _counted(frames)


def counts_of(outputs: Mapping[str, Relation], first: int, last: int) -> Counts:
    """The rows of the ticks first … last."""
    return _counted(
        {
            name: output.events(first, last).frame.select(F.col(TICK).alias(OUTPUT_TICK))
            for name, output in outputs.items()
        }
    )


def _counted(frames: Mapping[str, DataFrame]) -> Counts:
    counts: dict[str, dict[int, int]] = {name: {} for name in frames}
    if not frames:
        return counts
    parts = [
        frame.groupBy(OUTPUT_TICK).count().select(F.lit(name).alias("name"), OUTPUT_TICK, "count")
        for name, frame in frames.items()
    ]
    for name, tick, count in reduce(DataFrame.unionByName, parts).collect():
        counts[name][tick] = count
    return counts
