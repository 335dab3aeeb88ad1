"""Groups of rows that come and go: what they give changes only when a row of their key does.

So the rows of a key are cut wherever one of them begins or ends; between two cuts the same rows are
there, and an operator that groups by tick groups by these stretches of time instead. The price is
the rows of a key times its changes, where it would be rows times ticks.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, Window

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import FOREVER, ITEM, TICK, UNTIL
from hydro_core.spark.lower.registry import Step, as_kind
from hydro_core.spark.lower.relations.conditions import all_of


def between_changes(step: Step, keys: Sequence[Column]) -> Step:
    """The step with rows to be grouped by `input.times` and the keys, each group complete; with its
    rows as events where they are events, stand in an order, or have no key.
    """
    relation = step.input
    if step.is_tick or relation.kind is Kind.E or relation.ordered or not keys:
        return step.as_events()
    rows = as_kind(relation, Kind.G, step.first)
    names = [f"k{i}" for i in range(len(keys))]
    keyed = rows.frame.select(
        ITEM, TICK, UNTIL, *(k.alias(n) for k, n in zip(keys, names, strict=True))
    )
    begins = keyed.select(*names, F.col(TICK).alias("lo"))
    ends = keyed.where(F.col(UNTIL) <= step.last).select(*names, F.col(UNTIL).alias("lo"))
    cuts = begins.union(ends).distinct()
    in_time = Window.partitionBy(*names).orderBy("lo")
    stretches = cuts.select(
        *(F.col(n).alias(f"s_{n}") for n in names),
        "lo",
        F.coalesce(F.lead("lo").over(in_time), F.lit(FOREVER)).alias("hi"),
    )
    same_key = [F.col(n).eqNullSafe(F.col(f"s_{n}")) for n in names]
    there = [F.col(TICK) <= F.col("lo"), F.col("lo") < F.col(UNTIL)]
    cut = keyed.join(stretches, all_of([*same_key, *there])).select(
        ITEM, F.col("lo").alias(TICK), F.col("hi").alias(UNTIL)
    )
    return step.with_(inputs=(rows.with_(frame=cut),))
