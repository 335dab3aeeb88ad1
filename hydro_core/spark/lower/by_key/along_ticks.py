"""Results by key along the ticks, whatever they are made of: a tick is one more column.

The rows of a key count at ticks: a history's from the tick at which they come, those of before the
range at the tick before it; others come, and go again, with the sign of a change. What they make at
each tick is *merged* from partial results by a window over the ticks of a key, or, of functions
that Spark has no aggregate for, *replayed*: folded in the order of ticks, with the accumulator
after each as a result. A commutative function may be given its values so. What is stored of a key
stands before its first tick. Each result is there until the next one of its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Window

from hydro_core.functions.fn import Fn
from hydro_core.plan.kinds import Kind
from hydro_core.plan.versions import result_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.log import coming_and_going, since
from hydro_core.spark.frames.relation import COUNT, FOREVER, ITEM, TICK, UNTIL, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.udf import scanned_in_python
from hydro_core.spark.lower.aggregates.folds import first_and_rest, folded, wrapped
from hydro_core.spark.lower.aggregates.partial import MergedResult, Partial, counted
from hydro_core.spark.lower.items.keyed import ACC, GroupKeys, keys_of
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import Array, ItemType

ROWS = "rows"
STATE = "state"
"""The column of the stored item, the only field `x` of a struct; null where nothing is stored."""
VALUE = "w"
"""The column of a value, the only field `x` of a struct; null for none."""
ROW = "row"
"""The item of a result, the only field `x` of a struct; null where there is no result."""


@dataclass(frozen=True, slots=True)
class Merging:
    """Results that are merged, by their names."""

    results: Mapping[str, MergedResult]
    resumes: bool = False
    """Whether there may be stored results, in the column `state`."""
    stored: Sequence[Column] = ()
    """The stored `item` as the partial results of all results; none if they go on from `state`."""
    are_aggregates: bool = False
    """Whether these are aggregates, as the partial results of rows are."""
    rows: str = ROWS
    """The result that is the number of the key's rows, if there is one."""
    vanishes: bool = False
    """Whether rows go again, so that a key may have none."""

    def of_changes(self) -> Merging | None:
        """The same of rows of which `n` copies come or go; None where what goes is not known."""
        number = MergedResult((counted(F.lit(1)),), lambda parts: parts[0])
        results = {**self.results, self.rows: self.results.get(self.rows, number)}
        found = {name: merged.of_changes() for name, merged in results.items()}
        known = {name: merged for name, merged in found.items() if merged is not None}
        if len(known) < len(found):
            return None
        return replace(self, results=known, vanishes=True)

    @property
    def is_there(self) -> Column | None:
        """Whether a key has a result; None: it has."""
        return F.col(self.rows) > 0 if self.vanishes else None

    def of_group(self, _: Step) -> Sequence[Column]:
        """The results of a group of rows, by their names."""
        return [merged.of_rows().alias(name) for name, merged in self.results.items()]

    def _partials(self) -> Iterator[tuple[str, Partial]]:
        found = (p for merged in self.results.values() for p in merged.partials)
        return ((f"p{i}", partial) for i, partial in enumerate(found))

    def _of_rows(self) -> list[Column]:
        return [partial.of_rows.alias(name) for name, partial in self._partials()]

    def partial(self, keys: GroupKeys, rows: DataFrame) -> DataFrame:
        """(the key, t, p0 …): the partial results of the rows of each key and tick.

        With a column `n`, as many copies come, or go where it is negative.
        """
        if self.vanishes and not all(partial.is_weighted for _, partial in self._partials()):
            each = F.array_repeat(F.signum(COUNT).cast("long"), F.abs(COUNT).cast("int"))
            kept = [name for name in rows.columns if name != COUNT]
            rows = exploded(rows, [*kept, F.explode(each).alias(COUNT)], reads=(COUNT,))
        return rows.groupBy(TICK, *keys.columns).agg(*self._of_rows())

    def of_no_rows(self, rows: DataFrame) -> DataFrame:
        """(p0 …): those of no rows."""
        return rows.where(F.lit(False)).agg(*self._of_rows())

    def of_stored(self, keys: GroupKeys, stored: DataFrame, state: Column) -> DataFrame:
        """(the key, state, p0 …): those of stored items."""
        parts = [column.alias(f"p{i}") for i, column in enumerate(self.stored)]
        if not self.are_aggregates:
            return stored.select(*keys.columns, state, *parts)
        grouped = stored.groupBy(*keys.columns).agg(F.first(state).alias(STATE), *parts)
        return grouped.where(F.col(STATE).isNotNull())

    def along(self, keys: GroupKeys, parts: DataFrame) -> DataFrame:
        """(the key, t, until, state, p0 …): what a key has up to each tick."""
        in_time = Window.partitionBy(*keys.by).orderBy(TICK)
        so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        state = [F.first(STATE, ignorenulls=True).over(so_far).alias(STATE)] if self.resumes else []
        merged = [p.merged(F.col(name), so_far).alias(name) for name, p in self._partials()]
        until = F.coalesce(F.lead(TICK).over(in_time), F.lit(FOREVER)).alias(UNTIL)
        return parts.select(*keys.by, TICK, until, *state, *merged)

    def made(self) -> Mapping[str, Column]:
        """The results of what is merged."""
        parts = (F.col(name) for name, _ in self._partials())
        return {name: merged.of_next(parts) for name, merged in self.results.items()}


