"""Folds and scans with functions of the program, of the values of a group in an array.

The values are gathered in their order where the function depends on it. A fold of them is columns
where the function compiles, else Python's, an array at a time; a scan is always Python's.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column

from hydro_core.plan.kinds import is_in_order
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns import NotCompilable, to_column
from hydro_core.spark.functions.udf import folded_in_python, scanned_in_python
from hydro_core.spark.lower.items.columns import convert, literal
from hydro_core.spark.lower.items.keyed import ACC, keyed_item
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import ItemType


def folded(
    step: Step, value: Column, item: ItemType, acc: ItemType, start: Column | None
) -> Column:
    """The fold of a group's values from a start; without one, of the others from the first."""
    fn, wanted, pairwise = step.arg("f"), spark_type(acc), start is None
    values = _gathered(step, wrapped(value))
    if start is None:
        start, values = first_and_rest(values, item, acc)
    try:
        return F.aggregate(
            values,
            start,
            lambda a, x: to_column(fn, ((a, acc), (x, item)), result=acc).cast(wanted),
        )
    except NotCompilable:
        return folded_in_python(fn, acc, item, values, start, pairwise=pairwise, tick=step.tick)


def first_and_rest(values: Column, item: ItemType, acc: ItemType) -> tuple[Column, Column]:
    """The first of the values as the accumulator that a reduction starts with, and the others."""
    first = convert(F.get(values, F.lit(0)), item, acc).cast(spark_type(acc))
    return first, F.slice(values, F.lit(2), F.greatest(F.size(values) - 1, F.lit(0)))


def wrapped(value: Column) -> Column:
    """The value in a struct of its own, which is null for no value only."""
    return F.struct(value.alias("x"))


def _gathered(step: Step, each: Column) -> Column:
    """A group's values as an array, nulls among them; in order where the function asks for it."""
    if not is_in_order(step.node, step.input.ordered):
        return F.transform(F.collect_list(each), lambda pair: pair.getField("x"))
    placed = F.struct(F.col(ORD).alias("o"), each.alias("w"))
    pairs = F.sort_array(F.collect_list(F.when(each.isNotNull(), placed)))
    return F.transform(pairs, lambda pair: pair.getField("w").getField("x"))


def scanned(
    step: Step, keys: Sequence[Column], value: tuple[Column, ItemType], acc: ItemType
) -> Relation:
    """What a scan gives of the rows of each key that are there at the same ticks.

    Args:
        step: the operator; its input stands in an order.
        keys: the key, as columns k0, k1 …; none where all items are one group.
        value: what the function gets of an item, and its type.
        acc: the type of the accumulator.
    """
    times, names = step.input.times, [f"k{i}" for i in range(len(keys))]
    pairs = F.collect_list(F.struct(F.col(ORD).alias("o"), value[0].alias("x")))
    grouped = step.input.frame.groupBy(*times, *keys).agg(F.sort_array(pairs).alias("pairs"))
    values = F.transform("pairs", lambda pair: pair.getField("x"))
    start = literal(step.arg("init"), acc)
    accs = scanned_in_python(step.arg("f"), acc, value[1], values, start, tick=F.col(TICK))
    # equal items have one place: what is given after each of them stands in their order
    orders = F.transform("pairs", lambda pair, i: F.struct(pair.getField("o"), i.alias("i")))
    both = grouped.withColumn("accs", accs).withColumn("orders", orders)
    zipped = F.explode(F.arrays_zip("accs", "orders")).alias("z")
    rows = exploded(both, [*times, *names, zipped], reads=("accs", "orders")).select(
        *times, *names, F.col("z.accs").alias(ACC), F.col("z.orders").alias(ORD)
    )
    made = keyed_item(step, acc) if keys else F.col(ACC)
    frame = rows.select(made.alias(ITEM), *times, ORD)
    return step.relation(step.input.kind, frame, ordered=True)
