"""All pairs of two streams' items."""

from __future__ import annotations

from pyspark.sql import Window

from hydro_core.catalog.refusals import MANY_SINGLES
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, TICK, UNTIL, Relation
from hydro_core.spark.lower.failure import fail
from hydro_core.spark.lower.items.columns import make_tuple, null
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.spark.lower.relations.changes import changes_by_lookups
from hydro_core.spark.lower.relations.changes_of_pairs import changed_pairs
from hydro_core.spark.lower.relations.keys import guarded
from hydro_core.spark.lower.relations.product import product, ticks_of


@lowers("cross")
def cross(step: Step) -> Relation:
    """All pairs that are there together."""
    left, right = (relation.unordered() for relation in step.inputs)
    ticks = ticks_of(step)
    return changes_by_lookups(
        step,
        lambda: product(left, right, ([], []), make_tuple, step.item, ticks),
        lambda: changed_pairs(left, right, ([], []), make_tuple, ticks),
    )


@lowers("cross_singleton")
def cross_singleton(step: Step) -> Relation:
    """Each item with the single item of the other side; a second single item fails the tick."""
    left, single = step.inputs
    single = single.unordered()
    if step.singles[1]:
        return _with_single(step, left, single)
    marked = _marked(single.events(step.first, step.last) if step.is_tick else single)
    wrong = fail(step.node, MANY_SINGLES)
    fine = F.when(F.col("at_once") > 1, wrong.cast("boolean")).otherwise(F.lit(True))
    checked = marked.with_(frame=marked.frame.where(guarded(fine)).drop("at_once"))
    found = _with_single(step, left, checked)
    # Where nothing meets the single items Spark would not look at them: this part, which has no
    # rows, makes it look.
    empty = marked.frame.where(guarded(~fine)).select(
        null(step.item).alias(ITEM), *(F.col(name) for name in _times(marked, found))
    )
    whole = found.frame.unionByName(empty, allowMissingColumns=True)
    return found.with_(frame=whole)


def _with_single(step: Step, left: Relation, single: Relation) -> Relation:
    """Each item with the single one; for events, which is there at each tick is a small table."""
    if left.kind is Kind.E:
        single = single.events(step.first, step.last)
    return product(left, single, ([], []), make_tuple, step.item, ticks_of(step))


def _times(marked: Relation, found: Relation) -> tuple[str, ...]:
    return tuple(name for name in marked.times if name in found.times)


def _marked(single: Relation) -> Relation:
    """The rows of the single side, with how many are there together, as `at_once`."""
    match single.kind:
        case Kind.E:
            at_once = F.count(F.lit(1)).over(Window.partitionBy(TICK))
        case Kind.H:
            at_once = F.count(F.lit(1)).over(Window.partitionBy())
        case Kind.G:
            # In the order of beginnings, a row that begins before another one ends is a second.
            in_time = Window.partitionBy().orderBy(TICK, UNTIL)
            before = in_time.rowsBetween(Window.unboundedPreceding, -1)
            is_second = F.max(UNTIL).over(before) > F.col(TICK)
            at_once = F.when(is_second, 2).otherwise(1)
    return single.with_(frame=single.frame.withColumn("at_once", at_once))
