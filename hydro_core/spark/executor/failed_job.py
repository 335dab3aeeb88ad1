"""The one place where what fails while Spark works becomes an error that a user can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hydro_core.analysis.infer import Typed
from hydro_core.errors import DataError, InternalSparkError
from hydro_core.machine.faults import fault_of
from hydro_core.spark.session.ended import ended_jvm
from hydro_core.spark.session.failures import data_error, find_failure
from hydro_core.spark.session.internal import internal_error
from hydro_core.spark.session.of_stores import store_error
from hydro_core.spark.session.scratch import scratch_directories
from hydro_core.spark.store.ledger import RESTORE, state_error
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
        raise _told(error, typed, directory, tick) from error


def _named(directory: DataPlace) -> str:
    """The name by which Spark tells of it."""
    return directory.for_spark if isinstance(directory, Remote) else str(directory)


def _told(
    error: Exception, typed: Typed | None, directory: DataPlace | None, tick: int | None
) -> DataError | InternalSparkError:
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
