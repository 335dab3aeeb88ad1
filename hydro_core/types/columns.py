"""The columns that a table has for the items of a type."""

from __future__ import annotations

from collections.abc import Mapping

from hydro_core.types.item import UNKNOWN, ItemType, Row, Tuple

Required = frozenset[str]
"""The columns that a schema declares `not null`."""


def required_columns(item: ItemType) -> Required:
    """The columns of an item's type that are declared `not null`."""
    fields = item.fields if isinstance(item, Row) else ()
    return frozenset(field.name for field in fields if not field.nullable)


def declared_columns(item: ItemType) -> Mapping[str, ItemType] | None:
    """The columns that hold items of a type: a row's own, `_1 … _n`, or `item`; None: not known."""
    match item:
        case Row(fields):
            return {field.name: field.type for field in fields}
        case Tuple(fields):
            return {f"_{i + 1}": t for i, t in enumerate(fields)}
        case _ if item == UNKNOWN:
            return None
        case _:
            return {"item": item}
