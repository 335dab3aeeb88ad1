"""Results that go on from a stored log: what a range costs is what is new in it.

The new rows become partial results of their keys and ticks. Of the log only the rows of these keys
are looked at; each such key's stored row stands before its first tick, and a window over the ticks
of a key merges what follows. A row of the result is there until the next one of its key, so what
changes is known: at each tick of a key its row comes and the one before it goes. The rows of all
other keys stay, and are read only if somebody wants the whole relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window, WindowSpec

from hydro_core.plan.kinds import Kind
from hydro_core.plan.versions import result_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.log import live
from hydro_core.spark.frames.relation import COUNT, FOREVER, ITEM, TICK, UNTIL, Narrow, Relation
from hydro_core.spark.frames.settle import checkpointed, held
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.algebra import with_keys_of, without_keys_of
from hydro_core.spark.lower.changes import came_and_left, told
from hydro_core.spark.lower.folds import scanned, wrapped
from hydro_core.spark.lower.forms import STATE, Going, Holistic, form_of
from hydro_core.spark.lower.group import ACC
from hydro_core.spark.lower.grouping import GroupKeys, group_keys
from hydro_core.spark.lower.items import convert, key_fields, key_of
from hydro_core.spark.lower.partial import Partial
from hydro_core.spark.lower.registry import Step, lowers, per_tick

ROW, BEFORE = "row", "before"
"""A row of a key and the one whose place it takes, as `state` is; null where there is none."""

FEW_KEYS = 200_000
"""Up to so many rows of new keys are sent to where the log is, which then is not sorted."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The key of new and of stored items; nothing for a result of all items."""

    of_new: Sequence[GroupKeys]
    """Of each input."""
    of_stored: Sequence[Column]

    @property
    def names(self) -> list[str]:
        """The names of the key columns."""
        return self.of_new[0].names

    def named(self, columns: Sequence[Column]) -> list[Column]:
        """The columns by these names."""
        return [k.alias(name) for k, name in zip(columns, self.names, strict=True)]

    @property
    def in_time(self) -> WindowSpec:
        """The rows of a key in the order of ticks."""
        return Window.partitionBy(*self.names).orderBy(TICK)


@lowers("running_fold", "running_reduce", "running_fold_keyed", "running_reduce_keyed")
@lowers("running_latest", "running_aggregate")
@per_tick
def running(step: Step) -> Relation:
    """The result of all that came so far; the input is what is new."""
    return goes_on(step)


@lowers("moving_aggregate")
def moving_aggregate(step: Step) -> Relation:
    """The result of the input, which tells its changes."""
    return goes_on(step.with_(inputs=came_and_left(step.input, step.first)))


def goes_on(step: Step) -> Relation:
    """The result of an operator that goes on from its own.

    The inputs of the step are what came and, where there is a second one, what left.
    """
    log, settle = _log(step), step.settle
    keys = _keys(step)
    form = form_of(step)
    parts, rows = held(_partial_results(step, keys, form), settle)
    are_few = rows is None or rows <= FEW_KEYS
    few = parts.select(*keys.names)
    if rows is not None and are_few:
        few = F.broadcast(few)
    narrow: Narrow = with_keys_of(few, keys.of_stored) if keys.names else lambda frame: frame
    stored = None if log is None else live(narrow(log))
    of_stored = (
        _nothing_stored(step, parts) if stored is None else _stored(step, keys, form, stored)
    )
    both = parts.unionByName(_as_typed(of_stored, parts), allowMissingColumns=True)
    make = _merged if isinstance(form, Going) else _refolded
    rows_of_keys = make(step, keys, form, both)  # type: ignore[arg-type]
    # What was many keys need not be tried as few rows.
    moves, _ = held(_moves(keys, rows_of_keys), settle if are_few else checkpointed)
    return _relation(step, moves, _untouched(keys, few, log))


def _log(step: Step) -> DataFrame | None:
    """The stored changes of the result; where only its last tick is stored, its rows all come."""
    if step.log is not None or step.past is None:
        return step.log
    before = step.past.where(F.col(TICK) == step.first - 1)
    return before.select(ITEM, TICK, F.lit(1).cast("long").alias(COUNT))


def _keys(step: Step) -> Keys:
    by, item = step.node.args.get("by"), step.input.item
    if result_key(step.node) is None:
        return Keys([GroupKeys()] * len(step.inputs), ())
    fields, stored = key_fields(item, by), key_fields(step.item, by)
    of_stored = [
        convert(column, field.type, to.type)
        for column, field, to in zip(
            key_of(F.col(ITEM), step.item, by), stored, fields, strict=True
        )
    ]
    return Keys([group_keys(relation, by) for relation in step.inputs], of_stored)


