"""Those rows of a landing that can matter for some values, of many ticks: read as items.

What is asked of columns goes down to the files, whose statistics tell what need not be read. Spark
is needed only where the files are such that its workers have to read them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from hydro_core.spark.arrow import from_arrow
from hydro_core.spark.relation import ITEM, TICK
from hydro_core.ticks.wanted import TooManyError, Values, Wanted
from hydro_core.types.item import FieldPath, ItemType, Row, Tuple

_KINDS: tuple[tuple[Any, type], ...] = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_string, str),
    (pa.types.is_large_string, str),
    (pa.types.is_date32, date),
)
"""Columns whose values are compared by Arrow as the language compares them."""


def condition_of(wanted: Wanted, schema: pa.Schema, item: ItemType) -> ds.Expression | None:
    """What holds of the rows that are wanted; also of others, where Arrow cannot tell them apart.

    None: nothing is known of them.
    """
    parts = []
    for alternative in wanted.alternatives:
        told = [
            part
            for path, values in alternative.items()
            if (part := _one_of(_column(path, item), values, schema)) is not None
        ]
        if not told:
            return None
        parts.append(reduce(and_, told))
    return reduce(or_, parts) if parts else None


def _column(path: FieldPath, item: ItemType) -> str | None:
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
    found: ds.Expression = ds.field(column).isin(pa.array(there, _widest(kind)))
    if len(there) < len(values):
        found |= ds.field(column).is_null()
    return found


def _widest(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(kind) else kind


def matching(
    rows: ds.Dataset, columns: Collection[str], where: ds.Expression | None, most: int
) -> pa.Table:
    """The columns of the rows that meet a condition.

    Raises:
        TooManyError: they are more than `most`; how many.
    """
    found, count = list[pa.RecordBatch](), 0
    for batch in rows.to_batches(columns=list(columns), filter=where):
        count += batch.num_rows
        if count > most:
            raise TooManyError(rows.count_rows(filter=where))
        found.append(batch)
    schema = pa.schema([rows.schema.field(name) for name in columns])
    return pa.Table.from_batches(found, found[0].schema if found else schema)


def items_by_tick(rows: pa.Table, item: ItemType) -> Mapping[int, list[Any]]:
    """The items of a batch by their ticks, in the order in which they stand there."""
    found: dict[int, list[Any]] = {}
    items = from_arrow(rows[ITEM].combine_chunks(), item)
    ticks: list[Any] = rows[TICK].to_pylist()
    for tick, value in zip(ticks, items, strict=True):
        found.setdefault(tick, []).append(value)
    return found
