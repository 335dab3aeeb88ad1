"""Keyed operators: one result for each group, from all of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.aggregates import has_inverse, merging
from hydro_core.catalog.classes import Summary
from hydro_core.catalog.group import made_by_key
from hydro_core.catalog.spec import Aggregate
from hydro_core.functions.tree import Fn
from hydro_core.plan.tick_plan import Kind, group_key, result_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.leaf import together
from hydro_core.spark.frames.materialize import counted, held
from hydro_core.spark.frames.relation import (
    COUNT,
    FOREVER,
    ITEM,
    ORD,
    TICK,
    UNTIL,
    Relation,
    coming_and_going,
    consolidated,
    exploded,
    since,
)
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.apply import is_column, scanned_in_python
from hydro_core.spark.lower.aggregates import (
    MergedResult,
    Partial,
    aggregate_column,
    count_part,
    merged_aggregate,
    stored_part,
)
from hydro_core.spark.lower.changelogs import (
    changed_keys,
    changes_by_lookups,
    changes_of,
    rows_before,
    rows_or_changes,
)
from hydro_core.spark.lower.folds import (
    first_and_rest,
    folded,
    native_fold,
    native_reduction,
    wrapped,
)
from hydro_core.spark.lower.items import (
    ACC,
    GroupKeys,
    accumulator_in,
    accumulator_type,
    column_types,
    evaluated,
    fn_type,
    key_of,
    keyed_item,
    keyed_value,
    keys_of,
    literal,
    make_row,
    named,
    own_columns,
    rows_go,
)
from hydro_core.spark.lower.registry import Step, as_kind, lowers
from hydro_core.spark.lower.relations import (
    cover,
    few_keys,
    key_parts,
    key_struct,
    keys_alone,
    narrowly,
    product,
    stretches,
    tick_axis,
    ticks_of,
    with_keys_of,
)
from hydro_core.types.item import Array, Field, ItemType, Row, Tuple

# Results of the program's functions as columns of the rows, computed before groups and windows.
#
# So each function runs once for a row, however many results use it; Python may compute it; and
# Spark groups rows whose partitioning it knows.


def with_arguments(step: Step) -> Step:
    """The step with aggregates over columns in place of functions that run in Python."""
    item, aggregates = step.input.item, step.node.args.get("aggregates", ())
    arguments = (argument for _, aggregate in aggregates for argument in aggregate.arguments)
    in_python = (a for a in arguments if isinstance(a, Fn) and not is_column(a, item))
    row, of, names = with_results(item, in_python)
    if not names or not isinstance(item, Row):
        return step
    rows = step.input.with_(frame=together(step.input.frame.withColumn(ITEM, row)), item=of)
    over = tuple((name, over_columns(one, names)) for name, one in aggregates)
    node = step.node
    return step.with_(inputs=(rows,), node=node.with_(args=node.args.with_(aggregates=over)))


def with_results(
    item: ItemType, functions: Iterable[Fn]
) -> tuple[Column, ItemType, Mapping[Fn, str]]:
    """The items with the results of functions as further columns, their type, and the columns'
    names.
    """
    asked, taken = list(dict.fromkeys(functions)), column_types(item)
    free = (name for i in range(len(asked) + len(taken)) if (name := f"f{i}") not in taken)
    names = dict(zip(asked, free, strict=False))
    if not names:
        return F.col(ITEM), item, names
    made = {name: evaluated(fn, item) for fn, name in names.items()}
    fields = [Field(name, fn_type(fn, item)) for fn, name in names.items()]
    wider = Row((*item.fields, *fields)) if isinstance(item, Row) else item
    return make_row((own_columns(item) | made).items()), wider, names


def over_columns(aggregate: Aggregate, names: Mapping[Fn, str]) -> Aggregate:
    """The aggregate, over columns in place of functions of rows."""
    arguments = (names.get(a, a) if isinstance(a, Fn) else a for a in aggregate.arguments)
    return replace(aggregate, arguments=tuple(arguments))


# Keyed results along the ticks, for all kinds of results: a tick is one more column.
#
# The rows of a key have ticks: a row of a history has the tick of its arrival, or the tick before
# the range; an update has its sign. The result at each tick is *merged* from partial results by a
# window over the ticks of a key, or, for functions without an aggregate of Spark, *replayed*:
# folded in the order of ticks, with the accumulator after each tick as a result. A commutative
# function permits this order. The stored result of a key precedes its first tick. Each result is
# valid until the next one of its key.


ROWS = "rows"
STATE = "state"
"""The column of the stored item, the only field `x` of a struct; null where nothing is stored."""
VALUE = "w"
"""The column of a value, the only field `x` of a struct; null for none."""
RESULT = "row"
"""The item of a result, the only field `x` of a struct; null where there is no result."""


@dataclass(frozen=True, slots=True)
class MergedResults:
    """Results that are merged, by their names."""

    results: Mapping[str, MergedResult]
    resumes: bool = False
    """True if there may be stored results, in the column `state`."""
    stored: Sequence[Column] = ()
    """The stored `item` as the partial results of all results; empty if they continue from
    `state`.
    """
    are_aggregates: bool = False
    """True if the columns `stored` are aggregate functions over groups of stored items."""
    rows: str = ROWS
    """The result that is the number of the key's rows, if there is one."""
    vanishes: bool = False
    """True if rows may be retracted, so that a key may have none."""

    def of_changes(self) -> MergedResults | None:
        """The same results for updates with the count `n`; None if some result cannot subtract
        retractions.
        """
        number = MergedResult((count_part(F.lit(1)),), lambda parts: parts[0])
        results = {**self.results, self.rows: self.results.get(self.rows, number)}
        found = {name: merged.of_changes() for name, merged in results.items()}
        known = {name: merged for name, merged in found.items() if merged is not None}
        if len(known) < len(found):
            return None
        return replace(self, results=known, vanishes=True)

    @property
    def is_there(self) -> Column | None:
        """A condition that the key has a result; None: it always has."""
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

        With a column `n`, rows are updates with that count.
        """
        if self.vanishes and not all(partial.is_weighted for _, partial in self._partials()):
            each = F.array_repeat(F.signum(COUNT).cast("long"), F.abs(COUNT).cast("int"))
            kept = [name for name in rows.columns if name != COUNT]
            rows = exploded(rows, [*kept, F.explode(each).alias(COUNT)], reads=(COUNT,))
        return rows.groupBy(TICK, *keys.columns).agg(*self._of_rows())

    def of_no_rows(self, rows: DataFrame) -> DataFrame:
        """(p0 …): the partial results of no rows."""
        return rows.where(F.lit(False)).agg(*self._of_rows())

    def of_stored(self, keys: GroupKeys, stored: DataFrame, state: Column) -> DataFrame:
        """(the key, state, p0 …): the partial results of stored items."""
        parts = [column.alias(f"p{i}") for i, column in enumerate(self.stored)]
        if not self.are_aggregates:
            return stored.select(*keys.columns, state, *parts)
        grouped = stored.groupBy(*keys.columns).agg(F.first(state).alias(STATE), *parts)
        return grouped.where(F.col(STATE).isNotNull())

    def along(self, keys: GroupKeys, parts: DataFrame) -> DataFrame:
        """(the key, t, until, state, p0 …): the merged partial results of a key up to each tick."""
        in_time = Window.partitionBy(*keys.by).orderBy(TICK)
        so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        state = [F.first(STATE, ignorenulls=True).over(so_far).alias(STATE)] if self.resumes else []
        merged = [p.merged(F.col(name), so_far).alias(name) for name, p in self._partials()]
        until = F.coalesce(F.lead(TICK).over(in_time), F.lit(FOREVER)).alias(UNTIL)
        return parts.select(*keys.by, TICK, until, *state, *merged)

    def made(self) -> Mapping[str, Column]:
        """The results of the merged partial results."""
        parts = (F.col(name) for name, _ in self._partials())
        return {name: merged.of_next(parts) for name, merged in self.results.items()}


@dataclass(frozen=True, slots=True)
class ReplayedFold:
    """The accumulators of a function after each value."""

    fn: Fn
    value: Column
    of: ItemType
    acc: ItemType
    before: Column | None = None
    """The accumulator in a stored result, in the column `state`; None: none is stored."""
    start: Column | None = None
    """The start of a fold; None for a reduction, which starts with its first value."""

    @property
    def resumes(self) -> bool:
        """True if there may be stored results."""
        return self.before is not None

    @property
    def is_there(self) -> None:
        """None: a key always has a result."""

    def of_changes(self) -> None:
        """None: a retraction cannot be subtracted from a fold."""

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
        # A stored result, and the start of a key without values, have no value.
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
        # Several values at a tick: the result is the accumulator after the last one.
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


Along = MergedResults | ReplayedFold


@dataclass(frozen=True, slots=True)
class KeySummary:
    """The result of the items of a key, as columns of `item`."""

    item: Callable[[Step], Column]
    """The output's item, of the key columns `k0` … and the results."""
    in_time: Callable[[Step, bool], Along | None]
    """The sequence of results from tick to tick; None if only whole groups determine them.

    The flag is true if stored results continue.
    """
    of_whole_groups: Callable[[Step], Sequence[Column]] | None = None
    """The named results of a group of rows, where they are computed differently there."""
    has_start: bool = False
    """True if a global result of no items exists."""

    def is_always(self, step: Step) -> bool:
        """True if there is a result at every tick, with or without items."""
        return self.has_start and result_key(step.node) is None

    def of_group(self, step: Step) -> Sequence[Column]:
        """The named results of a group of rows: aggregates."""
        if self.of_whole_groups is not None:
            return self.of_whole_groups(step)
        along = self.in_time(step, False)
        assert along is not None
        return along.of_group(step)


