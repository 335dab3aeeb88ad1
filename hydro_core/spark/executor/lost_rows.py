"""Rows that were kept with executors which have ended: the work that made them is done again.

Spark computes anew what a lost executor had, as long as it knows what that was made of. What a
stream is cut off from (`localCheckpoint`) it does not; so a job that needs such rows fails, and the
range, of which nothing is committed yet, begins again with the executors that are left.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hydro_core.spark.session.internal import first_cause

T = TypeVar("T")

_TIMES = 4
"""So often an executor that ends may take rows with it, until the failure is told."""
_LOST = re.compile(r"Checkpoint block \S+ not found|\[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND\]")


def with_other_executors(work: Callable[[], T]) -> T:
    """What the work gives; it begins again where rows were lost with an executor."""
    for _ in range(_TIMES - 1):
        try:
            return work()
        except (PySparkException, Py4JError) as error:
            if not is_lost(error):
                raise
    return work()


def is_lost(error: BaseException) -> bool:
    """Whether a job failed since an executor that has ended had rows that nobody can make anew."""
    return _LOST.search(first_cause(error)) is not None or _LOST.search(str(error)) is not None
