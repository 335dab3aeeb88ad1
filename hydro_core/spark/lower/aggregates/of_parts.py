"""Aggregates that are made of the results of others over the same rows: their parts."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column

from hydro_core.catalog.aggregates import AGGREGATES, Kept, aggregate_type
from hydro_core.catalog.spec import Aggregate
from hydro_core.ir.graph import Node
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import TICK
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.apply import apply
from hydro_core.spark.lower.aggregates.sums import checked_sum
from hydro_core.spark.lower.items.columns import make_row
from hydro_core.types.item import Decimal, Field, ItemType, Row


def parts_of(aggregate: Aggregate, item: ItemType) -> Sequence[tuple[Aggregate, ItemType]]:
    """The aggregates that it is made of, each with its type."""
    kept = AGGREGATES[aggregate.function].kept
    assert isinstance(kept, Kept), f"{aggregate.function} is not made of parts"
    found = [Aggregate(part, aggregate.arguments) for part in kept.parts]
    return [(part, aggregate_type(part, item)) for part in found]


def made_of(
    function: str, parts: Sequence[tuple[Column, ItemType]], result: ItemType, node: Node
) -> Column:
    columns = [column for column, _ in parts]
    if function in _MADE:
        return _MADE[function](columns, result, node)
    kept = AGGREGATES[function].kept
    fn = kept.function if isinstance(kept, Kept) else None
    assert fn is not None, f"nothing makes {function} of its parts"
    row = Row(tuple(Field(p, item) for p, (_, item) in zip(fn.params, parts, strict=True)))
    whole = make_row(list(zip(fn.params, columns, strict=True)))
    return apply(fn, whole, row, tick=F.col(TICK)).cast(spark_type(result))


def _mean(parts: Sequence[Column], result: ItemType, _: Node) -> Column:
    """A total divided once."""
    total, count = parts[0], F.nullif(parts[1], F.lit(0))
    if not isinstance(result, Decimal):
        return total.cast("double") / count
    return _rounded_once(total, count.cast("decimal(18,0)"), result).cast(spark_type(result))


def _rounded_once(total: Column, count: Column, result: Decimal) -> Column:
    """A total of decimals divided, half up, as `avg` does it, where Spark's own division of such
    types would round to fewer digits, or twice.

    What is left over is taken off first, so that nothing is rounded by the division; it decides
    about the last digit. All types have 38 digits at most, if the result has 23.
    """
    scale = result.scale - 4
    unit = F.lit(decimal.Decimal(1).scaleb(-scale))
    # the mean has four digits more than the total
    times = total.cast(f"decimal({result.precision + 6},{scale})") * F.lit(decimal.Decimal(10_000))
    step = count * unit
    left = times % step
    whole = ((times - left) / count).cast(f"decimal({result.precision + 2},{scale})")
    last = F.when(left * 2 >= step, unit).when(left * -2 >= step, -unit)
    return (whole + F.coalesce(last, unit - unit)) * F.lit(decimal.Decimal("0.0001"))


def _sum(parts: Sequence[Column], result: ItemType, node: Node) -> Column:
    """The sum of nothing is null, and that nothing is there is told by a count."""
    return checked_sum(F.when(parts[1] > 0, parts[0]), result, node, F.col(TICK))


_MADE: Mapping[str, Callable[[Sequence[Column], ItemType, Node], Column]] = {
    "avg": _mean,
    "sum": _sum,
}
