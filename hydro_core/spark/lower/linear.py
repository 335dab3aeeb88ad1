"""Linear operators: sources and sinks, row-wise functions, bag sums, quarantine, shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import Column

from hydro_core.catalog.spec import undeclared
from hydro_core.functions.call import CallAttempt, Use, router
from hydro_core.functions.tree import Fn
from hydro_core.plan.tick_plan import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.leaf import frame_of, together
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation, exploded
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.apply import apply, apply_predicate, udf_column, udf_predicate
from hydro_core.spark.functions.columns import NotCompilable, predicate_column, to_column
from hydro_core.spark.functions.guards import asked
from hydro_core.spark.lower.aggregates import argument_of, made_of
from hydro_core.spark.lower.items import (
    at,
    column_types,
    convert,
    evaluated,
    fn_type,
    make_row,
    named,
    own_columns,
    type_at,
)
from hydro_core.spark.lower.registry import Step, as_kind, fail, lowers
from hydro_core.spark.lower.relations import (
    added_up,
    empty,
    guarded,
    one_after_another,
    tick_axis,
    written_as,
)
from hydro_core.types.item import (
    BOOLEAN,
    DATE,
    TIMESTAMP,
    UNKNOWN,
    Array,
    FieldPath,
    ItemType,
    Row,
    Tuple,
    Unknown,
    is_integer,
    is_numeric,
)
from hydro_core.types.item import Decimal as DecimalType
from hydro_core.types.values import RowItem

# Sources, sinks and unions of streams.


@lowers("source")
def source(step: Step) -> Relation:
    """The batches of the range."""
    frame = step.source
    return step.relation(Kind.E, empty(step) if frame is None else frame.select(ITEM, TICK))


@lowers("source_iter")
def source_iter(step: Step) -> Relation:
    """The items at tick 0, nothing after."""
    items = [(0, item) for item in step.arg("items")] if step.first == 0 else []
    frame = frame_of(step.spark, items, step.item) if items else empty(step)
    return step.relation(Kind.E, frame)


@lowers("tick")
def tick(step: Step) -> Relation:
    """One row each tick: its number and its times."""
    if step.clock is not None:
        row = F.struct("tick", "start", "end")
        return step.relation(Kind.E, step.clock().select(row.alias(ITEM), F.col(TICK)))
    times, columns = tick_axis(step), [F.col(TICK)]
    known = {t: step.times[t] for t in range(step.first, step.last + 1) if t in step.times}
    if known:
        table = step.spark.createDataFrame(
            [(t, *ends) for t, ends in known.items()],
            f"{TICK} long, start timestamp, end timestamp",
        )
        times = times.join(together(table), TICK, "left")
        columns = [F.col(c) for c in (TICK, "start", "end")]
    else:
        unknown = F.lit(None).cast(spark_type(TIMESTAMP))
        columns += [unknown.alias("start"), unknown.alias("end")]
    row = F.struct(columns[0].alias("tick"), *columns[1:])
    return step.relation(Kind.E, times.select(row.alias(ITEM), F.col(TICK)))


@lowers("sink")
def sink(step: Step) -> Relation:
    """The input of the output; the executor adds up the sinks of one name."""
    return step.input


@lowers("null")
def null(step: Step) -> Relation:
    """Nothing."""
    return step.relation(Kind.E, empty(step))


@lowers("union")
def union(step: Step) -> Relation:
    """The rows of all inputs."""
    return added_up(step.inputs, step.item, step.kind, step.first)


@lowers("chain")
def chain(step: Step) -> Relation:
    """The rows of both inputs, those of the first before those of the second."""
    if not step.ordered:
        return added_up(step.inputs, step.item, step.kind, step.first)
    parts = (as_kind(written_as(r, step.item), step.kind, step.first) for r in step.inputs)
    return one_after_another(*parts)


# Row-wise operators: ticks and order are unchanged.


@lowers("identity", "tee", "next_stratum", "inspect")
def identity(step: Step) -> Relation:
    """The items as they are."""
    return step.input


@lowers("map")
def map_(step: Step) -> Relation:
    """`f(x)` of each item."""
    return mapped(step)


@lowers("filter")
def filter_(step: Step) -> Relation:
    """The items for which `f(x)` is truthy in Python."""
    item = step.input.item
    return kept(step.input, apply_predicate(step.arg("f"), F.col(ITEM), item, tick=F.col(TICK)))


@lowers("filter_map")
def filter_map(step: Step) -> Relation:
    """`f(x)` of each item, unless it is None."""
    return kept(mapped(step), F.col(ITEM).isNotNull())


@lowers("flat_map")
def flat_map(step: Step) -> Relation:
    """The parts of `f(x)` of each item."""
    fn = step.arg("f")
    return spread(step, evaluated(fn, step.input.item), fn_type(fn, step.input.item))


@lowers("flatten")
def flatten(step: Step) -> Relation:
    """The parts of each item."""
    return spread(step, F.col(ITEM), step.input.item)


@lowers("select")
def select(step: Step) -> Relation:
    """The named columns, then the computed ones."""
    item = step.input.item
    columns = {name: named(F.col(ITEM), item, name)[0] for name in step.arg("columns")}
    return row_of(step, columns | computed(step))


@lowers("with_columns")
def with_columns(step: Step) -> Relation:
    """The row with columns replaced in their position, new ones last."""
    return row_of(step, own_columns(step.input.item) | computed(step))


@lowers("rename")
def rename(step: Step) -> Relation:
    """The row with other names, each column in its position."""
    new = {old: name for name, old in step.arg("renames")}
    own = own_columns(step.input.item)
    found = row_of(step, {new.get(name, name): c for name, c in own.items()})
    partitioned_by = found.partitioned_by
    return found.with_(
        partitioned_by=partitioned_by and tuple(new.get(name, name) for name in partitioned_by)
    )


@lowers("drop")
def drop(step: Step) -> Relation:
    """The row without the named columns."""
    gone = frozenset(step.arg("columns"))
    return row_of(step, {n: c for n, c in own_columns(step.input.item).items() if n not in gone})


@lowers("aggregate_result")
def aggregate_result(step: Step) -> Relation:
    """The results that are computed from the parts of a row."""
    item, types = step.input.item, column_types(step.item)
    keys = {name: named(F.col(ITEM), item, name)[0] for name in step.arg("by") or ()}
    made = {
        name: made_of(
            a.function, [argument_of(p, item) for p in a.arguments], types[name], step.node
        )
        for name, a in step.arg("aggregates")
    }
    return row_of(step, keys | made)


@lowers("partition")
def partition(step: Step) -> Mapping[str, Relation]:
    """Each item at the port that `f` names; an undeclared one fails the tick."""
    fn, ports = step.arg("f"), step.arg("ports")
    found = evaluated(fn, step.input.item)
    port = F.coalesce(found.cast("string"), F.lit(""))
    wrong = fail(step.node, undeclared(ports), F.col(ITEM), fn=fn)
    declared = found.isNotNull() & port.isin(*ports)
    return {
        name: kept(step.input, F.when(declared, port == name).otherwise(wrong.cast("boolean")))
        for name in ports
    }


def mapped(step: Step) -> Relation:
    """`f` of each item, as an item of the output's type."""
    item = step.input.item
    return step.projected(
        apply(step.arg("f"), F.col(ITEM), item, result=step.item, tick=F.col(TICK))
    )


