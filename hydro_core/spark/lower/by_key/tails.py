"""`over` of a history that goes on from the last rows of each key.

A new row that comes after all stored rows of its key is computed from the key's tail, which is
stored as it was given: places go on from those of its first row, aggregates from those so far, and
what looks back finds the rows themselves. What a row was given then stays. Keys with a row that
comes before an earlier one are made again from all their rows; what stood there goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.over_functions import aggregate_of, argument
from hydro_core.catalog.parts import EXTREMES, ITSELF, merging
from hydro_core.catalog.spec import Aggregate, OverFunction
from hydro_core.catalog.tails import ROWS_OF_KEY, hidden_parts
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.log import coming_and_going, consolidated, live_rows
from hydro_core.spark.frames.materialize import counted, held
from hydro_core.spark.frames.relation import FOREVER, ITEM, ORD, TICK, UNTIL, Narrow, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates.merged import extreme_part, merged_aggregate
from hydro_core.spark.lower.aggregates.named import GREATEST
from hydro_core.spark.lower.aggregates.of_parts import made_of
from hydro_core.spark.lower.by_key.ordered import (
    KeyWindows,
    column_of,
    numbered,
    own_fields,
    with_columns,
)
from hydro_core.spark.lower.by_key.over_ticks import few_keys
from hydro_core.spark.lower.by_key.places import PLACE, ROW, VALUE, order_type, places
from hydro_core.spark.lower.by_key.running import stored_log
from hydro_core.spark.lower.items.columns import key_of, make_row, named, null
from hydro_core.spark.lower.items.keyed import fields_of
from hydro_core.spark.lower.registry import Step, as_kind, lowers, per_tick
from hydro_core.spark.lower.relations.changes import rows_or_changes
from hydro_core.spark.lower.relations.narrowing import (
    keys_alone,
    with_keys_of,
    without_keys_of,
)
from hydro_core.types.item import LONG, Field, ItemType, Row

STATE = "state"
"""A stored row, as it is stored; null for a new one."""
LATE = "late"
"""Whether some row of the key comes after one that stands behind it."""
START = "start"
"""The stored row `s` that the first row of the key is, or null, and its place `p`."""
_FIRST, _HERE = Window.unboundedPreceding, Window.currentRow


@lowers("running_over")
@per_tick
def running_over(step: Step) -> Relation:
    """The rows of all ticks so far with their columns; the input is what is new."""
    work = _work(step.with_(inputs=(step.input.unordered(),)))
    found = work.on_time().unionByName(work.made_again())
    moves = held(found.select(ITEM, TICK, UNTIL))

    def changes() -> DataFrame:
        return consolidated(coming_and_going(moves, step.first, step.last))

    return rows_or_changes(step, lambda: _rows(work, moves), changes)


@dataclass(frozen=True, slots=True)
class _Work:
    step: Step
    new: DataFrame
    """The new rows (item, t)."""
    stored: DataFrame | None
    """The stored rows (item, t) of their keys, at the tick before the range."""
    others: Callable[[], DataFrame] | None
    """Those of all other keys."""
    late: DataFrame
    """(k0 …): the keys that are made again."""
    windows: KeyWindows
    """The windows over new rows and tails of all other keys."""
    functions: Sequence[OverFunction]
    """Those of the columns."""
    parts: Sequence[Aggregate]
    """Those that are stored beside."""

    def on_time(self) -> DataFrame:
        """(item, t, until): the rows of the other keys, and what stays of their tails."""
        step, args = self.step, self.step.node.args
        work, made = self.windows, self._columns()
        rows = work.places.by_rows()
        leaves = work.of(F.lead(TICK, args["keep"]), rows)
        frame = work.computed()
        of_type = spark_type(step.item)
        names = [f.name for f in fields_of(step.item)]
        stored = {name: F.col(STATE).getField(name) for name in names}
        fresh = {**own_fields(step), **made}

        def row(tail: Column) -> Column:
            there = make_row([(n, stored[n] if n != args["tail"] else tail) for n in names])
            new = make_row([(n, fresh[n] if n != args["tail"] else tail) for n in names])
            return F.when(F.col(STATE).isNotNull(), there.cast(of_type)).otherwise(
                new.cast(of_type)
            )

        tail_type = _type_of(step, args["tail"])
        key = make_row((k, F.col(ROW).getField(k)) for k in args["by"]).cast(spark_type(tail_type))
        end = F.coalesce(F.col("leaves"), F.lit(FOREVER))
        stays = F.array(
            F.struct(F.col(TICK).alias("a"), end.alias("b"), F.lit(True).alias("c")),
            F.struct(
                end.alias("a"), F.lit(FOREVER).cast("long").alias("b"), F.lit(False).alias("c")
            ),
        )
        both = frame.select(
            row(key).alias("kept"), row(null(tail_type)).alias("left"), TICK, leaves.alias("leaves")
        )
        each = exploded(both, ["kept", "left", F.explode(stays).alias("s")], reads=(TICK, "leaves"))
        item = F.when(F.col("s.c"), F.col("kept")).otherwise(F.col("left")).alias(ITEM)
        found = each.select(item, F.col("s.a").alias(TICK), F.col("s.b").alias(UNTIL))
        return found.where(F.col(TICK) < F.col(UNTIL))

    def _columns(self) -> Mapping[str, Column]:
        """What new rows are given."""
        step, args, work = self.step, self.step.node.args, self.windows
        types = {f.name: f.type for f in fields_of(step.item)}
        parts = _running_parts(work, step, types, self.parts)
        made: dict[str, Column] = {}
        made_of_parts = dict(args["made"])
        for (name, function), over in zip(args["functions"], self.functions, strict=True):
            if aggregate_of(function) is not None and argument(function, "rows") is None:
                aggregate = made_of_parts.get(name)
                made[name] = (
                    parts[name][0]
                    if aggregate is None
                    else _of_parts(aggregate, parts, types[name], step)
                )
            elif function.function in _GO_ON:
                local = column_of(work, over, types[name])
                made[name] = _GO_ON[function.function](step, name, local)
            else:
                stored = F.col(STATE)
                work.started = F.when(stored.isNotNull(), stored.getField(name)).otherwise(
                    F.col(VALUE)
                )
                made[name] = column_of(work, over, types[name])
        hidden = {name: parts[name][0] for name, _ in hidden_parts(args)}
        number = F.col(ORD).cast("long") + _from_first(args["number"])
        return {**made, **hidden, args["number"]: number}

    def made_again(self) -> DataFrame:
        """(item, t, until): the rows of late keys, and those that were there before."""
        step, args = self.step, self.step.node.args
        keys = key_of(F.col(ITEM), step.input.item, args["by"])
        rows = with_keys_of(self.late, keys)(self.new)
        before: DataFrame | None = None
        if self.stored is not None:
            of_stored = key_of(F.col(ITEM), step.item, args["by"])
            before = with_keys_of(self.late, of_stored)(self.stored)
            rows = rows.unionByName(before.select(_base(step).alias(ITEM), TICK))
        since = step.with_(first=step.first - 1, inputs=(Relation(Kind.H, rows, step.input.item),))
        running = [(n, OverFunction("running", (one, False))) for n, one in hidden_parts(args)]
        asked = (*args["functions"], *running)
        number, tail = args["number"], args["tail"]
        count = f"{number}_of_{tail}"
        asked = (*asked, (number, OverFunction("row_number")), (count, ROWS_OF_KEY))
        item = _wider(step, count)
        made = with_columns(since.with_(item=item), asked, lambda c: make_row(c.items()))
        there = as_kind(made, Kind.G, since.first).frame
        at = {f.name: F.col(ITEM).getField(f.name) for f in fields_of(item)}
        is_last = at[number] > at[count] - F.lit(args["keep"])
        tail_type = _type_of(step, tail)
        key = make_row((k, at[k]) for k in args["by"]).cast(spark_type(tail_type))
        at[tail] = F.when(is_last, key).otherwise(null(tail_type))
        row = make_row((f.name, at[f.name]) for f in fields_of(step.item))
        tick = F.greatest(F.col(TICK), F.lit(step.first).cast("long")).alias(TICK)
        found = there.select(row.cast(spark_type(step.item)).alias(ITEM), tick, UNTIL)
        found = found.where(F.col(TICK) < F.col(UNTIL))
        if before is None:
            return found
        until = F.lit(step.first).cast("long").alias(UNTIL)
        return found.unionByName(before.select(ITEM, TICK, until))


def _wider(step: Step, count: str) -> ItemType:
    """The output's type with a column for how many rows there are of the key."""
    return Row((*fields_of(step.item), Field(count, LONG)))


