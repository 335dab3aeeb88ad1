"""Items with how often each is there: in a cycle few items may come ever more often."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from hydro_core.reference.bag import Bag
from hydro_core.types.values import canonical


class Multiset:
    """A bag that holds every distinct item once, with its number."""

    __slots__ = ("_entries", "size")

    def __init__(self) -> None:
        self._entries: dict[Hashable, tuple[Any, int]] = {}
        self.size = 0
        """How many items there are, each as often as it is there."""

    def __bool__(self) -> bool:
        return self.size > 0

    def add(self, bag: Bag, times: int = 1) -> None:
        """Adds every item of the bag so many times."""
        for item in bag:
            self._put(canonical(item), item, times)

    def merge(self, other: Multiset) -> None:
        """Adds all items of another one."""
        for form, (item, count) in other._entries.items():
            self._put(form, item, count)

    def without(self, other: Multiset) -> Multiset:
        """`a ∸ b`."""
        left = Multiset()
        for form, (item, count) in self._entries.items():
            taken = other._entries.get(form, (None, 0))[1]
            if count > taken:
                left._put(form, item, count - taken)
        return left

    def distinct(self) -> Bag:
        """Every item once."""
        return Bag(item for item, _ in self._entries.values())

    def classes(self) -> Iterator[tuple[int, Bag]]:
        """The distinct items by their numbers."""
        found: dict[int, list[Any]] = {}
        for item, count in self._entries.values():
            found.setdefault(count, []).append(item)
        return ((count, Bag(items)) for count, items in found.items())

    def bag(self) -> Bag:
        """Every item as often as it is there."""
        return Bag(item for item, count in self._entries.values() for _ in range(count))

    def _put(self, form: Hashable, item: Any, count: int) -> None:
        before = self._entries.get(form)
        self._entries[form] = (item, count) if before is None else (before[0], before[1] + count)
        self.size += count
