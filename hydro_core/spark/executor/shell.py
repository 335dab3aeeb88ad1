"""The shell around the executor: runs ranges of ticks, wherever their past and results are.

Here a job that failed because Spark could not tell what a function gives runs again, and so does
one that needs rows of an executor which has ended; any other failure becomes an error for people or
a bug, long ranges are run in parts, and a range in which a tick fails is run up to that tick.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hydro_core.plan.planner import in_parts
from hydro_core.spark.executor.executor import run_range
from hydro_core.spark.executor.failed_job import failures_as_errors
from hydro_core.spark.executor.job import Storage
from hydro_core.spark.functions.guards import FailedGuards, exactly_run
from hydro_core.spark.functions.reruns import GuardedFunction
from hydro_core.spark.session.internal import first_cause

T = TypeVar("T")

_TIMES = 4
"""So often an executor that ends may take rows with it, until the failure is told."""
_LOST = re.compile(r"Checkpoint block \S+ not found|\[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND\]")


def attempt(
    storage: Storage[T], first: int, last: int, in_python: Sequence[GuardedFunction] = ()
) -> T:
    """What a storage makes of the ticks first … last, by one job; again, where a guard fails.

    Args:
        storage: where their past and batches are, and where what they give goes.
        first: the first tick.
        last: the last one.
        in_python: the functions of which it is known that Spark cannot tell what they give.

    Raises:
        DataError: a tick failed (code `runtime`), or a stored file is broken (`state`).
        InfrastructureError: Spark, the disk or the like failed; the same may succeed later.
        InternalSparkError: Spark failed by a bug.
    """

    def run(in_python: FailedGuards) -> T:
        job = replace(storage.job(first, last), in_python=in_python)
        return storage.take(job, run_range(job))

    with failures_as_errors(
        storage.plan.typed, storage.directory, first if first == last else None
    ):
        return with_other_executors(lambda: exactly_run(run, storage.settings, in_python))


def run_ticks(storage: Storage[T], first: int, last: int, longest: int | None) -> Iterator[T]:
    """What a storage makes of the ticks first … last, by as few jobs as may be.

    A job is of at most `longest` ticks. If a tick fails, those before it are done, then its error
    is raised.
    """
    return in_parts(first, last, longest, partial(attempt, storage))


def with_other_executors(work: Callable[[], T]) -> T:
    """What the work gives; it begins again where rows were lost with an executor.

    Spark computes anew what a lost executor had, as long as it knows what that was made of. What a
    stream is cut off from (`localCheckpoint`) it does not; so a job that needs such rows fails, and
    the range, of which nothing is committed yet, begins again with the executors that are left.
    """
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
