"""Item types and stream types: the shape of a stream's items, their order, and columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from hydro_core.errors import TypeProblem

# Item types: what the items of a stream look like.
#
# Every position of every type may hold null, but for the columns that a schema declares `not
# null`: that is asked of what arrives, and known of a column as long as no operator may put a
# null there. `UNKNOWN` is the type of what is never anything else: a null, or no item at all (an
# empty `source_iter`, a cycle into which nothing flows). `OPEN` is that of an input of which
# nobody has said yet what it is. Both are at home with every other type.


FieldPath = tuple[str, ...]
"""A way into an item: tuple positions from "0", field names of rows; `()` is the whole item."""

_POSITION = re.compile("0|[1-9][0-9]{0,5}")

MOST_FIELDS = 10_000
"""So many parts a type may have: fields, fields of fields, and so on."""
MOST_NESTED = 100
"""So deep may tuples, rows and arrays nest."""
MOST_PARTS = 2_000
"""So many parts a type may have that widens, in a cycle or in an accumulator."""

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
    """Nothing is known of the item: it is null, or if `open` it may be anything."""

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
    """What is known of a type as a whole, so that nobody goes through its parts to ask."""

    parts: int = 1
    """How many parts it has, itself counted."""
    depth: int = 0
    """How deep they nest."""
    open: bool = False
    """Whether some part may be anything."""
    required: bool = False
    """Whether some column must not be null."""


_LEAF, _OPEN_LEAF = Extent(), Extent(open=True)
_EXTENT: Extent = field(init=False, default=_LEAF, compare=False, repr=False)


def _measure(whole: Tuple | Row | Array, parts: Iterable[ItemType], required: bool = False) -> None:
    # Every type is made of parts that are types: measured so, none is ever too large to be handled.
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
    """A named field of a row; whether it may be null is no part of what two types are equal by."""

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
        return Row, (self.fields,)  # no hash goes to a process where texts have others

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
        """The type of column `name`, None where there is no such column."""
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
    """Whether the item is a number: booleans are not."""
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
    """Whether no part of the item is of the type of what is never anything else."""
    parts = (item.element,) if isinstance(item, Array) else (part for _, part in children(item))
    return item != UNKNOWN and all(map(is_known, parts))


def is_open(item: ItemType) -> bool:
    """Whether some part of the item may be anything."""
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
    """Columns that are null where nothing was found for them."""
    return [replace(field, nullable=True) for field in fields]


def is_large(item: ItemType) -> bool:
    """Whether the type has more than `MOST_PARTS` parts."""
    return isinstance(item, Tuple | Row | Array) and item.extent.parts > MOST_PARTS


def leaves(item: ItemType, prefix: FieldPath = ()) -> Iterator[tuple[FieldPath, ItemType]]:
    """Every leaf of the type with its path: arrays, scalars and the unknown are leaves."""
    parts = list(children(item))
    if not parts:
        yield prefix, item
    for step, child in parts:
        yield from leaves(child, (*prefix, step))


def at(item: ItemType, path: FieldPath) -> ItemType | None:
    """The type found at `path`, None where the path leads nowhere."""
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


# Stream types: the type of the items, and whether they come in an order.


class Order(Enum):
    """Whether the items of a tick stand in an order that may be observed."""

    NONE = "NoOrder"
    TOTAL = "TotalOrder"


@dataclass(frozen=True, slots=True)
class StreamType:
    """What a stream carries; `single` where every tick has at most one item."""

    item: ItemType
    order: Order = Order.NONE
    single: bool = False

    def __str__(self) -> str:
        return f"{self.item} {self.order.value}"


# The columns that a table has for the items of a type.


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


# Rows that are no items of their input, beside those that are: columns that say what is wrong.
#
# Where an input puts rows in quarantine, its landing is read in a wider type: the columns of its
# items, and three more, which are null in a row that fits. One that does not fit has the columns
# that do, and in the others why it is none, where it lies, and itself as a text.


REASON, PLACE, ROW = "quarantine_reason", "quarantine_place", "quarantine_row"
QUARANTINE = "quarantine"
"""The output that wrong rows are in."""
WRONG = (REASON, PLACE, ROW)
"""The columns of a row that does not fit."""


def widened(item: ItemType) -> Row:
    """The type in which a landing is read whose wrong rows are put in quarantine.

    What is declared `not null` still says so, for who reads: a row without it is a wrong one.

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
    """Whether a type is one in which wrong rows are read."""
    return isinstance(item, Row) and item.names[-len(WRONG) :] == WRONG