def kept(relation: Relation, condition: Column) -> Relation:
    """The rows for which the condition is true; it may fail on rows."""
    return relation.with_(frame=relation.frame.where(guarded(condition)))


def computed(step: Step) -> dict[str, Column]:
    """The computed columns, of the input's row."""
    item = step.input.item
    return {name: evaluated(fn, item) for name, fn in step.arg("computed")}


def row_of(step: Step, columns: Mapping[str, Column]) -> Relation:
    return step.projected(make_row(columns.items()))


def spread(step: Step, whole: Column, item: ItemType) -> Relation:
    """A row for each part of an array or tuple; null has no parts.

    Positions order the parts of one item.
    """
    match item:
        case Array(element):
            parts = F.transform(whole, lambda x: convert(x, element, step.item))
        case Tuple(fields):
            converted = [
                convert(at(whole, item, i), type_at(item, i), step.item) for i in range(len(fields))
            ]
            parts = F.when(whole.isNotNull(), F.array(*converted))
        case _:
            parts = F.array()
    relation, reads = step.input, (TICK, ITEM)
    other_columns = (*relation.times, *relation.carried)
    if not relation.ordered:
        one = F.explode(parts).alias(ITEM)
        frame = exploded(relation.frame, [one, *other_columns], reads=reads)
    else:
        one = F.posexplode(parts).alias("part", ITEM)
        frame = exploded(relation.frame, [one, *other_columns, ORD], reads=reads)
        order = F.struct(F.col(ORD).alias("of"), F.col("part")).alias(ORD)
        frame = frame.select(ITEM, *other_columns, order)
    return relation.with_(frame=frame, item=step.item)


# Quarantine: items on which functions fail, separated from the others.
#
# Where Spark computes the functions, all items are fitting as long as no guard fails. If one fails,
# the range runs again with the function in Python, which decides for each item.


@lowers("fitting")
def fitting(step: Step) -> Relation:
    """The items on which no function fails."""
    attempt = CallAttempt.of(step.node.args, step.input.item)
    try:
        return kept(step.input, _surely(attempt, fits=True))
    except NotCompilable:
        return kept(step.input, _in_python(step, attempt))


@lowers("failing")
def failing(step: Step) -> Relation:
    """The other items, each with the function that fails on it and the reason."""
    attempt = CallAttempt.of(step.node.args, step.input.item)
    try:
        none = kept(step.input, _surely(attempt, fits=False))
        nothing = F.lit(None).cast(spark_type(step.item))
        return none.with_items(nothing, step.item)
    except NotCompilable:
        return kept(step.projected(_described(step, attempt)), F.col(ITEM).isNotNull())