def over_ticks(step: Step, summary: KeySummary) -> Relation | None:
    """The results over a history or a changelog stream, in one pass over its rows.

    None if a retraction cannot be subtracted from a result.
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
    # A result that ends before the range is dropped.
    found = found.withColumn(TICK, F.greatest(F.col(TICK), F.lit(step.first)))
    found = found.where(F.col(TICK) < F.col(UNTIL))
    return step.relation(Kind.G, versions(step, results(step, summary, along, keys, found)))


def start_of(step: Step, along: Along, rows: DataFrame) -> DataFrame:
    """(t, …): the result of no rows, valid from before the first row on."""
    start = F.lit(max(step.first - 1, 0)).cast("long")
    return along.of_no_rows(rows).withColumn(TICK, start)


def results(
    step: Step, summary: KeySummary, along: Along, keys: GroupKeys, found: DataFrame
) -> DataFrame:
    """(k0 …, t, until, row) of the merged results; stored results are used as they are."""
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
    return found.select(*keys.names, TICK, UNTIL, row.alias(RESULT))


def versions(step: Step, rows: DataFrame) -> DataFrame:
    """(item, t, until) of rows (t, until, row) that are valid in the range."""
    there = rows.where(F.col(RESULT).isNotNull())
    return since(there.select(F.col(RESULT).getField("x").alias(ITEM), TICK, UNTIL), step.first)


# The summaries of the catalogue as columns: one entry each.
#
# An operator over all rows of a key and the running one over new rows share it. A result is
# *merged* from partial results if the summary has them, else the key's values are *replayed*.


BEST = "best"


def summary_of(step: Step) -> KeySummary:
    """The summary of the operator's keyed results."""
    own = made_by_key(step.node.cls)
    if own is None:
        raise TypeError(f"`{step.node.op.name}` makes no results by key")
    return _SUMMARIES[own.summary]


