"""Rows that are held, or computed now: Spark assumes nothing about columns that are gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from hydro_core.compile import compile_text
from hydro_core.reference.interpreter import run_ticks
from hydro_core.running import read_ticks
from hydro_core.settings import Settings
from hydro_core.spark.frames.materialize import checkpointed, held
from hydro_core.spark.session.session import few_rows_session
from tests.support.selection import alternately_slow
from tests.support.stored import FEW, MANY, Part, stored_outputs

pytestmark = pytest.mark.spark

PROGRAM = """
b = source("k string, v long, at long")
w = b -> window(2) -> aggregate(by="v", g=max("at"))
h = b -> persist() -> select("v", "k")
w -> join(right=h, on="v", how="left", suffix="_r") -> delta() -> out
"""
TICKS: list[dict[str, list[Any]]] = [
    {"b": [{"k": "x", "v": 1, "at": 1}, {"k": "y", "v": 2, "at": 2}]},
    {"b": [{"k": "z", "v": 1, "at": 3}]},
    {"b": [{"k": "x", "v": 2, "at": 4}]},
    {"b": []},
    {"b": [{"k": "y", "v": 1, "at": 0}]},
]


def rows(spark: SparkSession) -> DataFrame:
    """A union whose first part is never null, while a later part may be but for its filter."""
    may_be_null = spark.createDataFrame(
        spark.sparkContext.parallelize([(1,), (None,)]), "t long"
    ).filter("t > 0")
    return spark.range(3).toDF("t").filter("t > 0").union(may_be_null).coalesce(1)


def united(kept: DataFrame) -> list[int]:
    """What a plan gives that asks for the constraints of a union with these rows."""
    counted = kept.union(kept).groupBy("t").count().filter("count > 0")
    return sorted(row["t"] for row in counted.collect())


def test_spark_looks_for_columns_that_are_gone(spark: SparkSession) -> None:
    """A bug of Spark 4.2 (`LogicalRDD.rewriteConstraints`). Where this fails it is mended, and
    `materialize.py` needs not take away constraints any more.
    """
    with pytest.raises(Py4JJavaError, match="key not found: t#"):
        united(rows(spark).toDF("t").localCheckpoint(eager=False))


@pytest.mark.parametrize(
    ("few", "keep"),
    alternately_slow([False, True], [held, lambda frame: checkpointed(frame)[0]]),
)
def test_ours_do_not(
    keep: Callable[[DataFrame], DataFrame], few: bool, spark: SparkSession
) -> None:
    session = few_rows_session(spark) if few else spark
    assert united(keep(rows(session))) == [1, 2]


@pytest.mark.parametrize("settings", [FEW, MANY], ids=["few", "many"])
def test_a_join_of_a_window_with_columns_of_a_history(
    settings: Settings, tmp_path: Path, spark: SparkSession
) -> None:
    program = compile_text(PROGRAM)
    ticks = list(read_ticks(program.typed, TICKS))
    found = stored_outputs(
        tmp_path / "p",
        program,
        ticks,
        lambda _: iter([Part(2, settings), Part(3, settings)]),
        spark,
    )
    for has, wanted in zip(
        found, run_ticks(program.typed, program.strata, ticks, FEW), strict=True
    ):
        assert sorted(map(repr, has["out"])) == sorted(map(repr, wanted["out"]))
