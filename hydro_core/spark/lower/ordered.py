"""Operators over the ordered rows of a key: `over`, `top`, and folds in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec

from hydro_core.catalog.over_functions import Distance, aggregate_of, argument, distance_of
from hydro_core.catalog.spec import OverFunction
from hydro_core.functions.tree import Fn
from hydro_core.plan.tick_plan import group_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.leaf import together
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates import AggregateScope, aggregate_column
from hydro_core.spark.lower.folds import scanned
from hydro_core.spark.lower.items import (
    accumulator_type,
    column_types,
    evaluated,
    fn_type,
    key_of,
    keyed_value,
    keys_of,
    literal,
    make_row,
    named,
    own_columns,
    reversed_order,
)
from hydro_core.spark.lower.keyed import (
    in_stretches,
    over_columns,
    several_by_key,
    summary_of,
    with_results,
)
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.types.item import Decimal as DecimalType
from hydro_core.types.item import ItemType, Scalar, is_integer

# Rows with their places among the rows of their key, as columns for windows.
#
# Results of the program's functions are columns of their own, computed before any window: so each
# is computed once for a row, and Python may compute it.


def within_before(spark: SparkSession, window: WindowSpec, far: Column) -> WindowSpec:
    """The window over the rows at most `far` before each in its order, and its peers, for any type:
    Spark's own interface for Python accepts only whole numbers of 64 bits.

    Args:
        spark: the session.
        window: rows in the order of one column, without a frame.
        far: minus the distance, a constant of the type of that column.
    """
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - Spark offers Python no other way
    constant, spec = cast("Any", far), cast("Any", window)
    start = jvm.org.apache.spark.sql.internal.WindowFrame.Value(constant._jc.node())  # noqa: SLF001
    by_range, here = _single(jvm, "Range"), _single(jvm, "CurrentRow")
    return WindowSpec(spec._jspec.withFrame(by_range, start, here))  # noqa: SLF001


def _single(jvm: Any, name: str) -> Any:
    """The Scala object with the name."""
    module = f"org.apache.spark.sql.internal.WindowFrame${name}$"
    return jvm.java.lang.Class.forName(module).getField("MODULE$").get(None)


ROW = "row"
"""The row as it was read; `item` may have more columns."""
PLACE = "place"
"""The order of the rows."""
VALUE = "value"
"""The order as it is in the rows, if it is one column or function."""
MEASURE = "measure"
"""The number in which distances between rows are measured."""
MOST = 2**31 - 1
"""Upper bound of the rows of a key."""


@dataclass(frozen=True, slots=True)
class KeyPlaces:
    """Rows (item, row, the key, place, value, measure, t[, until]) and the windows over them."""

    frame: DataFrame
    item: ItemType
    """The type of `item`."""
    keys: tuple[str, ...]
    is_ordered: bool
    descending: bool
    by_ticks: bool = True
    """True if the rows of a key at different ticks are separate; else they are one sequence."""
    ties: tuple[str, ...] = ()
    """The columns that order equal rows of a key."""

    def whole(self) -> WindowSpec:
        """All rows of the key."""
        return Window.partitionBy(*self.keys, *((TICK,) if self.by_ticks else ()))

    def by_peers(self) -> WindowSpec:
        """The key's rows, equal ones together."""
        return self.whole().orderBy(PLACE)

    def by_rows(self) -> WindowSpec:
        """The key's rows, one by one."""
        return self.whole().orderBy(PLACE, ROW, *self.ties)

    def within(self, spark: SparkSession, distance: Distance, of: ItemType) -> WindowSpec:
        """The rows at most so far before each, and those equal to it."""
        column = F.col(MEASURE)
        order = column.desc_nulls_last() if self.descending else column.asc_nulls_first()
        return within_before(spark, self.whole().orderBy(order), -measured(distance, of))


