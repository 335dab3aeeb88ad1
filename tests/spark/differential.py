"""Functions through Python and through Spark: the same results, and failures for the same items."""

from __future__ import annotations

import ast
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from hydro_core.functions.evaluate import call_item
from hydro_core.functions.fn import Fn
from hydro_core.functions.read import read_function
from hydro_core.functions.result_type import result_type
from hydro_core.spark.arrow import from_arrow, to_arrow
from hydro_core.spark.columns import NotCompilable, to_column
from hydro_core.spark.failures import find_failure
from hydro_core.spark.types import spark_type
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.values import canonical, conform

KINDS_OF_OVERFLOW = {"OverflowError", "ValueProblem", "MemoryError"}


@dataclass(frozen=True)
class Outcome:
    """What a function does with an item: a value, or the name of an exception."""

    value: Any = None
    error: str | None = None


def function(source: str) -> Fn:
    return read_function(ast.parse(source.strip(), mode="eval").body, {})


def expected(fn: Fn, item: Any, result: ItemType) -> Outcome:
    """What Python does."""
    try:
        return Outcome(conform(call_item(fn, item), result))
    except Exception as error:  # noqa: BLE001
        return Outcome(error=type(error).__name__)


def exactly(item: Any) -> Hashable:
    """A value that is equal for two items exactly if they are one, signs of zeros included."""
    match item:
        case float() if item == 0.0:
            return ("zero", math.copysign(1.0, item))
        case Decimal():
            return str(item)
        case tuple() | list():
            return (type(item).__name__, *map(exactly, item))
        case dict():
            return tuple((name, exactly(value)) for name, value in dict.items(item))
        case _:
            return canonical(item)


def frame(
    spark: SparkSession, items: Sequence[Any], item: ItemType, **columns: pa.Array
) -> DataFrame:
    table = pa.table(
        {"item": to_arrow(items, item), "n": pa.array(range(len(items)), pa.int64()), **columns}
    )
    fields = [
        spark_types.StructField("item", spark_type(item)),
        spark_types.StructField("n", spark_types.LongType()),
        *(
            spark_types.StructField(c, spark_types.ArrayType(spark_types.BooleanType()))
            for c in columns
        ),
    ]
    return spark.createDataFrame(table, spark_types.StructType(fields))


def compare(
    spark: SparkSession,
    ddl: str,
    items: Sequence[Any],
    sources: Sequence[str],
    failures: int = 2,
    *,
    kinds: bool = True,
) -> tuple[list[str], int]:
    """The differences between Python and Spark, as texts, and how many values were compared.

    Every source must compile. With `kinds`, failures must be of the same kind: of several faults
    in one item, either may be found first.
    """
    item = parse_ddl(ddl)
    items = [conform(x, item) for x in items]
    functions = [function(s) for s in sources]
    problems: list[str] = []
    types, wanted, columns = [], [], []
    for i, fn in enumerate(functions):
        result = result_type(fn, (item,))
        outcomes = [expected(fn, x, result) for x in items]
        try:
            column = to_column(fn, ((F.col("item"), item),), result=result)
        except NotCompilable as problem:
            problems.append(f"{fn.source}: not compiled: {problem.reason}")
            continue
        types.append((fn, result))
        wanted.append(outcomes)
        columns.append(
            F.when(F.get(F.col("ok"), len(columns)), column).cast(spark_type(result)).alias(f"f{i}")
        )
    ok = pa.array([[w[j].error is None for w in wanted] for j in range(len(items))])
    data = frame(spark, items, item, ok=ok)
    problems += _differences(data, items, columns, types, wanted)
    for (fn, result), outcomes in zip(types, wanted, strict=True):
        seen: dict[str, int] = {}
        for x, outcome in zip(items, outcomes, strict=True):
            if outcome.error is not None and seen.get(outcome.error, 0) < failures:
                seen[outcome.error] = seen.get(outcome.error, 0) + 1
                kind = outcome.error if kinds else None
                problems += _missed_failure(spark, fn, item, result, x, kind)
    return problems, sum(outcome.error is None for outcomes in wanted for outcome in outcomes)


def _differences(
    data: DataFrame,
    items: Sequence[Any],
    columns: list[Any],
    types: list[Any],
    wanted: list[list[Outcome]],
) -> list[str]:
    try:
        table = data.select("n", *columns).toArrow().sort_by("n")
    except (PySparkException, Py4JJavaError) as error:
        if len(columns) == 1:
            return [f"{types[0][0].source}: Spark fails: {find_failure(error) or str(error)[:400]}"]
        return [
            p
            for c, t, w in zip(columns, types, wanted, strict=True)
            for p in _differences(data, items, [c], [t], [w])
        ]
    problems = []
    for k, ((fn, result), outcomes) in enumerate(zip(types, wanted, strict=True), start=1):
        got = from_arrow(table.column(k), result)
        for x, outcome, value in zip(items, outcomes, got, strict=True):
            if outcome.error is None and exactly(value) != exactly(outcome.value):
                problems.append(f"{fn.source} of {x!r}: Python {outcome.value!r}, Spark {value!r}")
    return problems


def _missed_failure(
    spark: SparkSession, fn: Fn, item: ItemType, result: ItemType, x: Any, kind: str | None
) -> list[str]:
    column = to_column(fn, ((F.col("item"), item),), result=result)
    try:
        got = frame(spark, [x], item).select(column.alias("r")).toArrow()
    except (PySparkException, Py4JJavaError) as error:
        failure = find_failure(error)
        if failure is None:
            return [
                f"{fn.source} of {x!r}: Python {kind}, Spark without a place: {str(error)[:300]}"
            ]
        same = kind in (failure.kind, None) or {failure.kind, kind} <= KINDS_OF_OVERFLOW
        same = same or {failure.kind, kind} <= {
            "AttributeError",
            "TypeError",
            "ValueProblem",
            "ValueError",
        }
        # With two faults in one item, either may be found first.
        same = same or (failure.kind == "ZeroDivisionError" and kind == "TypeError" and None in x)
        return [] if same else [f"{fn.source} of {x!r}: Python {kind}, Spark {failure}"]
    return [f"{fn.source} of {x!r}: Python {kind}, Spark {from_arrow(got.column(0), result)!r}"]
