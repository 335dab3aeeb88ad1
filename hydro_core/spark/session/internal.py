"""Errors within Spark: what it says is its own fault, plans of ours that it refuses, and the end of
its JVM while it was needed.

No data causes the first two and no other try mends them. They are bugs, so they are no
`HydroError`: nobody searches for a tick at fault, and they reach whoever reads them with their
traceback.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException

from hydro_core.errors import EngineEndedError, InternalSparkError
from hydro_core.machine.faults import chain

_INTERNAL = re.compile(r"\[INTERNAL_ERROR\w*(?:\.\w+)*\]|SQLSTATE: XX\d{3}")
_CAUSE = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
_LINK = re.compile(
    r"An error occurred while calling \S+(?:\s+Trace:)?\s*"
    r"|An exception was raised by the Python Proxy\. Return Message:\s*"
)
"""The words of the link to Java, which name no cause."""
_WRONG_CODE = re.compile(
    r"(?:java\.lang\.(?:NullPointerException|ClassCastException|AssertionError"
    r"|(?:Array|String)?IndexOutOfBoundsException|UnsupportedOperationException"
    r"|IllegalArgumentException: requirement failed|StackOverflowError"
    r"|NoSuch(?:Method|Field)Error|AbstractMethodError|NoClassDefFoundError)"
    r"|java\.util\.NoSuchElementException|scala\.MatchError|scala\.NotImplementedError"
    r"|org\.codehaus\.(?:commons\.compiler|janino)\.\w+)\b"
)
"""What Java raises where code takes a value for what it is not, or plans without end."""
_WITH_A_CAUSE = (Py4JJavaError, Py4JNetworkError)
_OF_FILES = re.compile(
    r"\[(?:FAILED_READ_FILE|CANNOT_READ_FILE|PATH_|UNABLE_TO_INFER_SCHEMA|DELTA_)"
)
"""Errors of files, whatever Java raised when it met them."""
_SECONDS = 5
"""A connection is gone some moments before its process is."""


def internal_error(error: BaseException) -> InternalSparkError | None:
    """The bug that an exception of Spark tells of; None where it tells of something else."""
    told = "\n".join(_texts(error))
    if _OF_FILES.search(told):
        return None
    cause = first_cause(error)
    # Something was called that Java has not: an error of the link alone.
    of_link = isinstance(error, Py4JError) and not isinstance(error, _WITH_A_CAUSE)
    is_unknown = of_link and _CAUSE.search(str(error)) is None
    is_bug = _INTERNAL.search(told) or _WRONG_CODE.match(cause) or _refused(error)
    if not (is_bug or is_unknown):
        return None
    cause = cause or "Spark does not know what it was asked for, and says no more"
    found = InternalSparkError(
        f"{cause}\nThis is a bug: the data is not at fault, and to run it again does not help. "
        "Please report it, with the program and what stands above."
    )
    found.__cause__ = error
    return found


def first_cause(error: BaseException) -> str:
    """What Spark raised first, in its own words: the class of the error and its message."""
    told = list(_texts(error))
    causes = [cause for text in told for cause in _CAUSE.findall(text)]
    named = [cause for cause in causes if _INTERNAL.search(cause)]
    if causes:
        return str((named or causes)[-1]).strip()
    own = [_LINK.sub("", line.strip()) for text in told for line in text.splitlines()]
    lines = [line for line in own if line]
    return next((line for line in lines if _INTERNAL.search(line)), next(iter(lines), ""))


def _refused(error: BaseException) -> bool:
    """Whether Spark does not understand the plan; what a plan means depends on no data."""
    return any(isinstance(found, AnalysisException) for found in chain(error))


def _texts(error: BaseException) -> Iterator[str]:
    """All that the exceptions say, with what Java says of their causes."""
    for found in chain(error):
        if isinstance(found, Py4JJavaError):
            yield str(found.java_exception)
        yield str(found)
        if isinstance(found, PySparkException):
            yield str(getattr(found, "_stackTrace", None) or "")


def ended_jvm(error: BaseException) -> EngineEndedError | None:
    """The error that says so, if an error is due to the end of Spark's JVM."""
    if not any(map(_may_be_its_end, chain(error))) or not _has_ended():
        return None
    told = EngineEndedError.of(
        "runtime",
        "Spark's JVM ended in the middle of its work: it was killed, or ran out of memory",
        help="run it again, what was committed stands; if it ends again, give it more memory "
        "(HYDROTICK_SPARK_MEMORY), or compute fewer ticks together",
    )
    told.__cause__ = error
    return told


def _may_be_its_end(error: BaseException) -> bool:
    if not isinstance(error, Py4JJavaError):
        return isinstance(error, ConnectionError | EOFError | Py4JError)
    try:
        str(error)  # Java's words are asked for when they are read
    except (OSError, Py4JError):
        return True
    return False


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
