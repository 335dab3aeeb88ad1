"""Lookups: stored rows that agree with other rows in some fields, in one step or in several.

What arrives is where a search begins. A row that is found has further fields, by which rows of
another slot are found: the orders that arrive find their customers, and these their nations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hydro_core.types.item import FieldPath

MOST_STEPS = 8
"""A search goes through so many slots at most, and reads all rows of the next one."""


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The rows of a slot that a lookup finds."""

    slot: str
    found: Lookup

    @property
    def steps(self) -> int:
        """How many slots the search goes through, this one with it."""
        return 1 + self.found.steps

    def __str__(self) -> str:
        fields = ", ".join(_name(mine) for mine in self.found.mine)
        return f"{self.slot} by {fields} of {self.found.by}"


LookupSource = str | FoundRows
"""The batch of an input, by its name, or rows that are found before."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Stored items that agree in some fields with a row of an input's batch, or of what is found
    before.
    """

    by: LookupSource
    fields: tuple[tuple[FieldPath, FieldPath], ...]
    """Leaves of the stored items, each with the leaf of the other's items that it equals. Without
    any all items are found, where there is another.
    """

    @staticmethod
    def of(
        by: LookupSource, mine: Iterable[FieldPath | None], theirs: Iterable[FieldPath | None]
    ) -> Lookup:
        """The lookup by the fields that are known on both sides."""
        pairs = zip(mine, theirs, strict=True)
        return Lookup(by, tuple((m, t) for m, t in pairs if m is not None and t is not None))

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
        return self.by.steps if isinstance(self.by, FoundRows) else 0

    def __str__(self) -> str:
        fields = (f"{_name(mine)}={_name(theirs)}" for mine, theirs in self.fields)
        return f"{self.by}: {', '.join(fields)}"


Lookups = frozenset[Lookup]


def searches(lookups: Iterable[Lookup]) -> tuple[FoundRows, ...]:
    """All rows that are found on the way of these lookups, each after those that it needs."""
    found: dict[FoundRows, None] = {}
    todo = [one.by for one in lookups]
    while todo:
        by = todo.pop()
        if isinstance(by, FoundRows) and by not in found:
            found[by] = None
            todo.append(by.found.by)
    return tuple(sorted(found, key=lambda one: (one.steps, str(one))))


def _name(path: FieldPath) -> str:
    return ".".join(path) or "item"