@dataclass(frozen=True, slots=True)
class Replaying:
    """The accumulators of a function after each value."""

    fn: Fn
    value: Column
    of: ItemType
    acc: ItemType
    before: Column | None = None
    """The accumulator in a stored result, in the column `state`; None: none is stored."""
    start: Column | None = None
    """Where a fold starts; a reduction, which has none, starts with its first value."""

    @property
    def resumes(self) -> bool:
        """Whether there may be stored results."""
        return self.before is not None

    @property
    def is_there(self) -> None:
        """A key always has a result."""

    def of_changes(self) -> None:
        """What goes is not known."""

    def of_group(self, step: Step) -> Sequence[Column]:
        """The accumulator after all values of a group of rows."""
        return [folded(step, self.value, self.of, self.acc, self.start).alias(ACC)]

    def partial(self, keys: GroupKeys, rows: DataFrame) -> DataFrame:
        """(the key, t, w): the values."""
        return rows.select(*keys.columns, TICK, wrapped(self.value).alias(VALUE))

    def of_no_rows(self, rows: DataFrame) -> DataFrame:
        """(w): no value."""
        return rows.where(F.lit(False)).agg(F.first(wrapped(self.value)).alias(VALUE))

    def of_stored(self, keys: GroupKeys, stored: DataFrame, state: Column) -> DataFrame:
        """(the key, state): the stored items."""
        return stored.select(*keys.columns, state)

    def along(self, keys: GroupKeys, parts: DataFrame) -> DataFrame:
        """(the key, t, until, state, acc): the accumulator after each tick of a key."""
        value = F.col(VALUE)
        pair = F.struct(F.col(TICK).alias("at"), value.getField("x").alias("x"))
        pairs = F.sort_array(F.collect_list(F.when(value.isNotNull(), pair))).alias("pairs")
        # What is stored, and the start of what has no values, come without one.
        head = F.min(F.when(value.isNull(), F.col(TICK))).alias("head")
        state = [F.first(STATE, ignorenulls=True).alias(STATE)] if self.resumes else []
        grouped = parts.groupBy(*keys.by).agg(pairs, head, *state)
        values = F.transform("pairs", lambda pair: pair.getField("x"))
        found = grouped.withColumn("accs", self._accumulators(values))
        ats = F.concat(F.array("head"), F.transform("pairs", lambda pair: pair.getField("at")))
        each = F.arrays_zip(
            F.col("accs").alias(ACC),
            ats.alias(TICK),
            F.slice(ats, F.lit(2), F.size(ats)).alias(UNTIL),
        )
        other_columns = [*keys.by, *([STATE] if self.resumes else [])]
        made = F.inline(each).alias(ACC, TICK, UNTIL)
        rows = together(exploded(found, [*other_columns, made], reads=("head", "accs", "pairs")))
        # Of a tick, the accumulator after its last value.
        is_last = F.col(TICK).isNotNull() & ~F.col(TICK).eqNullSafe(F.col(UNTIL))
        return rows.where(is_last).withColumn(UNTIL, F.coalesce(UNTIL, F.lit(FOREVER)))

    def made(self) -> Mapping[str, Column]:
        """The result."""
        return {ACC: F.col(ACC)}

    def _accumulators(self, values: Column) -> Column:
        """The accumulators after no, one, two … of the values; null where there is none."""
        of_type = spark_type(self.acc)
        if self.start is not None:
            rest = scanned_in_python(self.fn, self.acc, self.of, values, self.start)
            return F.concat(F.array(self.start.cast(of_type)), rest)
        first, following = first_and_rest(values, self.of, self.acc)
        if self.before is None:
            none = F.lit(None).cast(of_type)
            rest = scanned_in_python(self.fn, self.acc, self.of, following, first, pairwise=True)
            return F.concat(F.array(none, first), rest)
        known = F.col(STATE).isNotNull()
        start = F.when(known, self.before).otherwise(first)
        values = F.when(known, values).otherwise(following)
        rest = scanned_in_python(self.fn, self.acc, self.of, values, start, pairwise=True)
        no_more = F.array().cast(spark_type(Array(self.acc)))
        one = F.when(known, no_more).otherwise(F.array(first))
        return F.concat(F.array(F.when(known, self.before)), one, rest)


