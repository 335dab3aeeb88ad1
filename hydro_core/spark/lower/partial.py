"""Results that are merged from partial results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, WindowSpec

from hydro_core.spark.frames.dry import F

Merge = Callable[[Column], Column]
"""The aggregate that makes one partial result of several."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial result of some rows, an aggregate of them, and how several become one."""

    of_rows: Column
    merge: Merge
    of_changes: Callable[[Column], Column] | None = None
    """By how much it changes where rows come (the sign is 1) and go (-1); None: that is not known.

    An aggregate of these rows and of their signs, which are merged by adding them.
    """
    beyond: Column | None = None
    """Fails the tick, where merging values may give null because the result does not fit."""

    def merged(self, column: Column, window: WindowSpec | None = None) -> Column:
        """The partial results of a column as one, or as one up to each row of a window."""

        def over(aggregate: Column) -> Column:
            return aggregate if window is None else aggregate.over(window)

        found = over(self.merge(column))
        if self.beyond is None:
            return found
        lost = found.isNull() & (over(F.count(column)) > 0)
        return F.when(lost, self.beyond).otherwise(found)


@dataclass(frozen=True, slots=True)
class MergedResult:
    """A result that is made of merged partial results."""

    partials: tuple[Partial, ...]
    final: Callable[[Sequence[Column]], Column]

    @property
    def is_invertible(self) -> bool:
        """Whether it is known what becomes of the result when rows go."""
        return all(partial.of_changes is not None for partial in self.partials)

    def of_rows(self) -> Column:
        """The result of the rows of a group, without a merge."""
        return self.final([partial.of_rows for partial in self.partials])


def counted(is_counted: Column) -> Partial:
    """How many rows there are for which the condition is true."""
    return Partial(
        F.count_if(is_counted),
        F.sum,
        lambda sign: F.coalesce(F.sum(F.when(is_counted, sign)), F.lit(0)),
    )


def exact_sum(value: Column) -> Partial:
    """The sum of decimals, of which none is lost when others go."""
    # A product with the sign would round a decimal that has many digits after the point.
    return Partial(
        F.sum(value), F.sum, lambda sign: F.sum(F.when(sign > 0, value).otherwise(-value))
    )
