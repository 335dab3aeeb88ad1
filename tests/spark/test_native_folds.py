"""Folds that become Spark's aggregates give what Python's fold gives."""

from __future__ import annotations

import ast
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hydro_core.functions.evaluate import call_accumulate, call_pair
from hydro_core.functions.fn import Fn
from hydro_core.functions.read import read_function
from hydro_core.functions.result_type import accumulator_type
from hydro_core.spark.arrow import from_arrow
from hydro_core.spark.failures import find_failure
from hydro_core.spark.native_folds import native_fold, native_reduce
from hydro_core.spark.types import spark_type
from hydro_core.types.common import type_of
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import canonical, conform
from tests.spark.differential import frame

pytestmark = pytest.mark.spark

FOLDS = [
    ("long", [3, -1, 2**62, 2**62, -(2**62), 5], 0, "lambda acc, x: acc + x"),
    ("long", [2**63 - 1, 2**63 - 1, -(2**63), -(2**63), 7], 0, "lambda acc, x: x + acc"),
    ("long", [3, -1], 10, "lambda acc, x: acc - x"),
    ("long", [], 5, "lambda acc, x: acc + x"),
    ("long", [1, 2, 3], 0, "lambda acc, x: acc + 1"),
    ("long", [1, 2, 3], 0, "lambda acc, x: acc + x * x - 1"),
    ("long", [3, -1, 7], 0, "lambda acc, x: max(acc, x)"),
    ("long", [-3, -1], 0, "lambda acc, x: max(x, acc)"),
    ("long", [], 4, "lambda acc, x: min(acc, x)"),
    ("long", [3, -1, 7], 0, "lambda acc, x: acc if acc > x else x"),
    ("long", [3, -1, 7], 0, "lambda acc, x: x if x < acc else acc"),
    ("long", [3, -1, 7], 0, "lambda acc, x: acc + x if x > 0 else acc"),
    ("long", [3, -1, 7], 0, "lambda acc, x: acc if x > 0 else acc + 1"),
    ("double", [0.5, 2.0], 0.0, "lambda acc, x: acc + x"),
    ("string", ["b", "é", ""], "a", "lambda acc, x: max(acc, x)"),
    ("(string, long)", [("a", 1), ("b", 5)], (0, 0),
     "lambda acc, k, v: (acc[0] + v, max(acc._2, v))"),
    ("k string, v long", [{"k": "a", "v": 1}, {"k": "b", "v": 4}], {"n": 0, "sum": 0},
     "lambda acc, r: {'n': acc.n + 1, 'sum': acc['sum'] + r.v}"),
    ("k string, v int", [{"k": "a", "v": 1}, {"k": "b", "v": 4}], (0, {"low": 9}),
     "lambda acc, r: (acc[0] + r.v, {'low': min(acc[1].low, r.v)})"),
]  # fmt: skip
REDUCTIONS = [
    ("long", [3, -1, 7], "lambda a, b: a + b"),
    ("long", [3, -1, 7], "lambda a, b: max(a, b)"),
    ("string", ["b", "a"], "lambda a, b: a if a < b else b"),
    ("(long, long)", [(1, 5), (2, 3)], "lambda a, b: (a[0] + b[0], min(b[1], a[1]))"),
    (
        "n long, m long",
        [{"n": 1, "m": 2}, {"n": 3, "m": 1}],
        "lambda a, b: {'n': a.n + b.n, 'm': max(a.m, b.m)}",
    ),
]
OTHERS = [
    "lambda acc, x: acc * 2 + x",
    "lambda acc, x: x",
    "lambda acc, x: acc + acc + x",
    "lambda acc, x: acc + len(str(acc))",
]


def _fn(source: str) -> Fn:
    return read_function(ast.parse(source, mode="eval").body, {})


def _run(spark: SparkSession, items: list[Any], item: Any, column: Any, acc: Any) -> Any:
    data = frame(spark, items, item).agg(column.cast(spark_type(acc)).alias("r"))
    return from_arrow(data.toArrow().column(0), acc)[0]


def test_folds(spark: SparkSession) -> None:
    for ddl, values, init, source in FOLDS:
        item, fn = parse_ddl(ddl), _fn(source)
        items = [conform(v, item) for v in values]
        acc = accumulator_type(fn, type_of(init), item)
        column = native_fold(fn, conform(init, acc), acc, F.col("item"), item)
        assert column is not None, source
        if any(abs(v) >= 2**62 for v in values if isinstance(v, int)):
            wanted: Any = init + sum(values)
        else:
            wanted = reduce(lambda a, x: call_accumulate(fn, a, x), items, conform(init, acc))
        assert canonical(_run(spark, items, item, column, acc)) == canonical(wanted), source


def test_reductions(spark: SparkSession) -> None:
    for ddl, values, source in REDUCTIONS:
        item, fn = parse_ddl(ddl), _fn(source)
        items = [conform(v, item) for v in values]
        column = native_reduce(fn, item, F.col("item"), item)
        assert column is not None, source
        wanted = reduce(lambda a, b: call_pair(fn, a, b), items)
        assert canonical(_run(spark, items, item, column, item)) == canonical(wanted), source


def test_other_folds_are_none(spark: SparkSession) -> None:
    item = parse_ddl("long")
    for source in OTHERS:
        assert native_fold(_fn(source), 0, item, F.col("item"), item) is None, source
    assert native_reduce(_fn("lambda a, b: a + 1"), item, F.col("item"), item) is None


@pytest.mark.parametrize(
    ("values", "kind"), [([2**63 - 1, 1], "OverflowError"), ([1, None], "TypeError")]
)
def test_failures(spark: SparkSession, values: list[Any], kind: str) -> None:
    item = parse_ddl("long")
    column = native_fold(_fn("lambda acc, x: acc + x"), 0, item, F.col("item"), item)
    with pytest.raises(Exception, match="hydrotick-failure") as caught:
        _run(spark, values, item, column, item)
    failure = find_failure(caught.value)
    assert failure is not None
    assert failure.kind == kind
