"""Rows as several rows each: the one place where a generator of Spark is given columns.

Spark notes the columns that nobody reads behind a generator by their positions. Where it then takes
single fields out of a struct that stands before such a column (`GeneratorNestedColumnAliasing`),
the columns move and the positions stay: it drops a field that is needed, which is an internal error
unless another rule happens to repair it. So what the generator itself reads, which alone may be
read by nobody behind it, stands before all else: no struct can move it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame


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
