"""What aggregates are made of: partial results, and sums that fail the tick if they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from pyspark.sql import Column, WindowSpec

from hydro_core.catalog.refusals import digits_beyond, sum_beyond
from hydro_core.ir.graph import Node
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import COUNT, TICK
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.failure import NUMBER, fail
from hydro_core.types.item import LONG, Decimal, ItemType
from hydro_core.types.values import LONG_MAX, LONG_MIN


@dataclass(frozen=True, slots=True)
class AggregateScope:
    """Of which rows aggregates are: how an aggregate function of Spark becomes a column."""

    of: Callable[[Column], Column]
    tick: Callable[[], Column]
    """The tick of its rows."""
    counts_different: bool = True
    """Whether Spark's function of different values can be asked."""


GROUP = AggregateScope(lambda aggregate: aggregate, lambda: F.max(TICK))
"""The rows of a group; others are for each row those of a window around it."""

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

    def of_next(self, columns: Iterator[Column]) -> Column:
        """The result of its partial results, which come next."""
        return self.result(list(islice(columns, len(self.partials))))

    def of_changes(self) -> MergedResult | None:
        """The same of rows of which `n` copies come or go; None if some partial has no inverse."""
        found = []
        for partial in self.partials:
            if partial.of_changes is None:
                return None
            found.append(replace(partial, of_rows=partial.of_changes(F.col(COUNT))))
        return MergedResult(tuple(found), self.result)


def counted(value: Column, scope: AggregateScope = GROUP) -> Partial:
    """How many rows there are of which the value is not null."""
    return Partial(
        scope.of(F.count(value)),
        F.sum,
        lambda n: F.coalesce(F.sum(F.when(value.isNotNull(), n)), F.lit(0)),
    )


def exact_sum(value: Column, scope: AggregateScope = GROUP) -> Partial:
    """The sum of decimals that have at most 28 digits, of which none is lost when others go."""
    # Such a product has room for all digits, so that Spark rounds none away.
    total = scope.of(F.sum(value))
    return Partial(total, F.sum, lambda n: F.sum(value * n.cast("decimal(9,0)")))


ROOMY = 28
"""Digits of the longest decimals whose sums have ten more: room for any number of values."""


def checked_sum(total: Column, result: ItemType, node: Node, tick: Column) -> Column:
    """The exact sum as its type; one of integers must have 64 bits."""
    if result != LONG:
        return total.cast(spark_type(result))
    wide = total.cast("decimal(38,0)")
    least, greatest = (F.lit(bound).cast("decimal(38,0)") for bound in (LONG_MIN, LONG_MAX))
    beyond = fail(node, sum_beyond(NUMBER), number=wide, tick=tick)
    fits = wide.between(least, greatest)
    return F.when(fits, wide.cast("long")).when(wide.isNotNull(), beyond.cast("long"))


def sum_of_decimals(
    column: Column, item: Decimal, node: Node, scope: AggregateScope = GROUP
) -> Partial:
    """The sum of decimals, which must have 38 digits."""
    if item.precision <= ROOMY:
        return exact_sum(column, scope)
    beyond = _beyond("sum", Decimal(38, item.scale), node)
    return Partial(
        or_fails(F.try_sum, column, beyond, scope),
        F.try_sum,
        lambda n: or_fails(
            F.try_sum, F.when(n > 0, column).otherwise(_negated(column, item)), beyond
        ),
        is_weighted=False,
        beyond=beyond(F.col(TICK)),
    )


def _negated(column: Column, item: Decimal) -> Column:
    """The number with its other sign, digit by digit: Spark's own minus rounds to 34 of them."""
    text = column.cast("string")
    without = F.substring(text, 2, item.precision + 2)
    other = F.when(text.startswith("-"), without).otherwise(F.concat(F.lit("-"), text))
    return other.cast(spark_type(item))


def mean_of_decimals(
    column: Column, item: Decimal, result: ItemType, node: Node, scope: AggregateScope = GROUP
) -> Column:
    """The mean of decimals; it and the sum must have 38 digits."""
    if item.precision <= ROOMY:
        return scope.of(F.avg(column))
    total = sum_of_decimals(column, item, node, scope).of_rows
    mean = or_fails(F.try_avg, column, _beyond("mean", result, node), scope)
    return F.when(total.isNotNull(), mean)


def or_fails(
    aggregate: Callable[[Column], Column],
    column: Column,
    beyond: Callable[[Column], Column],
    scope: AggregateScope = GROUP,
) -> Column:
    """An aggregate that is null over values where its result does not fit."""
    found = scope.of(aggregate(column))
    lost = found.isNull() & (scope.of(F.count(column)) > 0)
    return F.when(lost, beyond(scope.tick())).otherwise(found)


def _beyond(what: str, result: ItemType, node: Node) -> Callable[[Column], Column]:
    refusal = digits_beyond(what, result)
    return lambda tick: fail(node, refusal, tick=tick)
