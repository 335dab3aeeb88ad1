"""Sums that do not fit their type fail the tick, and tell the operator, its place and the tick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column

from hydro_core.catalog.refusals import digits_beyond, sum_beyond
from hydro_core.ir.graph import Node
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import TICK
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates.partial import Partial, exact_sum
from hydro_core.spark.lower.aggregates.scope import GROUP, AggregateScope
from hydro_core.spark.lower.failure import NUMBER, fail
from hydro_core.types.item import LONG, Decimal, ItemType
from hydro_core.types.values import LONG_MAX, LONG_MIN

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
        found = exact_sum(column)
        return replace(found, of_rows=scope.of(found.of_rows))
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
