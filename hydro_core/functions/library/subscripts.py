"""The kinds of parts: columns, fields, subscripts, slices, and what an assignment unpacks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import (
    ANY,
    NULL,
    DictOf,
    ExprType,
    MatchOf,
    Mixed,
    Place,
    computed_of,
    elements,
    is_open,
    joined,
    number,
    part,
)
from hydro_core.functions.library.regex import group_kind
from hydro_core.types.item import BINARY, LONG, STRING, Array, Row, Tuple


def column(row: Row, name: str, place: Place) -> ExprType:
    """The kind of a column that must be there."""
    found = row.column(name)
    if found is not None:
        return found
    raise TypeProblem(
        f"there is no column `{name}`; the columns are {', '.join(row.names) or 'none'}",
        near(name, row.names),
        place=place,
    )


def near(name: str, names: Iterable[str]) -> str | None:
    """The cure for a name that is not there, where another is like it."""
    folded = {n.lower(): n for n in names}
    found = difflib.get_close_matches(name.lower(), folded, 1, 0.5)
    return f"did you mean `{folded[found[0]]}`?" if found else None


def field(fields: tuple[Any, ...], position: int, place: Place) -> ExprType:
    """The kind of the field at a position, which may count from the end."""
    if -len(fields) <= position < len(fields):
        found: ExprType = fields[position]
        return found
    some = f"it has {len(fields)}" if fields else "it has none"
    which = position + 1 if position >= 0 else position
    raise TypeProblem(f"the tuple has no field {which}: {some}", place=place)


def index(base: ExprType, key: ExprType, constant: Any, place: Place) -> ExprType:
    """The kind of `base[key]`; `constant` is the key where it is one, else `...`."""
    if is_open(base):
        return computed_of(base)
    match base:
        case Row():
            return _in_row(base, key, constant, place)
        case DictOf(_, value):
            return value
        case Tuple(fields) if isinstance(constant, int):
            return field(fields, constant, place)
        case Tuple(fields):
            found = joined(fields, place)
            _integer(base, key, place)
            return found
        case Array(element):
            _integer(base, key, place)
            return element
        case _ if base in (STRING, BINARY):
            _integer(base, key, place)
            return STRING if base == STRING else LONG
        case MatchOf():
            return group_kind(base, key, constant, place)
        case _:
            raise TypeProblem(f"{base} has no parts: `[…]` fails", place=place)


def _in_row(row: Row, key: ExprType, constant: Any, place: Place) -> ExprType:
    if isinstance(constant, str):
        return column(row, constant, place)
    if not is_open(key) and key != STRING:
        cure = "name the column: " + ", ".join(f'`["{n}"]`' for n in row.names[:3])
        raise TypeProblem(f"the columns of a row have names, not a {key}", cure, place=place)
    return joined((f.type for f in row.fields), place)


def _integer(base: ExprType, key: ExprType, place: Place) -> None:
    if not is_open(key) and number(key) != LONG:
        raise TypeProblem(f"{base} is indexed by whole numbers, not by {key}", place=place)


def sliced(base: ExprType, bounds: tuple[Any, Any, Any], place: Place) -> ExprType:
    """The kind of `base[low:high:step]`; bounds that are no constants are `...`."""
    if is_open(base):
        return computed_of(base)
    match base:
        case Tuple(fields):
            return ANY if ... in bounds else Tuple(fields[slice(*bounds)])
        case Array():
            return base
        case _ if base in (STRING, BINARY):
            return base
        case _:
            raise TypeProblem(f"{base} has no parts: `[…:…]` fails", place=place)


def unpack(base: ExprType, count: int, star: int | None, place: Place, *, sure: bool) -> ExprType:
    """The tuple of targets that a value is unpacked to; `sure` unless a pattern may not match."""
    if is_open(base):
        return Tuple((part(ANY),) * count) if base != NULL else Tuple((NULL,) * count)
    if isinstance(base, Tuple):
        spare = len(base.fields) - count
        if spare == 0 if star is None else spare >= -1:
            if star is None:
                return base
            end = star + spare + 1
            middle = Array(part(joined(base.fields[star:end])))
            return Tuple((*base.fields[:star], middle, *base.fields[end:]))
        if sure:
            message = f"the tuple has {len(base.fields)} fields, and {count} names stand for them"
            raise TypeProblem(message, place=place)
        return Tuple((part(ANY),) * count)
    element = elements(base)
    if isinstance(base, Row) or element is None or isinstance(base, Mixed):
        if not sure:
            return Tuple((part(ANY),) * count)
        cure = "name its columns: `r.a`" if isinstance(base, Row) else None
        raise TypeProblem(f"{base} is not unpacked into its values", cure, place=place)
    found = [part(element)] * count
    if star is not None:
        found[star] = Array(part(element))
    return Tuple(tuple(found))
