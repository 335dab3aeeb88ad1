"""Keys and fields of items: the first field of a tuple, or columns of a row.

A null item has null fields.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from hydro_core.reference.site import Site
from hydro_core.types.common import common_type
from hydro_core.types.item import UNKNOWN, Field, ItemType, Row, Tuple
from hydro_core.types.values import RowItem, Struct, canonical, conform


def field(item: Any, step: int | str) -> Any:
    """A field of a tuple or row."""
    return None if item is None else item[step]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns `names` of a row as a key; with no names, the first field of a tuple.

    Keys are compared as items of type `compared`, where two inputs write the same key in different
    numeric types.
    """

    names: tuple[str, ...] = ()
    compared: ItemType = UNKNOWN

    def __call__(self, item: Any) -> Hashable:
        """Equal for items of equal keys."""
        return _compared(self.value(item), self.compared)

    def common(self, item: Any) -> Any:
        """The key as an item of the type in which keys are compared."""
        value = self.value(item)
        return value if self.compared == UNKNOWN else conform(value, self.compared)

    def value(self, item: Any) -> Any:
        """The key: one field, or a tuple of columns."""
        if not self.names:
            return field(item, 0)
        return Struct(field(item, name) for name in self.names)


@dataclass(frozen=True, slots=True)
class Whole:
    """The item itself as a key, compared as an item of type `compared`."""

    compared: ItemType = UNKNOWN

    def __call__(self, item: Any) -> Hashable:
        """Equal for equal items."""
        return _compared(item, self.compared)


def _compared(key: Any, to: ItemType) -> Hashable:
    return canonical(key if to == UNKNOWN else conform(key, to))


def key_of(site: Site) -> Columns:
    """The key of a keyed operator's items: the columns of `by`, else the first field."""
    return Columns(tuple(site.args.get("by") or ()))


def key_type(item: ItemType, columns: tuple[str, ...]) -> ItemType:
    """The type of `Columns(columns).value` of such items; unknown where the items are."""
    match item:
        case Tuple(fields) if not columns and fields:
            return fields[0]
        case Row() if columns:
            return Tuple(tuple(item.column(name) or UNKNOWN for name in columns))
        case _:
            return UNKNOWN


def compared_as(a: ItemType, b: ItemType) -> ItemType:
    """The type in which keys of two types are compared; unknown: as they are."""
    return UNKNOWN if a == b else common_type(a, b) or UNKNOWN


def columns_of(item: ItemType) -> tuple[Field, ...]:
    return item.fields if isinstance(item, Row) else ()


def keyed_result(key: Columns, item: Any, acc: Any) -> Any:
    """`(k, acc)` for the key of `item` and its accumulator, or a row of the columns of both."""
    if not key.names:
        return Struct((field(item, 0), acc))
    columns = {name: field(item, name) for name in key.names}
    if acc is None:
        # Whether it would be one column or several: they are null, which the output's type adds.
        return RowItem(columns)
    return RowItem({**columns, **(acc if isinstance(acc, dict) else {"value": acc})})
