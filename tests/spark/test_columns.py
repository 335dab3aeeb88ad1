"""Functions as Spark columns give exactly what Python gives, on adversarial items."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hydro_core.functions.call import call_item
from hydro_core.functions.result_type import result_type
from hydro_core.spark.functions.apply import apply, apply_predicate
from hydro_core.spark.functions.columns import NotCompilable, to_column
from hydro_core.spark.lower.explained import runtime
from hydro_core.types.arrow import from_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import UNKNOWN
from hydro_core.types.values import conform
from tests.spark.cases import CASES
from tests.spark.differential import compare, exactly, expected, frame, function

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", CASES)
def test_columns_give_what_python_gives(spark: SparkSession, name: str) -> None:
    case = CASES[name]
    sources = case.compiled.splitlines()
    problems, compared = compare(spark, case.ddl, case.items, sources)
    assert problems == []
    assert compared > len(sources) * len(case.items) // 3


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_compile_runs_in_python(spark: SparkSession, name: str) -> None:
    case = CASES[name]
    item = parse_ddl(case.ddl)
    items = [conform(x, item) for x in case.items][:40]
    for source in case.python.splitlines():
        fn = function(source)
        result = result_type(fn, (item,))
        with pytest.raises(NotCompilable):
            to_column(fn, ((F.col("item"), item),), result=result)
        if result == UNKNOWN:
            continue
        outcomes = [(x, expected(fn, x, result)) for x in items]
        good = [(x, o.value) for x, o in outcomes if o.error is None]
        data = frame(spark, [x for x, _ in good], item)
        table = data.select("n", apply(fn, F.col("item"), item).alias("r")).toArrow().sort_by("n")
        got = from_arrow(table.column("r"), result)
        assert list(map(exactly, got)) == [exactly(value) for _, value in good], source


def test_predicates_are_true_as_python_sees_it(spark: SparkSession) -> None:
    item = parse_ddl("(long, string)")
    items = [conform(x, item) for x in [(0, ""), (1, ""), (0, "a"), (5, None), (None, "a")]]
    sources = ["lambda a, b: a", "lambda a, b: b", "lambda a, b: a and b", "lambda a, b: a or b"]
    sources += ["lambda a, b: not b", "lambda x: x", "lambda a, b: f'{a:>3}' if a else ''"]
    data = frame(spark, items, item)
    for source in sources:
        fn = function(source)
        rows = data.filter(apply_predicate(fn, F.col("item"), item)).select("n").collect()
        wanted = [i for i, x in enumerate(items) if bool(call_item(fn, x))]
        assert sorted(r.n for r in rows) == wanted, source


def test_truth_of_a_column(spark: SparkSession) -> None:
    for ddl, items in {
        "long": [0, 1, None],
        "string": ["", "x", None],
        "double": [0.0, float("nan"), -0.0, None],
        "array<long>": [[], [0], None],
        "(long, long)": [(0, 0), None],
    }.items():
        item = parse_ddl(ddl)
        values = [conform(x, item) for x in items]
        column = apply_predicate(function("lambda x: x"), F.col("item"), item)
        rows = frame(spark, values, item).select("n", column.alias("r")).collect()
        assert [r.r for r in sorted(rows)] == [bool(v) for v in values], ddl


def test_a_function_says_how_it_runs(spark: SparkSession) -> None:
    item = parse_ddl("(long, string)")
    assert str(runtime(function("lambda a, b: a + 1"), (item,))) == "column"
    assert (
        str(runtime(function("lambda a, b: f'{a:^5}'"), (item,)))
        == "arrow udf: a format specification (line 1)"
    )


def test_fields_that_are_passed_on_stay_plain(spark: SparkSession) -> None:
    item = parse_ddl("(long, string)")
    data = spark.range(3).select(
        F.struct(F.col("id").alias("_1"), F.lit("x").alias("_2")).alias("item")
    )
    column = apply(function("lambda a, b: (b, a)"), F.col("item"), item)
    plan = data.select(column.alias("item")).select("item._2")._jdf.queryExecution().optimizedPlan()
    assert "CASE" not in plan.toString()
    assert "raise_error" not in plan.toString()
