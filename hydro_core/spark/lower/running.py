"""Running operators: keyed results that continue from stored ones, with their updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Window, WindowSpec

from hydro_core.catalog.aggregates import merging
from hydro_core.catalog.ordered import given_to_peers, hidden_parts, rows_ahead, so_far
from hydro_core.catalog.over_functions import aggregate_of, argument
from hydro_core.catalog.spec import Aggregate, OverFunction
from hydro_core.plan.tick_plan import Kind, group_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.materialize import counted, held
from hydro_core.spark.frames.relation import (
    COUNT,
    FOREVER,
    ITEM,
    ORD,
    TICK,
    UNTIL,
    Narrow,
    Relation,
    exploded,
    live,
    live_rows,
)
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates import made_of, merged_aggregate, stored_part
from hydro_core.spark.lower.changelogs import (
    Others,
    changes_of,
    of_versions,
    rows_or_changes,
    with_others,
)
from hydro_core.spark.lower.folds import wrapped
from hydro_core.spark.lower.items import (
    GroupKeys,
    column_types,
    key_of,
    keys_of,
    keys_of_results,
    make_row,
    null,
    own_columns,
    rows_go,
)
from hydro_core.spark.lower.keyed import (
    RESULT,
    STATE,
    Along,
    KeySummary,
    results,
    start_of,
    summary_of,
    versions,
    with_arguments,
)
from hydro_core.spark.lower.ordered import (
    PLACE,
    ROW,
    VALUE,
    KeyPlaces,
    KeyWindows,
    column_of,
    first_rows,
    numbered,
    order_type,
    places,
)
from hydro_core.spark.lower.registry import Step, as_kind, lowers, per_tick
from hydro_core.spark.lower.relations import (
    all_of,
    few_keys,
    keys_alone,
    united,
    with_keys_of,
    without_keys_of,
)
from hydro_core.types.item import ItemType

# Rows of keys that continue from stored ones: the columns of a key's first row determine the rest.
#
# The rows of a key are one sequence, with the stored ones unchanged. Positions continue from those
# of the first row, aggregates from the stored ones, and functions that look back read the rows
# themselves.


PRIOR = "state"
"""A stored row, unchanged; null for a computed one."""
START = "start"
"""The stored row `s` that the first row of the key is, or null, and its place `p`."""
NUMBER = "numbered"
"""The number that a stored row has; a new one has more than any."""
_FIRST, _HERE = Window.unboundedPreceding, Window.currentRow
_UNNUMBERED = 1 << 62


@dataclass(frozen=True, slots=True)
class KeyRows:
    """New and stored rows of keys in their order."""

    step: Step
    places: KeyPlaces
    functions: Sequence[OverFunction]
    """The functions of the columns."""
    parts: Sequence[Aggregate]
    """The aggregates that are stored along with the columns."""

    def with_frame(self, frame: DataFrame) -> KeyRows:
        return replace(self, places=replace(self.places, frame=frame))


def key_rows(step: Step, new: DataFrame, stored: DataFrame | None) -> KeyRows:
    """The rows of both, those of a key in sequence, numbered from the first of them.

    Args:
        step: the operator.
        new: the new rows (item, t).
        stored: the stored rows (item, t), unchanged.
    """
    args, state_type = step.node.args, spark_type(step.item)
    rows = new.withColumn(PRIOR, F.lit(None).cast(state_type))
    if stored is not None:
        known = stored.select(base(step).alias(ITEM), TICK, F.col(ITEM).alias(PRIOR))
        rows = rows.unionByName(known)
    asked = [function for _, function in args["functions"]]
    parts = [OverFunction("running", (one, False)) for _, one in args["parts"]]
    of_rows = step.with_(inputs=(Relation(Kind.E, rows, step.input.item),))
    found, functions = places(of_rows, [*asked, *parts], (PRIOR,))
    number = F.coalesce(F.col(PRIOR).getField(args["number"]), F.lit(_UNNUMBERED))
    frame = found.frame.withColumn(NUMBER, number)
    found = replace(found, frame=frame, by_ticks=False, ties=(NUMBER, TICK))
    over = [one for f in functions[len(asked) :] if (one := aggregate_of(f)) is not None]
    return KeyRows(step, numbered(found), functions[: len(asked)], over)


def base(step: Step) -> Column:
    """The input's row in a stored row."""
    return make_row((n, F.col(ITEM).getField(n)) for n in column_types(step.input.item))


