"""Conditions of rows, and the keys that rows of two sides meet by."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F

Keys = tuple[Sequence[Column], Sequence[Column]]
"""The parts of a key, as columns of the left and as columns of the right."""


def guarded(condition: Column) -> Column:
    """A condition that Spark evaluates where it stands.

    Spark would move a filter below a join that comes before it, and then call its function on
    items that never reach the filter; on those it may fail. A condition that seems to depend on
    the partition is not moved.
    """
    return F.when(F.spark_partition_id() >= 0, condition).otherwise(F.lit(False))


def equal_keys(count: int) -> list[Column]:
    """Null-safe equality of the key columns of two renamed frames."""
    return [F.col(f"l_k{i}").eqNullSafe(F.col(f"r_k{i}")) for i in range(count)]


def all_of(conditions: Sequence[Column]) -> Column:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = whole & condition
    return whole
