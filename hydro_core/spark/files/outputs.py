"""Outputs of a range as Parquet, and how many rows each has in each tick."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.files.outputs import POSITION, OutputFolders, columns_of
from hydro_core.files.outputs import TICK as OUTPUT_TICK
from hydro_core.spark.frames.parquet import spark_name, write_parquet
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.frames.types import item_type, spark_type
from hydro_core.spark.lower.relations import positioned
from hydro_core.spark.store.schema import stored
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import Row, Tuple

RowCounts = Mapping[str, Mapping[int, int]]
"""By the outputs' names and the ticks, where there are any rows."""


@contextmanager
def written(
    outputs: Mapping[str, Relation], out: OutputFolders, first: int, last: int
) -> Iterator[Mapping[str, Path]]:
    """What the ticks first … last put out, as files that are added to those of the ticks before.

    They are at hand within, in a folder for each output; if that fails, none of them stays.
    """
    folders = {name: out.folder(name).absolute() for name in outputs}
    staged = {name: folder.with_name(f"{folder.name}.staged") for name, folder in folders.items()}
    try:
        for name, output in outputs.items():
            frame = _written(output, first, last)
            write_parquet(frame, staged[name], _declared(frame))
        yield staged
        for name, folder in folders.items():
            folder.mkdir(exist_ok=True)
            # What Spark writes beside the data is of no use here.
            for file in staged[name].glob("*.parquet"):
                file.rename(folder / file.name)
    finally:
        for folder in staged.values():
            shutil.rmtree(folder, ignore_errors=True)


def _declared(frame: DataFrame) -> pa.Schema:
    """The columns of a frame as files have them."""
    return pa.schema([(f.name, arrow_type(item_type(f.dataType))) for f in frame.schema.fields])


def _written(output: Relation, first: int, last: int) -> DataFrame:
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


def counts_of_files(spark: SparkSession, folders: Mapping[str, Path]) -> RowCounts:
    """The rows of each tick, from the files."""
    read = spark.read.schema(f"{OUTPUT_TICK} long")
    return _counted(
        {name: read.parquet(spark_name(spark, folder)) for name, folder in folders.items()}
    )


def counts_of(outputs: Mapping[str, Relation], first: int, last: int) -> RowCounts:
    return _counted(
        {
            name: output.events(first, last).frame.select(F.col(TICK).alias(OUTPUT_TICK))
            for name, output in outputs.items()
        }
    )


def _counted(frames: Mapping[str, DataFrame]) -> RowCounts:
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