class ContinuedWindows:
    """The windows that compute the columns of rows, from the stored rows before them."""

    def __init__(self, of: KeyRows) -> None:
        """Finds the first row of each key."""
        first = F.first(F.struct(F.col(PRIOR).alias("s"), F.col(PLACE).alias("p")))
        until_here = of.places.by_rows().rowsBetween(_FIRST, _HERE)
        frame = of.places.frame.withColumn(START, first.over(until_here))
        self.rows, self.step = of, of.step
        self.windows = KeyWindows(of.step, replace(of.places, frame=frame), order_type(of.step))
        """The windows."""
        leads = F.lead(TICK, of.step.node.args["keep"])
        self.leaves = self.windows.of(leads, of.places.by_rows())
        """The tick of the row with which a row leaves the last rows of its key; or null."""
        self._made = self._columns()

    def computed(self) -> DataFrame:
        """The rows with all windows."""
        return self.windows.computed()

    def row(self, *, is_last: Column | None = None) -> Column:
        """A row as it is stored: stored rows are unchanged except for their mark.

        Args:
            is_last: a condition that a row is marked as one of the last of its key; None: it is
                not.
        """
        step, tail = self.step, self.step.node.args["tail"]
        types, stored = column_types(step.item), own_columns(step.item, F.col(PRIOR))
        tail_type = types[tail]
        fresh = {**own_columns(step.input.item, F.col(ROW)), **self._made}
        by = step.node.args["by"]
        key = make_row((k, F.col(ROW).getField(k)) for k in by).cast(spark_type(tail_type))
        mark = null(tail_type) if is_last is None else F.when(is_last, key)
        there = make_row([(n, stored[n] if n != tail else mark) for n in types])
        new = make_row([(n, fresh[n] if n != tail else mark) for n in types])
        of_type = spark_type(step.item)
        return F.when(F.col(PRIOR).isNotNull(), there.cast(of_type)).otherwise(new.cast(of_type))

    def _columns(self) -> Mapping[str, Column]:
        """The computed columns of new rows."""
        step, args, work = self.step, self.step.node.args, self.windows
        types = column_types(step.item)
        at, peers = self.rows.places, given_to_peers(args)
        parts = _running_parts(self, at.by_rows().rowsBetween(_FIRST, _HERE), types)
        of_peers = parts
        if peers:
            of_peers = _running_parts(self, at.by_peers().rangeBetween(_FIRST, _HERE), types)
        made: dict[str, Column] = {}
        for (name, function), over in zip(args["functions"], self.rows.functions, strict=True):
            if name in peers:
                made[name] = _running(step, so_far(name, args), types[name], of_peers)
            elif aggregate_of(function) is not None and argument(function, "rows") is None:
                made[name] = _running(step, name, types[name], parts)
            elif function.function in _GO_ON:
                local = column_of(work, over, types[name])
                made[name] = _GO_ON[function.function](step, name, local)
            else:
                stored = F.col(PRIOR)
                work.started = F.when(stored.isNotNull(), stored.getField(name)).otherwise(
                    F.col(VALUE)
                )
                made[name] = column_of(work, over, types[name])
        hidden = {name: parts[name][0] for name, _ in hidden_parts(args)}
        number = F.col(ORD).cast("long") + _from_first(args["number"])
        return {**made, **hidden, args["number"]: number}


def _from_first(name: str) -> Column:
    """The offset of a stored column of the first row from 1; 0 if that row is new."""
    return F.coalesce(F.col(START).getField("s").getField(name) - 1, F.lit(0))


def _rank(step: Step, name: str, local: Column) -> Column:
    """The rank of the first row also is the rank of its ties."""
    stored = F.col(START).getField("s")
    equal = F.col(START).getField("p").eqNullSafe(F.col(PLACE)) & stored.isNotNull()
    number: str = step.node.args["number"]
    return F.when(equal, stored.getField(name)).otherwise(local + _from_first(number))


