"""What differs from the tick before."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.classes import Matching
from hydro_core.catalog.variants import Compares
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.log import coming_and_going, consolidated, expanded
from hydro_core.spark.frames.relation import COUNT, ITEM, ORD, TICK, Relation
from hydro_core.spark.lower.items.columns import key_of, make_tuple
from hydro_core.spark.lower.over_time.history import last_stored
from hydro_core.spark.lower.registry import Step, as_kind, lowers
from hydro_core.spark.lower.relations.changes import changes_of, weighed
from hydro_core.spark.lower.relations.keys import keys_alone, without_keys_of


def first_seen(step: Step, known: Relation | None, *, once: bool = False) -> Relation:
    """`x = difference(d, old x)`: each item at its first tick of all, with its copies of that tick.

    So it is by key. What is known are items with the keys of earlier ranges; `once`: of the copies
    one is given.
    """
    relation = step.input.unordered() if once else step.input
    keys = _seen_by(step, relation)
    order = [ORD] if relation.ordered else []
    if once:
        rows = relation.frame.groupBy(ITEM).agg(F.min(TICK).alias(TICK))
    else:
        firsts = relation.frame.withColumn("first", F.min(TICK).over(Window.partitionBy(*keys)))
        rows = firsts.where(F.col(TICK) == F.col("first")).select(ITEM, TICK, *order)
    rows = rows.where(F.col(TICK) >= step.first)
    if known is not None:
        rows = without_keys_of(keys_alone(known.frame, _seen_by(step, known)), keys)(rows)
    return step.relation(Kind.E, rows, ordered=relation.ordered)


def _seen_by(step: Step, relation: Relation) -> list[Column]:
    """What of the items is seen for the first time: all, or the key of the join."""
    cls = step.node.cls
    if isinstance(cls, Matching) and cls.compares is Compares.ITEMS:
        return [F.col(ITEM)]
    return key_of(F.col(ITEM), relation.item, step.arg("on"))


@lowers("delta")
def delta(step: Step) -> Relation:
    """`a_t ∸ a_{t−1}`: what a history adds, else the positive changes, as often as they count."""
    if step.input.kind is Kind.H:
        return step.relation(Kind.E, step.input.unordered().new(step.first).frame)
    net = _changes(step).where(F.col(COUNT) > 0)
    return step.relation(Kind.E, expanded(net).select(ITEM, TICK))


@lowers("changes")
def changes(step: Step) -> Relation:
    """`(n, x)` where the number of copies of x has changed by n."""
    pair = make_tuple(F.col(COUNT), F.col(ITEM)).alias(ITEM)
    return step.relation(Kind.E, _changes(step).select(pair, TICK))


def _changes(step: Step) -> DataFrame:
    """(item, t, n), an item once in a tick: as told, or by what is stored of the tick before."""
    relation = step.input.unordered()
    if step.input.changes is not None or relation.kind is Kind.H:
        return consolidated(changes_of(step.input, step.first).frame)
    there = as_kind(relation, Kind.G, step.first).frame
    changes = coming_and_going(there, step.first, step.last)
    if step.past is not None:
        start = F.lit(step.first).cast("long").alias("start")
        gone = last_stored(step).select(ITEM, start)
        changes = changes.union(weighed(gone, -1, at="start"))
    return consolidated(changes)
