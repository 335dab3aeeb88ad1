"""Bags of rows in columns: which rows differ, how often each is there, which have a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hydro_core.files.parquet import in_pieces
from hydro_core.spark.store.snapshots import groups, totals
from hydro_core.spark.store.values import Mask, Numbers
from hydro_core.types.item import FLOATS, SCALARS, Array, Decimal, ItemType, Row, Scalar, Tuple

TypedColumns = Sequence[tuple[str, ItemType]]
"""TypedColumns and the types of what they hold."""

_ALIKE = frozenset(SCALARS) - frozenset(FLOATS)
"""Types of which two values are equal in any reader where they are equal in the language."""


@dataclass(frozen=True, slots=True)
class NetChanges:
    """Different rows, and by how many copies each becomes more, or fewer where it is negative."""

    rows: pa.Table
    counts: Numbers

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
        return repeated(self.rows, self.counts)

    def of(self, mask: Mask) -> NetChanges:
        """Some of them."""
        return NetChanges(self.rows.filter(pa.array(mask)), self.counts[mask])


def net_changes(
    rows: pa.Table, counts: Numbers | Sequence[int], columns: TypedColumns
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


def repeated(rows: pa.Table, counts: Numbers) -> pa.Table:
    """Each row as often as its count says; those with none, or fewer, not."""
    return _taken(rows, np.repeat(np.arange(len(rows)), counts.clip(min=0)))


def agreeing(rows: pa.Table, others: pa.Table, columns: TypedColumns) -> Mask:
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


def _taken(rows: pa.Table, places: Numbers) -> pa.Table:
    return rows.take(pa.array(places, pa.int64()))
