"""Products of relations: the pairs of rows with equal keys that are there together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame

from hydro_core.catalog.forms import Form
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, UNTIL, Relation
from hydro_core.spark.lower.registry import Step
from hydro_core.spark.lower.relations.keys import Keys, all_of, equal_keys, meeting
from hydro_core.types.item import ItemType


@dataclass(frozen=True, slots=True)
class Range:
    """The ticks first … last."""

    first: int
    last: int
    additions: bool = False
    """Of a history only the rows from `first` on are needed."""

    @property
    def is_tick(self) -> bool:
        return self.first == self.last


def renamed(relation: Relation, prefix: str, *keys: Column) -> DataFrame:
    """The frame with prefixed column names, and key columns `…k0`, `…k1`, … beside them."""
    columns = [F.col(name).alias(f"{prefix}{name}") for name in (ITEM, *relation.other_columns)]
    return relation.frame.select(*columns, *(k.alias(f"{prefix}k{i}") for i, k in enumerate(keys)))


def overlap(left: Kind, right: Kind, ticks: Range, mine: str = "l_") -> list[Column]:
    """When a row of the left and one of the right are there together.

    Nothing where that is so anyway. `mine` is how the left's columns begin.
    """
    if ticks.is_tick and Kind.G not in (left, right):
        return []
    if left is right is Kind.E:
        return [F.col(f"{mine}t") == F.col("r_t")]
    found = []
    for one, other, kind in ((mine, "r_", right), ("r_", mine, left)):
        # A row has begun when the other one is there, or before the other one ends.
        if kind is Kind.E:
            found.append(F.col(f"{one}t") <= F.col(f"{other}t"))
        elif kind is Kind.G:
            found.append(F.col(f"{one}t") < F.col(f"{other}until"))
    return found


def product(
    left: Relation,
    right: Relation,
    keys: Keys,
    make: Callable[[Column, Column], Column],
    item: ItemType,
    ticks: Range,
) -> Relation:
    """The pairs of rows with equal keys, at the ticks at which both are there, in the order of the
    left.
    """
    if ticks.additions and ticks.first > 0 and left.kind is right.kind is Kind.H:
        whole = replace(ticks, additions=False)
        arms = [
            product(x, y, keys, make, item, whole)
            for x, y in (
                (left.new(ticks.first), right),
                (left.past(ticks.first), right.new(ticks.first)),
            )
        ]
        return arms[0].with_(frame=arms[0].frame.unionByName(arms[1].frame))
    left, right = meeting(left, right, keys), meeting(right, left, keys[::-1])
    joined = pairs(left, right, keys, ticks)
    both = (left.kind, right.kind)
    tick, until = F.greatest(F.col("l_t"), F.col("r_t")), []
    if Kind.E in both:
        kind = Kind.E
        tick = F.col("l_t") if left.kind is Kind.E else F.col("r_t")
    elif Kind.G in both:
        kind = Kind.G
        ends = [F.col(f"{p}until") for p, k in zip(("l_", "r_"), both, strict=True) if k is Kind.G]
        until = [(ends[0] if len(ends) == 1 else F.least(*ends)).alias(UNTIL)]
        tick = F.greatest(tick, F.lit(ticks.first))
    else:
        kind = Kind.H
    order = [F.col("l_ord").alias(ORD)] if left.ordered else []
    made = make(F.col("l_item"), F.col("r_item")).alias(ITEM)
    return Relation(kind, joined.select(made, tick.alias(TICK), *until, *order), item, left.ordered)


def pairs(
    left: Relation,
    right: Relation,
    keys: Keys,
    ticks: Range,
    how: str = "inner",
) -> DataFrame:
    """Spark's join of rows with equal keys that are there together; the columns are prefixed."""
    conditions = equal_keys(len(keys[0])) + overlap(left.kind, right.kind, ticks)
    lefts, rights = renamed(left, "l_", *keys[0]), renamed(right, "r_", *keys[1])
    if conditions:
        return together(lefts.join(rights, all_of(conditions), how))
    return together(lefts.crossJoin(rights))


def ticks_of(step: Step) -> Range:
    return Range(step.first, step.last, step.form is Form.GROWTH and step.alone)
