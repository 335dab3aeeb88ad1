"""Bags, the values of streams: finite multisets of items, equal ones by the page's equality.

`items` stand in the stream's order where it has one. A bag does not change, but for the streams of
a cycle, which `grow` while their least fixpoint is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from hydro_core.types.values import canonical

KeyFunction = Callable[[Any], Hashable]
"""What items are matched by: a function that gives equal hashables exactly for equal keys."""


class Bag:
    """A multiset of items."""

    __slots__ = ("_counts", "_indexes", "items")

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self.items: list[Any] = list(items)
        self._counts: dict[Hashable, int] | None = None
        self._indexes: dict[KeyFunction, dict[Hashable, list[Any]]] = {}

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Bag({self.items!r})"

    def __add__(self, other: Bag) -> Bag:
        """`a + b`: every item as often as in both together; the items of `a` come first."""
        return Bag(self.items + other.items)

    def monus(self, other: Bag) -> Bag:
        """`a ∸ b`: every item as often as in `a`, less as often as in `b`, never below 0."""
        if not other.items:
            return self
        owed = dict(other.counts())
        left = []
        for item in self.items:
            form = canonical(item)
            if owed.get(form, 0):
                owed[form] -= 1
            else:
                left.append(item)
        return Bag(left)

    def distinct(self) -> Bag:
        """Each item once, where it stood first."""
        found: dict[Hashable, Any] = {}
        for item in self.items:
            found.setdefault(canonical(item), item)
        return Bag(found.values())

    def counts(self) -> dict[Hashable, int]:
        """How often each item is there, by its canonical form."""
        if self._counts is None:
            self._counts = {}
            _count(self.items, self._counts)
        return self._counts

    def same_as(self, other: Bag) -> bool:
        """Whether both hold the same items as often, in whatever order."""
        return len(self) == len(other) and self.counts() == other.counts()

    def by(self, key: KeyFunction) -> dict[Hashable, list[Any]]:
        """The items of each key, keys and items in the order in which they come."""
        if key not in self._indexes:
            self._indexes[key] = {}
            _file(self.items, key, self._indexes[key])
        return self._indexes[key]

    def grow(self, more: Bag) -> None:
        """Becomes `self + more`: for the streams of a cycle only."""
        self.items += more.items
        if self._counts is not None:
            _count(more.items, self._counts)
        for key, index in self._indexes.items():
            _file(more.items, key, index)


def _count(items: Iterable[Any], counts: dict[Hashable, int]) -> None:
    for item in items:
        form = canonical(item)
        counts[form] = counts.get(form, 0) + 1


def _file(items: Iterable[Any], key: KeyFunction, index: dict[Hashable, list[Any]]) -> None:
    for item in items:
        index.setdefault(key(item), []).append(item)


EMPTY = Bag()
"""The bag without items."""
