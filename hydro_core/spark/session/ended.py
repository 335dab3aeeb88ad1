"""What is said where Spark's JVM ended while it was needed."""

from __future__ import annotations

import subprocess
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext

from hydro_core.errors import EngineEndedError

_SECONDS = 5
"""A connection is gone some moments before its process is."""


def ended_jvm(error: BaseException) -> EngineEndedError | None:
    """The error that says so, if an error is due to the end of Spark's JVM."""
    if not _may_be(error) or not _has_ended():
        return None
    told = EngineEndedError.of(
        "runtime",
        "Spark's JVM ended in the middle of its work: it was killed, or ran out of memory",
        help="run it again, what was committed stands; if it ends again, give it more memory "
        "(HYDROTICK_SPARK_MEMORY), or compute fewer ticks together",
    )
    told.__cause__ = error
    return told


def _may_be(error: BaseException | None) -> bool:
    lost = Py4JNetworkError | ConnectionError | EOFError
    while error is not None:
        if isinstance(error, lost):
            return True
        if isinstance(error, Py4JJavaError):
            if not _answers(error):
                return True
        elif isinstance(error, Py4JError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _answers(error: Py4JJavaError) -> bool:
    """Whether Java says what it raised: its words are asked for when they are read."""
    try:
        str(error)
    except (OSError, Py4JError):
        return False
    return True


def _has_ended() -> bool:
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - Spark offers no question for it
    process = getattr(gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True
