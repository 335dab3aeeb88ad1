"""Which rows of an input can matter, by the values of their fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydro_core.types.item import FieldPath
from hydro_core.types.values import canonical

CanonicalValues = Mapping[Hashable, Any]
"""Values by their canonical forms."""
FieldTests = Sequence[tuple[FieldPath, Collection[Hashable]]]
"""The forms that fields must have, all of them."""


class TooManyError(Exception):
    """An input has more rows that can matter than are to be looked at."""


class TooLargeError(Exception):
    """The files of an input that would have to be looked through are larger than they may be."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size:,} bytes")
        self.size = size


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What may be read of an input: so many rows, out of files of so many bytes (None: any)."""

    rows: int
    size: int | None = None


@dataclass(frozen=True, slots=True)
class WantedRows:
    """The rows of an input that can matter: those of one of the alternatives, which give the values
    that fields must have, from tick `first` on; or `some` of them, if so many are enough.
    """

    name: str
    alternatives: tuple[Mapping[FieldPath, CanonicalValues], ...]
    first: int
    some: int | None = None

    @property
    def is_all(self) -> bool:
        return not all(self.alternatives)

    def among(self, rows: Mapping[int, Sequence[Any]]) -> Mapping[int, list[Any]]:
        """Those of the rows, by their ticks, that are wanted."""
        meets = meets_one([tuple(values.items()) for values in self.alternatives])
        found = {
            tick: list(items) if self.is_all else list(filter(meets, items))
            for tick, items in rows.items()
            if tick >= self.first
        }
        return {tick: items for tick, items in found.items() if items}


def meets(item: Any, test: FieldTests) -> bool:
    """Whether an item has one of the forms in every field."""
    for path, forms in test:  # noqa: SIM110 - of every item at every operator: three times as fast
        if canonical(field_of(item, path)) not in forms:
            return False
    return True


def meets_one(tests: Sequence[FieldTests]) -> Callable[[Any], bool]:
    """Whether an item meets one of some tests.

    >>> meets_one([[(("0",), {1})], [(("1",), {"x"})]])((2, "x"))
    True
    """
    if len(tests) == 1:
        (only,) = tests
        return lambda item: meets(item, only)
    return lambda item: any(meets(item, test) for test in tests)


def field_of(item: Any, path: FieldPath) -> Any:
    """The value of a field; null where what it is a part of is."""
    for step in path:
        if item is None:
            return None
        item = item[int(step)] if isinstance(item, tuple) else item[step]
    return item