def places(
    step: Step, functions: Sequence[OverFunction] = (), carried: Sequence[str] = ()
) -> tuple[KeyPlaces, list[OverFunction]]:
    """The rows of a step's input with their places, and functions of `over` on columns.

    Args:
        step: the operator.
        functions: the functions of `over` that are to be computed.
        carried: further columns of the rows.
    """
    item, args = step.input.item, step.node.args
    row, wider, names = with_results(item, (fn for f in functions for fn in _functions(f)))
    order = list(_parts(args["order"], item))
    parts = [reversed_order(*p) if args["descending"] else p[0] for p in order]
    keys = [part for part, _ in _parts(args["by"], item)]
    columns = {f"k{i}": key for i, key in enumerate(keys)}
    if parts:
        columns[PLACE] = F.struct(*(part.alias(f"o{i}") for i, part in enumerate(parts)))
    if len(order) == 1:
        columns[VALUE] = order[0][0]
    times = [F.col(name) for name in step.input.times]
    frame = step.input.frame.select(
        F.col(ITEM).alias(ROW),
        row.alias(ITEM),
        *(column.alias(name) for name, column in columns.items()),
        *times,
        *map(F.col, carried),
    )
    if any(isinstance(a, Fn) for a in (*names, args["by"], args["order"])):
        frame = together(frame)
    if len(order) == 1 and has_measure(order[0][1]):
        frame = frame.withColumn(MEASURE, _measure(F.col(VALUE), order[0][1]))
    named_keys = tuple(f"k{i}" for i in range(len(keys)))
    found = KeyPlaces(frame, wider, named_keys, bool(parts), bool(args["descending"]))
    return found, [_over_columns(f, names) for f in functions]


def in_own_order(step: Step, rows: Relation) -> Relation:
    """The rows, in the order that is an argument of the operator; ties by the item, ascending."""
    args, item = step.node.args, rows.item
    parts = list(_parts(args["order"], item))
    order = [reversed_order(*p) if args["descending"] else p[0] for p in parts]
    place = F.struct(
        F.struct(*(part.alias(f"o{i}") for i, part in enumerate(order))).alias("k"),
        F.col(ITEM).alias("x"),
    )
    frame = rows.frame.select(ITEM, *rows.times, place.alias(ORD))
    return rows.with_(frame=frame, ordered=True)


def order_type(step: Step) -> ItemType | None:
    """The type of the order of the rows, if it is one column or function."""
    order = list(_parts(step.arg("order"), step.input.item))
    return order[0][1] if len(order) == 1 else None


def _parts(
    named_by: tuple[str, ...] | Fn | None, item: ItemType
) -> Iterator[tuple[Column, ItemType]]:
    """The values of an argument, columns or a function, for an item."""
    if isinstance(named_by, Fn):
        yield evaluated(named_by, item), fn_type(named_by, item)
    elif named_by:
        for column, name in zip(key_of(F.col(ITEM), item, named_by), named_by, strict=True):
            yield column, named(F.col(ITEM), item, name)[1]


def _functions(function: OverFunction) -> Iterator[Fn]:
    of = aggregate_of(function)
    arguments = (argument(function, "v"),) if of is None else of.arguments
    return (one for one in arguments if isinstance(one, Fn))


def _over_columns(function: OverFunction, names: Mapping[Fn, str]) -> OverFunction:
    """The function, over columns in place of functions of rows."""
    of = aggregate_of(function)
    if of is not None:
        return replace(function, arguments=(over_columns(of, names), *function.arguments[1:]))
    arguments = (names.get(a, a) if isinstance(a, Fn) else a for a in function.arguments)
    return replace(function, arguments=tuple(arguments))


_IN_TIME = ("timestamp", "timestamp_ntz")
_WIDE = "decimal(20,0)"


def has_measure(of: ItemType) -> bool:
    """True if items of the type have distances."""
    if isinstance(of, DecimalType) or is_integer(of):
        return True
    return isinstance(of, Scalar) and of.name in ("float", "double", "date", *_IN_TIME)


