"""What is made of the items of a key: one entry for each summary of the catalogue.

An operator over all rows of a key and the running one over what is new share it. A result is
*merged* from partial results where the summary has them, else the key's values are *replayed*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column

from hydro_core.catalog.parts import has_inverse, merging
from hydro_core.catalog.results import made_by_key
from hydro_core.catalog.spec import Aggregate
from hydro_core.catalog.variants import Summary
from hydro_core.functions.fn import Fn
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates.folds import wrapped
from hydro_core.spark.lower.aggregates.named import aggregate_column, merged_aggregate, stored_part
from hydro_core.spark.lower.aggregates.native import native_fold, native_reduction
from hydro_core.spark.lower.aggregates.partial import MergedResult, Partial, counted
from hydro_core.spark.lower.by_key.along_ticks import (
    ROWS,
    STATE,
    Along,
    KeySummary,
    Merging,
    Replaying,
)
from hydro_core.spark.lower.items.columns import column_types, evaluated, literal, make_row, named
from hydro_core.spark.lower.items.keyed import (
    ACC,
    accumulator_in,
    accumulator_type,
    keyed_item,
    keyed_value,
    rows_go,
)
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import ItemType

BEST = "best"


def summary_of(step: Step) -> KeySummary:
    """What the operator makes of the items of a key."""
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
        return Replaying(step.arg("f"), value, item, acc, before, start)
    return Merging({ACC: merged}, resumes=resumes)


def _stored_accumulator(step: Step, acc: ItemType) -> Column:
    return accumulator_in(step, F.col(STATE).getField("x"), acc).cast(spark_type(acc))


def _made(step: Step) -> Column:
    return keyed_item(step, accumulator_type(step))


def _reduction_in_time(step: Step, resumes: bool) -> Along:
    """A reduction takes what is stored for one more value."""
    acc, (value, item) = accumulator_type(step), keyed_value(step)
    merged = native_reduction(step, acc, wrapped(value), item)
    if merged is not None and not resumes:
        return Merging({ACC: merged})
    stored = accumulator_in(step, F.col(ITEM), acc)
    again = native_reduction(step, acc, wrapped(stored), acc) if resumes else None
    if merged is None or again is None:
        before = _stored_accumulator(step, acc) if resumes else None
        return Replaying(step.arg("f"), value, item, acc, before)
    parts = [p.of_rows for p in again.partials]
    return Merging({ACC: merged}, resumes=True, stored=parts, are_aggregates=True)


def _latest_in_time(step: Step, resumes: bool) -> Merging:
    best = Partial(F.max(_rank(step, step.input.item)), F.max)
    stored = [_rank(step, step.item)] if resumes else ()
    return Merging(
        {BEST: MergedResult((best,), lambda parts: parts[0])}, resumes=resumes, stored=stored
    )


def _rank(step: Step, item: ItemType) -> Column:
    """What the latest row of a key has most of: its order, then the row `x` itself."""
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


def _aggregates_in_time(step: Step, resumes: bool) -> Merging | None:
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
        results[ROWS] = MergedResult((counted(F.lit(1)),), lambda parts: parts[0])
        stored = [F.lit(1)] if resumes else ()
    rows = "a0" if has_inverse(aggregates) else ROWS
    return Merging(results, resumes=resumes, stored=stored, rows=rows)


def _stored_aggregates(step: Step, aggregates: Sequence[tuple[str, Aggregate]]) -> list[Column]:
    """Stored results as partial ones: only those are stored that merge as they are."""
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
