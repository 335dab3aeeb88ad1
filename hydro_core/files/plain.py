"""What other writers' types and values in Arrow are as ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from hydro_core.types.arrow import SCALARS, arrow_type
from hydro_core.types.item import (
    BINARY,
    BOOLEAN,
    FLOATS,
    INTEGERS,
    LONG,
    STRING,
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
)
from hydro_core.types.json import from_json
from hydro_core.types.values import RowItem, Struct, ValueProblem, unfit

WrongRows = Mapping[int, str]
"""Why some rows are none, by their places."""

_WHOLE = re.compile(r"-?[0-9]{1,19}")
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
    """The table with columns of our types only; `ValueProblem` if one of them loses a digit."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        columns[name], wrong = plain_column(table.column(name))
        for problem in wrong.values():
            raise ValueProblem(f"{problem} (in column `{name}`)")
    return pa.table(columns)


def plain_column(column: Any) -> tuple[Any, WrongRows]:
    """The values in a type of ours, and those that it does not hold, which are null there; of a
    time finer than a microsecond the rest stands, since it tells a tick.
    """
    plain = plain_type(column.type)
    try:
        return column.cast(plain), {}
    except pa.ArrowInvalid as problem:
        if len(column) == 1:
            if not pa.types.is_timestamp(plain):
                return pa.array([None], plain), {0: str(problem)}
            text = column.cast(pa.string())[0].as_py()
            return column.cast(plain, safe=False), {0: f"{text} is finer than a microsecond"}
    half = len(column) // 2
    # A cast of a slice of lists is one of all elements, those before and after it too.
    parts = (column.take(pa.array(range(*ends))) for ends in ((half,), (half, len(column))))
    (first, wrong), (second, others) = map(plain_column, parts)
    chunks = [c for part in (first, second) for c in getattr(part, "chunks", [part])]
    return pa.chunked_array(chunks), {**wrong, **{half + n: why for n, why in others.items()}}


def lost_nanoseconds(micros: Any, nanos: Any) -> WrongRows:
    """The rows in which values read in nanoseconds have more digits than those in microseconds."""
    if micros.type == nanos.type or micros.cast(nanos.type, safe=False).equals(nanos):
        # Nanoseconds of times far away wrap around, and so does this cast.
        return {}
    if len(micros) == 1:
        return {0: "it is finer than a microsecond"}
    half = len(micros) // 2
    first, second = (
        lost_nanoseconds(micros.take(pa.array(part)), nanos.take(pa.array(part)))
        for part in (range(half), range(half, len(micros)))
    )
    return {**first, **{half + row: why for row, why in second.items()}}


def folder_value(text: str | None, to: ItemType) -> pa.Scalar[Any]:
    """The value that the name of a folder has for a column, as a field of CSV is read: a name has
    no quotes, so no text is null. `ValueProblem` where it is none.
    """
    of = arrow_type(to)
    if text is None or (not text and to != STRING):
        return pa.scalar(None, of)
    if to == BOOLEAN or str(to) in INTEGERS + FLOATS:
        try:
            return pa.scalar(text.strip()).cast(of)
        except pa.ArrowInvalid:
            raise unfit(text, to) from None
    if to == BINARY or not isinstance(to, Scalar | Decimal):
        raise ValueProblem(f"the name of a folder has no form for type {to}")
    return pa.scalar(from_json(text, to), of)


def folder_type(texts: Iterable[str | None]) -> ItemType:
    """The type of a column that nothing but the names of folders tells: whole numbers, or text."""
    values = {text for text in texts if text is not None}
    if not values or not all(_WHOLE.fullmatch(value) for value in values):
        return STRING
    most = max(abs(int(value)) for value in values)
    return Scalar("integer") if most < 2**31 else LONG if most < 2**63 else STRING


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