def _measure(column: Column, of: ItemType) -> Column:
    """A number whose differences are the distances of items of the type; null without a
    distance.
    """
    if not isinstance(of, Scalar):
        return column
    if of.name == "date":
        return F.unix_date(column).cast("long")
    if of.name in _IN_TIME:
        return F.unix_micros(column.cast("timestamp"))
    if of.name == "long":
        return column.cast(_WIDE)
    return column.cast("long" if is_integer(of) else "double")


def measured(distance: Distance, of: ItemType) -> Column:
    """A distance in the measure of items of the type, rounded down to its unit."""
    if isinstance(of, DecimalType):
        whole = _floor(
            Fraction(distance) if not isinstance(distance, timedelta) else Fraction(0), of.scale
        )
        return F.lit(whole).cast(f"decimal({of.precision},{of.scale})")
    assert isinstance(of, Scalar)
    if isinstance(distance, timedelta):
        unit = timedelta(days=1) if of.name == "date" else timedelta(microseconds=1)
        return F.lit(distance // unit).cast("long")
    if of.name == "long":
        return F.lit(_floor(Fraction(distance), 0)).cast(_WIDE)
    if is_integer(of):
        return F.lit(min(int(distance), 2**62)).cast("long")
    return F.lit(float(distance)).cast("double")


def _floor(distance: Fraction, scale: int) -> Decimal:
    return Decimal(distance * 10**scale // 1).scaleb(-scale)


def limited(number: int) -> int:
    """A number of rows, limited to Spark's range."""
    return min(number, MOST)


# Operators by the order of a key's rows: columns from their places, and the first rows.


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
    """The first n rows of each key, and the ties of the last of them if wanted."""
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
    """The step with its rows split wherever one of their key starts or ends."""
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
    """The step with its rows split wherever one of their key starts or ends, and in their order."""
    keys = key_of(F.col(ITEM), step.input.item, group_key(step.node))
    rows = in_stretches(step.with_(inputs=(step.input.unordered(),)), keys)
    return step.with_(inputs=(in_own_order(step, rows),))


def numbered(found: KeyPlaces) -> KeyPlaces:
    """The rows with their numbers, from 1, in the column by which aggregates order them."""
    number = F.row_number().over(found.by_rows())
    return replace(found, frame=found.frame.withColumn(ORD, number))


@dataclass(slots=True)
class KeyWindows:
    """The windows over some rows: each is a column, from which results are computed."""

    step: Step
    places: KeyPlaces
    order: ItemType | None
    """The type of the order of the rows, if it is one column."""
    started: Column | None = None
    """The start of the first row's session; None: that row."""
    found: list[Column] = field(default_factory=list)
    further: list[Column] = field(default_factory=list)
    """Windows over the results of windows."""

    @property
    def spark(self) -> SparkSession:
        return self.step.spark

    def of(self, function: Column, window: WindowSpec) -> Column:
        """The value of a window function for each row."""
        self.found.append(function.over(window).alias(f"w{len(self.found)}"))
        return F.col(f"w{len(self.found) - 1}")

    def of_others(self, function: Column, window: WindowSpec) -> Column:
        """The value of a window function over the results of windows."""
        self.further.append(function.over(window).alias(f"z{len(self.further)}"))
        return F.col(f"z{len(self.further) - 1}")

    def computed(self) -> DataFrame:
        """The rows with all windows."""
        frame = self.places.frame.select("*", *self.found) if self.found else self.places.frame
        return frame.select("*", *self.further) if self.further else frame


def column_of(work: KeyWindows, function: OverFunction, result: ItemType) -> Column:
    """The column of a function, from the windows that it needs."""
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
        # The struct distinguishes a null from a missing row.
        there = work.of(shift(F.struct(value.alias("v")), rows), work.places.by_rows())
        return F.when(there.isNotNull(), there.getField("v").cast(spark_type(result))).otherwise(
            literal(default, result)
        )

    return column


def _session(work: KeyWindows, function: OverFunction, _: ItemType) -> Column:
    """The order of the last row up to this one at which a session began."""
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