def _partial_results(step: Step, keys: Keys, form: Going | Holistic) -> DataFrame:
    """(k0 …, t, p0 …): of the new items of each key and tick."""
    partials = _partials(form)
    of_rows = [p.of_rows.alias(f"p{i}") for i, p in enumerate(partials)]
    parts = [
        key.grouped(relation.frame, [TICK], of_rows)
        for key, relation in zip(keys.of_new, step.inputs, strict=True)
    ]
    if len(parts) > 1:
        negative = [(-F.col(f"p{i}")).alias(f"p{i}") for i in range(len(partials))]
        parts[1:] = [part.select(*keys.names, TICK, *negative) for part in parts[1:]]
    if form.every_tick and step.first == 0:
        # Before the first tick nothing is stored, and there is a result even so.
        nothing = step.input.frame.where(F.lit(False)).agg(*of_rows)
        parts.append(nothing.withColumn(TICK, F.lit(step.first).cast("long")))
    if len(parts) == 1:
        return parts[0]
    both = reduce(DataFrame.unionByName, parts)
    return both.groupBy(*keys.names, TICK).agg(
        *(p.merged(F.col(f"p{i}")).alias(f"p{i}") for i, p in enumerate(partials))
    )


def _partials(form: Going | Holistic) -> list[Partial]:
    if isinstance(form, Holistic):
        gathered = F.collect_list(wrapped(form.value))
        return [Partial(gathered, lambda column: F.flatten(F.collect_list(column)))]
    return [p for running in form.results.values() for p in running.partials]


def _stored(step: Step, keys: Keys, form: Going | Holistic, stored: DataFrame) -> DataFrame:
    """(k0 …, t, state, p0 …): the stored rows, at the tick before the range."""
    state = F.struct(F.col(ITEM).alias("x")).alias(STATE)
    given = form.stored if isinstance(form, Going) else ()
    parts = [column.alias(f"p{i}") for i, column in enumerate(given)]
    before = F.lit(step.first - 1).cast("long").alias(TICK)
    columns = keys.named(keys.of_stored)
    if isinstance(form, Holistic) or not form.is_aggregated:
        return stored.select(*columns, before, state, *parts)
    grouped = stored.groupBy(*columns).agg(F.first(state).alias(STATE), *parts)
    return grouped.select("*", before).where(F.col(STATE).isNotNull())


def _nothing_stored(step: Step, parts: DataFrame) -> DataFrame:
    state = F.struct(F.lit(None).cast(spark_type(step.item)).alias("x")).alias(STATE)
    return parts.where(F.lit(False)).select("*", state)


def _as_typed(stored: DataFrame, parts: DataFrame) -> DataFrame:
    """The stored partial results in the types of the new ones."""
    wanted = {f.name: f.dataType for f in parts.schema.fields}
    # Structs that differ in what may be null are one type to a union, but not to a cast.
    differ = {
        f.name
        for f in stored.schema.fields
        if f.name in wanted and f.dataType.simpleString() != wanted[f.name].simpleString()
    }
    return stored.select(
        *(F.col(n).cast(wanted[n]).alias(n) if n in differ else F.col(n) for n in stored.columns)
    )


def _merged(step: Step, keys: Keys, form: Going, both: DataFrame) -> DataFrame:
    """(k0 …, t, row): each key's rows, the stored one first."""
    so_far = keys.in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    merged = [
        p.merged(F.col(f"p{i}"), so_far).alias(f"p{i}") for i, p in enumerate(_partials(form))
    ]
    state = F.first(STATE, ignorenulls=True).over(so_far).alias(STATE)
    found = both.select(*keys.names, TICK, state, *merged)
    position = 0
    for name, running in form.results.items():
        own = [F.col(f"p{i}") for i in range(position, position + len(running.partials))]
        is_new = F.col(TICK) >= step.first
        found = found.withColumn(name, F.when(is_new, running.final(own)))
        position += len(own)
    return _with_stored(step, keys, found, form)


def _with_stored(step: Step, keys: Keys, found: DataFrame, form: Going | Holistic) -> DataFrame:
    of_type = spark_type(step.item)
    stored = wrapped(F.col(STATE).getField("x").cast(of_type))
    made = wrapped(form.item.cast(of_type))
    if isinstance(form, Going) and form.is_there is not None:
        made = F.when(form.is_there, made)
    row = F.when(F.col(TICK) < step.first, stored).otherwise(made)
    return found.select(*keys.names, TICK, row.alias(ROW))


