"""Folds that become Spark's aggregates give what Python's fold gives."""

from __future__ import annotations

import ast
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.spec import Args
from hydro_core.functions.call import call_accumulate, call_pair
from hydro_core.functions.read import read_function
from hydro_core.functions.result_type import accumulator_type
from hydro_core.functions.tree import Algebra, Fn
from hydro_core.ir.graph import Node
from hydro_core.plan.tick_plan import Kind
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.guards import MARK
from hydro_core.spark.lower.aggregates import MergedResult
from hydro_core.spark.lower.folds import native_fold, native_reduction, wrapped
from hydro_core.spark.lower.items import literal
from hydro_core.spark.lower.registry import Step
from hydro_core.spark.session.session import few_rows_session
from hydro_core.types.arrow import from_arrow
from hydro_core.types.common import type_of
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
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
    ("long", [3, None, 7], 0, "lambda acc, x: acc + x if x is not None else acc"),
    ("double", [float("inf"), float("nan")], 0.0, "lambda acc, x: acc + x"),
    ("long", [3, 4], 0.5, "lambda acc, x: acc + x"),
    ("date", [date(2024, 1, 3), date(1, 1, 1)], date(2024, 1, 1), "lambda acc, x: max(acc, x)"),
    ("timestamp", [datetime(2024, 1, 3, tzinfo=UTC)], datetime(2024, 1, 1, tzinfo=UTC),
     "lambda acc, x: x if x < acc else acc"),
    ("(string, long)", [("a", 1)], ("kept", 0), "lambda acc, k, v: (acc[0], acc[1] + v)"),
    ("long", [], (1, 2), "lambda acc, x: (acc[0] + x, max(acc[1], x))"),
    ("string", ["b", "é", ""], "a", "lambda acc, x: max(acc, x)"),
    ("(string, long)", [("a", 1), ("b", 5)], (0, 0),
     "lambda acc, k, v: (acc[0] + v, max(acc._2, v))"),
    ("k string, v long", [{"k": "a", "v": 1}, {"k": "b", "v": 4}], {"n": 0, "sum": 0},
     "lambda acc, r: {'n': acc.n + 1, 'sum': acc['sum'] + r.v}"),
    ("k string, v int", [{"k": "a", "v": 1}, {"k": "b", "v": 4}], (0, {"low": 9}),
     "lambda acc, r: (acc[0] + r.v, {'low': min(acc[1].low, r.v)})"),
    ("_2 long, _1 long", [{"_2": 3, "_1": 50}, {"_2": 4, "_1": 20}], {"_2": 0, "_1": 7},
     "lambda acc, r: {'_2': acc._2 + r._1, '_1': max(acc['_1'], r['_2'])}"),
    ("_2 long, _1 long", [{"_2": 3, "_1": 50}, {"_2": 4, "_1": 20}], (0, {"_2": 9, "_1": 7}),
     "lambda acc, r: (acc._1 + r._1, {'_2': min(r._2, acc._2._2), '_1': acc._2._1})"),
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
    (
        "_2 long, _1 long",
        [{"_2": 3, "_1": 50}, {"_2": 4, "_1": 20}],
        "lambda a, b: {'_2': a._2 + b._2, '_1': max(a._1, b._1)}",
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


def _step(spark: SparkSession, fn: Fn, item: ItemType, op: str = "fold") -> Step:
    node = Node(op, CATALOG[op], Args((("f", fn),)))
    return Step(node, (), item, False, Kind.E, 3, 3, spark)


def _fold(
    spark: SparkSession, fn: Fn, init: Any, acc: ItemType, item: ItemType
) -> MergedResult | None:
    start = literal(init, acc).cast(spark_type(acc))
    return native_fold(_step(spark, fn, item), start, acc, wrapped(F.col("item")), item)


def _reduction(spark: SparkSession, fn: Fn, item: ItemType) -> MergedResult | None:
    return native_reduction(_step(spark, fn, item, "reduce"), item, wrapped(F.col("item")), item)


def _run(spark: SparkSession, items: list[Any], item: Any, running: MergedResult, acc: Any) -> Any:
    """The result; it is the same whether partial results are merged or not."""
    data = frame(few_rows_session(spark), items, item)
    whole = data.agg(running.of_rows().cast(spark_type(acc)).alias("r"))
    names = [f"p{i}" for i in range(len(running.partials))]
    parts = data.groupBy(F.col("n") % 3).agg(
        *(p.of_rows.alias(n) for p, n in zip(running.partials, names, strict=True))
    )
    empty = data.where(F.lit(False)).agg(
        *(p.of_rows.alias(n) for p, n in zip(running.partials, names, strict=True))
    )
    merged = [p.merge(F.col(n)) for p, n in zip(running.partials, names, strict=True)]
    joined = parts.drop("(n % 3)").unionByName(empty)
    again = joined.agg(running.result(merged).cast(spark_type(acc)).alias("r"))
    one, other = from_arrow(whole.unionAll(again).toArrow().column(0), acc)
    assert canonical(one) == canonical(other)
    return one


def test_folds(spark: SparkSession) -> None:
    for ddl, values, init, source in FOLDS:
        item, fn = parse_ddl(ddl), _fn(source)
        items = [conform(v, item) for v in values]
        acc = accumulator_type(fn, type_of(init), item)
        running = _fold(spark, fn, init, acc, item)
        assert running is not None, source
        if any(abs(v) >= 2**62 for v in values if isinstance(v, int)):
            wanted: Any = init + sum(values)
        else:
            wanted = reduce(lambda a, x: call_accumulate(fn, a, x), items, conform(init, acc))
        assert canonical(_run(spark, items, item, running, acc)) == canonical(wanted), source


def test_reductions(spark: SparkSession) -> None:
    for ddl, values, source in REDUCTIONS:
        item, fn = parse_ddl(ddl), _fn(source)
        items = [conform(v, item) for v in values]
        running = _reduction(spark, fn, item)
        assert running is not None, source
        wanted = reduce(lambda a, b: call_pair(fn, a, b), items)
        assert canonical(_run(spark, items, item, running, item)) == canonical(wanted), source
        assert _run(spark, items[:1], item, running, item) == items[0]
        assert _run(spark, [], item, running, item) is None


def test_other_folds_are_none(spark: SparkSession) -> None:
    item = parse_ddl("long")
    for source in OTHERS:
        assert _fold(spark, _fn(source), 0, item, item) is None, source
    assert _reduction(spark, _fn("lambda a, b: a + 1"), item) is None
    kept = _fn("lambda a, b: (a[0], a[1] + b[1])")
    pair = parse_ddl("(long, long)")
    assert _reduction(spark, kept, pair) is None
    commutative = replace(kept, algebra=Algebra(commutative=True))
    assert _reduction(spark, commutative, pair) is not None


@pytest.mark.parametrize(
    ("values", "init"),
    [([2**63 - 1, 1], 0), ([1, None], 0), ([1], None)],
)
def test_python_is_asked(spark: SparkSession, values: list[Any], init: Any) -> None:
    item = parse_ddl("long")
    running = _fold(spark, _fn("lambda acc, x: acc + x"), init, item, item)
    assert running is not None
    with pytest.raises(Exception, match=MARK):
        _run(spark, values, item, running, item)


def test_a_reduction_meets_none(spark: SparkSession) -> None:
    item = parse_ddl("long")
    running = _reduction(spark, _fn("lambda a, b: a + b"), item)
    assert running is not None
    assert _run(spark, [None], item, running, item) is None
    with pytest.raises(Exception, match=MARK):
        _run(spark, [None, 1], item, running, item)
