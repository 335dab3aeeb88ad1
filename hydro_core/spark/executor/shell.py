"""The shell around the executor: runs ranges of ticks, and turns failures of jobs into errors."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from hydro_core.analysis.infer import Typed
from hydro_core.errors import Code, HydroError, InfrastructureError, InternalSparkError
from hydro_core.machine.faults import fault_of
from hydro_core.plan.planner import in_parts
from hydro_core.spark.executor.executor import Storage, run_range
from hydro_core.spark.functions.guards import FailedGuards, exactly_run
from hydro_core.spark.functions.reruns import GuardedFunction
from hydro_core.spark.session.failures import (
    data_error,
    ended_jvm,
    find_failure,
    first_cause,
    internal_error,
)
from hydro_core.spark.store.ledger.ledger import RESTORE, state_error
from hydro_core.storage.problems import problem
from hydro_core.storage.remote import DataPlace, RemotePath

# The one place where what fails while Spark works becomes an error that a user can read.


_BROKEN_FILES = ("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER", "PATH_NOT_FOUND")
"""Spark's names for files that are not what they should be."""


@contextmanager
def failures_as_errors(
    typed: Typed | None = None, directory: DataPlace | None = None, tick: int | None = None
) -> Iterator[None]:
    """Failures within become errors for people.

    Args:
        typed: the program, which tells the operator that failed.
        directory: where the pipeline's files are, if there is one.
        tick: the one that fails if there is only one; else functions say it of their items.

    Raises:
        DataError: a function failed (code `runtime`), or a stored file is broken (`state`).
        InfrastructureError: Spark, the disk or the like failed; the same may succeed later.
        InternalSparkError: Spark failed by a bug, its own or one of a plan of ours.
    """
    try:
        yield
    except (PySparkException, Py4JError, OSError, EOFError) as error:
        raise _error_for_people(error, typed, directory, tick) from error


def _named(directory: DataPlace) -> str:
    """The name by which Spark tells of it."""
    return directory.for_spark if isinstance(directory, RemotePath) else str(directory)


def _error_for_people(
    error: Exception, typed: Typed | None, directory: DataPlace | None, tick: int | None
) -> HydroError | InternalSparkError:
    # First of all: of what is gone, nothing else can be asked.
    ended = ended_jvm(error)
    if ended is not None:
        return ended
    if find_failure(error) is not None:
        return data_error(error, typed, tick)
    refused = store_error(error)
    if refused is not None:
        return refused
    text = str(error)
    # A stored file that cannot be read is not the program's fault.
    if directory and _named(directory) in text and any(name in text for name in _BROKEN_FILES):
        return state_error(
            f"a file of the pipeline in {directory} cannot be read",
            RESTORE,
        )
    fault = fault_of(error, vanished=True, scratch=scratch_directories())
    return fault or internal_error(error) or data_error(error, typed)


_OF_A_WORKER = re.compile(
    r"hydro_core\.errors\.InfrastructureError: error\[(config|runtime)\]: (.+)\s+help: (.+)"
)
_PLACE = re.compile(r"\b(?:s3a|abfss|gs)://([^/\s'\"]+)[^\s'\",;]*")
_REFUSED = re.compile(
    r"AccessDeniedException|UnknownStoreException|AWS\w*Exception|S3Exception"
    r"|NoAuthWithAWSException|SdkClientException|Status Code: \d{3}"
)


def store_error(error: BaseException) -> InfrastructureError | None:
    """What a store refused to Spark, as an error for people; None where it refused nothing.

    Hadoop's file system, or a worker of ours, has the words of the store among traces and requests;
    people are told what the process itself would tell them.
    """
    said = str(error)
    found = _OF_A_WORKER.search(said)
    if found is not None:
        code, message, cure = found.groups()
        known: Code = "config" if code == "config" else "runtime"
        return InfrastructureError.of(known, message.strip(), help=cure.strip())
    cause = first_cause(error)
    place = _PLACE.search(cause) or _PLACE.search(said)
    if place is None or _REFUSED.search(cause) is None:
        return None
    return problem(cause, place[0].rstrip(".:"), place[1], "read")


_VARIABLE = "SPARK_LOCAL_DIRS"
_SETTING = "spark.local.dir"


def scratch_directories() -> Mapping[Path, str]:
    """The directories, each with the words for what it is; none where nobody has named any.

    The environment's variable wins over the setting, as Spark has it.
    """
    named, what = os.environ.get(_VARIABLE, ""), _VARIABLE
    if not named:
        named, what = _configured(), _SETTING
    return {Path(one.strip()): f"Spark's `{what}`" for one in named.split(",") if one.strip()}


def _configured() -> str:
    context = SparkContext._active_spark_context  # noqa: SLF001 - PySpark starts one if it is asked
    if context is None:
        return ""
    try:
        return str(context.getConf().get(_SETTING, ""))
    except (Py4JError, OSError):
        # It is asked when something has failed: the JVM may be gone by now.
        return ""


# The shell around the executor: runs ranges of ticks, wherever their past and results are.
#
# Here a job that failed because Spark could not tell what a function gives runs again, and so
# does one that needs rows of an executor which has ended; any other failure becomes an error for
# people or a bug, long ranges are run in parts, and a range in which a tick fails is run up to
# that tick.


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