def _type_of(step: Step, name: str) -> ItemType:
    """The type of a column of the output."""
    return next(f.type for f in fields_of(step.item) if f.name == name)


def _base(step: Step) -> Column:
    """The row that came, of a stored one."""
    names = [f.name for f in fields_of(step.input.item)]
    return make_row((n, F.col(ITEM).getField(n)) for n in names)


def _work(step: Step) -> _Work:
    args, log = step.node.args, stored_log(step)
    new, by = step.input.frame.select(ITEM, TICK), step.node.args["by"]
    stored: DataFrame | None = None
    others: Callable[[], DataFrame] | None = None
    state_type = spark_type(step.item)
    rows = new.withColumn(STATE, F.lit(None).cast(state_type))
    if log is not None:
        new, count = counted(new, step.materialize)
        keys, of_stored = (key_of(F.col(ITEM), t, by) for t in (step.input.item, step.item))
        few = few_keys(keys_alone(new, keys).distinct(), count)
        stored = held(live_rows(with_keys_of(few, of_stored)(log), step.first - 1))
        stored = stored.select(ITEM, TICK)
        rest: Narrow = without_keys_of(few, of_stored)
        others = lambda: live_rows(rest(log), step.first)  # noqa: E731
        tails = stored.where(F.col(ITEM).getField(args["tail"]).isNotNull())
        known = tails.select(_base(step).alias(ITEM), TICK, F.col(ITEM).alias(STATE))
        rows = new.withColumn(STATE, F.lit(None).cast(state_type)).unionByName(known)
    relation = Relation(Kind.E, rows, step.input.item)
    asked = [function for _, function in args["functions"]]
    parts = [OverFunction("running", (one, False)) for _, one in args["parts"]]
    found, functions = places(step.with_(inputs=(relation,)), [*asked, *parts], (STATE,))
    found = numbered(replace(found, by_ticks=False))
    behind = F.coalesce(F.lag(TICK).over(found.by_rows()) > F.col(TICK), F.lit(False))
    frame = found.frame.withColumn("behind", behind)
    frame = frame.withColumn(LATE, F.max("behind").over(found.whole()))
    late = held(frame.where(F.col(LATE)).select(*found.keys).distinct())
    first = F.first(F.struct(F.col(STATE).alias("s"), F.col(PLACE).alias("p")))
    so_far = found.by_rows().rowsBetween(_FIRST, _HERE)
    frame = frame.where(~F.col(LATE)).withColumn(START, first.over(so_far))
    windows = KeyWindows(step, replace(found, frame=frame), order_type(step))
    over = [one for f in functions[len(asked) :] if (one := aggregate_of(f)) is not None]
    return _Work(step, new, stored, others, late, windows, functions[: len(asked)], over)


