"""What goes by the order of a key's rows: columns made of their places, the first of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec

from hydro_core.catalog.over_functions import aggregate_of, argument, distance_of
from hydro_core.catalog.spec import OverFunction
from hydro_core.plan.versions import group_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates.folds import scanned
from hydro_core.spark.lower.aggregates.named import aggregate_column
from hydro_core.spark.lower.aggregates.partial import AggregateScope
from hydro_core.spark.lower.by_key.group import in_stretches, several_by_key
from hydro_core.spark.lower.by_key.places import (
    MEASURE,
    ROW,
    VALUE,
    KeyPlaces,
    in_own_order,
    limited,
    measured,
    order_type,
    places,
)
from hydro_core.spark.lower.by_key.summaries import summary_of
from hydro_core.spark.lower.items.columns import (
    column_types,
    key_of,
    literal,
    make_row,
    named,
    own_columns,
)
from hydro_core.spark.lower.items.keyed import accumulator_type, keyed_value, keys_of
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.types.item import ItemType

_FIRST, _HERE = Window.unboundedPreceding, Window.currentRow


@lowers("over")
def over(step: Step) -> Relation:
    """Each row with columns, computed from its key's rows in their order."""
    return several_by_key(step, _with_columns)


def _with_columns(step: Step) -> Relation:
    step, asked = _keyed(step), step.arg("functions")
    found, functions = places(step, [function for _, function in asked])
    if found.is_ordered:
        found = numbered(found)
    work, types = KeyWindows(step, found, order_type(step)), column_types(step.item)
    made = {
        name: column_of(work, function, types[name])
        for (name, _), function in zip(asked, functions, strict=True)
    }
    row = make_row((own_columns(step.input.item, F.col(ROW)) | made).items()).alias(ITEM)
    return step.relation(step.input.kind, work.computed().select(row, *step.input.times))


@lowers("top")
def top(step: Step) -> Relation:
    """The first n rows of each key, and those equal to the last of them if ties are wanted."""
    return several_by_key(step, first_rows)


def first_rows(step: Step) -> Relation:
    """The first rows of each key at each tick of the range."""
    step = _keyed(step)
    found, _ = places(step)
    if step.arg("ties"):
        number = F.rank().over(found.by_peers())
    else:
        number = F.row_number().over(found.by_rows())
    first = found.frame.withColumn("number", number).where(F.col("number") <= step.arg("n"))
    return step.relation(step.input.kind, first.select(F.col(ROW).alias(ITEM), *step.input.times))


def _keyed(step: Step) -> Step:
    """The step with its rows cut wherever one of their key comes or goes."""
    by = step.arg("by")
    keys = key_of(F.col(ITEM), step.input.item, by) if isinstance(by, tuple) else ()
    return step.with_(inputs=(in_stretches(step.with_(inputs=(step.input.unordered(),)), keys),))


@lowers("sorted_fold_keyed", "sorted_reduce_keyed")
def folded_in_order(step: Step) -> Relation:
    """The fold of each key, or its reduction."""
    return several_by_key(step, _folds)


def _folds(step: Step) -> Relation:
    step, summary = _in_order(step), summary_of(step)
    rows = keys_of(step).grouped(step.input.frame, step.input.times, summary.of_group(step))
    made = rows.select(summary.item(step).alias(ITEM), *step.input.times)
    return step.relation(step.input.kind, made)


@lowers("sorted_scan_keyed")
def scanned_in_order(step: Step) -> Relation:
    """The accumulator of its key after each item."""
    return several_by_key(step, _scans)


def _scans(step: Step) -> Relation:
    step = _in_order(step)
    keys = key_of(F.col(ITEM), step.input.item, step.arg("by"))
    named = [key.alias(f"k{i}") for i, key in enumerate(keys)]
    return scanned(step, named, keyed_value(step), accumulator_type(step)).unordered()


def _in_order(step: Step) -> Step:
    """The step with its rows cut wherever one of their key comes or goes, and in their order."""
    keys = key_of(F.col(ITEM), step.input.item, group_key(step.node))
    rows = in_stretches(step.with_(inputs=(step.input.unordered(),)), keys)
    return step.with_(inputs=(in_own_order(step, rows),))


def numbered(found: KeyPlaces) -> KeyPlaces:
    """The rows with their numbers, from 1, in the column by which aggregates order them."""
    number = F.row_number().over(found.by_rows())
    return replace(found, frame=found.frame.withColumn(ORD, number))


