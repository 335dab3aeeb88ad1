"""Rows with what tells their places among those of their key, as columns to make windows of.

What functions of the program give stands in columns of its own, made before any window: so each is
computed once for a row, and Python may compute it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec

from hydro_core.catalog.over_functions import Distance, aggregate_of, argument
from hydro_core.catalog.spec import OverFunction
from hydro_core.functions.fn import Fn
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.lower.by_key.arguments import over_columns, with_results
from hydro_core.spark.lower.items.columns import (
    evaluated,
    fn_type,
    key_of,
    named,
    reversed_order,
)
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import Decimal as DecimalType
from hydro_core.types.item import ItemType, Scalar, is_integer


def within_before(spark: SparkSession, window: WindowSpec, far: Column) -> WindowSpec:
    """The window over the rows at most so far before each in its order, and those equal to it,
    whatever type that has: Spark's own interface for Python takes whole numbers of 64 bits alone.

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
    """The object of Scala that is called so."""
    module = f"org.apache.spark.sql.internal.WindowFrame${name}$"
    return jvm.java.lang.Class.forName(module).getField("MODULE$").get(None)


ROW = "row"
"""The row as it came; `item` may have more columns."""
PLACE = "place"
"""What rows are ordered by."""
VALUE = "value"
"""The same as it is in the rows, where that is one column or function."""
MEASURE = "measure"
"""The number in which distances between rows are measured."""
MOST = 2**31 - 1
"""No key has more rows."""


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
    """Whether the rows of a key at different ticks are apart; else they stand one after another."""
    ties: tuple[str, ...] = ()
    """The columns by which equal rows of a key go."""

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
    """The rows of a step's input with their places, and functions of `over` that are of columns.

    Args:
        step: the operator.
        functions: those of `over` that are to be computed.
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
    """The type of what rows are ordered by, where that is one column or function."""
    order = list(_parts(step.arg("order"), step.input.item))
    return order[0][1] if len(order) == 1 else None


def _parts(
    named_by: tuple[str, ...] | Fn | None, item: ItemType
) -> Iterator[tuple[Column, ItemType]]:
    """What an argument, columns or a function, is for an item."""
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
    """Whether there are distances between items of the type."""
    if isinstance(of, DecimalType) or is_integer(of):
        return True
    return isinstance(of, Scalar) and of.name in ("float", "double", "date", *_IN_TIME)


def _measure(column: Column, of: ItemType) -> Column:
    """A number between which there are the distances of items of the type, none beyond it."""
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
    """A distance in the measure of items of the type; what is less than its unit does not count."""
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
    """A number of rows, as Spark takes it."""
    return min(number, MOST)
