"""Results that are merged from partial results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, WindowSpec

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import COUNT

Merge = Callable[[Column], Column]
"""The aggregate that makes one partial result of several."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial result of some rows, an aggregate of them, and how several become one."""

    of_rows: Column
    merge: Merge
    of_changes: Callable[[Column], Column] | None = None
    """The aggregate of rows of which n copies come, or go where n is negative, given n.

    They are merged as the others are, which is by adding; None: what goes cannot be taken out.
    """
    is_weighted: bool = True
    """Whether n may be any number; else it is 1 or -1."""
    beyond: Column | None = None
    """Fails the tick, where merging values may give null because the result does not fit."""

    def merged(self, column: Column, window: WindowSpec) -> Column:
        """The partial results of a column as one, up to each row of a window."""
        found = self.merge(column).over(window)
        if self.beyond is None:
            return found
        lost = found.isNull() & (F.count(column).over(window) > 0)
        return F.when(lost, self.beyond).otherwise(found)


@dataclass(frozen=True, slots=True)
class MergedResult:
    """A result that is made of merged partial results."""

    partials: tuple[Partial, ...]
    result: Callable[[Sequence[Column]], Column]

    def of_rows(self) -> Column:
        """The result of the rows of a group, without a merge."""
        return self.result([partial.of_rows for partial in self.partials])

    def of_changes(self) -> MergedResult | None:
        """The same of rows of which `n` copies come or go; None if some partial has no inverse."""
        found = []
        for partial in self.partials:
            if partial.of_changes is None:
                return None
            found.append(replace(partial, of_rows=partial.of_changes(F.col(COUNT))))
        return MergedResult(tuple(found), self.result)


def counted(is_counted: Column) -> Partial:
    """How many rows there are for which the condition is true."""
    return Partial(
        F.count_if(is_counted),
        F.sum,
        lambda n: F.coalesce(F.sum(F.when(is_counted, n)), F.lit(0)),
    )


def exact_sum(value: Column) -> Partial:
    """The sum of decimals that have at most 28 digits, of which none is lost when others go."""
    # Such a product has room for all digits, so that Spark rounds none away.
    return Partial(F.sum(value), F.sum, lambda n: F.sum(value * n.cast("decimal(9,0)")))
