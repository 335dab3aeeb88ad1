"""The types of values inside a function: item types, and types of intermediate values that are no
items.

`NULL` is the type of None and fits every other type; the result of an operation on None, which
fails, is NULL too. `ANY` is an unknown type, and its join with any type is `ANY`. A `MixedType` has
one of two types: harmless unless it becomes part of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta, timezone
from typing import Any, cast

from hydro_core.errors import TypeProblem
from hydro_core.types.common import common_type, type_of
from hydro_core.types.item import (
    BOOLEAN,
    OPEN,
    STRING,
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
    Unknown,
    is_integer,
    nullable,
)

Place = tuple[int, int]
"""Line and column of an expression within the program's file, from 1; (0, 0) where unknown."""


@dataclass(frozen=True, slots=True)
class SetOf:
    """A set."""

    element: ExprType

    def __str__(self) -> str:
        return f"set of {self.element}"


@dataclass(frozen=True, slots=True)
class DictOf:
    """A dict whose keys are unknown, or are no names."""

    key: ExprType
    value: ExprType

    def __str__(self) -> str:
        return f"dict of {self.key} to {self.value}"


@dataclass(frozen=True, slots=True)
class MatchOf:
    """The result of a search for a pattern."""

    groups: tuple[str | None, ...]
    """The names of the pattern's groups; None for a group without a name."""

    def __str__(self) -> str:
        return "match"


@dataclass(frozen=True, slots=True)
class MixedType:
    """A value of one of two types that have none in common."""

    one: ItemType
    other: ItemType
    place: Place

    def __str__(self) -> str:
        return f"{self.one} or {self.other}"


ExprType = ItemType | SetOf | DictOf | MatchOf | MixedType

_ON_THE_WAY = (SetOf, DictOf, MatchOf)
NULL = UNKNOWN
ANY = Scalar("anything")
TIMEDELTA = Scalar("timedelta")
ZONE = Scalar("timezone")
FUNCTION = Scalar("function")
NO_ITEMS = {
    TIMEDELTA: "a timedelta is not an item; `.total_seconds()` makes it a number",
    ZONE: "a time zone is not an item",
    FUNCTION: "a function is not an item",
}


def part(kind: ExprType) -> ItemType:
    """A type as a part of a tuple, row or array, which may be no item type in intermediate
    values.
    """
    return cast("ItemType", kind)


def join(a: ExprType, b: ExprType, place: Place = (0, 0)) -> ExprType:
    if b in (a, NULL) or a == NULL:
        return b if a == NULL else a
    if ANY in (a, b):
        return ANY
    match a, b:
        case Tuple(xs), Tuple(ys) if len(xs) == len(ys):
            return Tuple(tuple(part(join(x, y, place)) for x, y in zip(xs, ys, strict=True)))
        case Row(), Row() if set(a.names) == set(b.names):
            pairs = ((f.name, join(f.type, b.column(f.name) or NULL, place)) for f in a.fields)
            return Row(tuple(Field(name, part(t)) for name, t in pairs))
        case Array(x), Array(y):
            return Array(part(join(x, y, place)))
        case SetOf(x), SetOf(y):
            return SetOf(join(x, y, place))
        case DictOf(k, x), DictOf(m, y):
            return DictOf(join(k, m, place), join(x, y, place))
        case _:
            return _join_others(a, b, place)


def _join_others(a: ExprType, b: ExprType, place: Place) -> ExprType:
    if isinstance(a, MixedType) or isinstance(b, MixedType):
        return a if isinstance(a, MixedType) else b
    if isinstance(a, _ON_THE_WAY) or isinstance(b, _ON_THE_WAY):
        return ANY
    return common_type(a, b) or MixedType(a, b, place)


def known(item: ItemType) -> ExprType:
    """The type of an input; open parts of it may have any type."""
    if isinstance(item, Tuple | Row | Array) and not item.extent.open:
        return nullable(item)
    return ANY if isinstance(item, Unknown) and item.open else _with_parts(item, known)


def _with_parts(kind: ItemType, change: Callable[[ItemType], ExprType]) -> ItemType:
    """The type with a changed type of each field or element."""
    match kind:
        case Tuple(fields):
            return Tuple(tuple(part(change(f)) for f in fields))
        case Row(fields):
            return Row(tuple(Field(f.name, part(change(f.type))) for f in fields))
        case Array(element):
            return Array(part(change(element)))
        case _:
            return kind


def as_item(kind: ExprType, place: Place = (0, 0)) -> ItemType:
    """The item type of a result; a problem if the result is certainly no item."""
    match kind:
        case Scalar("anything"):
            return OPEN
        case Scalar() if kind in NO_ITEMS:
            raise TypeProblem(NO_ITEMS[kind], place=place)
        case SetOf():
            cure = "`sorted(…)` makes it an array"
            raise TypeProblem("a set is not an item: it has no order", cure, place=place)
        case DictOf():
            cure = 'a row has names that are known: `{"a": x}`'
            raise TypeProblem(f"a {kind} is not an item", cure, place=place)
        case MatchOf():
            cure = "`… is not None` says whether there is one, `.group()` and `.groups()` its texts"
            raise TypeProblem("a match is not an item", cure, place=place)
        case MixedType(one, other, at):
            cure = "an item has one type wherever it comes from"
            raise TypeProblem(
                f"the value may be {one} or {other}", cure, place=at if at[0] else place
            )
        case _:
            return _with_parts(kind, lambda inner: as_item(inner, place))


def number(kind: ExprType) -> ExprType | None:
    """The type of a number as Python computes it: long, double or decimal; None for no number."""
    match kind:
        case Scalar("float" | "double"):
            return Scalar("double")
        case _ if kind == BOOLEAN or (isinstance(kind, ItemType) and is_integer(kind)):
            return Scalar("long")
        case _:
            return kind if isinstance(kind, Decimal) else None


def of_constant(value: Any) -> ExprType:
    match value:
        case timedelta():
            return TIMEDELTA
        case timezone():
            return ZONE
        case set() | frozenset():
            return SetOf(_of_all(value))
        case tuple():
            return Tuple(tuple(part(of_constant(v)) for v in value))
        case dict() if all(isinstance(key, str) for key in value):
            return Row(tuple(Field(k, part(of_constant(v))) for k, v in value.items()))
        case dict():
            return DictOf(_of_all(value), _of_all(value.values()))
        case list():
            return Array(part(_of_all(value)))
        case _:
            return type_of(value)


def _of_all(values: Iterable[Any]) -> ExprType:
    return joined(map(of_constant, values))


def elements(kind: ExprType) -> ExprType | None:
    """The type of the items of a loop over a value; None if the value has none."""
    match kind:
        case Array(element) | SetOf(element):
            return element
        case Tuple(fields):
            return joined(fields)
        case Row():
            return STRING
        case DictOf(key):
            return key
        case Scalar("string"):
            return STRING
        case Scalar("binary"):
            return Scalar("long")
        case Unknown() | MixedType() | Scalar("anything"):
            return ANY if kind != NULL else NULL
        case _:
            return None


def joined(kinds: Any, place: Place = (0, 0)) -> ExprType:
    result: ExprType = NULL
    for kind in kinds:
        result = join(result, kind, place)
    return result


def is_open(kind: ExprType) -> bool:
    """True if the type is too open to refuse an operation on the value."""
    return isinstance(kind, MixedType) or kind in (ANY, NULL)


def computed_of(kind: ExprType) -> ExprType:
    """The type of the result of an operation on a value of an open type; NULL for None, on which it
    fails.
    """
    return NULL if kind == NULL else ANY
