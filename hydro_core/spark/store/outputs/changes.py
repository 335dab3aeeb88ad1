"""Changes of outputs from tick to tick: net, repeated and different rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hydro_core.catalog.forms import Form
from hydro_core.files.parquet import in_pieces
from hydro_core.ir.graph import free_name
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.store.schema import Bools, Int64s
from hydro_core.spark.store.snapshots import groups, totals
from hydro_core.types.item import FLOATS, SCALARS, Array, Decimal, ItemType, Row, Scalar, Tuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hydro_core.spark.store.delta.write import WrittenRows
    from hydro_core.spark.store.schema import TableSpec
    from hydro_core.spark.store.store import Store


def shown_at(
    store: Store, spec: TableSpec, ticks: tuple[int, int], session: Callable[[], SparkSession]
) -> WrittenRows:
    """The rows that a table has at ticks; whoever is done with them has them discarded.

    Args:
        store: its tables.
        spec: the table.
        ticks: the first and the last tick.
        session: gives the Spark that is asked where the rows, or the changes that lead to them, are
            more than the store holds.
    """
    from hydro_core.spark.store.delta.write import WrittenRows, write_files
    from hydro_core.spark.store.snapshots import shown_frame

    first, last = ticks
    begin = 0 if spec.is_log else first
    most = store.rows_within(spec.name, begin, last) * (last - first + 1 if spec.is_log else 1)
    # A log has no order; what is of no type is not known to Spark.
    at_hand = most <= store.held_rows or spec.has_unknown or (spec.is_log and spec.ordered)
    plain = replace(spec, form=Form.GROWTH)
    frame = None if at_hand else shown_frame(store, session(), spec, ticks)
    if frame is None:
        rows = store.rows(spec.name, first, last)
        return WrittenRows(plain, rows.num_rows, rows)
    columns = [quoted(name) for name, _ in plain.columns]
    return write_files(store.tables[spec.name], frame.select(*columns), ticks, plain)


@contextmanager
def shown_within(
    store: Store, spec: TableSpec, ticks: tuple[int, int], session: Callable[[], SparkSession]
) -> Iterator[WrittenRows]:
    """The same within a block, behind which they are discarded."""
    shown = shown_at(store, spec, ticks, session)
    try:
        yield shown
    finally:
        shown.discard()


_COUNT = "n"


@dataclass(frozen=True, slots=True)
class RepeatedValues:
    """Values that are there more than once."""

    rows: int
    """How many rows have one of them."""
    some: tuple[tuple[int, Any], ...]
    """Some of them, each with its tick."""


def repeated(rows: DataFrame, tick: str, column: str, most: int) -> RepeatedValues:
    """The values of a column that stand in several rows of one tick; nulls are none.

    Args:
        rows: the rows of an output.
        tick: the column of the tick.
        column: the one whose values are compared.
        most: so many of them are told.
    """
    named = F.col(quoted(column))
    known = rows.where(named.isNotNull())
    counted = known.groupBy(F.col(quoted(tick)), named).agg(F.count(F.lit(1)).alias(_COUNT))
    several = counted.where(F.col(_COUNT) > 1)
    found = several.agg(F.sum(_COUNT)).collect()[0][0] or 0
    some = several.limit(most).toArrow().to_pylist() if found else []
    return RepeatedValues(int(found), tuple((row[tick], row[column]) for row in some))


TypedColumns = Sequence[tuple[str, ItemType]]
"""Columns, and the types of what they hold."""

_ALIKE = frozenset(SCALARS) - frozenset(FLOATS)
"""Types of which two values are equal in any reader where they are equal in the language."""


@dataclass(frozen=True, slots=True)
class NetChanges:
    """Different rows, and by how many copies each becomes more, or fewer where it is negative."""

    rows: pa.Table
    counts: Int64s

    def __len__(self) -> int:
        return self.rows.num_rows

    @property
    def copies(self) -> int:
        """How many rows come and go."""
        return int(abs(self.counts).sum())

    @property
    def is_growth(self) -> bool:
        """Whether nothing goes."""
        return bool((self.counts > 0).all())

    def typed(self, schema: pa.Schema) -> NetChanges:
        """The same rows, with the columns of a schema."""
        return NetChanges(self.rows.select(schema.names).cast(schema), self.counts)

    def coming(self) -> pa.Table:
        """The rows that come, as often as they do."""
        return repeated_rows(self.rows, self.counts)

    def of(self, mask: Bools) -> NetChanges:
        """Some of them."""
        return NetChanges(self.rows.filter(pa.array(mask)), self.counts[mask])


def net_changes(
    rows: pa.Table, counts: Int64s | Sequence[int], columns: TypedColumns
) -> NetChanges:
    """Rows with counts, equal ones together, without those that cancel out."""
    firsts, total = totals(rows, columns, np.asarray(counts, np.int64))
    there = np.flatnonzero(total)
    return NetChanges(_taken(rows, firsts[there]), total[there])


def difference(now: pa.Table, before: pa.Table, columns: TypedColumns) -> NetChanges:
    """By what one bag of rows differs from another."""
    both = pa.concat_tables([now, before])
    ones = np.ones(len(both), np.int64)
    ones[len(now) :] = -1
    return net_changes(both, ones, columns)


def repeated_rows(rows: pa.Table, counts: Int64s) -> pa.Table:
    """Each row as often as its count says; those with none, or fewer, not."""
    return _taken(rows, np.repeat(np.arange(len(rows)), counts.clip(min=0)))


def agreeing(rows: pa.Table, others: pa.Table, columns: TypedColumns) -> Bools:
    """Which of some rows agree with one of others in these columns."""
    names = [name for name, _ in columns]
    both = pa.concat_tables([rows.select(names), others.select(names)])
    ids, _ = groups(both, columns)
    return np.isin(ids[: len(rows)], ids[len(rows) :])


def agreeing_rows(rows: ds.Dataset, others: pa.Table, by: TypedColumns) -> pa.Table:
    """The rows that agree with one of the others in some columns.

    Args:
        rows: files, of which no more is held than a piece and what is found.
        others: rows with those columns.
        by: the columns.
    """
    pieces = in_pieces(rows, where=_may_agree(others, by))
    found = (piece.filter(pa.array(agreeing(piece, others, by))) for piece in pieces)
    return pa.concat_tables([rows.schema.empty_table(), *found])


def _may_agree(rows: pa.Table, by: TypedColumns) -> ds.Expression | None:
    """What surely holds of the rows that agree with one of some: files tell it of many rows.

    Files that are merged tell of texts in a form that Arrow does not compare with others.
    """
    told = [name for name, _ in by if not _is_text(rows.schema.field(name).type)]
    if not told:
        return None
    name = max(told, key=lambda name: len(rows[name].unique()))
    values: Any = rows[name].combine_chunks()
    known: ds.Expression = ds.field(name).isin(values.drop_null())
    return known | ds.field(name).is_null() if has_nulls(values) else known


def _is_text(of: pa.DataType) -> bool:
    return pa.types.is_string(of) or pa.types.is_binary(of)


def distinct(rows: pa.Table, columns: TypedColumns) -> pa.Table:
    """The different combinations of these columns."""
    _, firsts = groups(rows, columns)
    return _taken(rows.select([name for name, _ in columns]), firsts)


def are_alike(item: ItemType) -> bool:
    """Whether two values are equal to any reader of a table where they are so in the language."""
    match item:
        case Decimal():
            return True
        case Scalar(name):
            return name in _ALIKE
        case Row() | Tuple() | Array():
            return False
        case _:
            return False


def has_nulls(column: Any) -> bool:
    return bool(pc.any(pc.is_null(column)).as_py())


def _taken(rows: pa.Table, places: Int64s) -> pa.Table:
    return rows.take(pa.array(places, pa.int64()))


Two = tuple[DataFrame | None, DataFrame | None]
"""Rows before and after; None where there are none."""


class BagDifference(NamedTuple):
    """How many rows the one has that the other has not, and the other way round, as bags."""

    added: int
    removed: int


def signed(
    before: DataFrame | None, after: DataFrame | None, columns: Sequence[str], count: str = ""
) -> tuple[DataFrame | None, str]:
    """Rows of which each is there once more, or once less, and the column that says so.

    Args:
        before: rows that are taken away, if there are any.
        after: rows that are added.
        columns: the columns of both that are looked at.
        count: the column that says how often a row is there; none: each is there once.
    """
    by = free_name("by", {name.lower() for name in columns})
    parts = [
        frame.select(
            *[F.col(quoted(name)) for name in columns],
            (F.col(quoted(count)) * sign if count else F.lit(sign)).cast("long").alias(by),
        )
        for frame, sign in ((before, -1), (after, 1))
        if frame is not None
    ]
    if not parts:
        return None, by
    return parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1]), by


def net(rows: DataFrame, by: str) -> DataFrame:
    """Equal rows together, without those that cancel out."""
    names = [quoted(name) for name in rows.columns if name != by]
    return rows.groupBy(*names).agg(F.sum(by).alias(by)).where(F.col(by) != 0)


def differing(bags: Two, columns: Sequence[str]) -> BagDifference:
    """By how many rows two bags, the one before and the one after, differ in some columns."""
    rows, by = signed(*bags, columns)
    return BagDifference(0, 0) if rows is None else _in_all(net(rows, by), F.col(by))


def differing_logs(logs: Two, columns: tuple[Sequence[str], str, str], end: int) -> BagDifference:
    """By how many rows of all ticks two logs differ, each as of every tick.

    Of each item the changes are added up from tick to tick: what is left holds until the next one.

    Args:
        logs: the changes of the one before and the one after, since the first of the ticks.
        columns: the names of the items' columns, of the tick and of the count.
        end: the first tick that is not looked at any more.
    """
    names, tick, count = columns
    rows, by = signed(*logs, [*names, tick], count)
    if rows is None:
        return BagDifference(0, 0)
    in_time = Window.partitionBy(*map(quoted, names)).orderBy(quoted(tick))
    there = F.sum(by).over(in_time)
    until = F.coalesce(F.lead(quoted(tick)).over(in_time), F.lit(end).cast("long"))
    lasting = (there * (until - F.col(quoted(tick)))).alias(by)
    return _in_all(net(rows, by).select(lasting), F.col(by))


def _in_all(rows: DataFrame, by: Column) -> BagDifference:
    added, removed = (F.sum(F.when(of > 0, of)) for of in (by, -by))
    (found,) = rows.agg(added, removed).collect()
    return BagDifference(int(found[0] or 0), int(found[1] or 0))
