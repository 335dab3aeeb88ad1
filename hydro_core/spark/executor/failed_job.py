"""The one place where what fails while Spark works becomes an error that a user can read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from hydro_core.analysis.infer import Typed
from hydro_core.errors import Code, HydroError, InfrastructureError, InternalSparkError
from hydro_core.machine.faults import fault_of
from hydro_core.spark.session.failures import data_error, find_failure
from hydro_core.spark.session.internal import ended_jvm, first_cause, internal_error
from hydro_core.spark.store.ledger.ledger import RESTORE, state_error
from hydro_core.storage.problems import problem
from hydro_core.storage.remote import DataPlace, Remote

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
    return directory.for_spark if isinstance(directory, Remote) else str(directory)


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
