"""Those rows of a landing that can matter for some values, of many ticks: read as items.

What is asked of columns goes down to the files, whose statistics tell what need not be read. Spark
is needed only where the files are such that its workers have to read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from datetime import date
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from hydro_core.spark.arrivals.source import Snapshot
from hydro_core.spark.arrow import from_arrow
from hydro_core.spark.batches import batch_of
from hydro_core.spark.batches_axis import NONE, Axis, Window
from hydro_core.spark.batches_landing import InputBatches, Range, range_of
from hydro_core.spark.files.arrived import is_exact
from hydro_core.spark.files.places import DELTA
from hydro_core.spark.landed_refusals import refuse_unfit
from hydro_core.spark.relation import ITEM, TICK
from hydro_core.ticks.arrow import plain_table
from hydro_core.ticks.wanted import Limits, TooLargeError, TooManyError, Values, Wanted
from hydro_core.types.item import FieldPath, ItemType, Row, Tuple
from hydro_core.types.values import canonical

_KINDS: tuple[tuple[Any, type], ...] = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_string, str),
    (pa.types.is_large_string, str),
    (pa.types.is_date32, date),
)
"""Columns whose values are compared by Arrow as the language compares them."""


class SlicedBatches(InputBatches):
    """The batches of a pipeline's inputs, of which slices can be read, too."""

    def wanted(
        self,
        wanted: Wanted,
        last: int,
        times: Mapping[int, Window],
        most: Limits,
        version: int | None = None,
    ) -> Mapping[int, list[Any]]:
        """The rows of an input up to a tick that can matter, as items by their ticks.

        Args:
            wanted: which rows, and from which tick on.
            last: the last tick.
            times: the windows of the ticks.
            most: what may be read.
            version: of a Delta table; None: the latest.

        Raises:
            DataError: the input cannot be read (code `input`).
            TooManyError: it has more such rows.
            TooLargeError: the files that may have them are larger.
        """
        if self._has_none(wanted):
            return {}
        part = self._part(wanted, last, times, version)
        rows, axis, item = part.found.dataset, part.axis, part.arrived.item
        if rows is None or not is_exact(part.arrived, part.columns):
            _refuse_large(sum(file.stat().st_size for file in part.found.files), most)
            batch = self._by_pieces(part, self.landings.sources[wanted.name].zone)
        else:
            columns = dict.fromkeys([*part.columns, *([axis.column] if axis else [])])
            where = _within(condition_of(wanted, rows.schema, item), axis, rows.schema)
            if wanted.some is None:
                _refuse_large(_size(rows, where), most)
            table = plain_table(matching(rows, columns, where, most.rows, wanted.some))
            numbers = np.zeros(len(table), np.int64)
            if axis is not None:
                numbers = axis.numbers(table[axis.column])
                table, numbers = table.filter(pa.array(numbers != NONE)), numbers[numbers != NONE]
            batch = batch_of(part.name, table, item, pa.array(numbers), part.read)
        if not isinstance(batch.rows, pa.Table):
            raise TooManyError
        return wanted.among(items_by_tick(batch.rows, item))

    def counts(
        self,
        wanted: Wanted,
        fields: Sequence[FieldPath],
        last: int,
        times: Mapping[int, Window],
        version: int | None = None,
    ) -> Counter[tuple[Hashable, ...]]:
        """How many of the rows that are wanted have which values in some fields, by their forms.

        Nothing where that takes more than to count.
        """
        if self._has_none(wanted):
            return Counter()
        part = self._part(wanted, last, times, version)
        rows, item = part.found.dataset, part.arrived.item
        names = [column_of(path, item) for path in fields]
        columns = [name for name in names if name is not None]
        if rows is None or not is_exact(part.arrived, part.columns) or len(columns) < len(names):
            return Counter()
        where = condition_of(wanted, rows.schema, item)
        return counts_of(rows, columns, _within(where, part.axis, rows.schema))

    def _has_none(self, wanted: Wanted) -> bool:
        source = self.landings.sources[wanted.name]
        return not source.is_there or (source.file.column is None and wanted.first > 0)

    def _part(
        self, wanted: Wanted, last: int, times: Mapping[int, Window], version: int | None
    ) -> Range:
        source = self.landings.sources[wanted.name]
        arrived = source.arrived(None if version is None else Snapshot(DELTA, version))
        refuse_unfit(arrived, None)
        return range_of(source, arrived, (wanted.first, last), times)


