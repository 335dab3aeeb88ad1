"""Failed Spark jobs: data errors, outages, and internal errors, told apart by their text."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlparse

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.spec import functions_of, sum_beyond
from hydro_core.errors import (
    DataError,
    EngineEndedError,
    HydroError,
    InfrastructureError,
    InternalSparkError,
    Span,
)
from hydro_core.files.kinds import CUT_OFF
from hydro_core.functions.call import cure, shortened, why
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Node
from hydro_core.machine.faults import chain

# What a failed Spark job says to a user.
#
# Whatever runs inside Spark and fails by a user's fault raises a text with a *failure* in it: a
# marker and a JSON object that names the kind of the error, the function, its place, the item and
# the tick. Here it is found again, however deep Spark wrapped it, and becomes a `DataError`.
# Failures of Spark itself become one too, without their Java stack.


MARKER = "hydrotick-failure:"
AS_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX",
}
"""How Spark writes the items that a failure shows."""
_LONGEST_TEXT = 4_000
_SUM = re.compile(r'The value (-?\d+)BD of the type "DECIMAL\(\d+,0\)" cannot be cast to "BIGINT"')
_UNREAD = re.compile(r"\[FAILED_READ_FILE\S* [^\n]*?(file:\S+?)\.?(?:\s|$)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_DATA_STATE = re.compile(r"SQLSTATE: 22\w{3}")
"""The class of SQL states of values for which an expression has no result."""
_NO_RESULT = cure("ValueError", "")
_SMALLER = "take doubles, or decimals of fewer digits, instead"
_FAULTS_OF_DATA = {
    "ARITHMETIC_OVERFLOW": (
        "an integer is beyond 64 bits, or a decimal beyond 38 digits",
        _SMALLER,
    ),
    "BINARY_ARITHMETIC_OVERFLOW": ("an integer is beyond 64 bits", _SMALLER),
    "CAST_OVERFLOW": ("a number does not fit the type it gets", _SMALLER),
    "DATETIME_OVERFLOW": (
        "a date is beyond the calendar",
        "drop such rows before, or bound what is added to dates",
    ),
    "DIVIDE_BY_ZERO": ("division by zero", cure("ZeroDivisionError", "")),
    "NUMERIC_VALUE_OUT_OF_RANGE": ("a decimal has more digits than its type", _SMALLER),
}
_SPARK = (
    "run it again, what was committed stands; if it fails alike, that is a defect: report it, with "
    "the program, the flow, the tick, and what `--debug` says"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a tick failed: `kind` is Python's exception, `item` and `tick` are None if not known."""

    kind: str
    reason: str
    function: str = ""
    span: Span | None = None
    item: str | None = None
    tick: int | None = None
    cure: str = ""
    """That of an operator's own refusal."""

    def as_error(self, typed: Typed | None = None) -> DataError:
        """The error that a user reads."""
        place = self._place(typed)
        operator = self.kind.strip("`") if self._is_own else None
        if place is not None:
            operator = place[1].op.called
        where = f"`{operator}`" if operator else "an operator"
        tick = "" if self.tick is None else f" in tick {self.tick}"
        helps = self.cure or cure(self.kind, self.reason)
        message = f"{where}{tick}: {self.message}"
        return DataError.of("runtime", message, self.span, operator, help=helps)

    @property
    def message(self) -> str:
        """What failed on which item, and why."""
        item = "" if self.item is None else shortened(self.item)
        place = f" (line {self.span.line})" if self.span else ""
        function = f"the function {self.function}{place}" if self.function else ""
        if self._is_own:
            failed = " on ".join(filter(None, (function, item)))
            return f"{failed} {self.reason}".lstrip()
        fails = f"{function} fails".lstrip()
        on = f" on {item}" if item else ""
        return f"{fails}{on}: {why(self.kind, self.reason)}"

    @property
    def _is_own(self) -> bool:
        """Whether an operator found it, and no function."""
        return self.kind.startswith("`")

    def _place(self, typed: Typed | None) -> tuple[Fn, Node] | None:
        """The function, and the operator that it is an argument of."""
        for node in typed.graph if typed and self.function else ():
            for fn in functions_of(node.args):
                if fn.name == self.function and fn.span == self.span:
                    return fn, node
        return None


