"""By how many rows tables differ, told by executors: of more rows than a process holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hydro_core.ir.graph import free_name
from hydro_core.spark.frames.column_names import quoted

Two = tuple[DataFrame | None, DataFrame | None]
"""Rows before and after; None where there are none."""


class BagDifference(NamedTuple):
    """How many rows the one has that the other has not, and the other way round, as bags."""

    added: int
    removed: int


def signed(
    before: DataFrame | None, after: DataFrame | None, columns: Sequence[str], count: str = ""
) -> tuple[DataFrame | None, str]:
    """Rows of which each is there once more, or once less, and the column that says so.

    Args:
        before: rows that are taken away, if there are any.
        after: rows that are added.
        columns: the columns of both that are looked at.
        count: the column that says how often a row is there; none: each is there once.
    """
    by = free_name("by", {name.lower() for name in columns})
    parts = [
        frame.select(
            *[F.col(quoted(name)) for name in columns],
            (F.col(quoted(count)) * sign if count else F.lit(sign)).cast("long").alias(by),
        )
        for frame, sign in ((before, -1), (after, 1))
        if frame is not None
    ]
    if not parts:
        return None, by
    return parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1]), by


def net(rows: DataFrame, by: str) -> DataFrame:
    """Equal rows together, without those that cancel out."""
    names = [quoted(name) for name in rows.columns if name != by]
    return rows.groupBy(*names).agg(F.sum(by).alias(by)).where(F.col(by) != 0)


def differing(bags: Two, columns: Sequence[str]) -> BagDifference:
    """By how many rows two bags, the one before and the one after, differ in some columns."""
    rows, by = signed(*bags, columns)
    return BagDifference(0, 0) if rows is None else _in_all(net(rows, by), F.col(by))


def differing_logs(logs: Two, columns: tuple[Sequence[str], str, str], end: int) -> BagDifference:
    """By how many rows of all ticks two logs differ, each as of every tick.

    Of each item the changes are added up from tick to tick: what is left holds until the next one.

    Args:
        logs: the changes of the one before and the one after, since the first of the ticks.
        columns: the names of the items' columns, of the tick and of the count.
        end: the first tick that is not looked at any more.
    """
    names, tick, count = columns
    rows, by = signed(*logs, [*names, tick], count)
    if rows is None:
        return BagDifference(0, 0)
    in_time = Window.partitionBy(*map(quoted, names)).orderBy(quoted(tick))
    there = F.sum(by).over(in_time)
    until = F.coalesce(F.lead(quoted(tick)).over(in_time), F.lit(end).cast("long"))
    lasting = (there * (until - F.col(quoted(tick)))).alias(by)
    return _in_all(net(rows, by).select(lasting), F.col(by))


def _in_all(rows: DataFrame, by: Column) -> BagDifference:
    added, removed = (F.sum(F.when(of > 0, of)) for of in (by, -by))
    (found,) = rows.agg(added, removed).collect()
    return BagDifference(int(found[0] or 0), int(found[1] or 0))
