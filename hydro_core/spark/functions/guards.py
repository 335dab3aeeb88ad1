"""Guards: where Spark may not give what Python gives, Python is asked.

A compiled function is a plain expression of Spark. An item for which it is not exact (None where a
number is wanted, a result of more than 64 bits, a divisor 0) fails the job with a mark that names
the function. Whoever runs the job runs it again with that function in Python workers: there it is
exact, and if it fails it fails with Python's own error. A function whose guard keeps failing on
items that Python has a result for stays in Python for as long as the process lives.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from threading import Lock
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hydro_core.functions.fn import Fn
from hydro_core.settings import Settings
from hydro_core.spark.session.failures import marked

T = TypeVar("T")

MARK = "hydrotick-guard:"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Guard:
    """A guard that has failed: of which function."""

    key: str
    function: str
    line: int | None

    def __str__(self) -> str:
        return self.function if self.line is None else f"{self.function} (line {self.line})"


_in_python: ContextVar[frozenset[str]] = ContextVar("in_python", default=frozenset())
_reruns: Counter[_Guard] = Counter()
_stays: set[str] = set()
_lock = Lock()


def mark(fn: Fn) -> str:
    """The text with which a job fails for which the function is to run in Python."""
    line = fn.span.line if fn.span else None
    return MARK + json.dumps({"key": _key(fn), "function": fn.name, "line": line})


def runs_in_python(fn: Fn) -> bool:
    """Whether the function runs in Python now, though it may be an expression of Spark."""
    chosen = _in_python.get()
    return bool(chosen or _stays) and _key(fn) in chosen | _stays


def reruns() -> Mapping[str, int]:
    """How often ranges have run again in this process, by the functions' names and lines."""
    found: Counter[str] = Counter()
    with _lock:
        for guard, count in _reruns.items():
            found[str(guard)] += count
    return dict(found)


def exactly_run(run: Callable[[], T], settings: Settings) -> T:
    """What `run` gives, whose functions Spark computes and Python where Spark cannot tell.

    Args:
        run: makes its DataFrames and runs their jobs; whatever it does, it does again.
        settings: say how many reruns of a function there are before it stays in Python.
    """
    failed: dict[str, _Guard] = {}
    while True:
        token = _in_python.set(_in_python.get() | failed.keys())
        try:
            found = run()
        except (PySparkException, Py4JError) as error:
            guard = _failed(error)
            if guard is None or guard.key in failed:
                raise
            failed[guard.key] = guard
            continue
        finally:
            _in_python.reset(token)
        for guard in failed.values():
            _note(guard, settings)
        return found


def _note(guard: _Guard, settings: Settings) -> None:
    with _lock:
        _reruns[guard] += 1
        stays = _reruns[guard] >= settings.spark.guard_reruns
        if stays:
            _stays.add(guard.key)
    how = "stays in Python from now on" if stays else "was run again in Python"
    _log.warning("the function %s %s: Spark cannot tell what it gives for some items", guard, how)


def _failed(error: BaseException) -> _Guard | None:
    found = marked(error, MARK)
    return None if found is None else _Guard(found["key"], found["function"], found["line"])


def _key(fn: Fn) -> str:
    place = fn.span and (fn.span.file, fn.span.line, fn.span.column)
    return _digest(fn.name, fn.whole, str(place))


@lru_cache(maxsize=4096)
def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:16]