def _refolded(step: Step, keys: Keys, form: Holistic, both: DataFrame) -> DataFrame:
    """(k0 …, t, row): each key's rows, from one pass over its values in the order of ticks."""
    pair = F.when(F.col("p0").isNotNull(), F.struct(F.col(TICK), F.col("p0").alias("w")))
    grouped = both.groupBy(*keys.names).agg(
        F.first(STATE, ignorenulls=True).alias(STATE),
        F.sort_array(F.collect_list(pair)).alias("parts"),
    )
    known = F.col(STATE).isNotNull()
    values = F.flatten(F.transform("parts", lambda p: p.getField("w")))
    if form.start is None:
        first = F.array(wrapped(form.stored.cast(spark_type(form.of))))
        values = F.when(known, F.concat(first, values)).otherwise(values)
    grouped = grouped.withColumn("values", F.transform(values, lambda p: p.getField("x")))
    accs = grouped.withColumn("accs", _accumulators(step, form))
    extra = F.lit(0) if form.start is not None else F.when(known, F.lit(0)).otherwise(F.lit(-1))
    sizes = F.transform("parts", lambda p: F.size(p.getField("w")))

    def so_many(_: Column, i: Column) -> Column:
        return F.aggregate(F.slice(sizes, F.lit(1), i + 1), F.lit(0), lambda a, b: a + b) + extra

    ends = F.transform("parts", so_many)
    each = F.explode(F.arrays_zip(F.col("parts").getField(TICK).alias("at"), ends.alias("end")))
    rows = accs.select(*keys.names, STATE, "accs", each.alias("e"))
    acc = F.get(F.col("accs"), F.col("e").getField("end")).alias(ACC)
    found = rows.select(*keys.names, F.col("e").getField("at").alias(TICK), STATE, acc)
    stored = both.where(F.col(TICK) < step.first).select(*keys.names, TICK, STATE)
    whole = found.unionByName(stored, allowMissingColumns=True)
    return _with_stored(step, keys, whole, form)


def _accumulators(step: Step, form: Holistic) -> Column:
    """The accumulators after no, one, two … of the values; a reduction has none after no value."""
    on, values, pairwise = form.fn_step, F.col("values"), form.start is None
    start = form.start
    if start is None:
        start = convert(F.get(values, F.lit(0)), form.of, form.acc)
        values = F.slice(values, F.lit(2), F.greatest(F.size(values) - 1, F.lit(0)))
    fn = on.arg("f")
    rest = scanned(fn, start, form.acc, values, form.of, pairwise=pairwise)
    return F.concat(F.array(start.cast(spark_type(form.acc))), rest)


def _moves(keys: Keys, rows: DataFrame) -> DataFrame:
    """(row, t, until, before): each row of a touched key, and what it takes the place of."""
    in_time = keys.in_time
    until = F.coalesce(F.lead(TICK).over(in_time), F.lit(FOREVER)).alias(UNTIL)
    before = F.lag(ROW).over(in_time).alias(BEFORE)
    return rows.select(ROW, TICK, until, before)


def _untouched(keys: Keys, touched: DataFrame, log: DataFrame | None) -> DataFrame | None:
    """The log without the keys that are touched."""
    if log is None or not keys.names:
        return None
    return without_keys_of(touched, keys.of_stored)(log)


def _relation(step: Step, moves: DataFrame, untouched: DataFrame | None) -> Relation:
    """The rows of touched keys, and lazily all others; the changes are those of touched keys."""
    tick = F.greatest(F.col(TICK), F.lit(step.first).cast("long")).alias(TICK)
    there = moves.where(F.col(ROW).isNotNull())
    item = F.col(ROW).getField("x").alias(ITEM)
    versions = there.select(item, tick, UNTIL).where(F.col(TICK) < F.col(UNTIL))

    def narrowed(narrow: Narrow) -> DataFrame:
        if untouched is None:
            return narrow(versions)
        start = F.lit(step.first).cast("long").alias(TICK)
        until = F.lit(FOREVER).cast("long").alias(UNTIL)
        rest = live(narrow(untouched)).select(ITEM, start, until)
        return narrow(versions).unionByName(rest)

    return Relation(
        Kind.G,
        narrowed(lambda frame: frame),
        step.item,
        changes=told(step.item, _changes(step, moves)),
        narrowed=narrowed,
    )


def _changes(step: Step, moves: DataFrame) -> DataFrame:
    """(item, t, n): the new row of a key comes and the one before it goes, if they differ."""
    is_change = (F.col(TICK) >= step.first) & ~F.col(BEFORE).eqNullSafe(F.col(ROW))
    moved = F.array(
        F.struct(F.col(ROW).alias("w"), F.lit(1).cast("long").alias(COUNT)),
        F.struct(F.col(BEFORE).alias("w"), F.lit(-1).cast("long").alias(COUNT)),
    )
    each = moves.where(is_change).select(TICK, F.explode(moved).alias("c"))
    there = each.where(F.col("c.w").isNotNull())
    return there.select(F.col("c.w.x").alias(ITEM), TICK, F.col(f"c.{COUNT}").alias(COUNT))
