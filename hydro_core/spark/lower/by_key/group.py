"""Groups of items: what becomes of all items of a tick, or of a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.plan.versions import group_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.log import coming_and_going, consolidated
from hydro_core.spark.frames.materialize import counted, held
from hydro_core.spark.frames.relation import COUNT, ITEM, ORD, TICK, UNTIL, Relation
from hydro_core.spark.lower.by_key.along_ticks import KeySummary, over_ticks
from hydro_core.spark.lower.by_key.arguments import with_arguments
from hydro_core.spark.lower.by_key.summaries import summary_of
from hydro_core.spark.lower.items.columns import key_of
from hydro_core.spark.lower.items.keyed import keys_of
from hydro_core.spark.lower.registry import Step, as_kind, lowers
from hydro_core.spark.lower.relations.changes import (
    changes_by_lookups,
    changes_of,
    rows_before,
    rows_or_changes,
)
from hydro_core.spark.lower.relations.changes_of_pairs import changed_keys
from hydro_core.spark.lower.relations.keys import (
    few_keys,
    key_parts,
    key_struct,
    keys_alone,
    narrowly,
    with_keys_of,
)
from hydro_core.spark.lower.relations.matching import cover
from hydro_core.spark.lower.relations.product import product, ticks_of
from hydro_core.spark.lower.relations.rows import stretches, tick_axis
from hydro_core.types.item import Row, Tuple


@lowers("unique")
def unique(step: Step) -> Relation:
    """Each distinct item once at each tick, where it stands first."""
    if step.ordered:
        step = step.as_events()
        firsts = step.input.frame.groupBy(ITEM, TICK).agg(F.min(ORD).alias(ORD))
        return step.relation(Kind.E, firsts, ordered=True)
    item = F.col(ITEM).getField("k0").alias(ITEM)
    if step.is_tick and step.input.kind is Kind.E and isinstance(step.item, Row | Tuple):
        tick = F.lit(step.first).cast("long").alias(TICK)
        items = step.input.frame.select(key_struct([F.col(ITEM)]).alias(ITEM)).distinct()
        rows = items.select(ITEM, tick)
        return step.relation(Kind.E, rows.select(item, TICK)).with_(distinct=rows)

    def there() -> Relation:
        found = cover(step.input, [F.col(ITEM)])
        return step.relation(found.kind, found.frame.select(item, *found.times))

    def changes() -> DataFrame:
        found = changed_keys(step.input, [F.col(ITEM)], ticks_of(step))
        return found.frame.select(item, TICK, COUNT)

    return changes_by_lookups(step, there, changes)


@lowers("aggregate", "fold", "fold_keyed", "latest", "reduce", "reduce_keyed")
def by_key(step: Step) -> Relation:
    """One item of those of a key, or of all."""
    return rows_or_changes(
        step, lambda: _results(step), lambda: _changes_of(step, keys_of(step).parts, _results)
    )


def _results(step: Step) -> Relation:
    if step.kind is Kind.G:
        step = step.with_(inputs=(step.input.unordered(),))
    step, summary = with_arguments(step), summary_of(step)
    # What stays over several ticks need not be looked at in each.
    stays = step.input.kind is not Kind.E and not step.is_tick and not step.input.ordered
    return (over_ticks(step, summary) if stays else None) or _of_groups(step, summary)


def several_by_key(step: Step, results: Callable[[Step], Relation]) -> Relation:
    """Several results of a key; of their changes those that stay are left out."""
    keys = key_of(F.col(ITEM), step.input.item, group_key(step.node))
    return rows_or_changes(
        step, lambda: results(step), lambda: consolidated(_changes_of(step, keys, results))
    )


def _changes_of(
    step: Step, keys: Sequence[Column], results: Callable[[Step], Relation]
) -> DataFrame:
    """How the results change: (item, t, n), those of the keys of what changes.

    Their results from the tick before the range on tell which come and which go.
    """
    changing = _of_changed_keys(step, keys) if step.first else step.input
    since = step.with_(first=step.first - 1, inputs=(changing,))
    found = as_kind(results(since), Kind.G, since.first)
    return coming_and_going(found.frame, step.first, step.last)


def _of_changed_keys(step: Step, keys: Sequence[Column]) -> Relation:
    """The rows whose keys are in what changes, from the tick before the range on."""
    changes = changes_of(step.input, step.first)
    few = few_keys(*counted(keys_alone(changes.frame, keys).distinct(), step.materialize))
    narrow = with_keys_of(few, keys)
    rows = step.input.with_(frame=narrowly(step.input, narrow))
    if rows.kind is Kind.H:
        return rows
    # Held, since Spark loses fields that it takes out of items which are read in several ways.
    rows = rows.with_(frame=held(rows.frame.select(ITEM, TICK, UNTIL)))
    before = rows_before(rows, held(narrow(changes.frame)), step.first)
    return rows.with_(frame=rows.frame.unionByName(before))


def _of_groups(step: Step, summary: KeySummary) -> Relation:
    """Of the rows of each key at a tick, or as long as they stay the same."""
    step = step.with_(inputs=(in_stretches(step, keys_of(step).parts),))
    frame, times = step.input.frame, step.input.times
    if summary.is_always(step):
        rows = _at_every_tick(step, frame, summary.of_group)
    else:
        rows = keys_of(step).grouped(frame, times, summary.of_group(step))
    return step.relation(step.input.kind, rows.select(summary.item(step).alias(ITEM), *times))


def in_stretches(step: Step, keys: Sequence[Column]) -> Relation:
    """The rows of each key, cut wherever one of them comes or goes.

    Between two cuts the same rows are there, and so their result. The price is the rows of a key
    times its changes, where it would be rows times ticks; events are rows of a tick each, and so
    are rows that stand in an order or have no key.
    """
    if step.last <= step.first + 1 or step.input.ordered or not keys:
        return step.input.events(step.first, step.last)
    if step.input.kind is Kind.E:
        return step.input
    rows = as_kind(step.input, Kind.G, step.first)
    keyed = rows.frame.select(key_struct(keys).alias(ITEM), TICK, UNTIL)
    # Of rows that end behind the range, too: those of a stretch end together.
    cuts = keyed.select(ITEM, TICK).union(keyed.select(ITEM, UNTIL)).distinct()
    cut = product(
        Relation(Kind.G, rows.frame, rows.item),
        Relation(Kind.G, stretches(cuts, step.last), rows.item),
        (keys, key_parts(len(keys))),
        lambda row, _: row,
        rows.item,
        ticks_of(step),
    )
    return cut.with_(partitioned_by=rows.partitioned_by)


def _at_every_tick(
    step: Step, frame: DataFrame, columns: Callable[[Step], Sequence[Column]]
) -> DataFrame:
    """Aggregates of each tick of the range, those without rows too: (the columns, t)."""
    if step.is_tick:
        # An aggregate over nothing has a row.
        return frame.agg(*columns(step)).withColumn(TICK, F.lit(step.first).cast("long"))
    found = frame.groupBy(TICK).agg(*columns(step))
    rest = tick_axis(step).join(found.select(TICK), TICK, "left_anti")
    empty = frame.where(F.lit(False)).agg(*columns(step.with_(last=step.first)))
    return found.unionByName(rest.crossJoin(empty))
