"""Changes of a log that cancel out: what came and went again within one data file.

Whoever looks at what a log comes to finds the same without them. A key's last row that is marked as
such, or a running result, comes and goes with each tick of its key: so of a file of many ticks most
rows are of items that are not there any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.files.parquet import opened_parquet
from hydro_core.spark.frames.column_names import COUNT, ITEM
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.lookups.agreeing import MatchedRows
from hydro_core.spark.store.lookups.key_hashes import are_hashed, words_of
from hydro_core.spark.store.lookups.rows_copy import column_of, leaf_of_file
from hydro_core.spark.store.values import Bools, Column, Int64s, comparable

PartsOfItems = Callable[[], Iterable[Column]]
"""Gives the parts of all items, column by column, as often as they are asked for."""


def may_cancel(schema: pa.Schema, files: Iterable[DataFile], met: MatchedRows) -> bool:
    """Whether what cancels out within the files of a log makes nothing of what is met.

    It does where some ticks are not met, or all rows of one are. Of items with parts that are not
    compared by columns, arrays, nobody tells which cancel out.
    """
    first, last = met.ticks or (0, -1)
    return (
        met.whole_tick is None
        and _is_hashed(schema.field(ITEM).type)
        and all(
            file.first is not None
            and file.last is not None
            and first <= file.first
            and file.last <= last
            for file in files
        )
    )


def _is_hashed(of: Any) -> bool:
    if pa.types.is_struct(of):
        return all(_is_hashed(field.type) for field in of)
    return are_hashed(of)


def without_cancelled(rows: pa.Table) -> pa.Table:
    """The rows (item, n, …) of a log that do not cancel out; all where nobody tells which do."""
    counts = rows[COUNT].to_numpy()
    if not _go_both_ways(counts) or not _is_hashed(rows.schema.field(ITEM).type):
        return rows
    items: Column = rows[ITEM].combine_chunks()
    return rows.take(pa.array(remaining(lambda: _parts(items), counts), pa.int64()))


def _go_both_ways(counts: Int64s) -> bool:
    """Whether some rows came and some went: else none cancel out."""
    return len(counts) > 0 and bool(counts.min() < 0 < counts.max())


def remaining_of_file(file: DataFile, schema: pa.Schema) -> Int64s:
    """The places of the rows of a log's file that do not cancel out."""
    with opened_parquet(file.path) as data:
        of = schema.field(ITEM).type
        leaf = leaf_of_file(data, (COUNT,), schema.field(COUNT).type)
        counts: Int64s = leaf.to_numpy(zero_copy_only=False)
        return remaining(lambda: _parts_of_file(data, (ITEM,), of), counts)


def remaining(leaves: PartsOfItems, counts: Int64s) -> Int64s:
    """The places of the rows whose items' counts do not come to 0, in their order.

    Equal items have equal parts; of those that only look equal by their hashes all stay.

    Args:
        leaves: the parts of the items.
        counts: how many copies of its item each row brings, or takes away.
    """
    if not _go_both_ways(counts):
        return np.arange(len(counts))
    words = words_of(leaves())
    if len(words) != len(counts):  # items of no parts
        return np.arange(len(counts))
    order = np.argsort(words, kind="stable")
    starts = np.flatnonzero(np.diff(words[order], prepend=~words[order[:1]]))
    sizes = np.diff(starts, append=len(counts))
    cancels = np.add.reduceat(counts[order], starts) == 0 if len(starts) else np.zeros(0, bool)
    doubtful = np.repeat(cancels, sizes)
    rows, firsts = order[doubtful], np.repeat(order[starts], sizes)[doubtful]
    equal = np.ones(len(rows), bool)
    for part in leaves():
        equal &= _are_equal(part, rows, firsts)
    stays = np.ones(len(counts), bool)
    groups = np.repeat(np.arange(len(starts)), sizes)[doubtful]
    unlike = np.zeros(len(starts), bool)
    unlike[groups[~equal]] = True
    stays[rows[~unlike[groups]]] = False
    return np.flatnonzero(stays)


def _are_equal(part: Column, rows: Int64s, others: Int64s) -> Bools:
    values = comparable(part)
    one, other = (values.take(pa.array(places, pa.int64())) for places in (rows, others))
    same: Any = pc.fill_null(pc.equal(one, other), False)
    is_nan = pa.types.is_floating(values.type)
    nothing = [pc.is_null(each, nan_is_null=is_nan) for each in (one, other)]
    alike: Any = pc.equal(pc.is_null(one), pc.is_null(other))
    found: Bools = pc.or_(same, pc.and_(pc.and_(*nothing), alike)).to_numpy(zero_copy_only=False)
    return found


def _parts(column: Column) -> Iterator[Column]:
    """The leaves of a column, and which of its structs are there."""
    if pa.types.is_struct(column.type):
        yield column.is_valid()
        for part in column.flatten():
            yield from _parts(part)
    else:
        yield column


def _parts_of_file(data: Any, path: tuple[str, ...], of: Any) -> Iterator[Column]:
    """The same of a column of a file, of which one is read at a time."""
    if pa.types.is_struct(of):
        yield column_of(data, path, of.field(0)).is_valid()
        for part in of:
            yield from _parts_of_file(data, (*path, part.name), part.type)
    else:
        yield leaf_of_file(data, path, of)