_GO_ON: Mapping[str, Callable[[Step, str, Column], Column]] = {
    "row_number": lambda step, name, local: local + _from_first(name),
    "dense_rank": lambda step, name, local: local + _from_first(name),
    "rank": _rank,
}
"""Functions whose values need an offset from the first row of the key."""


_Parts = Mapping[str, tuple[Column, ItemType]]


def _running_parts(
    of: ContinuedWindows, window: WindowSpec, types: Mapping[str, ItemType]
) -> _Parts:
    """The aggregates over the stored rows, by their names; `window` selects the rows."""
    work, step, over_columns = of.windows, of.step, of.rows.parts
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
        stored = stored_part(F.col(PRIOR), step.item, name, merges[name])
        is_start = F.col(PRIOR).isNotNull() & (F.col(ORD) == 1)
        part = F.when(is_start, stored).otherwise(own)
        all_ = work.of_others(partial.merge(part), window)
        found[name] = merged.result([all_]).cast(spark_type(types[name])), types[name]
    return found


def _running(step: Step, name: str, result: ItemType, parts: _Parts) -> Column:
    """A running aggregate from the parts that it is computed from, or one of these."""
    aggregate = dict(step.node.args["made"]).get(name)
    if aggregate is None:
        return parts[name][0]
    own = [parts[str(argument)] for argument in aggregate.arguments]
    return made_of(aggregate.function, own, result, step.node).cast(spark_type(result))


# Keyed results that continue from stored ones, with their updates: the cost of a range is
# proportional to its new rows.
#
# Only the stored rows of the keys of the new rows are read; each such key's stored row precedes its
# first tick. A row of the result is valid until the next one of its key, so the updates are known:
# at each tick of a key its row is added and the one before it is retracted. The rows of all other
# keys stay, and are read only if a reader wants the whole relation.


BEFORE = "before"
"""The row that a key's row replaces; null if there is none."""


@lowers("running_fold", "running_reduce", "running_fold_keyed", "running_reduce_keyed")
@lowers("running_latest", "running_aggregate")
@per_tick
def running(step: Step) -> Relation:
    """The result of all rows so far; the input has the new rows."""
    return resumes(step)


@lowers("moving_aggregate")
def moving_aggregate(step: Step) -> Relation:
    """The result of the input, which is a changelog."""
    return resumes(step.with_(inputs=(changes_of(step.input, step.first),)))


def resumes(step: Step) -> Relation:
    """The result of an operator that continues from its stored result; the input has the
    updates.
    """
    step, log, summary = with_arguments(step), stored_log(step), summary_of(step)
    along = _along(step, summary, log is not None)
    rows, keys = step.input.frame, keys_of(step)
    new = keys.plainly(along.partial(keys, rows))
    if summary.is_always(step) and step.first == 0:
        new = new.unionByName(start_of(step, along, rows))
    count = None
    if log is not None:
        new, count = counted(new, step.materialize)
    keys, of_stored = GroupKeys.of(map(F.col, keys.names)), keys_of_results(step)
    few = few_keys(new.select(*keys.names), count)
    parts = new
    if log is not None:
        narrow: Narrow = with_keys_of(few, of_stored.parts) if keys.names else lambda frame: frame
        stored = along.of_stored(of_stored, live(narrow(log)), wrapped(F.col(ITEM)).alias(STATE))
        stored = stored.withColumn(TICK, F.lit(step.first - 1).cast("long"))
        parts = new.unionByName(_as_typed(stored, new), allowMissingColumns=True)
    found = results(step, summary, along, keys, along.along(keys, parts))
    before = F.lag(RESULT).over(Window.partitionBy(*keys.names).orderBy(TICK))
    moves = held(found.select(RESULT, TICK, UNTIL, before.alias(BEFORE)))

    def rows_of_keys() -> Relation:
        there = versions(step, moves)
        if log is None or not keys.names:
            return step.relation(Kind.G, there)
        rest = without_keys_of(few, of_stored.parts)(log)
        return with_others(step, there, lambda narrow: live(narrow(rest)))

    return rows_or_changes(step, rows_of_keys, lambda: _changes(step, moves))