def _fold_in_time(step: Step, resumes: bool) -> Along:
    acc, (value, item) = accumulator_type(step), keyed_value(step)
    start = literal(step.arg("init"), acc).cast(spark_type(acc))
    before = _stored_accumulator(step, acc) if resumes else None
    if before is not None:
        start = F.when(F.col(STATE).isNotNull(), before).otherwise(start)
    merged = native_fold(step, start, acc, wrapped(value), item)
    if merged is None:
        return ReplayedFold(step.arg("f"), value, item, acc, before, start)
    return MergedResults({ACC: merged}, resumes=resumes)


def _stored_accumulator(step: Step, acc: ItemType) -> Column:
    return accumulator_in(step, F.col(STATE).getField("x"), acc).cast(spark_type(acc))


def _made(step: Step) -> Column:
    return keyed_item(step, accumulator_type(step))


def _reduction_in_time(step: Step, resumes: bool) -> Along:
    """A reduction takes the stored result as one more value."""
    acc, (value, item) = accumulator_type(step), keyed_value(step)
    merged = native_reduction(step, acc, wrapped(value), item)
    if merged is not None and not resumes:
        return MergedResults({ACC: merged})
    stored = accumulator_in(step, F.col(ITEM), acc)
    again = native_reduction(step, acc, wrapped(stored), acc) if resumes else None
    if merged is None or again is None:
        before = _stored_accumulator(step, acc) if resumes else None
        return ReplayedFold(step.arg("f"), value, item, acc, before)
    parts = [p.of_rows for p in again.partials]
    return MergedResults({ACC: merged}, resumes=True, stored=parts, are_aggregates=True)