def _surely(attempt: CallAttempt, *, fits: bool) -> Column:
    """A condition that is true of all items if `fits`, else of none; where a guard of a function
    fails, the job fails.

    Spark computes nothing that it does not need, so the condition formally depends on the results,
    and on the partition.
    """
    known: Column = F.spark_partition_id() >= 0 if fits else F.spark_partition_id() < 0
    for _, fn in attempt.calls:
        computed = F.xxhash64(_computed(attempt, fn))
        known = F.when(computed == F.lit(0), known).otherwise(F.when(computed != 0, known))
    return known


def _computed(attempt: CallAttempt, fn: Fn) -> Column:
    """The results of a function, in the form that its operator reads."""
    args, result = ((F.col(ITEM), attempt.item),), attempt.result(fn)
    match attempt.use:
        case Use.TEST:
            return predicate_column(fn, args)
        case Use.PORT:
            found = to_column(fn, args, result=result)
            declared = found.isNotNull() & found.cast("string").isin(*attempt.ports)
            return F.when(declared, True).otherwise(asked(fn).cast("boolean"))
        case Use.PARTS if not isinstance(result, Array | Tuple):
            raise NotCompilable("only Python tells what can be spread")
        case Use.ITEM | Use.PARTS:
            if result == UNKNOWN:
                raise NotCompilable("only Python tells what it gives")
            return to_column(fn, args, result=result)


def _in_python(step: Step, attempt: CallAttempt) -> Column:
    def is_fitting(x: Any) -> bool:
        return attempt.on(x) is None

    return udf_predicate(_named(step, is_fitting, BOOLEAN), F.col(ITEM), step.input.item)


def _described(step: Step, attempt: CallAttempt) -> Column:
    source, place = step.arg("source"), step.arg("place")

    def described(x: Any) -> RowItem | None:
        failed = attempt.on(x)
        if failed is None:
            return None
        return RowItem(source=source, place=place, reason=failed.reason, row=attempt.row(x))

    fn = _named(step, described, step.item)
    return udf_column(fn, F.col(ITEM), step.input.item, step.item)


def _named(step: Step, call: Callable[[Any], Any], returns: ItemType) -> Fn:
    name = f"{step.node.op.name} {', '.join(fn.name for _, fn in step.arg('calls'))}"
    return Fn(name, f"function#{step.node.id}", ("x",), call, returns=returns)


# The part of a stream that belongs to one of several shards: by Spark's hash of the fields, or
# Python's.


@lowers("of_shard")
def of_shard(step: Step) -> Relation:
    """The items that are routed to one shard."""
    shard, shards = step.arg("shard"), step.arg("shards")
    relation = step.input
    if step.arg("f") is not None:
        mine = _by_function(step, shard, shards)
        return relation.with_(frame=relation.frame.where(guarded(mine)))
    item = relation.item
    parts = [c for path in step.arg("by") for c in _hashed(*_field(F.col(ITEM), item, path))]
    routed = F.pmod(F.xxhash64(*parts), F.lit(shards)) if parts else F.lit(0)
    return relation.with_(frame=relation.frame.where(routed == shard))


def _by_function(step: Step, shard: int, shards: int) -> Column:
    """The shard of an item whose function may fail; only Python can decide it."""
    fn, item = step.arg("f"), step.input.item
    routed = router((), fn, item, shards)

    def is_mine(x: Any) -> bool:
        return routed(x) == shard

    asked = Fn(f"of_shard {fn.name}", f"function#{step.node.id}", ("x",), is_mine, returns=BOOLEAN)
    return udf_predicate(asked, F.col(ITEM), item)


def _field(column: Column, item: ItemType, path: FieldPath) -> tuple[Column, ItemType]:
    for name in path:
        position = item.names.index(name) if isinstance(item, Row) else int(name)
        column, item = at(column, item, position), type_at(item, position)
    return column, item


def _hashed(column: Column, item: ItemType) -> Iterator[Column]:
    """The columns whose Spark hash equals that of `hydro_core.types.routing`."""
    match item:
        case Tuple() | Row():
            for i in range(len(item.fields)):
                yield from _hashed(at(column, item, i), type_at(item, i))
        case Array(element):
            yield F.transform(column, lambda x: _as_one(x, element))
        case Unknown():
            yield F.lit(None).cast("long")
        case _:
            yield _leaf(column, item)


def _as_one(column: Column, item: ItemType) -> Column:
    parts = list(_hashed(column, item))
    return parts[0] if len(parts) == 1 else F.struct(*parts)


def _leaf(column: Column, item: ItemType) -> Column:
    if item == BOOLEAN or is_integer(item):
        return column.cast("long")
    if item == DATE:
        return F.unix_date(column).cast("long")
    if is_numeric(item) and not isinstance(item, DecimalType):
        return column.cast("double")
    return column