Along = Merging | Replaying


@dataclass(frozen=True, slots=True)
class KeySummary:
    """What is made of the items of a key, as columns of `item`."""

    item: Callable[[Step], Column]
    """The output's item, of the key columns `k0` … and the results."""
    in_time: Callable[[Step, bool], Along | None]
    """How results follow each other from tick to tick; None where only whole groups tell.

    The flag says whether stored results go on.
    """
    of_whole_groups: Callable[[Step], Sequence[Column]] | None = None
    """The named results of a group of rows, where they are made in another way there."""
    has_start: bool = False
    """Whether there is a result of no items, where there is one of all."""

    def is_always(self, step: Step) -> bool:
        """Whether there is a result at every tick, items or none."""
        return self.has_start and result_key(step.node) is None

    def of_group(self, step: Step) -> Sequence[Column]:
        """The named results of a group of rows: aggregates."""
        if self.of_whole_groups is not None:
            return self.of_whole_groups(step)
        along = self.in_time(step, False)
        assert along is not None
        return along.of_group(step)


def over_ticks(step: Step, summary: KeySummary) -> Relation | None:
    """The results over what stays or comes and goes, in one pass over its rows.

    None where that a row goes cannot be taken out of a result.
    """
    along = summary.in_time(step, False)
    rows = step.input.frame
    if step.input.kind is Kind.H:
        rows = rows.withColumn(TICK, F.greatest(F.col(TICK), F.lit(step.first - 1)))
    else:
        along = None if along is None else along.of_changes()
        rows = coming_and_going(rows, step.first, step.last)
    if along is None:
        return None
    keys = keys_of(step)
    parts = along.partial(keys, rows)
    if summary.is_always(step):
        parts = parts.unionByName(start_of(step, along, rows))
    found = along.along(keys, parts)
    # What is over before the range need not be made.
    found = found.withColumn(TICK, F.greatest(F.col(TICK), F.lit(step.first)))
    found = found.where(F.col(TICK) < F.col(UNTIL))
    return step.relation(Kind.G, versions(step, results(step, summary, along, keys, found)))


def start_of(step: Step, along: Along, rows: DataFrame) -> DataFrame:
    """(t, …): what no rows make, from before the first one on."""
    start = F.lit(max(step.first - 1, 0)).cast("long")
    return along.of_no_rows(rows).withColumn(TICK, start)


def results(
    step: Step, summary: KeySummary, along: Along, keys: GroupKeys, found: DataFrame
) -> DataFrame:
    """(k0 …, t, until, row) of what is merged; stored results stand for themselves."""
    made, item, of_type = along.made(), summary.item(step), spark_type(step.item)
    row = wrapped(item.cast(of_type) if along.resumes else item)
    if along.is_there is not None and not summary.is_always(step):
        row = F.when(along.is_there, row)
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
    return since(there.select(F.col(ROW).getField("x").alias(ITEM), TICK, UNTIL), step.first)
