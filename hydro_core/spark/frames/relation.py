"""A stream over a range of ticks as a DataFrame, and changelogs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame

from hydro_core.plan.tick_plan import Key, Kind
from hydro_core.spark.frames.column_names import COUNT, ITEM, ORD, TICK, UNTIL, quoted
from hydro_core.spark.frames.dry import F
from hydro_core.types.item import ItemType

# Rows as several rows each: the one place where a generator of Spark is given columns.
#
# Spark notes the columns that nobody reads behind a generator by their positions. Where it then
# takes single fields out of a struct that stands before such a column
# (`GeneratorNestedColumnAliasing`), the columns move and the positions stay: it drops a field
# that is needed, which is an internal error unless another rule happens to repair it. So what the
# generator itself reads, which alone may be read by nobody behind it, stands before all else: no
# struct can move it.


def exploded(
    frame: DataFrame, columns: Sequence[str | Column], *, reads: Sequence[str]
) -> DataFrame:
    """The columns for each row that a generator among them makes of a row.

    Args:
        frame: the rows.
        columns: the names of those that are kept, and the generator.
        reads: the names of all that the generator reads; items and other structs come last.
    """
    kept = [column for column in columns if isinstance(column, str) and column not in reads]
    return frame.select(*reads, *kept).select(*columns)


# A stream over a range of ticks, as a DataFrame.
#
# Columns: `item`, one column of the Spark type of the item type; `t`, the tick (long); `until`
# for general rows; `ord`, a column to sort by within a tick, for ordered streams.
#
# What always holds in a range [first, last]: events have first <= t <= last. Rows of a history
# have t <= last, and those from before the range keep their own tick, which is true and needed.
# General rows have first <= t <= last and t < until; they say nothing of the ticks before first.
#
# A general stream may tell its changes: rows `(item, t, n)`, by which its copies differ from
# those of the tick before, with first <= t <= last. They are known by how it is made, so whoever
# needs no more than them never looks at the other rows, of which there may be many that never
# change.


__all__ = ["COUNT", "FOREVER", "ITEM", "ORD", "TICK", "UNTIL", "Kind", "Narrow", "Relation"]

FOREVER = 1 << 60
"""`until` of a general row of which no end is known."""

Narrow = Callable[[DataFrame], DataFrame]
"""From a frame with a column `item` to those of its rows that matter, judged by the item alone."""


@dataclass(frozen=True, slots=True)
class Relation:
    """The rows of a stream over a range of ticks."""

    kind: Kind
    frame: DataFrame
    item: ItemType
    ordered: bool = False
    carried: tuple[str, ...] = ()
    """Columns that ride along with the items, as the ticks do."""
    changes: Relation | None = None
    """Of a stream that tells them: events that carry the column `n`."""
    partitioned_by: Key | None = None
    """The key by which a join has brought the rows together.

    What follows may use it, so that they stay where they are, or not: it tells nothing of the rows.
    """
    distinct: DataFrame | None = None
    """The frame with each item in a struct of its own, by which Spark has brought them together."""
    narrowed: Callable[[Narrow], DataFrame] | None = None
    """The frame without rows that do not matter, where leaving them out early saves work."""

    def with_(self, **fields: Any) -> Relation:
        """A copy with some fields replaced; what was known of other rows is not known of these."""
        if "frame" in fields:
            fields = {"changes": None, "narrowed": None, "distinct": None, **fields}
        return replace(self, **fields)

    def with_items(self, made: Column, item: ItemType) -> Relation:
        """The rows with other items, of another type: each at the same ticks and in its place."""
        frame = self.frame.select(made.alias(ITEM), *self.other_columns)
        return self.with_(frame=frame, item=item)

    @property
    def times(self) -> tuple[str, ...]:
        """The columns that say when a row is there."""
        return (TICK, UNTIL) if self.kind is Kind.G else (TICK,)

    @property
    def other_columns(self) -> tuple[str, ...]:
        """All columns but the item."""
        order = (ORD,) if self.ordered else ()
        return (*self.times, *order, *self.carried)

    def unordered(self) -> Relation:
        """The same rows without their order."""
        if not self.ordered:
            return self
        return Relation(
            self.kind, self.frame.drop(ORD), self.item, partitioned_by=self.partitioned_by
        )

    def events(self, first: int, last: int) -> Relation:
        """The events of every item, at each tick at which it is there: rows times ticks."""
        frame = self.frame
        if self.kind is Kind.E:
            return self
        if first == last:
            frame = frame if self.kind is Kind.H else frame.where(F.col(UNTIL) > first)
            times = F.lit(first).cast("long")
        else:
            until = F.col(UNTIL) if self.kind is Kind.G else F.lit(FOREVER)
            start, end = F.greatest(F.col(TICK), F.lit(first)), F.least(until - 1, F.lit(last))
            times = F.explode(F.sequence(start.cast("long"), end.cast("long")))
        columns: list[str | Column] = [ITEM, times.alias(TICK), *([ORD] if self.ordered else [])]
        several = first < last
        rows = exploded(frame, columns, reads=self.times) if several else frame.select(*columns)
        return Relation(Kind.E, rows, self.item, self.ordered, partitioned_by=self.partitioned_by)

    def at(self, t: int) -> Relation:
        """The items that are there at tick t, one of the range, as events of that tick."""
        return self.seen_at(t).events(t, t)

    def seen_at(self, t: int) -> Relation:
        """The relation as a range of the single tick t sees it."""
        if self.kind is Kind.E:
            return self.with_(frame=self.frame.where(F.col(TICK) == t))
        frame = self.frame.where(F.col(TICK) <= t)
        if self.kind is Kind.G:
            frame = frame.where(F.col(UNTIL) > t).withColumn(TICK, F.lit(t).cast("long"))
        return self.with_(frame=frame)

    def new(self, first: int) -> Relation:
        """The rows that are of the range and not of the past: what a history adds."""
        if self.kind is not Kind.H:
            return self
        return self.with_(frame=self.frame.where(F.col(TICK) >= first))

    def past(self, first: int) -> Relation:
        """The rows of a history that are from before the range."""
        return self.with_(frame=self.frame.where(F.col(TICK) < first))


# Logs of changes: rows `(item, t, n)`, which sum up to what is there.


def coming_and_going(rows: DataFrame, first: int, last: int) -> DataFrame:
    """Rows (item, t, until) as the changes (item, t, n) of the ticks first … last."""
    events = F.array(
        F.when(F.col(TICK) >= first, _event(TICK, 1)),
        F.when(F.col(UNTIL).between(first, last), _event(UNTIL, -1)),
    )
    each = F.inline(F.array_compact(events)).alias(TICK, COUNT)
    return exploded(rows, [ITEM, each], reads=(TICK, UNTIL))


def _event(at: str, n: int) -> Column:
    return F.struct(F.col(at).cast("long").alias("at"), F.lit(n).cast("long").alias("n"))


def since(versions: DataFrame, first: int) -> DataFrame:
    """Rows (item, t, until) as they are there from a tick on."""
    tick = F.greatest(F.col(TICK), F.lit(first).cast("long")).alias(TICK)
    return versions.select(ITEM, tick, UNTIL).where(F.col(TICK) < F.col(UNTIL))


def live(log: DataFrame) -> DataFrame:
    """The items that are there after all rows of the log: (item, n), n copies of each."""
    return log.groupBy(ITEM).agg(F.sum(COUNT).alias(COUNT)).where(F.col(COUNT) > 0)


def live_rows(log: DataFrame, t: int) -> DataFrame:
    """A row (item, t) for each copy of an item that is there after all rows of the log."""
    return expanded(live(log)).withColumn(TICK, F.lit(t).cast("long"))


def expanded(counted: DataFrame, count: str = COUNT) -> DataFrame:
    """Rows with a column `count` as that many rows without it."""
    each = F.explode(F.array_repeat(F.lit(1), F.col(quoted(count)).cast("int"))).alias(count)
    kept = [quoted(name) for name in counted.columns if name != count]
    return exploded(counted, [*kept, each], reads=[quoted(count)]).drop(count)


def consolidated(changes: DataFrame) -> DataFrame:
    """The changes of an item in a tick as one row; none where they cancel out."""
    summed = changes.groupBy(ITEM, TICK).agg(F.sum(COUNT).alias(COUNT))
    return summed.where(F.col(COUNT) != 0)
