"""Results that are merged from partial results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column

Merge = Callable[[Column], Column]
"""The aggregate that makes one partial result of several."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial result of some rows, an aggregate of them, and how several become one."""

    of_rows: Column
    merge: Merge


@dataclass(frozen=True, slots=True)
class Running:
    """A result that is made of merged partial results."""

    partials: tuple[Partial, ...]
    final: Callable[[Sequence[Column]], Column]

    def of_rows(self) -> Column:
        """The result of the rows of a group, without a merge."""
        return self.final([partial.of_rows for partial in self.partials])
