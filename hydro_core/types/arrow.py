"""Items as Arrow columns, and back, without a loss.

The work is done column by column: a nested type is taken apart into its leaves, and only these
become Python lists. UDF workers use this module too, so it needs no Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from itertools import accumulate
from typing import Any

import pyarrow as pa

from hydro_core.types.item import Array, Decimal, ItemType, Row, Scalar, Tuple, Unknown
from hydro_core.types.values import RowItem, Struct

SCALARS: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""The Arrow types of scalars, by their names."""


def arrow_type(item: ItemType) -> pa.DataType:
    """The Arrow type in which Spark exchanges items of this type."""
    match item:
        case Unknown():
            return pa.null()
        case Scalar(name):
            return SCALARS[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Tuple() | Row():
            return pa.struct([pa.field(name, arrow_type(child)) for name, child in _fields(item)])
        case Array(element):
            return pa.list_(pa.field("element", arrow_type(element)))


def to_arrow(items: Sequence[Any], item: ItemType) -> pa.Array[Any]:
    """The items as one Arrow array; they must conform to the type."""
    match item:
        case Tuple() | Row() if _fields(item):
            return _structs_to_arrow(items, item)
        case Array(element):
            return _lists_to_arrow(items, element)
        case Tuple() | Row():
            return pa.array([None if x is None else {} for x in items], pa.struct([]))
        case _:
            return pa.array(items, arrow_type(item), from_pandas=False)


def from_arrow(array: pa.Array[Any] | pa.ChunkedArray[Any], item: ItemType) -> list[Any]:
    if isinstance(array, pa.ChunkedArray):
        return [x for chunk in array.chunks for x in from_arrow(chunk, item)]
    match item:
        case Tuple() | Row():
            return _structs_from_arrow(array, item)
        case Array(element):
            return _lists_from_arrow(array, element)
        case Scalar("timestamp"):
            moments: list[Any] = array.cast(pa.timestamp("us")).to_pylist()
            return [m if m is None else m.replace(tzinfo=UTC) for m in moments]
        case _:
            values: list[Any] = array.to_pylist()
            return values


def _fields(item: Tuple | Row) -> list[tuple[str, ItemType]]:
    if isinstance(item, Row):
        return [(field.name, field.type) for field in item.fields]
    return [(f"_{i}", field) for i, field in enumerate(item.fields, start=1)]


def _structs_to_arrow(items: Sequence[Any], item: Tuple | Row) -> pa.Array[Any]:
    keys = item.names if isinstance(item, Row) else range(len(item.fields))
    children = [
        to_arrow([None if x is None else x[key] for x in items], child)
        for key, (_, child) in zip(keys, _fields(item), strict=True)
    ]
    absent = pa.array([x is None for x in items], pa.bool_())
    fields = [pa.field(name, arrow_type(child)) for name, child in _fields(item)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=absent)


def _lists_to_arrow(items: Sequence[Any], element: ItemType) -> pa.Array[Any]:
    sizes = [0 if x is None else len(x) for x in items]
    offsets = pa.array(accumulate(sizes, initial=0), pa.int32())
    values = to_arrow([x for xs in items if xs is not None for x in xs], element)
    absent = pa.array([x is None for x in items], pa.bool_())
    return pa.ListArray.from_arrays(offsets, values, type=arrow_type(Array(element)), mask=absent)


def _structs_from_arrow(array: Any, item: Tuple | Row) -> list[Any]:
    # The fields of a null parent exist too, with any values; they are dropped below.
    children = [from_arrow(array.field(i), child) for i, (_, child) in enumerate(_fields(item))]
    parts = zip(*children, strict=True) if children else ((),) * len(array)
    present = array.is_valid().to_pylist()
    if isinstance(item, Tuple):
        return [Struct(p) if there else None for there, p in zip(present, parts, strict=True)]
    names = item.names
    return [
        RowItem(zip(names, p, strict=True)) if there else None
        for there, p in zip(present, parts, strict=True)
    ]


def _lists_from_arrow(array: Any, element: ItemType) -> list[Any]:
    values = from_arrow(array.values, element)
    offsets = array.offsets.to_pylist()
    present = array.is_valid().to_pylist()
    return [
        values[low:high] if there else None
        for there, low, high in zip(present, offsets[:-1], offsets[1:], strict=True)
    ]
