"""The items whose key is in no item of the other side."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, Relation
from hydro_core.spark.lower.items.columns import at, common, convert, type_at
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.spark.lower.relations.changes import changes_by_lookups
from hydro_core.spark.lower.relations.changes_of_pairs import changed_matches
from hydro_core.spark.lower.relations.keys import Keys, key_struct
from hydro_core.spark.lower.relations.matching import anti_join, selected
from hydro_core.spark.lower.relations.product import ticks_of


@lowers("anti_join")
def anti_join_(step: Step) -> Relation:
    """The items of pos whose key is not in neg."""
    pos, neg = step.inputs
    mine = type_at(pos.item, 0)
    to = common(mine, neg.item)
    keys = ([convert(at(F.col(ITEM), pos.item, 0), mine, to)], [convert(F.col(ITEM), neg.item, to)])
    return _without_match(step, keys)


@lowers("difference")
def difference(step: Step) -> Relation:
    """The items of pos that are not in neg."""
    pos, neg = step.inputs
    to = common(pos.item, neg.item)
    if step.is_tick and pos.distinct is not None and pos.item == to:
        return _without(step, pos.distinct, convert(F.col(ITEM), neg.item, to))
    keys = ([convert(F.col(ITEM), pos.item, to)], [convert(F.col(ITEM), neg.item, to)])
    return _without_match(step, keys)


def _without_match(step: Step, keys: Keys) -> Relation:
    (pos, neg), ticks = step.inputs, ticks_of(step)
    return changes_by_lookups(
        step,
        lambda: anti_join(pos, neg, keys, ticks),
        lambda: changed_matches(pos, neg, keys, ticks, wanted=False),
    )


def _without(step: Step, distinct: DataFrame, negative: Column) -> Relation:
    """The items, each in a struct of its own, that are not in neg: they stay where they are."""
    pos, neg = step.inputs
    keys = ([F.col(ITEM)], [key_struct([negative])])
    found = selected(
        pos.with_(frame=distinct),
        neg.events(step.first, step.last),
        keys,
        ticks_of(step),
        "left_anti",
        never_null=True,
    )
    item = F.col(ITEM).getField("k0").alias(ITEM)
    return found.with_(frame=found.frame.select(item, *found.other_columns))
