"""A failing function names itself, its place, the item and the tick, and no Java."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hydro_core.errors import DataError, Span
from hydro_core.functions.read import read_callable
from hydro_core.functions.tree import Fn
from hydro_core.settings import Settings
from hydro_core.spark.frames.leaf import frame_of
from hydro_core.spark.functions.apply import apply
from hydro_core.spark.functions.guards import exactly_run
from hydro_core.spark.session.failures import data_error
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import LONG, STRING
from hydro_core.types.values import conform
from tests.spark.differential import function

pytestmark = pytest.mark.spark

SPAN = Span("shop.hydro", 3, 10, 3, 20, "orders -> map(lambda a, b: b // a) -> out")


def _failure(spark: SparkSession, fn: Fn, items: list[Any]) -> DataError:
    item = parse_ddl("(long, long)")
    frame = frame_of(spark, [(7, conform(x, item)) for x in items], item)

    def run(_: object) -> None:
        frame.select(apply(fn, F.col("item"), item, tick=F.col("t")).alias("r")).collect()

    with pytest.raises(Exception, match=r".") as caught:
        exactly_run(run, Settings())
    return data_error(caught.value)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("lambda a, b: b // a", "ZeroDivisionError"),
        ("lambda a, b: f'{b // a:^5}'", "ZeroDivisionError"),
        ("lambda a, b: (b + 1) * 2", "beyond 64 bits"),
        ("lambda a, b: {5: 'x'}[a]", "KeyError"),
        ("lambda a, b: [a, b][b]", "IndexError"),
    ],
)
def test_a_failing_function_is_named(spark: SparkSession, source: str, kind: str) -> None:
    fn = function(source)
    object.__setattr__(fn, "span", SPAN)
    error = _failure(spark, fn, [(0, 2**63 - 1)])
    assert error.code == "runtime"
    diagnostic = error.diagnostics[0]
    assert f"the function {fn.name} (line 3) fails on" in diagnostic.message
    assert "0, 9223372036854775807" in diagnostic.message
    assert "in tick 7" in diagnostic.message
    assert kind in diagnostic.message
    assert diagnostic.span == SPAN
    assert "java" not in str(error).lower()
    assert "Traceback" not in str(error)


def test_a_python_function_that_cannot_be_read_runs_and_fails(spark: SparkSession) -> None:
    table = {1: "one"}
    fn = read_callable(table.__getitem__, name="look_up", returns=STRING)
    item, column = LONG, F.col("item")
    frame = frame_of(spark, [(0, 1)], item)
    assert [r.r for r in frame.select(apply(fn, column, item).alias("r")).collect()] == ["one"]
    frame = frame_of(spark, [(0, 5)], item)
    with pytest.raises(Exception, match=r".") as caught:
        frame.select(apply(fn, column, item).alias("r")).collect()
    assert "the function look_up fails on 5: KeyError: 5" in str(data_error(caught.value))


def test_failures_of_spark_itself_are_one_line(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        spark.read.parquet("no/such/place")
    (told,) = data_error(caught.value).diagnostics
    text = told.message
    assert "no/such/place" in text
    assert "\n" not in text.strip()
    assert told.help.startswith("run it again")
    assert "SQLSTATE" not in text


def test_what_was_interrupted_has_not_failed() -> None:
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise Py4JError("the job that was cancelled")

    with pytest.raises(Py4JError) as caught:
        interrupted()
    with pytest.raises(KeyboardInterrupt):
        data_error(caught.value)
