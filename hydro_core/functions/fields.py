"""Which field of a value `x.a`, `x["a"]`, `x._1` or `x[0]` is: decided here, and nowhere else."""

from __future__ import annotations

import re
from typing import NamedTuple

from hydro_core.functions.tree import Part
from hydro_core.types.item import ItemType, Row, Tuple

_POSITION = re.compile(r"_([1-9][0-9]*)")


def position(part: Part) -> int | None:
    """The place that it names in a tuple, from 0, or before 0 from the end; None where it names
    none.
    """
    step = part.step
    if isinstance(step, int):
        return step
    return position_of(step) if part.by_name else None


def position_of(name: str) -> int | None:
    """The place of the field of a tuple that has the name, None of another name.

    >>> position_of("_1"), position_of("user")
    (0, None)
    """
    found = _POSITION.fullmatch(name)
    return int(found[1]) - 1 if found else None


def step_in(kind: str | None, part: Part) -> int | str | None:
    """The place or the name of the field that it is of a tuple or row, None where it is none."""
    if kind == "tuple":
        return position(part)
    return column_of(part) if kind == "row" else None


def column_of(part: Part) -> str | None:
    """The column that it names, if it is read of a row."""
    return part.step if isinstance(part.step, str) else None


class FieldOf(NamedTuple):
    """A field of a tuple or row."""

    step: int | str
    """Its place in the tuple, from 0, or its name."""
    place: int
    """Its place, of either."""
    type: ItemType


def field_in(whole: object, part: Part) -> FieldOf | None:
    """The field that it is of a value of that type, None where it is no field."""
    match whole:
        case Tuple(fields):
            place = position(part)
            if place is not None and -len(fields) <= place < len(fields):
                place %= len(fields)
                return FieldOf(place, place, fields[place])
        case Row() if (name := column_of(part)) is not None:
            found = whole.column(name)
            return None if found is None else FieldOf(name, whole.names.index(name), found)
    return None
