"""Functions through Python and through Spark: the same results, and failures for the same items."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from unittest import mock

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from hydro_core.functions.call import call_item
from hydro_core.functions.read import read_function
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Fn
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns import NotCompilable, to_column
from hydro_core.spark.functions.columns import value as columns_value
from hydro_core.types.arrow import from_arrow, to_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.values import canonical, conform

_ASKED = "hydrotick asked "


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
    spark: SparkSession, ddl: str, items: Sequence[Any], sources: Sequence[str | Fn]
) -> tuple[list[str], int]:
    """The differences between Python and Spark, as texts, and how many values were compared.

    Every source must compile. Where Python fails, Spark must ask Python; where it does not ask, it
    gives what Python gives.
    """
    item = parse_ddl(ddl)
    items = [conform(x, item) for x in items]
    problems: list[str] = []
    compiled, columns = [], []
    with _noted(spark) as asks:
        for source in sources:
            fn = source if isinstance(source, Fn) else function(source)
            result = result_type(fn, (item,))
            try:
                column = to_column(fn, ((F.col("item"), item),), result=result)
            except NotCompilable as problem:
                problems.append(f"{fn.source}: not compiled: {problem.reason}")
                continue
            columns.append(column.cast(spark_type(result)).alias(f"f{len(compiled)}"))
            compiled.append((fn, result))
        table = frame(spark, items, item).select("n", *columns).toArrow().sort_by("n")
        asked = asks()
    compared = 0
    for k, (fn, result) in enumerate(compiled):
        got = from_arrow(table.column(k + 1), result)
        for n, (x, value) in enumerate(zip(items, got, strict=True)):
            if (fn.source, n) in asked:
                continue
            compared += 1
            wanted = expected(fn, x, result)
            if wanted.error is not None or exactly(value) != exactly(wanted.value):
                problems.append(f"{fn.source} of {x!r}: Python {wanted}, Spark {value!r}")
    return problems, compared


@contextmanager
def _noted(spark: SparkSession) -> Iterator[Callable[[], set[tuple[str, int]]]]:
    """Columns that ask Python give null instead, and note it: for which function and row `n`."""
    system = spark.sparkContext._jvm.java.lang.System
    sources: list[str] = []

    def noting(fn: Fn) -> Column:
        if fn.source not in sources:
            sources.append(fn.source)
        key = F.concat(F.lit(f"{_ASKED}{sources.index(fn.source)} "), F.col("n").cast("string"))
        method = F.lit("java.lang.System"), F.lit("setProperty"), key, F.lit("asked")
        noted = F.coalesce(F.length(F.reflect(*method)), F.lit(0))
        # Of no type, as an error is.
        return F.get(F.array(F.lit(None)), noted)

    def asks() -> set[tuple[str, int]]:
        names = spark.sparkContext._jvm.java.lang.String.join(
            ",", system.getProperties().stringPropertyNames()
        ).split(",")
        found = set()
        for name in names:
            if name.startswith(_ASKED):
                system.clearProperty(name)
                k, n = name.removeprefix(_ASKED).split()
                found.add((sources[int(k)], int(n)))
        return found

    with mock.patch.object(columns_value, "asked", noting):
        yield asks
