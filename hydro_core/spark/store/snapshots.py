"""What a log of changes says is there: from Arrow rows, without Spark."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.spark.store.schema import TableSpec, stored
from hydro_core.spark.store.values import Numbers, comparable
from hydro_core.types.arrow import from_arrow
from hydro_core.types.item import Array, ItemType, Row, Tuple
from hydro_core.types.values import canonical


def snapshots(log: pa.Table, spec: TableSpec, ticks: Iterable[int]) -> pa.Table:
    """The rows that are there at each of these ticks, in ascending order, with the tick.

    `log` has all changes up to the last of them, with the columns of the stored table.
    """
    ids, firsts = groups(log, spec.items)
    at, by = _numbers(log[spec.tick]), _numbers(log[spec.count_column])
    order = np.argsort(at, kind="stable")
    at, ids, by = at[order], ids[order], by[order]
    counts = np.zeros(len(firsts), dtype=np.int64)
    done, parts = 0, [spec.plain_schema.empty_table()]
    for tick in ticks:
        end = int(np.searchsorted(at, tick, side="right"))
        np.add.at(counts, ids[done:end], by[done:end])
        done = end
        there = np.flatnonzero(counts > 0)
        parts.append(
            _at(log.take(pa.array(np.repeat(firsts[there], counts[there]), pa.int64())), spec, tick)
        )
    return pa.concat_tables(parts)


def summed(log: pa.Table, spec: TableSpec, tick: int) -> pa.Table:
    """The log with the changes up to a tick as one row for each item, at that tick."""
    old = _numbers(log[spec.tick]) <= tick
    firsts, counts = totals(log, spec.items, np.where(old, _numbers(log[spec.count_column]), 0))
    there = np.flatnonzero(counts)
    rows = _at(log.take(pa.array(firsts[there], pa.int64())), spec, tick)
    rows = rows.append_column(spec.count_column, pa.array(counts[there], pa.int64()))
    return pa.concat_tables([rows.select(log.column_names), log.filter(pa.array(~old))])


def _at(rows: pa.Table, spec: TableSpec, tick: int) -> pa.Table:
    """The rows without their counts, all of one tick."""
    columns = [
        pa.array([tick] * rows.num_rows, pa.int64()) if name == spec.tick else rows[name]
        for name in spec.plain_schema.names
    ]
    return pa.table(columns, schema=spec.plain_schema)


def totals(
    rows: pa.Table, columns: Iterable[tuple[str, ItemType]], counts: Numbers
) -> tuple[Numbers, Numbers]:
    """Of equal rows the place of one, and what their counts come to."""
    ids, firsts = groups(rows, columns)
    found = np.zeros(len(firsts), dtype=np.int64)
    np.add.at(found, ids, counts)
    return firsts, found


def groups(log: pa.Table, columns: Iterable[tuple[str, ItemType]]) -> tuple[Numbers, Numbers]:
    """A number for each row, the same for equal items; and for each number a row that has it."""
    ids = np.zeros(log.num_rows, dtype=np.int64)
    firsts = np.zeros(min(log.num_rows, 1), dtype=np.int64)
    for name, item in columns:
        for codes in _codes(log[name].combine_chunks(), stored(item)):
            both = ids * (int(codes.max(initial=0)) + 1) + codes
            _, firsts, ids = np.unique(both, return_index=True, return_inverse=True)
    return ids, firsts


def _codes(column: Any, item: ItemType) -> Iterator[Numbers]:
    """Numbers that are equal where the values are, for each part of a column."""
    match item:
        case Row() | Tuple():
            types: Sequence[ItemType] = (
                [f.type for f in item.fields] if isinstance(item, Row) else item.fields
            )
            yield _numbers(column.is_valid().cast(pa.int64()))
            for part, of in zip(column.flatten(), types, strict=True):
                yield from _codes(part, of)
        case Array():
            known: dict[Hashable, int] = {}
            values = map(canonical, from_arrow(column, item))
            yield _numbers(pa.array([known.setdefault(v, len(known)) for v in values], pa.int64()))
        case _:
            encoded: Any = pc.dictionary_encode(comparable(column), null_encoding="encode")
            yield _numbers(encoded.indices.cast(pa.int64()))


def _numbers(column: Any) -> Numbers:
    plain = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    found: Numbers = plain.to_numpy(zero_copy_only=False)
    return found
