"""Lookups: stored rows that agree with other rows in some fields, in one step or in several.

What arrives is where a search begins. A row that is found has further fields, by which rows of
another slot are found: the orders that arrive find their customers, and these their nations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hydro_core.functions.fn import Fn
from hydro_core.types.item import FieldPath

ZERO: FieldPath = ("\0",)
"""In place of a leaf: the long 0, which a column is in each row. No column has this name."""
FieldPairs = tuple[tuple[FieldPath, FieldPath], ...]
"""Leaves of items, each with a leaf of other items."""
MOST_STEPS = 8
"""A search goes through so many slots at most, and reads all rows of the next one."""


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The rows of a slot that a lookup finds."""

    slot: str
    found: Lookup

    def __str__(self) -> str:
        fields = ", ".join(_name(mine) for mine in self.found.mine)
        return f"{self.slot} by {fields} of {self.found.by}"


@dataclass(frozen=True, slots=True)
class PassingRows:
    """The rows that pass some filters, which others never get beyond."""

    of: str | FoundRows
    filters: tuple[Fn, ...]

    def __str__(self) -> str:
        return f"{self.of} where {' and '.join(fn.source for fn in self.filters)}"


@dataclass(frozen=True, slots=True)
class MeetingRows:
    """The rows that find a partner, without which they never get beyond a join."""

    of: LookupSource
    partners: frozenset[Lookup]
    """Which rows they agree with, in one of these ways."""

    def __str__(self) -> str:
        return f"{self.of} that meets ({'; '.join(sorted(map(str, self.partners)))})"


@dataclass(frozen=True, slots=True)
class RowsSinceLate:
    """The rows of one tick that do not come after all those found with their keys."""

    of: LookupSource
    tails: FoundRows
    """The last stored rows of keys."""
    keys: FieldPairs
    """The leaves of a key in a stored row, each with that in a row that comes."""
    orders: FieldPairs
    """The same of what rows are ordered by."""
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.of} before {self.tails}"


@dataclass(frozen=True, slots=True)
class ExtremeRows:
    """The stored rows of a slot with the least or the greatest values of a leaf, nulls apart, of
    those that lookups do not find.
    """

    slot: str
    leaf: FieldPath
    greatest: bool
    key: tuple[FieldPath, ...]
    """The leaves of a key of which the slot has one row at a tick."""
    beside: frozenset[Lookup]
    """What finds the others."""
    count: int = 1
    """At least so many rows; of equal ones all."""

    def __str__(self) -> str:
        which = "greatest" if self.greatest else "least"
        many = "" if self.count == 1 else f"{self.count} "
        return f"{self.slot} with the {many}{which} {_name(self.leaf)}"


@dataclass(frozen=True, slots=True)
class RowsBefore:
    """Of each key the numbers before the least one that its rows have, each with such a row."""

    of: FoundRows
    keys: tuple[FieldPath, ...]
    """The leaves of a key."""
    number: FieldPath
    """Where a row has its number, from 1 on."""
    count: int
    """How many numbers."""

    def __str__(self) -> str:
        return f"{self.count} before {self.of}"


@dataclass(frozen=True, slots=True)
class RowsUpToNext:
    """Right rows of an as-of join, each with the places of the left rows that may find it.

    These begin where it stands, and end before the next stored row of its key that stands behind
    it. An item is the row, and the first and the last place.
    """

    of: LookupSource
    stored: FoundRows
    """The stored right rows of their keys, which all stay."""
    keys: FieldPairs
    """The leaves of a key in a stored row, each with that in a row that comes."""
    place: tuple[FieldPath, FieldPath]
    """Where the place stands in both."""
    forward: bool = False
    """The left rows are those before it."""

    def __str__(self) -> str:
        return f"{self.of} up to the next of {self.stored}"


ROW, FIRST, LAST = "row", "from", "up_to"
"""The fields of these items."""
DerivedRows = (
    PassingRows | MeetingRows | FoundRows | RowsSinceLate | RowsBefore | RowsUpToNext | ExtremeRows
)
"""Rows that are told from others."""
LookupSource = str | DerivedRows
"""The batch of an input, by its name, or rows that are told from it."""