def _latest_in_time(step: Step, resumes: bool) -> MergedResults:
    best = Partial(F.max(_rank(step, step.input.item)), F.max)
    stored = [_rank(step, step.item)] if resumes else ()
    return MergedResults(
        {BEST: MergedResult((best,), lambda parts: parts[0])}, resumes=resumes, stored=stored
    )


def _rank(step: Step, item: ItemType) -> Column:
    """The order of a row, then the row `x` itself: the latest row of a key has the greatest."""
    order = step.arg("order")
    if isinstance(order, Fn):
        places = [evaluated(order, item)]
    else:
        places = [named(F.col(ITEM), item, name)[0] for name in order]
    return F.struct(*(p.alias(f"o{i}") for i, p in enumerate(places)), F.col(ITEM).alias("x"))


def _aggregates_of_group(step: Step) -> Sequence[Column]:
    item, types = step.input.item, column_types(step.item)
    return [
        aggregate_column(a, item, types[name], step.node, ordered=step.input.ordered).alias(f"a{i}")
        for i, (name, a) in enumerate(step.arg("aggregates"))
    ]


def _aggregates_in_time(step: Step, resumes: bool) -> MergedResults | None:
    item, types = step.input.item, column_types(step.item)
    aggregates: Sequence[tuple[str, Aggregate]] = step.arg("aggregates")
    goes, results = rows_go(step), {}
    for i, (name, aggregate) in enumerate(aggregates):
        merged = merged_aggregate(aggregate, item, types[name], step.node, goes=goes)
        if merged is None:
            return None
        results[f"a{i}"] = merged
    stored = _stored_aggregates(step, aggregates) if resumes else ()
    if not results:
        results[ROWS] = MergedResult((count_part(F.lit(1)),), lambda parts: parts[0])
        stored = [F.lit(1)] if resumes else ()
    rows = "a0" if has_inverse(aggregates) else ROWS
    return MergedResults(results, resumes=resumes, stored=stored, rows=rows)


def _stored_aggregates(step: Step, aggregates: Sequence[tuple[str, Aggregate]]) -> list[Column]:
    """Stored results as partial results: only results that merge unchanged are stored."""
    merges = merging(aggregates)
    if merges is None:
        raise TypeError(f"`{step.node.op.name}` is not merged from its own results")
    return [stored_part(F.col(ITEM), step.item, name, merge) for name, merge in merges]


def _row_of_aggregates(step: Step) -> Column:
    keyed = [(name, F.col(f"k{i}")) for i, name in enumerate(step.arg("by") or ())]
    made = [(name, F.col(f"a{i}")) for i, (name, _) in enumerate(step.arg("aggregates"))]
    return make_row([*keyed, *made])


_SUMMARIES: Mapping[Summary, KeySummary] = {
    Summary.FOLD: KeySummary(_made, _fold_in_time, has_start=True),
    Summary.REDUCTION: KeySummary(_made, _reduction_in_time),
    Summary.LATEST: KeySummary(lambda _: F.col(f"{BEST}.x"), _latest_in_time),
    Summary.AGGREGATES: KeySummary(
        _row_of_aggregates, _aggregates_in_time, _aggregates_of_group, has_start=True
    ),
}


# Groups of items: operators on all items of a tick, or of a key.