@dataclass(slots=True)
class KeyWindows:
    """The windows that are computed of some rows: each is a column, of which results are made."""

    step: Step
    places: KeyPlaces
    order: ItemType | None
    """The type of what the rows are ordered by, where that is one column."""
    started: Column | None = None
    """Where the first row's session began; None: at that row."""
    found: list[Column] = field(default_factory=list)
    further: list[Column] = field(default_factory=list)
    """Those that are of others."""

    @property
    def spark(self) -> SparkSession:
        return self.step.spark

    def of(self, function: Column, window: WindowSpec) -> Column:
        """What a function of windows gives for each row."""
        self.found.append(function.over(window).alias(f"w{len(self.found)}"))
        return F.col(f"w{len(self.found) - 1}")

    def of_others(self, function: Column, window: WindowSpec) -> Column:
        """The same of what has been made of windows."""
        self.further.append(function.over(window).alias(f"z{len(self.further)}"))
        return F.col(f"z{len(self.further) - 1}")

    def computed(self) -> DataFrame:
        """The rows with all of them."""
        frame = self.places.frame.select("*", *self.found) if self.found else self.places.frame
        return frame.select("*", *self.further) if self.further else frame


def column_of(work: KeyWindows, function: OverFunction, result: ItemType) -> Column:
    """The column that a function gives, of the windows that it needs."""
    of = aggregate_of(function)
    if of is None:
        found = _COLUMNS[function.function](work, function, result)
        return found.cast(spark_type(result))
    window = _FRAMES[function.function](work, function)
    scope = AggregateScope(
        lambda one: work.of(one, window), lambda: F.col(TICK), counts_different=False
    )
    at, node = work.places, work.step.node
    return aggregate_column(of, at.item, result, node, ordered=at.is_ordered, scope=scope)


def _row_number(work: KeyWindows, _: OverFunction, __: ItemType) -> Column:
    return F.col(ORD)


def _by_peers(make: Callable[[], Column]) -> Callable[[KeyWindows, OverFunction, ItemType], Column]:
    return lambda work, function, result: work.of(make(), work.places.by_peers())


def _ntile(work: KeyWindows, function: OverFunction, _: ItemType) -> Column:
    return work.of(F.ntile(limited(argument(function, "n"))), work.places.by_rows())


def _shifted(
    shift: Callable[[Column, int], Column],
) -> Callable[[KeyWindows, OverFunction, ItemType], Column]:
    def column(work: KeyWindows, function: OverFunction, result: ItemType) -> Column:
        value, _ = named(F.col(ITEM), work.places.item, argument(function, "v"))
        rows, default = limited(argument(function, "n")), argument(function, "default")
        # In a struct a null is told from a row that is missing.
        there = work.of(shift(F.struct(value.alias("v")), rows), work.places.by_rows())
        return F.when(there.isNotNull(), there.getField("v").cast(spark_type(result))).otherwise(
            literal(default, result)
        )

    return column


def _session(work: KeyWindows, function: OverFunction, _: ItemType) -> Column:
    """The order of the last row before which a session began, this one included."""
    gap, order = distance_of(function), work.order
    assert gap is not None
    assert order is not None
    rows, here = work.places.by_rows(), F.col(MEASURE)
    before = work.of(F.lag(F.struct(here.alias("m"))), rows)
    last = before.getField("m")
    far = F.coalesce(F.abs(F.try_subtract(here, last)) <= measured(gap, order), F.lit(False))
    near = here.eqNullSafe(last) | (_is_place(here, order) & _is_place(last, order) & far)
    start = F.when(
        before.isNull(), F.col(VALUE) if work.started is None else work.started
    ).otherwise(F.col(VALUE))
    begins = F.when(before.isNull() | ~near, F.struct(start.alias("v")))
    so_far = rows.rowsBetween(_FIRST, _HERE)
    return work.of_others(F.last(begins, ignorenulls=True), so_far).getField("v")


def _is_place(column: Column, order: ItemType) -> Column:
    is_floating = spark_type(order).typeName() in ("float", "double")
    return column.isNotNull() & ~F.isnan(column) if is_floating else column.isNotNull()


def _running(work: KeyWindows, function: OverFunction) -> WindowSpec:
    if argument(function, "peers"):
        return work.places.by_peers().rangeBetween(_FIRST, _HERE)
    return work.places.by_rows().rowsBetween(_FIRST, _HERE)


def _rolling(work: KeyWindows, function: OverFunction) -> WindowSpec:
    rows = argument(function, "rows")
    if rows is not None:
        return work.places.by_rows().rowsBetween(1 - limited(rows), _HERE)
    assert work.order is not None
    return work.places.within(work.spark, argument(function, "within"), work.order)


_COLUMNS: Mapping[str, Callable[[KeyWindows, OverFunction, ItemType], Column]] = {
    "row_number": _row_number,
    "rank": _by_peers(F.rank),
    "dense_rank": _by_peers(F.dense_rank),
    "percent_rank": _by_peers(F.percent_rank),
    "cume_dist": _by_peers(F.cume_dist),
    "ntile": _ntile,
    "lag": _shifted(F.lag),
    "lead": _shifted(F.lead),
    "session": _session,
}
_FRAMES: Mapping[str, Callable[[KeyWindows, OverFunction], WindowSpec]] = {
    "running": _running,
    "rolling": _rolling,
    "whole": lambda work, function: work.places.whole(),
}
"""The windows of aggregates."""