@lowers("running_top")
@per_tick
def running_top(step: Step) -> Relation:
    """The first rows of all rows so far; the input has the new rows.

    A row among the first of all rows is also among those of the former first rows and the new ones.
    """
    log, key = stored_log(step), group_key(step.node)
    new, others = step.input.frame.select(ITEM, TICK), None
    if log is not None:
        if key is not None:
            keys = key_of(F.col(ITEM), step.item, key)
            new, log, others = of_new_keys(step, new, keys, keys)
        new = new.unionByName(live_rows(log, step.first - 1).select(ITEM, TICK))
    rows = Relation(Kind.H, new, step.item)
    before = step.with_(first=step.first - 1, inputs=(rows,))
    made = as_kind(first_rows(before), Kind.G, before.first).frame
    return of_versions(step, held(made.select(ITEM, TICK, UNTIL)), others, again=True)


def stored_log(step: Step) -> DataFrame | None:
    """The stored changelog of the result; if only its last tick is stored, its rows as
    additions.
    """
    if step.log is not None or step.past is None:
        return step.log
    before = step.past.where(F.col(TICK) == step.first - 1)
    return before.select(ITEM, TICK, F.lit(1).cast("long").alias(COUNT))


def of_new_keys(
    step: Step, new: DataFrame, keys: Sequence[Column], of_stored: Sequence[Column]
) -> tuple[DataFrame, DataFrame, Others]:
    """The new rows, the stored changelog of their keys, and the rows of all other keys."""
    log = stored_log(step)
    assert log is not None
    new, count = counted(new, step.materialize)
    few = few_keys(keys_alone(new, keys).distinct(), count)
    rest = without_keys_of(few, of_stored)
    return (
        new,
        with_keys_of(few, of_stored)(log),
        lambda narrow: live_rows(narrow(rest(log)), step.first),
    )


def _along(step: Step, summary: KeySummary, is_stored: bool) -> Along:
    """The sequence of results."""
    along = summary.in_time(step, is_stored)
    if rows_go(step):
        along = None if along is None else along.of_changes()
    if along is None:
        raise TypeError(f"`{step.node.op.name}` is not merged from its own results")
    return along


def _as_typed(stored: DataFrame, parts: DataFrame) -> DataFrame:
    """The stored partial results in the types of the new ones."""
    wanted = {f.name: f.dataType for f in parts.schema.fields}
    # Structs that differ in nullability are one type to a union, but not to a cast.
    differ = {
        f.name
        for f in stored.schema.fields
        if f.name in wanted and f.dataType.simpleString() != wanted[f.name].simpleString()
    }
    return stored.select(
        *(F.col(n).cast(wanted[n]).alias(n) if n in differ else F.col(n) for n in stored.columns)
    )


def _changes(step: Step, moves: DataFrame) -> DataFrame:
    """(item, t, n): the new row of a key is added and the one before it is retracted, if they
    differ.
    """
    is_change = (F.col(TICK) >= step.first) & ~F.col(BEFORE).eqNullSafe(F.col(RESULT))
    moved = F.array(
        F.struct(F.col(RESULT).alias("w"), F.lit(1).cast("long").alias(COUNT)),
        F.struct(F.col(BEFORE).alias("w"), F.lit(-1).cast("long").alias(COUNT)),
    )
    moving = moves.where(is_change)
    each = exploded(moving, [TICK, F.explode(moved).alias("c")], reads=(RESULT, BEFORE))
    there = each.where(F.col("c.w").isNotNull())
    return there.select(F.col("c.w.x").alias(ITEM), TICK, F.col(f"c.{COUNT}").alias(COUNT))


# `over` of a history: it continues from the last rows of each key.
#
# A new row after all stored rows of its key is computed from the key's tail; the columns of earlier
# rows are unchanged. If a key has a new row before an earlier one, or one that changes columns of
# an earlier one, the rows from there on are recomputed.
#
# Each stored row has the values that a later one continues from. So of such a key the rows before
# the first new one stay, the last of these are its start, and all later rows are computed as new
# ones are. The stored row is retracted, and there is no update where the recomputed row is equal.