@lowers("unique")
def unique(step: Step) -> Relation:
    """Each distinct item once at each tick, at its first position."""
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
    """One item of all items of a key, or of all."""
    return rows_or_changes(
        step, lambda: _results(step), lambda: _changes_of(step, keys_of(step).parts, _results)
    )


def _results(step: Step) -> Relation:
    if step.kind is Kind.G:
        step = step.with_(inputs=(step.input.unordered(),))
    step, summary = with_arguments(step), summary_of(step)
    # A history or a changelog needs no evaluation of each tick.
    stays = step.input.kind is not Kind.E and not step.is_tick and not step.input.ordered
    return (over_ticks(step, summary) if stays else None) or _of_groups(step, summary)


def several_by_key(step: Step, results: Callable[[Step], Relation]) -> Relation:
    """Several results of a key; unchanged results are left out of its updates."""
    keys = key_of(F.col(ITEM), step.input.item, group_key(step.node))
    return rows_or_changes(
        step, lambda: results(step), lambda: consolidated(_changes_of(step, keys, results))
    )


def _changes_of(
    step: Step, keys: Sequence[Column], results: Callable[[Step], Relation]
) -> DataFrame:
    """The updates of the results, of the changed keys only: (item, t, n).

    The results of these keys, from the tick before the range on, determine the updates.
    """
    changing = _of_changed_keys(step, keys) if step.first else step.input
    since = step.with_(first=step.first - 1, inputs=(changing,))
    found = as_kind(results(since), Kind.G, since.first)
    return coming_and_going(found.frame, step.first, step.last)


def _of_changed_keys(step: Step, keys: Sequence[Column]) -> Relation:
    """The rows whose keys change, from the tick before the range on."""
    changes = changes_of(step.input, step.first)
    few = few_keys(*counted(keys_alone(changes.frame, keys).distinct(), step.materialize))
    narrow = with_keys_of(few, keys)
    rows = step.input.with_(frame=narrowly(step.input, narrow))
    if rows.kind is Kind.H:
        return rows
    # Held, since Spark loses fields that it removes from items which are read in several ways.
    rows = rows.with_(frame=held(rows.frame.select(ITEM, TICK, UNTIL)))
    before = rows_before(rows, held(narrow(changes.frame)), step.first)
    return rows.with_(frame=rows.frame.unionByName(before))


def _of_groups(step: Step, summary: KeySummary) -> Relation:
    """The results of the rows of each key at a tick, or in each interval without a change."""
    step = step.with_(inputs=(in_stretches(step, keys_of(step).parts),))
    frame, times = step.input.frame, step.input.times
    if summary.is_always(step):
        rows = _at_every_tick(step, frame, summary.of_group)
    else:
        rows = keys_of(step).grouped(frame, times, summary.of_group(step))
    return step.relation(step.input.kind, rows.select(summary.item(step).alias(ITEM), *times))


def in_stretches(step: Step, keys: Sequence[Column]) -> Relation:
    """The rows of each key, split wherever one of them starts or ends.

    Between two cuts the rows of a key are the same, and so is their result. The cost is the rows of
    a key times its changes, where it would be rows times ticks; rows of a batch are rows of one
    tick, and ordered rows or rows without a key are expanded to ticks.
    """
    if step.last <= step.first + 1 or step.input.ordered or not keys:
        return step.input.events(step.first, step.last)
    if step.input.kind is Kind.E:
        return step.input
    rows = as_kind(step.input, Kind.G, step.first)
    keyed = rows.frame.select(key_struct(keys).alias(ITEM), TICK, UNTIL)
    # Also rows that end after the range: those of an interval end together.
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
    """Aggregates of each tick of the range, also of ticks without rows: (the columns, t)."""
    if step.is_tick:
        # A global aggregate over nothing has a row.
        return frame.agg(*columns(step)).withColumn(TICK, F.lit(step.first).cast("long"))
    found = frame.groupBy(TICK).agg(*columns(step))
    rest = tick_axis(step).join(found.select(TICK), TICK, "left_anti")
    empty = frame.where(F.lit(False)).agg(*columns(step.with_(last=step.first)))
    return found.unionByName(rest.crossJoin(empty))
