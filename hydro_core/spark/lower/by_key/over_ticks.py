"""Results by key along the ticks, whatever they are made of: a tick is one more column.

The rows of a key count at ticks: a history's from the tick at which they come, those of before the
range at the tick before it; others come, and go again, with the sign of a change. What they make is
merged in the order of ticks, and each result is there until the next one of its key.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.log import coming_and_going
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, UNTIL, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates.folds import wrapped
from hydro_core.spark.lower.by_key.merging import STATE, Merging
from hydro_core.spark.lower.by_key.replaying import Replaying
from hydro_core.spark.lower.by_key.summaries import KeySummary
from hydro_core.spark.lower.items.grouping import GroupKeys
from hydro_core.spark.lower.items.keyed import keys_of
from hydro_core.spark.lower.registry import Step

ROW = "row"
"""The item of a result, the only field `x` of a struct; null where there is no result."""

FEW_KEYS = 200_000
"""Up to so many rows of new keys are sent to where what is stored is, which then is not sorted."""


def are_few(keys: int | None) -> bool:
    """Whether so many keys are sent to what is stored; None: they are few, and not counted."""
    return keys is None or keys <= FEW_KEYS


def few_keys(keys: DataFrame, count: int | None) -> DataFrame:
    """The keys, as they look for their rows among what is stored."""
    return F.broadcast(keys) if count is not None and are_few(count) else keys


def over_ticks(step: Step, summary: KeySummary) -> Relation | None:
    """The results over what stays or comes and goes, in one pass over its rows.

    None where that a row goes cannot be taken out of a result.
    """
    along = summary.in_time(step, False)
    rows = step.input.frame
    if step.input.kind is Kind.H:
        rows = rows.withColumn(TICK, F.greatest(F.col(TICK), F.lit(step.first - 1)))
    else:
        along = along.of_changes() if isinstance(along, Merging) else None
        rows = coming_and_going(rows, step.first, step.last)
    if along is None:
        return None
    keys = keys_of(step)
    parts = partial_results(along, keys, rows)
    if summary.is_always(step):
        parts = parts.unionByName(start_of(step, along, rows))
    found = along.along(keys, parts)
    # What is over before the range need not be made.
    found = found.withColumn(TICK, F.greatest(F.col(TICK), F.lit(step.first)))
    found = found.where(F.col(TICK) < F.col(UNTIL))
    return step.relation(Kind.G, versions(step, results(step, summary, along, keys, found)))


def partial_results(along: Merging | Replaying, keys: GroupKeys, rows: DataFrame) -> DataFrame:
    """(the key, t, …): what the rows (item, t) of each key make at each tick.

    With a column `n`, as many copies come, or go where it is negative.
    """
    if isinstance(along, Merging) and along.one_by_one:
        each = F.array_repeat(F.signum(COUNT).cast("long"), F.abs(COUNT).cast("int"))
        kept = [name for name in rows.columns if name != COUNT]
        rows = exploded(rows, [*kept, F.explode(each).alias(COUNT)], reads=(COUNT,))
    return along.partial(keys, rows)


def start_of(step: Step, along: Merging | Replaying, rows: DataFrame) -> DataFrame:
    """(t, …): what no rows make, from before the first one on."""
    start = F.lit(max(step.first - 1, 0)).cast("long")
    return along.of_no_rows(rows).withColumn(TICK, start)


def results(
    step: Step, summary: KeySummary, along: Merging | Replaying, keys: GroupKeys, found: DataFrame
) -> DataFrame:
    """(k0 …, t, until, row) of what is merged; stored results stand for themselves."""
    made, item, of_type = along.made(), summary.item(step), spark_type(step.item)
    row = wrapped(item.cast(of_type) if along.resumes else item)
    if isinstance(along, Merging) and along.vanishes and not summary.is_always(step):
        row = F.when(F.col(along.rows) > 0, row)
    other_columns: list[Column | str] = [*keys.back, TICK, UNTIL]
    if along.resumes:
        is_new = F.col(TICK) >= step.first
        made = {name: F.when(is_new, column) for name, column in made.items()}
        row = F.when(is_new, row).otherwise(wrapped(F.col(STATE).getField("x").cast(of_type)))
        other_columns.append(STATE)
    found = found.select(*other_columns, *(column.alias(name) for name, column in made.items()))
    return found.select(*keys.names, TICK, UNTIL, row.alias(ROW))


def versions(step: Step, rows: DataFrame) -> DataFrame:
    """(item, t, until) of rows (t, until, row), where they are in the range."""
    there = rows.where(F.col(ROW).isNotNull())
    tick = F.greatest(F.col(TICK), F.lit(step.first).cast("long")).alias(TICK)
    found = there.select(F.col(ROW).getField("x").alias(ITEM), tick, UNTIL)
    return found.where(F.col(TICK) < F.col(UNTIL))
