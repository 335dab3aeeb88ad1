"""Records as rows of Arrow: their columns follow from the annotations of a dataclass's fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, get_args, get_origin

import pyarrow as pa

from hydro_core.types.records import hints_of, optional

_SCALARS: Mapping[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    bool: pa.bool_(),
    float: pa.float64(),
    datetime: pa.timestamp("us", tz="UTC"),
}


def columns_of(kind: type) -> list[pa.Field[Any]]:
    """The columns that values of a dataclass have, in the order of its fields."""
    known = hints_of(kind)
    found: list[pa.Field[Any]] = []
    for field in fields(kind):
        how = field.metadata.get("as")
        if how == "inline":
            found += columns_of(known[field.name])
        else:
            of = pa.string() if how == "text" else _arrow(known[field.name])
            found.append(pa.field(field.name, of))
    return found


def as_row(value: Any) -> dict[str, Any]:
    """A value as Arrow takes it: mappings are pairs in the order of their keys."""
    found: dict[str, Any] = {}
    for field in fields(value):
        how, one = field.metadata.get("as"), getattr(value, field.name)
        if how == "inline":
            found |= as_row(one)
        else:
            found[field.name] = json.dumps(one, sort_keys=True) if how == "text" else _part(one)
    return found


def as_rows(values: Iterable[Any], schema: pa.Schema) -> pa.Table:
    """Values of a dataclass as a table of its columns."""
    return pa.Table.from_pylist([as_row(value) for value in values], schema)


def records_in(rows: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, as what is made of records.

    Of instants that have a zone pyarrow makes pandas' own, so they are had without one: looked at
    anew, not cast, since to cast it loads all its functions.
    """
    local = pa.timestamp("us")
    for place, column in enumerate(rows.schema):
        if column.type == _SCALARS[datetime]:
            seen = [chunk.view(local) for chunk in rows.column(place).chunks]
            rows = rows.set_column(place, column.with_type(local), pa.chunked_array(seen, local))
    return rows.to_pylist(maps_as_pydicts="strict")


def _part(value: Any) -> Any:
    if is_dataclass(value):
        return as_row(value)
    if isinstance(value, Mapping):
        return sorted((key, _part(one)) for key, one in value.items())
    return [_part(one) for one in value] if isinstance(value, tuple | list) else value


def _arrow(kind: Any) -> pa.DataType:
    kind = optional(kind)
    origin, of = get_origin(kind), get_args(kind)
    if origin is not None and issubclass(origin, Mapping):
        return pa.map_(_arrow(of[0]), _arrow(of[1]))
    if origin is not None:
        return pa.list_(_arrow(of[0]))
    if isinstance(kind, type) and is_dataclass(kind):
        return pa.struct(columns_of(kind))
    return _SCALARS[kind]
