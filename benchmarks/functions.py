"""A function over many rows: compiled to a column, in Arrow batches, and as a plain Python UDF.

`compiled` is what a program's function becomes where Spark gives exactly Python's results, `in
Arrow batches` what it becomes elsewhere: the same Python, called item by item on whole batches.
`Arrow by hand` is an Arrow UDF that an expert would write, whole columns at a time, `Spark by hand`
the expression that he would write without a UDF: the latter two do not have to fail on an overflow,
nor to care for negative numbers. All run over the same cached rows, in turns, and give the same.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import arrow_udf

from benchmarks.measure import Meter, Ratio, parser_of, report, session
from hydro_core.functions.read import read_function
from hydro_core.functions.result_type import result_type
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.apply import udf_column
from hydro_core.spark.functions.columns import to_column
from hydro_core.types.ddl import parse_ddl

ITEM = parse_ddl("amount long, quantity long, name string, city string, late long")
CITIES = ("Ghent", "Kyoto", "Lima", "Oslo", "Pune")


@dataclass(frozen=True, slots=True)
class Case:
    """A function, and the same as it would be written by hand."""

    source: str
    arrow: Callable[[dict[str, Any]], Any]
    native: Callable[[], Column]


def _arithmetic(r: dict[str, Any]) -> Any:
    both = pc.add(r["amount"], r["quantity"])
    fives = pc.multiply(pc.divide(r["amount"], 5), 5)
    return pc.subtract(pc.divide(both, 7), pc.subtract(r["amount"], fives))


def _text(r: dict[str, Any]) -> Any:
    name = pc.utf8_slice_codeunits(pc.utf8_upper(pc.utf8_trim_whitespace(r["name"])), 0, 6)
    return pc.binary_join_element_wise(name, r["city"], "-")


def _choice(r: dict[str, Any]) -> Any:
    is_late = pc.fill_null(pc.greater(r["late"], 15), fill_value=False)
    return pc.if_else(is_late, pc.subtract(r["amount"], r["late"]), r["amount"])


CASES = {
    "arithmetic": Case(
        "lambda r: (r.amount + r.quantity) // 7 - r.amount % 5",
        _arithmetic,
        lambda: F.expr("(item.amount + item.quantity) div 7 - item.amount % 5"),
    ),
    "text": Case(
        "lambda r: r.name.strip().upper()[:6] + '-' + r.city",
        _text,
        lambda: F.expr("substring(upper(trim(item.name)), 1, 6) || '-' || item.city"),
    ),
    "choice": Case(
        "lambda r: r.amount - r.late if r.late is not None and r.late > 15 else r.amount",
        _choice,
        lambda: F.expr("if(item.late > 15, item.amount - item.late, item.amount)"),
    ),
}


def data(spark: SparkSession, rows: int) -> DataFrame:
    """The rows, cached."""
    n = F.col("id")
    cities = F.array(*map(F.lit, CITIES))
    item = F.struct(
        (n * 7919 % 10007).alias("amount"),
        (n % 13).alias("quantity"),
        F.concat(F.lit("  customer "), n % 1009, F.lit(" ")).alias("name"),
        cities[(n % len(CITIES)).cast("int")].alias("city"),
        F.when(n % 3 != 0, n % 60).alias("late"),
    )
    frame = spark.range(0, rows, numPartitions=2).select(item.alias("item")).cache()
    frame.count()
    return frame


def variants(case: Case) -> dict[str, Column]:
    """The function as a column, in each way."""
    fn = read_function(ast.parse(case.source, mode="eval").body, {})
    result, column = result_type(fn, (ITEM,), spread=True), F.col("item")
    call = eval(case.source)

    def by_hand(items: pa.Array) -> pa.Array:
        return case.arrow({f.name: items.field(f.name) for f in items.type})

    return {
        "compiled": to_column(fn, ((column, ITEM),), result=result),
        "in Arrow batches": udf_column(fn, column, ITEM, result),
        "Python UDF": F.udf(call, spark_type(result), useArrow=False)(column),
        "Arrow by hand": arrow_udf(by_hand, spark_type(result))(column),
        "Spark by hand": case.native(),
    }


def sum_of(frame: DataFrame, column: Column) -> object:
    """Runs the column over all rows; equal results have equal sums."""
    return frame.select(F.sum(F.hash(column).cast("long"))).collect()[0][0]


def main() -> int:
    """Runs the cases."""
    parser = parser_of("functions", __doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5, help="measured runs of each")
    parser.add_argument("--warm", type=int, default=2, help="runs before these")
    asked = parser.parse_args()
    spark, _ = session(asked.memory)
    meter, frame, rows = Meter(spark, asked.seconds), data(spark, asked.rows), []
    for name, case in CASES.items():
        columns = variants(case)
        sums = {way: sum_of(frame, column) for way, column in columns.items()}
        if len(set(sums.values())) != 1:
            sys.exit(f"the ways of `{name}` do not give the same: {sums}")
        found = meter.alternate(
            {way: lambda _, c=column: sum_of(frame, c) for way, column in columns.items()},
            range(asked.warm + asked.rounds),
            asked.warm,
        )
        rows += [
            {
                "function": name,
                "way": way,
                **runs.record(),
                "over compiled": runs.seconds / found["compiled"].seconds,
                "of cpu": runs.cpu / found["compiled"].cpu,
            }
            for way, runs in found.items()
        ]
    ratios = [
        Ratio(f"{r['function']}: {r['way']} over compiled", r["over compiled"])
        for r in rows
        if r["way"] != "compiled"
    ]
    report(f"a function over {asked.rows} rows", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
