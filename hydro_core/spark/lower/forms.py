"""How results go on: what is made of new items, and how what is stored comes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column

from hydro_core.catalog.internal import (
    MOVING_AGGREGATE,
    RUNNING_AGGREGATE,
    RUNNING_FOLD,
    RUNNING_FOLD_KEYED,
    RUNNING_LATEST,
    RUNNING_REDUCE,
    RUNNING_REDUCE_KEYED,
)
from hydro_core.catalog.parts import EXTREMES, merging
from hydro_core.catalog.spec import Aggregate, OpSpec
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates import GREATEST
from hydro_core.spark.lower.folds import wrapped
from hydro_core.spark.lower.group import (
    ACC,
    accumulator_type,
    aggregated,
    fields_of,
    keyed_item,
    keyed_value,
    rank,
)
from hydro_core.spark.lower.items import at, convert, key_fields, literal, named, type_at
from hydro_core.spark.lower.native import native_fold, native_reduction
from hydro_core.spark.lower.partial import MergedResult, Partial
from hydro_core.spark.lower.registry import Step
from hydro_core.spark.lower.running import extreme_part, running_aggregate
from hydro_core.types.item import ItemType, Row

STATE = "state"
"""The column of the stored item, the only field `x` of a struct; null where nothing is stored."""


@dataclass(frozen=True, slots=True)
class Going:
    """How a result goes on, as columns of the new items and of a stored one, both called `item`."""

    results: Mapping[str, MergedResult]
    """What is made for each key: merged from partial results of the new items."""
    item: Column
    """The output's item, of the key columns `k0` … and the results."""
    stored: Sequence[Column] = ()
    """The stored item as the partial results of all `results`; none if they go on from `state`."""
    is_aggregated: bool = False
    """Whether `stored` are aggregates, as those of new items are."""
    every_tick: bool = False
    """Whether there is a result before the first item, too."""
    is_there: Column | None = None
    """Of the results, whether there is an item at all; None: always."""


@dataclass(frozen=True, slots=True)
class Holistic:
    """How a result goes on that has no partial ones: over all values, in the order of ticks."""

    fn_step: Step
    value: Column
    of: ItemType
    acc: ItemType
    start: Column | None
    """Where a fold starts, of the column `state`; a reduction starts with the first value."""
    stored: Column
    """The accumulator in the stored item of `state`."""
    item: Column
    every_tick: bool = False


def form_of(step: Step) -> Going | Holistic:
    """How the operator's result goes on; the only input of the step is what is new."""
    return _FORMS[step.node.op](step)


def _aggregate(step: Step) -> Going:
    item, types = step.input.item, {f.name: f.type for f in fields_of(step.item)}
    results, stored = {}, []
    merges = dict(merging(step.arg("aggregates")) or ())
    for i, (name, aggregate) in enumerate(step.arg("aggregates")):
        running = running_aggregate(aggregate, item, types[name], step.node)
        if running is None or len(running.partials) != 1 or name not in merges:
            raise TypeError(f"{aggregate.function} is not merged from results")
        results[f"a{i}"] = running
        stored.append(_stored_part(step, name, merges[name]))
    if not results:
        results["n"] = MergedResult((Partial(F.count(F.lit(1)), F.sum),), lambda parts: parts[0])
        stored.append(F.lit(1))
    return Going(results, aggregated(step), stored, every_tick=not step.arg("by"))


def _stored_part(step: Step, name: str, merge: Aggregate) -> Column:
    """The stored result as a partial one."""
    value = named(F.col(ITEM), step.item, name)
    if merge.function not in EXTREMES:
        return value[0]
    order = named(F.col(ITEM), step.item, str(merge.arguments[1]))
    return extreme_part(value, order, greatest=GREATEST[merge.function])


def _moved(step: Step) -> Going:
    """Counts and totals; the first is the number of rows."""
    form = _aggregate(step)
    return form if form.every_tick else replace(form, is_there=F.col("a0") > 0)


def _latest(step: Step) -> Going:
    best = MergedResult(
        (Partial(F.max(rank(step, step.input.item)), F.max),), lambda parts: parts[0]
    )
    return Going({"best": best}, F.col("best.x"), [rank(step, step.item)])


def _fold(step: Step) -> Going | Holistic:
    acc = step.item
    stored = F.col(STATE).getField("x")
    return _folding(step, (F.col(ITEM), step.input.item), acc, stored, F.col(ACC), every_tick=True)


def _fold_keyed(step: Step) -> Going | Holistic:
    acc = accumulator_type(step)
    stored = _accumulator_in(F.col(STATE).getField("x"), step.item, step.arg("by"), acc)
    made = keyed_item(step, key_fields(step.input.item, step.arg("by")), acc)
    return _folding(step, keyed_value(step), acc, stored, made)


def _folding(
    step: Step,
    value: tuple[Column, ItemType],
    acc: ItemType,
    stored: Column,
    made: Column,
    *,
    every_tick: bool = False,
) -> Going | Holistic:
    of_type = spark_type(acc)
    init = literal(step.arg("init"), acc).cast(of_type)
    start = F.when(F.col(STATE).isNotNull(), stored.cast(of_type)).otherwise(init)
    running = native_fold(step, start, acc, wrapped(value[0]), value[1])
    if running is None:
        return Holistic(step, *value, acc, start, stored, made, every_tick)
    return Going({ACC: running}, made, every_tick=every_tick)


def _accumulator_in(
    stored: Column, item: ItemType, by: Sequence[str] | None, acc: ItemType
) -> Column:
    """The accumulator in a stored item of a keyed result."""
    if not by:
        return convert(at(stored, item, 1), type_at(item, 1), acc)
    if isinstance(acc, Row):
        return convert(stored, item, acc)
    return convert(*named(stored, item, "value"), acc)


def _reduce(step: Step) -> Going | Holistic:
    acc = step.item
    return _reducing(step, (F.col(ITEM), step.input.item), acc, lambda stored: stored, F.col(ACC))


def _reduce_keyed(step: Step) -> Going | Holistic:
    acc, by = accumulator_type(step), step.arg("by")
    made = keyed_item(step, key_fields(step.input.item, by), acc)

    def of_stored(stored: Column) -> Column:
        return _accumulator_in(stored, step.item, by, acc)

    return _reducing(step, keyed_value(step), acc, of_stored, made)


def _reducing(
    step: Step,
    value: tuple[Column, ItemType],
    acc: ItemType,
    of_stored: Callable[[Column], Column],
    made: Column,
) -> Going | Holistic:
    """A reduction takes what is stored for one more value."""
    running = native_reduction(step, acc, wrapped(value[0]), value[1])
    again = native_reduction(step, acc, wrapped(of_stored(F.col(ITEM))), acc)
    if running is None or again is None:
        stored = of_stored(F.col(STATE).getField("x"))
        return Holistic(step, *value, acc, None, stored, made)
    stored_parts = [p.of_rows for p in again.partials]
    return Going({ACC: running}, made, stored_parts, is_aggregated=True)


_FORMS: Mapping[OpSpec, Callable[[Step], Going | Holistic]] = {
    RUNNING_AGGREGATE: _aggregate,
    MOVING_AGGREGATE: _moved,
    RUNNING_LATEST: _latest,
    RUNNING_FOLD: _fold,
    RUNNING_FOLD_KEYED: _fold_keyed,
    RUNNING_REDUCE: _reduce,
    RUNNING_REDUCE_KEYED: _reduce_keyed,
}
