"""Rows that are no items of their input, beside those that are: columns that say what is wrong.

Where an input puts rows in quarantine, its landing is read in a wider type: the columns of its
items, and three more, which are null in a row that fits. One that does not fit has the columns that
do, and in the others why it is none, where it lies, and itself as a text.
"""

from __future__ import annotations

from hydro_core.types.columns import declared_columns, required_columns
from hydro_core.types.item import STRING, Field, ItemType, Row

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