CUT = "cut"
"""The tick of the first new row of the key."""
STORED = "stored"
"""A stored row, recomputed or not."""
LATE = "late"
"""True for all rows of a key that has a new row before an earlier one."""
_SO_FAR = (Window.unboundedPreceding, Window.currentRow)


@lowers("running_over")
@per_tick
def running_over(step: Step) -> Relation:
    """The rows of all ticks so far with their columns; the input has the new rows."""
    args, new = step.node.args, step.input.frame.select(ITEM, TICK)
    of_new, of_stored = (key_of(F.col(ITEM), t, args["by"]) for t in (step.input.item, step.item))
    tail = F.col(ITEM).getField(args["tail"])
    stored: DataFrame | None = None
    others: Others | None = None
    if stored_log(step) is not None:
        new, log, others = of_new_keys(step, new, of_new, of_stored)
        stored = held(live_rows(log, step.first - 1)).select(ITEM, TICK)
    both = key_rows(step, new, None if stored is None else stored.where(tail.isNotNull()))
    keys, key = both.places.keys, both.places.whole()
    frame = both.places.frame.withColumn("behind", _is_behind(both))
    frame = frame.withColumn(LATE, F.max("behind").over(key))
    late = held(frame.where(F.col(LATE)).select(*keys).distinct())
    late_stored = None if stored is None else with_keys_of(late, of_stored)(stored)
    again, stays = _made_again(step, with_keys_of(late, of_new)(new), late_stored)
    on_time = _on_time(both.with_frame(frame.where(~F.col(LATE))))
    moves = held(on_time.unionByName(again).select(ITEM, TICK, UNTIL))

    def rest(narrow: Narrow) -> DataFrame:
        """All rows that are neither computed nor retracted: of other keys, and unchanged ones of
        these.
        """
        assert stored is not None
        assert others is not None
        earlier = without_keys_of(late, of_stored)(stored.where(tail.isNull()))
        parts = [others(lambda log: log), earlier, stays]
        return narrow(united([part.select(ITEM) for part in parts]))

    return of_versions(step, moves, None if others is None else rest, again=True)


def _is_behind(of: KeyRows) -> Column:
    """True if a row changes the columns of an earlier row."""
    args, rows = of.step.node.args, of.places.by_rows()
    if rows_ahead(args):
        return F.lit(True)
    before = F.lag(F.struct(F.col(TICK), F.col(PLACE))).over(rows)
    is_behind = before.getField(TICK) > F.col(TICK)
    if given_to_peers(args):
        is_equal = before.getField(PLACE).eqNullSafe(F.col(PLACE))
        is_behind |= is_equal & (before.getField(TICK) < F.col(TICK))
    return F.coalesce(is_behind, F.lit(False))


def _on_time(of: KeyRows) -> DataFrame:
    """(item, t, until): the new rows, and the unchanged rows of the tails."""
    made = ContinuedWindows(of)
    end = F.coalesce(F.col("leaves"), F.lit(FOREVER))
    stays = F.array(
        F.struct(F.col(TICK).alias("a"), end.alias("b"), F.lit(True).alias("c")),
        F.struct(end.alias("a"), F.lit(FOREVER).cast("long").alias("b"), F.lit(False).alias("c")),
    )
    both = made.computed().select(
        made.row(is_last=F.lit(True)).alias("kept"),
        made.row().alias("left"),
        TICK,
        made.leaves.alias("leaves"),
    )
    each = exploded(both, ["kept", "left", F.explode(stays).alias("s")], reads=(TICK, "leaves"))
    item = F.when(F.col("s.c"), F.col("kept")).otherwise(F.col("left")).alias(ITEM)
    found = each.select(item, F.col("s.a").alias(TICK), F.col("s.b").alias(UNTIL))
    return found.where(F.col(TICK) < F.col(UNTIL))