def _from_first(name: str) -> Column:
    """What a stored column of the first row is more than 1; 0 where that row is new."""
    return F.coalesce(F.col(START).getField("s").getField(name) - 1, F.lit(0))


def _rank(step: Step, name: str, local: Column) -> Column:
    """The rank of the first row stands for those that are equal to it, too."""
    stored = F.col(START).getField("s")
    equal = F.col(START).getField("p").eqNullSafe(F.col(PLACE)) & stored.isNotNull()
    number: str = step.node.args["number"]
    return F.when(equal, stored.getField(name)).otherwise(local + _from_first(number))


_GO_ON: Mapping[str, Callable[[Step, str, Column], Column]] = {
    "row_number": lambda step, name, local: local + _from_first(name),
    "dense_rank": lambda step, name, local: local + _from_first(name),
    "rank": _rank,
}
"""What is not told by the rows themselves, but by those of the first one."""


def _running_parts(
    work: KeyWindows, step: Step, types: Mapping[str, ItemType], over_columns: Sequence[Aggregate]
) -> Mapping[str, tuple[Column, ItemType]]:
    """The aggregates so far that are stored, by their names."""
    args = step.node.args
    asked: Sequence[tuple[str, Aggregate]] = args["parts"]
    merges = dict(merging(asked) or ())
    rows = work.places.by_rows()
    found: dict[str, tuple[Column, ItemType]] = {}
    for (name, _), over in zip(asked, over_columns, strict=True):
        merged = merged_aggregate(over, work.places.item, types[name], step.node)
        assert merged is not None
        (partial,) = merged.partials
        own = work.of(partial.of_rows, rows.rowsBetween(0, 0))
        stored = _stored_part(step, name, merges[name])
        is_start = F.col(STATE).isNotNull() & (F.col(ORD) == 1)
        part = F.when(is_start, stored).otherwise(own)
        so_far = work.of_others(partial.merge(part), rows.rowsBetween(_FIRST, _HERE))
        found[name] = merged.result([so_far]).cast(spark_type(types[name])), types[name]
    return found


