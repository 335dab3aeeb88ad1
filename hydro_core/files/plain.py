"""What other writers' types and values in Arrow are as ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hydro_core.types.arrow import SCALARS
from hydro_core.types.item import (
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
)
from hydro_core.types.values import RowItem, Struct, ValueProblem

WrongRows = Mapping[int, str]
"""Why some rows are none, by their places."""

_ITEM: dict[pa.DataType, ItemType] = {arrow: Scalar(name) for name, arrow in SCALARS.items()}
_WIDER: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def item_type(arrow: pa.DataType) -> ItemType:
    """The item type of Arrow values; `ValueProblem` where there is none (a map, a time of day)."""
    plain = plain_type(arrow)
    if plain in _ITEM:
        return _ITEM[plain]
    if pa.types.is_null(plain):
        return UNKNOWN
    if pa.types.is_decimal(plain):
        return Decimal(plain.precision, plain.scale)
    if pa.types.is_list(plain):
        return Array(item_type(plain.value_type))
    if pa.types.is_struct(plain):
        fields = [plain.field(i) for i in range(plain.num_fields)]
        types = [Field(field.name, item_type(field.type)) for field in fields]
        if types and [f.name for f in types] == [f"_{i + 1}" for i in range(len(types))]:
            return Tuple(tuple(f.type for f in types))
        return Row(tuple(types))
    raise ValueProblem(f"an item has no values of the type {arrow}")


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """The type of ours that holds these values: no dictionaries, microseconds, UTC."""
    wider = _WIDER.get(arrow)
    if wider is not None:
        return wider
    if pa.types.is_dictionary(arrow):
        return plain_type(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("us", "UTC" if arrow.tz else None)
    if pa.types.is_decimal(arrow) and arrow.precision <= 38:
        return pa.decimal128(arrow.precision, arrow.scale)
    if (
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_fixed_size_list(arrow)
    ):
        return pa.list_(plain_type(arrow.value_type))
    if pa.types.is_struct(arrow):
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        return pa.struct([(field.name, plain_type(field.type)) for field in fields])
    return arrow


def plain_table(table: pa.Table) -> pa.Table:
    """The table with columns of our types only; what is finer than a microsecond is cut off."""
    columns: dict[str, Any] = {}
    for field in table.schema:
        plain = plain_type(field.type)
        try:
            columns[field.name] = table.column(field.name).cast(
                plain, safe="[ns" not in str(field.type)
            )
        except pa.ArrowInvalid as problem:
            raise ValueProblem(f"{problem} (in column `{field.name}`)") from None
    return pa.table(columns)


def plain_rows(table: pa.Table) -> tuple[pa.Table, WrongRows]:
    """The rows in columns of our types, and those with a value that none of them holds: null."""
    try:
        return plain_table(table), {}
    except ValueProblem as problem:
        if table.num_rows == 1:
            return _without(table), {0: str(problem)}
    half = table.num_rows // 2
    first, wrong = plain_rows(table.slice(0, half))
    second, others = plain_rows(table.slice(half))
    both = pa.concat_tables([first, second])
    return both, {**wrong, **{half + n: why for n, why in others.items()}}


def _without(row: pa.Table) -> pa.Table:
    """A row without the values that no type of ours holds."""
    columns: dict[str, Any] = {}
    for name in row.column_names:
        try:
            columns[name] = plain_table(row.select([name])).column(name)
        except ValueProblem:
            empty = plain_table(row.select([name]).slice(0, 0))
            columns[name] = pa.array([None], empty.schema.field(name).type)
    return pa.table(columns)


def in_types_of(table: pa.Table, schema: pa.Schema | None) -> pa.Table:
    """The columns in the types that they have in all files; what a file lacks is null."""
    if schema is None or table.schema.equals(schema):
        return table
    for place, one in enumerate(table.schema):
        wanted = schema.field(one.name).type if one.name in schema.names else one.type
        if pa.types.is_nested(wanted) or pa.types.is_timestamp(wanted):
            # INT96 has no zone, and a Delta table says that its timestamps have one.
            table = table.set_column(place, one.name, table.column(place).cast(wanted))
    return pa.concat_tables([schema.empty_table(), table], promote_options="permissive")


def item_of(value: Any, of: ItemType) -> Any:
    """The item that a value of `to_pylist` is."""
    match of:
        case _ if value is None:
            return None
        case Tuple(fields):
            return Struct(item_of(value[f"_{i + 1}"], t) for i, t in enumerate(fields))
        case Row(fields):
            return RowItem((f.name, item_of(value[f.name], f.type)) for f in fields)
        case Array(element):
            return [item_of(x, element) for x in value]
        case _:
            return value