def _made_again(
    step: Step, new: DataFrame, stored: DataFrame | None
) -> tuple[DataFrame, DataFrame]:
    """Recomputes the rows of keys with late rows.

    Args:
        step: the operator.
        new: the new rows (item, t) of these keys.
        stored: the stored rows (item, t), at least those at or after the first new row of a key,
            and the last ones before it.

    Returns:
        (item, t, until): the rows that are computed, and the stored rows that they replace.
        (item): the other stored rows that were read.
    """
    rows = key_rows(step, new, stored)
    flagged = rows.with_frame(held(_flagged(rows)))
    frame = flagged.places.frame
    moved = frame.where("moved")
    again = _computed(step, flagged.with_frame(_in_stretches(step, flagged.places.keys, moved)))
    went = moved.where(F.col(STORED).isNotNull())
    old = went.select(F.col(STORED).alias(ITEM), TICK, F.col(CUT).alias(UNTIL))
    stays = frame.where(~F.col("moved")).select(F.col(STORED).alias(ITEM))
    return again.unionByName(old), stays


def _flagged(rows: KeyRows) -> DataFrame:
    """The rows with a flag of those that are recomputed; these lose their stored state.

    Lookups of other keys also read some rows of a key, with gaps between them: only rows that are
    followed by all later rows of their key are recomputed, as their numbers show.
    """
    at, args = rows.places, rows.step.node.args
    is_stored, place = F.col(PRIOR).isNotNull(), F.col(ORD)
    ahead = rows_ahead(args)
    if given_to_peers(args):
        place = F.col("first_equal")
    whole = at.whole()
    so_far = F.count(F.col(PRIOR)).over(at.by_rows().rowsBetween(*_SO_FAR))
    frame = at.frame.withColumn("first_equal", F.rank().over(at.by_peers())).select(
        "*",
        F.min(F.when(~is_stored, place - ahead)).over(whole).alias("first_new"),
        F.min(F.when(~is_stored, F.col(TICK))).over(whole).alias(CUT),
        F.when(is_stored, F.col(NUMBER) - so_far).alias("missing"),
    )
    frame = frame.withColumn("of_the_last", F.max("missing").over(whole))
    is_new = F.col(ORD) >= F.col("first_new")
    near = F.col(ORD) >= F.col("first_new") - (args["keep"] - ahead)
    moved = is_new | (near & (F.col("missing") == F.col("of_the_last")))
    frame = frame.withColumn("moved", moved).withColumn(STORED, F.col(PRIOR))
    state = F.when(~is_new, F.col(PRIOR)).cast(spark_type(rows.step.item))
    return frame.withColumn(PRIOR, state).drop("first_equal", "first_new", "missing", "of_the_last")


def _in_stretches(step: Step, keys: tuple[str, ...], rows: DataFrame) -> DataFrame:
    """The rows with (t, until), split wherever a new one of their key arrives."""
    if step.is_tick:
        first, until = F.lit(step.first).cast("long"), F.lit(FOREVER).cast("long")
        return rows.withColumn(TICK, first).withColumn(UNTIL, until)
    others = [f"of{i}" for i in range(len(keys))]
    came = rows.where(F.col(STORED).isNull()).select(*keys, TICK).distinct()
    cuts = came.toDF(*others, "since")
    following = F.lead("since").over(Window.partitionBy(*others).orderBy("since"))
    cuts = cuts.withColumn(UNTIL, F.coalesce(following, F.lit(FOREVER)))
    same = [F.col(k).eqNullSafe(F.col(o)) for k, o in zip(keys, others, strict=True)]
    both = rows.join(cuts, all_of([*same, F.col("since") >= F.col(TICK)]))
    return both.withColumn(TICK, F.col("since"))


def _computed(step: Step, rows: KeyRows) -> DataFrame:
    """(item, t, until): the rows of each interval; stored ones only if their marks differ."""
    at = numbered(replace(rows.places, by_ticks=True))
    made = ContinuedWindows(replace(rows, places=at))
    row = made.row(is_last=made.leaves.isNull())
    return made.computed().select(row.alias(ITEM), TICK, UNTIL)