def _stored_part(step: Step, name: str, merge: Aggregate) -> Column:
    """A stored result as a partial one."""
    value = named(F.col(STATE), step.item, name)
    if merge.function not in EXTREMES:
        return value[0]
    order = named(F.col(STATE), step.item, str(merge.arguments[1]))
    return extreme_part(value, order, greatest=GREATEST[merge.function])


def _of_parts(
    aggregate: Aggregate,
    parts: Mapping[str, tuple[Column, ItemType]],
    result: ItemType,
    step: Step,
) -> Column:
    """A running aggregate of the parts that it is made of."""
    own = [parts[str(name)] for name in aggregate.arguments]
    if aggregate.function == ITSELF:
        return own[0][0].cast(spark_type(result))
    return made_of(aggregate.function, own, result, step.node).cast(spark_type(result))


def _rows(work: _Work, moves: DataFrame) -> Relation:
    """All rows: those that are computed, and of what is stored all others."""
    step = work.step
    tick = F.greatest(F.col(TICK), F.lit(step.first).cast("long")).alias(TICK)
    there = moves.select(ITEM, tick, UNTIL).where(F.col(TICK) < F.col(UNTIL))

    def narrowed(narrow: Narrow) -> DataFrame:
        found = narrow(there)
        if work.others is None or work.stored is None:
            return found
        args = step.node.args
        keys = key_of(F.col(ITEM), step.item, args["by"])
        earlier = work.stored.where(F.col(ITEM).getField(args["tail"]).isNull())
        rest = (
            work.others()
            .select(ITEM)
            .unionByName(without_keys_of(work.late, keys)(earlier).select(ITEM))
        )
        start, until = F.lit(step.first).cast("long"), F.lit(FOREVER).cast("long")
        return found.unionByName(narrow(rest).select(ITEM, start.alias(TICK), until.alias(UNTIL)))

    return Relation(Kind.G, narrowed(lambda frame: frame), step.item, narrowed=narrowed)