def payload(fn: Fn | None, kind: str, reason: str, helps: str = "") -> dict[str, Any]:
    """What of a failure is known before it happens, as a JSON object; `helps`: an own cure."""
    place = fn.span if fn else None
    # It stands in every guard of a plan: of a text too long for the picture, only the place does.
    text = place.text if place and len(place.text) <= _LONGEST_TEXT else ""
    span = (
        (place.file, place.line, place.column, place.end_line, place.end_column, text)
        if place
        else None
    )
    known = {"kind": kind, "reason": reason, "function": fn.name if fn else "", "span": span}
    return {**known, "cure": helps} if helps else known


def failure_text(fn: Fn | None, kind: str, reason: str, item: str | None, tick: int | None) -> str:
    """The text that carries a failure out of Spark."""
    return MARKER + json.dumps({**payload(fn, kind, reason), "shown": item, "tick": tick})


def data_error(
    error: BaseException, typed: Typed | None = None, tick: int | None = None
) -> HydroError:
    """The error of a failed Spark job as a user reads it; its cause stays attached.

    The program tells the operator whose function failed, and on which items; `tick` is that of a
    job of one tick. What failed because somebody interrupted it (Ctrl-C) raises that interrupt
    again.
    """
    for found in chain(error):
        if not isinstance(found, Exception):
            raise found
    failure = find_failure(error)
    if failure and failure.tick is None:
        failure = replace(failure, tick=tick)
    result = failure.as_error(typed) if failure else _own_words(error)
    result.__cause__ = error
    return result


def find_failure(error: BaseException) -> Failure | None:
    """The failure that a Spark exception carries, None where it carries none."""
    found = marked(error, MARKER)
    return None if found is None else _read(found)


def marked(error: BaseException, mark: str) -> dict[str, Any] | None:
    """The JSON object that stands behind a mark in what a Spark exception says."""
    for text in _texts(error):
        at = text.find(mark)
        if at >= 0:
            found: dict[str, Any]
            found, _ = json.JSONDecoder().raw_decode(text, at + len(mark))
            return found
    return None


def _read(found: dict[str, Any]) -> Failure:
    span = found["span"] and Span(*found["span"])
    shown, items = found.get("shown"), found.get("items", {})
    if items:
        shown = " and ".join(json.dumps(_plain(x), ensure_ascii=False) for x in items.values())
    return Failure(
        found["kind"],
        found["reason"],
        found["function"],
        span or None,
        shown,
        found.get("tick"),
        found.get("cure", ""),
    )


def _plain(value: Any) -> Any:
    """Spark's JSON of a tuple, `{"_1": …}`, as JSON of ours: `[…]`."""
    match value:
        case dict() if value and list(value) == [f"_{i}" for i in range(1, len(value) + 1)]:
            return [_plain(v) for v in value.values()]
        case dict():
            return {name: _plain(v) for name, v in value.items()}
        case list():
            return [_plain(v) for v in value]
        case _:
            return value


def _texts(error: BaseException) -> Iterator[str]:
    for found in chain(error):
        if isinstance(found, Py4JJavaError):
            yield str(found.java_exception)
        yield str(found)


def _own_words(error: BaseException) -> HydroError:
    """What Spark raised first, without places in Java."""
    cause = first_cause(error)
    named = _CONDITION.search(cause)
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    condition = condition or (named and named[1]) or ""
    total = _SUM.search(cause) if condition == "CAST_OVERFLOW" else None
    of_data = _FAULTS_OF_DATA.get(condition.partition(".")[0])
    if fault := sum_beyond(total[1]) if total else of_data:
        reason, helps = fault
        return DataError.of("runtime", f"the tick failed: {reason}", help=helps)
    unread = _UNREAD.search("\n".join(_texts(error)))
    if unread:
        file = unquote(urlparse(unread[1]).path)
        reason = "it is damaged, or not what its name says"
        return DataError.of("input", f"`{file}` cannot be read: {reason}", help=CUT_OFF)
    said = shortened(re.sub(r" SQLSTATE: .*", "", cause) or type(error).__name__)
    if _DATA_STATE.search(cause):
        return DataError.of("runtime", f"the tick failed: {said}", help=_NO_RESULT)
    return InfrastructureError.of("runtime", f"Spark failed: {said}", help=_SPARK)


# Errors within Spark: what it says is its own fault, plans of ours that it refuses, and the end
# of its JVM while it was needed.
#
# No data causes the first two and no other try mends them. They are bugs, so they are no
# `HydroError`: nobody searches for a tick at fault, and they reach whoever reads them with their
# traceback.


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
    told = "\n".join(_cause_texts(error))
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
    told = list(_cause_texts(error))
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


def _cause_texts(error: BaseException) -> Iterator[str]:
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
