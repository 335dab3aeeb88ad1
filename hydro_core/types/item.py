"""Item types and stream types: the shape of a stream's items, their order, and columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from hydro_core.errors import TypeProblem

# Item types: the type of a stream's items.
#
# Every position of every type may be null, except the columns that a schema declares `not null`:
# arriving rows are checked for it, and it holds for a column until an operator may set null there.
# `UNKNOWN` is the type of a stream that has only nulls, or no items at all (an empty `source_iter`,
# a cycle without input). `OPEN` is the type of an input without a declared one. Both fit every
# other type.


FieldPath = tuple[str, ...]
"""A path into an item: tuple positions from "0", field names of rows; `()` is the whole item."""

_POSITION = re.compile("0|[1-9][0-9]{0,5}")

MOST_FIELDS = 10_000
"""The most parts of a type: fields, fields of fields, and so on."""
MOST_NESTED = 100
"""The deepest nesting of tuples, rows and arrays."""
MOST_PARTS = 2_000
"""The most parts of a type that is coerced in a cycle or in an accumulator."""

INTEGERS = ("byte", "short", "integer", "long")
FLOATS = ("float", "double")
SCALARS = (
    "boolean",
    *INTEGERS,
    *FLOATS,
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
)


@dataclass(frozen=True, slots=True)
class Unknown:
    """The type of null; if `open`, of any item."""

    open: bool = False

    def __str__(self) -> str:
        return "unknown"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One of `SCALARS`, named as in Spark DDL ("long", "string", "timestamp_ntz", …)."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """A decimal number of `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


class Extent(NamedTuple):
    """The measures of a whole type, cached so that no analysis traverses its parts."""

    parts: int = 1
    """The number of parts, itself included."""
    depth: int = 0
    """The depth of nesting."""
    open: bool = False
    """True if some part may be anything."""
    required: bool = False
    """True if some column must not be null."""


_LEAF, _OPEN_LEAF = Extent(), Extent(open=True)
_EXTENT: Extent = field(init=False, default=_LEAF, compare=False, repr=False)


def _measure(whole: Tuple | Row | Array, parts: Iterable[ItemType], required: bool = False) -> None:
    # Every type is built from measured parts, so none is ever too large to be measured.
    found = list(map(_extent, parts))
    extent = Extent(
        1 + sum(part.parts for part in found),
        1 + max((part.depth for part in found), default=0),
        any(part.open for part in found),
        required or any(part.required for part in found),
    )
    object.__setattr__(whole, "extent", extent)
    if extent.parts > MOST_FIELDS:
        raise TypeProblem(
            f"the item has more than {MOST_FIELDS:,} fields, those of its parts counted",
            "keep what is needed of each part, or make it an array",
        )
    if extent.depth > MOST_NESTED:
        raise TypeProblem(
            f"the item's parts nest deeper than {MOST_NESTED}", "make it flatter on the way"
        )


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple: in Spark a struct with the fields `_1 … _n`."""

    fields: tuple[ItemType, ...]
    extent: Extent = _EXTENT

    def __post_init__(self) -> None:
        _measure(self, self.fields)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.fields))})"


@dataclass(frozen=True, slots=True)
class Field:
    """A named field of a row; two types are equal whether or not it may be null."""

    name: str
    type: ItemType
    nullable: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        return f"{self.name} {self.type}{'' if self.nullable else ' not null'}"


@dataclass(frozen=True)
class Row:
    """A row: in Spark a struct with named fields, in the order written."""

    fields: tuple[Field, ...]
    extent: Extent = _EXTENT

    def __post_init__(self) -> None:
        required = not all(field.nullable for field in self.fields)
        _measure(self, [field.type for field in self.fields], required)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Row], tuple[tuple[Field, ...]]]:
        return Row, (self.fields,)  # hashes of strings differ between processes, so none is pickled

    @cached_property
    def _hash(self) -> int:
        return hash(self.fields)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(field.name for field in self.fields)

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        return dict(zip(self.names, self.fields, strict=True))

    @cached_property
    def nullable(self) -> Row:
        """The row with every column allowed to be null."""
        if not self.extent.required:
            return self
        return Row(tuple(Field(f.name, nullable(f.type)) for f in self.fields))

    def column(self, name: str) -> ItemType | None:
        """The type of column `name`, None if there is no such column."""
        found = self.by_name.get(name)
        return None if found is None else found.type

    def __str__(self) -> str:
        return f"row<{', '.join(map(str, self.fields))}>"


@dataclass(frozen=True, slots=True)
class Array:
    """An array of items of one type."""

    element: ItemType
    extent: Extent = _EXTENT

    def __post_init__(self) -> None:
        _measure(self, (self.element,))

    def __str__(self) -> str:
        return f"array<{self.element}>"


ItemType = Unknown | Scalar | Decimal | Tuple | Row | Array


def _extent(item: ItemType) -> Extent:
    if isinstance(item, Tuple | Row | Array):
        return item.extent
    return _OPEN_LEAF if item == OPEN else _LEAF


UNKNOWN = Unknown()
OPEN = Unknown(open=True)
BOOLEAN, LONG, DOUBLE, STRING = (Scalar(n) for n in ("boolean", "long", "double", "string"))
BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ = (
    Scalar(n) for n in ("binary", "date", "timestamp", "timestamp_ntz")
)


def is_integer(item: ItemType) -> bool:
    return isinstance(item, Scalar) and item.name in INTEGERS


def is_numeric(item: ItemType) -> bool:
    """True if the item is a number; booleans are not."""
    return isinstance(item, Decimal) or (
        isinstance(item, Scalar) and item.name in INTEGERS + FLOATS
    )


def children(item: ItemType) -> Iterator[tuple[str, ItemType]]:
    """The fields of a tuple or row with their path steps; nothing for other types."""
    match item:
        case Tuple(fields):
            yield from ((str(i), field) for i, field in enumerate(fields))
        case Row(fields):
            yield from ((field.name, field.type) for field in fields)
        case _:
            return


def is_known(item: ItemType) -> bool:
    """True if no part of the item has the type `UNKNOWN`."""
    parts = (item.element,) if isinstance(item, Array) else (part for _, part in children(item))
    return item != UNKNOWN and all(map(is_known, parts))


def is_open(item: ItemType) -> bool:
    """True if some part of the item may be anything."""
    return _extent(item).open


def nullable(item: ItemType) -> ItemType:
    """The type with every column allowed to be null."""
    match item:
        case Tuple(fields):
            return Tuple(tuple(map(nullable, fields)))
        case Row() as row:
            return row.nullable
        case Array(element):
            return Array(nullable(element))
        case _:
            return item


def padded(fields: Iterable[Field]) -> list[Field]:
    """The columns of a side that may have no match; all may be null."""
    return [replace(field, nullable=True) for field in fields]


def is_large(item: ItemType) -> bool:
    """True if the type has more than `MOST_PARTS` parts."""
    return isinstance(item, Tuple | Row | Array) and item.extent.parts > MOST_PARTS


def leaves(item: ItemType, prefix: FieldPath = ()) -> Iterator[tuple[FieldPath, ItemType]]:
    """Every leaf of the type with its path: arrays, scalars and the unknown are leaves."""
    parts = list(children(item))
    if not parts:
        yield prefix, item
    for step, child in parts:
        yield from leaves(child, (*prefix, step))


def at(item: ItemType, path: FieldPath) -> ItemType | None:
    """The type at `path`, None if there is none."""
    for step in path:
        match item:
            case Row():
                found = item.column(step)
            case Tuple(fields) if _POSITION.fullmatch(step) and int(step) < len(fields):
                found = fields[int(step)]
            case _:
                found = None
        if found is None:
            return None
        item = found
    return item


# Stream types: the type of the items, and their order.


class Order(Enum):
    """The order of the items of a tick, if operators may observe one."""

    NONE = "NoOrder"
    TOTAL = "TotalOrder"


@dataclass(frozen=True, slots=True)
class StreamType:
    """The type of a stream; `single` if every tick has at most one item."""

    item: ItemType
    order: Order = Order.NONE
    single: bool = False

    def __str__(self) -> str:
        return f"{self.item} {self.order.value}"


# The columns of a table with items of a type.


Required = frozenset[str]
"""The columns that a schema declares `not null`."""


def required_columns(item: ItemType) -> Required:
    """The columns of an item's type that are declared `not null`."""
    fields = item.fields if isinstance(item, Row) else ()
    return frozenset(field.name for field in fields if not field.nullable)


def declared_columns(item: ItemType) -> Mapping[str, ItemType] | None:
    """The columns for items of a type: a row's own, `_1 … _n`, or `item`; None if the type is
    unknown.
    """
    match item:
        case Row(fields):
            return {field.name: field.type for field in fields}
        case Tuple(fields):
            return {f"_{i + 1}": t for i, t in enumerate(fields)}
        case _ if item == UNKNOWN:
            return None
        case _:
            return {"item": item}


# Wrong rows of an input, in columns next to those of its items.
#
# An input with a quarantine reads its landing in a wider type: the columns of its items, and three
# more that are null in a row that fits. A wrong row has the columns that fit, the reason in place
# of the others, its location, and itself as text.


REASON, PLACE, ROW = "quarantine_reason", "quarantine_place", "quarantine_row"
QUARANTINE = "quarantine"
"""The output with the wrong rows."""
WRONG = (REASON, PLACE, ROW)
"""The columns that describe a wrong row."""


def widened(item: ItemType) -> Row:
    """The type in which a landing with a quarantine is read.

    A column declared `not null` is still declared so: a row without it is a wrong row.

    >>> from hydro_core.types.ddl import parse_ddl
    >>> widened(parse_ddl("long")).names
    ('item', 'quarantine_reason', 'quarantine_place', 'quarantine_row')
    """
    required = required_columns(item)
    own = (
        Field(name, of, name not in required) for name, of in (declared_columns(item) or {}).items()
    )
    return Row((*own, *(Field(name, STRING) for name in WRONG)))


def is_widened(item: ItemType | None) -> bool:
    """True if the type includes the columns of wrong rows."""
    return isinstance(item, Row) and item.names[-len(WRONG) :] == WRONG
