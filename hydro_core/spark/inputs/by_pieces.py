"""Rows of landed files that are read piece by piece: by this process, or by Spark's workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hydro_core.files.reading import read
from hydro_core.files.scan import Scan
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.tick_range import count_ticks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HERE = 64 * MEBIBYTE
"""Files of more bytes than this are read by Spark's workers."""


def read_by_pieces(
    spark: Callable[[], SparkSession], scan: Scan, files: Sequence[DataPlace]
) -> tuple[pa.Table | DataFrame, Counter[int]]:
    """The rows (item, t) of some files that are of the ticks of a scan, and how many each has.

    Args:
        spark: gives the session, where there is much to read.
        scan: the input, and the ticks.
        files: those that may have rows of the ticks.

    Raises:
        DataError: a file cannot be read, or a row of the ticks does not fit (code `input`).
    """
    if sum(file.stat().st_size for file in files) > _HERE:
        # Whoever only looks at what has landed does without Spark.
        from hydro_core.spark.files.frames import read_in_workers

        return read_in_workers(spark(), scan, files)
    rows = read(scan, files)
    return pa.table({ITEM: rows.items, TICK: pa.array(rows.numbers)}), count_ticks(rows.numbers)