def _size(rows: ds.Dataset, where: ds.Expression | None) -> int:
    """The bytes of the files that may have rows for which the condition holds."""
    files: Any = rows.get_fragments(filter=where)
    return sum(file.filesystem.get_file_info(file.path).size or 0 for file in files)


def _refuse_large(size: int, most: Limits) -> None:
    if most.size is not None and size > most.size:
        raise TooLargeError(size)


def _within(
    where: ds.Expression | None, axis: Axis | None, schema: pa.Schema
) -> ds.Expression | None:
    if axis is None:
        return where
    within = axis.within(schema.field(axis.column).type)
    return within if where is None else within & where


def condition_of(wanted: Wanted, schema: pa.Schema, item: ItemType) -> ds.Expression | None:
    """What holds of the rows that are wanted; also of others, where Arrow cannot tell them apart.

    None: nothing is known of them.
    """
    parts = []
    for alternative in wanted.alternatives:
        told = [
            part
            for path, values in alternative.items()
            if (part := _one_of(column_of(path, item), values, schema)) is not None
        ]
        if not told:
            return None
        parts.append(reduce(and_, told))
    return reduce(or_, parts) if parts else None


def column_of(path: FieldPath, item: ItemType) -> str | None:
    """The column that holds a field; None: it is a part of one."""
    match item:
        case Row() if len(path) == 1:
            return path[0]
        case Tuple() if len(path) == 1:
            return f"_{int(path[0]) + 1}"
        case _:
            return None


def _one_of(column: str | None, values: Values, schema: pa.Schema) -> ds.Expression | None:
    if column is None or column not in schema.names:
        return None
    kind = schema.field(column).type
    of = next((of for fits, of in _KINDS if fits(kind)), None)
    there = [value for value in values.values() if value is not None]
    if of is None or not all(type(value) is of for value in there):
        return None
    asked = ds.field(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Of files that delta-rs has rewritten Arrow cannot hold text against their statistics.
        asked = asked.cast(kind)
    found: ds.Expression = asked.isin(pa.array(there, _widest(kind)))
    if len(there) < len(values):
        found |= ds.field(column).is_null()
    return found


def _widest(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(kind) else kind


def matching(
    rows: ds.Dataset,
    columns: Collection[str],
    where: ds.Expression | None,
    most: int,
    some: int | None = None,
) -> pa.Table:
    """The columns of the rows that meet a condition, or of `some` of them.

    Raises:
        TooManyError: they are more than `most`.
    """
    if some is not None:
        return rows.head(some, columns=list(columns), filter=where)
    found, count = list[pa.RecordBatch](), 0
    for batch in rows.to_batches(columns=list(columns), filter=where):
        count += batch.num_rows
        if count > most:
            raise TooManyError
        found.append(batch)
    schema = pa.schema([rows.schema.field(name) for name in columns])
    return pa.Table.from_batches(found, found[0].schema if found else schema)


def counts_of(
    rows: ds.Dataset, columns: Sequence[str], where: ds.Expression | None
) -> Counter[tuple[Hashable, ...]]:
    """How many rows that meet a condition have which values in the columns."""
    found = Counter[tuple[Hashable, ...]]()
    names = list(dict.fromkeys(columns))
    for batch in rows.to_batches(columns=names, filter=where):
        counted = plain_table(pa.table(batch)).group_by(names).aggregate([([], "count_all")])
        for row in counted.to_pylist():
            found[tuple(canonical(row[name]) for name in columns)] += row["count_all"]
    return found


def items_by_tick(rows: pa.Table, item: ItemType) -> Mapping[int, list[Any]]:
    """The items of a batch by their ticks, in the order in which they stand there."""
    found: dict[int, list[Any]] = {}
    items = from_arrow(rows[ITEM].combine_chunks(), item)
    ticks: list[Any] = rows[TICK].to_pylist()
    for tick, value in zip(ticks, items, strict=True):
        found.setdefault(tick, []).append(value)
    return found
