"""What a failed Spark job says to a user.

Whatever runs inside Spark and fails by a user's fault raises a text with a *failure* in it: a
marker and a JSON object that names the kind of the error, the function, its place, the item and the
tick. Here it is found again, however deep Spark wrapped it, and becomes a `DataError`. Failures of
Spark itself become one too, without their Java stack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote, urlparse

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from hydro_core.catalog.spec import functions_of
from hydro_core.errors import DataError, Diagnostic, InfrastructureError, Span
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Graph

MARKER = "hydrotick-failure:"
_SHOWN = 200
_LONGEST_TEXT = 4_000
_SUM = re.compile(r'The value (-?\d+)BD of the type "DECIMAL\(\d+,0\)" cannot be cast to "BIGINT"')
_UNREAD = re.compile(r"\[FAILED_READ_FILE\S* [^\n]*?(file:\S+?)\.?(?:\s|$)")
_FAULTS_OF_DATA = {
    "ARITHMETIC_OVERFLOW": "an integer is beyond 64 bits, or a decimal beyond 38 digits",
    "BINARY_ARITHMETIC_OVERFLOW": "an integer is beyond 64 bits",
    "CAST_OVERFLOW": "a number does not fit the type it gets",
    "DATETIME_OVERFLOW": "a date is beyond the calendar",
    "DIVIDE_BY_ZERO": "division by zero",
    "NUMERIC_VALUE_OUT_OF_RANGE": "a decimal has more digits than its type",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a tick failed: `kind` is Python's exception, `item` and `tick` are None if not known."""

    kind: str
    reason: str
    function: str = ""
    span: Span | None = None
    item: str | None = None
    tick: int | None = None

    def as_error(self, graph: Graph | None = None) -> DataError:
        """The error that a user reads."""
        operator = self._operator(graph)
        where = f"`{operator}`" if operator else "an operator"
        tick = "" if self.tick is None else f" in tick {self.tick}"
        message = f"{where}{tick}: {self._what()}{self._why()}"
        return DataError(Diagnostic("runtime", message, self.span, operator))

    def _what(self) -> str:
        item = "" if self.item is None else f" on {_shorten(self.item)}"
        place = f" (line {self.span.line})" if self.span else ""
        if self.function and self._is_own:
            return f"the function {self.function}{place}{item} "
        if self.function:
            return f"the function {self.function}{place} fails{item}: "
        return f"fails{item}: " if item else ""

    def _why(self) -> str:
        return self.reason if self._is_own else f"{self.kind}: {self.reason}"

    @property
    def _is_own(self) -> bool:
        """Whether an operator found it, and no function."""
        return self.kind.startswith("`")

    def _operator(self, graph: Graph | None) -> str | None:
        """The operator that the function is an argument of; of a lowering's own failure, itself."""
        for node in graph or ():
            if any(self._is_of(fn) for fn in functions_of(node.args)):
                return node.op.name.removesuffix("_from")
        return self.kind.strip("`") if self._is_own else None

    def _is_of(self, fn: Fn) -> bool:
        return fn.name == self.function and fn.span == self.span


def payload(fn: Fn | None, kind: str, reason: str) -> dict[str, Any]:
    """What of a failure is known before it happens, as a JSON object."""
    place = fn.span if fn else None
    # It stands in every guard of a plan: of a text too long for the picture, only the place does.
    text = place.text if place and len(place.text) <= _LONGEST_TEXT else ""
    span = (
        (place.file, place.line, place.column, place.end_line, place.end_column, text)
        if place
        else None
    )
    return {"kind": kind, "reason": reason, "function": fn.name if fn else "", "span": span}


def failure_text(fn: Fn | None, kind: str, reason: str, item: str | None, tick: int | None) -> str:
    """The text that carries a failure out of Spark."""
    return MARKER + json.dumps({**payload(fn, kind, reason), "shown": item, "tick": tick})


def data_error(error: BaseException, graph: Graph | None = None) -> DataError:
    """The error of a failed Spark job as a user reads it; its cause stays attached.

    The graph tells the operator whose function failed. What failed because somebody interrupted it
    (Ctrl-C) raises that interrupt again.
    """
    for found in _chain(error):
        if not isinstance(found, Exception):
            raise found
    failure = find_failure(error)
    result = failure.as_error(graph) if failure else _own_words(error)
    result.__cause__ = error
    return result


def find_failure(error: BaseException) -> Failure | None:
    """The failure that a Spark exception carries, None where it carries none."""
    for text in _texts(error):
        at = text.find(MARKER)
        if at >= 0:
            found, _ = json.JSONDecoder().raw_decode(text, at + len(MARKER))
            return _read(found)
    return None


def is_spark_error(error: BaseException) -> bool:
    """Whether Spark raised it: such errors go through `data_error`."""
    return isinstance(error, PySparkException | Py4JJavaError)


def _read(found: dict[str, Any]) -> Failure:
    span = found["span"] and Span(*found["span"])
    shown = found.get("shown")
    if shown is None and "items" in found:
        items = found["items"].values()
        shown = " and ".join(json.dumps(_as_printed(x), ensure_ascii=False) for x in items)
    tick = found.get("tick")
    return Failure(found["kind"], found["reason"], found["function"], span or None, shown, tick)


def _as_printed(value: Any) -> Any:
    """Spark's JSON of a tuple, `{"_1": …}`, as the command line prints it: `[…]`."""
    match value:
        case dict() if value and list(value) == [f"_{i}" for i in range(1, len(value) + 1)]:
            return [_as_printed(v) for v in value.values()]
        case dict():
            return {name: _as_printed(v) for name, v in value.items()}
        case list():
            return [_as_printed(v) for v in value]
        case _:
            return value


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _texts(error: BaseException) -> Iterator[str]:
    for found in _chain(error):
        if isinstance(found, Py4JJavaError):
            yield str(found.java_exception)
        yield str(found)


def _own_words(error: BaseException) -> DataError:
    """Spark's message: its first paragraph, without places in Java."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    total = _SUM.search(str(error)) if condition == "CAST_OVERFLOW" else None
    if total:
        return _data_error("runtime", f"the tick failed: the sum {total[1]} is beyond 64 bits")
    fault = _FAULTS_OF_DATA.get((condition or "").partition(".")[0])
    if fault:
        return _data_error("runtime", f"the tick failed: {fault}")
    unread = _UNREAD.search("\n".join(_texts(error)))
    if unread:
        file = unquote(urlparse(unread[1]).path)
        cause = "it is damaged, or not what its name says"
        return _data_error("input", f"`{file}` cannot be read: {cause}")
    lines = [
        line for line in str(error).splitlines() if not re.match(r"\s*(at |\.\.\. \d+ more)", line)
    ]
    first = next((line.strip() for line in lines if line.strip()), type(error).__name__)
    said = _shorten(re.sub(r" SQLSTATE: .*", "", first))
    return InfrastructureError(Diagnostic("runtime", f"Spark failed: {said}"))


def _data_error(code: Literal["input", "runtime"], message: str) -> DataError:
    return DataError(Diagnostic(code, message))


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
