"""The shell around the executor: runs ranges of ticks, wherever their past and results are.

Here a job that failed because Spark could not tell what a function gives runs again, any other
failure becomes an error for people, long ranges are run in parts, and a range in which a tick fails
is run up to that tick.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeVar

from hydro_core.plan.parts import in_parts
from hydro_core.spark.executor.executor import run_range
from hydro_core.spark.executor.failed_job import told_failures
from hydro_core.spark.executor.job import Storage
from hydro_core.spark.functions.guards import exactly_run

T = TypeVar("T")


def attempt(storage: Storage[T], first: int, last: int) -> T:
    """What a storage makes of the ticks first … last, by one job; again, where a guard fails.

    Raises:
        DataError: a tick failed (code `runtime`), or a stored file is broken (`state`).
        InfrastructureError: Spark, the disk or the like failed; the same may succeed later.
    """

    def run() -> T:
        job = storage.job(first, last)
        return storage.take(job, run_range(job))

    with told_failures(storage.plan.typed, storage.directory):
        return exactly_run(run, storage.settings)


def run_ticks(storage: Storage[T], first: int, last: int, longest: int | None) -> Iterator[T]:
    """What a storage makes of the ticks first … last, by as few jobs as may be.

    A job is of at most `longest` ticks. If a tick fails, those before it are done, then its error
    is raised.
    """
    return in_parts(first, last, longest, partial(attempt, storage))