@dataclass(frozen=True, slots=True)
class LookupBounds:
    """Those items alone that stand, in an order, between two places which the others have: not
    before the first place of those with which they agree, and not behind the last one.
    """

    first: FieldPairs = ()
    """What items are ordered by, each leaf with that of the others' place; without any there is no
    first place.
    """
    last: FieldPairs = ()
    """The same of the last place."""
    descending: bool = False

    def __str__(self) -> str:
        signs = ("<=", ">=") if self.descending else (">=", "<=")
        sides = zip((self.first, self.last), signs, strict=True)
        return ", ".join(f"{_name(a)}{sign}{_name(b)}" for side, sign in sides for a, b in side)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Stored items that agree in some fields with a row of an input's batch, or of what is found
    before.
    """

    by: LookupSource
    fields: FieldPairs
    """Leaves of the stored items, each with the leaf of the other's items that it equals. Without
    any all items are found, where there is another.
    """
    bounds: LookupBounds | None = None
    """Which of these items alone; None: all."""

    @staticmethod
    def of(
        by: LookupSource, mine: Iterable[FieldPath | None], theirs: Iterable[FieldPath | None]
    ) -> Lookup:
        """The lookup by the fields that are known on both sides."""
        pairs = zip(mine, theirs, strict=True)
        known = ((m, t) for m, t in pairs if m is not None and t is not None)
        # what is 0 in all stored items tells none from another
        return Lookup(by, tuple((m, t) for m, t in known if m != ZERO))

    @property
    def mine(self) -> tuple[FieldPath, ...]:
        """The leaves of the stored items."""
        return tuple(own for own, _ in self.fields)

    @property
    def theirs(self) -> tuple[FieldPath, ...]:
        """The leaves of the others' items."""
        return tuple(other for _, other in self.fields)

    @property
    def steps(self) -> int:
        """Through how many slots the search goes before this one."""
        return _steps_to(self.by)

    def __str__(self) -> str:
        fields = [f"{_name(mine)}={_name(theirs)}" for mine, theirs in self.fields]
        fields += [] if self.bounds is None else [str(self.bounds)]
        return f"{self.by}: {', '.join(fields)}"


Lookups = frozenset[Lookup]


def _steps_to(rows: LookupSource) -> int:
    """Through how many slots the search for some rows goes."""
    match rows:
        case str():
            return 0
        case FoundRows(_, found):
            return 1 + found.steps
        case PassingRows(of) | MeetingRows(of) | RowsBefore(of):
            return _steps_to(of)
        case RowsSinceLate(tails=of) | RowsUpToNext(stored=of):
            return _steps_to(of)
        case ExtremeRows(beside=beside):
            return 1 + max((one.steps for one in beside), default=0)


def derived_rows(lookups: Iterable[Lookup]) -> tuple[DerivedRows, ...]:
    """All rows that are to be known for these lookups, each after those that it is told from."""
    known: dict[DerivedRows, None] = {}

    def visit(rows: LookupSource) -> None:
        if isinstance(rows, str) or rows in known:
            return
        for before in _sources_of(rows):
            visit(before)
        known[rows] = None

    for rows in sorted({one.by for one in lookups}, key=lambda by: (_steps_to(by), str(by))):
        visit(rows)
    return tuple(known)


def _sources_of(rows: DerivedRows) -> Iterable[LookupSource]:
    match rows:
        case FoundRows(_, found):
            return (found.by,)
        case PassingRows(of) | RowsBefore(of):
            return (of,)
        case MeetingRows(of, partners):
            return (of, *sorted((one.by for one in partners), key=str))
        case RowsSinceLate(of, tails):
            return (of, tails)
        case ExtremeRows(beside=beside):
            return sorted((one.by for one in beside), key=str)
        case RowsUpToNext(of, stored):
            return (of, stored)


def _name(path: FieldPath) -> str:
    return "0" if path == ZERO else ".".join(path) or "item"
