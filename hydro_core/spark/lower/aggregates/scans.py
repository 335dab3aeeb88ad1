"""Scans with functions of the program: the accumulator after each item of a group, in its order.

A group's items are gathered into an array, with what they are sorted by; Python goes through it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.functions.udf import scanned_in_python
from hydro_core.spark.lower.items.columns import literal
from hydro_core.spark.lower.items.keyed import ACC, keyed_item
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import ItemType


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
