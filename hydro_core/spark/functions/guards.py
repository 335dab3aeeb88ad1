"""Guards: where Spark may not give what Python gives, Python is asked.

A compiled function is a plain expression of Spark. An item for which it is not exact (None where a
number is wanted, a result of more than 64 bits, a divisor 0) fails the job with a mark that names
the function. Whoever runs the job runs it again with that function in Python workers: there it is
exact, and if it fails it fails with Python's own error. A job tells of one function; where a second
one fails, all run in Python, as more may: a range is computed three times at most. A function whose
guard keeps failing on items that Python has a result for stays in Python: for as long as the
process lives, and in the next one, too, where the ledger of a pipeline has counted it.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from threading import Lock
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hydro_core.functions.fn import Fn
from hydro_core.settings import Settings
from hydro_core.spark.functions.reruns import CURE, GuardedFunction, Rerun
from hydro_core.spark.session.failures import marked

T = TypeVar("T")

MARK = "hydrotick-guard:"
_EVERY = "*"
"""Instead of the key of a function: all of them."""

_log = logging.getLogger(__name__)


_in_python: ContextVar[frozenset[str]] = ContextVar("in_python", default=frozenset())
_reruns: Counter[GuardedFunction] = Counter()
_stays: set[str] = set()
_lock = Lock()


def mark(fn: Fn) -> str:
    """The text with which a job fails for which the function is to run in Python."""
    file, line = (fn.span.file, fn.span.line) if fn.span else (None, None)
    return MARK + json.dumps(asdict(GuardedFunction(_key(fn), fn.name, file, line)))


def runs_in_python(fn: Fn) -> bool:
    """Whether the function runs in Python now, though it may be an expression of Spark."""
    chosen = _in_python.get()
    if _EVERY in chosen:
        return True
    return bool(chosen or _stays) and _key(fn) in chosen | _stays


def reruns() -> Mapping[str, int]:
    """How often ranges have run again in this process, by the functions' names and lines."""
    found: Counter[str] = Counter()
    with _lock:
        for guard, count in _reruns.items():
            found[str(guard)] += count
    return dict(found)


def recall(known: Iterable[Rerun], settings: Settings) -> None:
    """Goes on from how often earlier processes have run functions again."""
    with _lock:
        for one in known:
            _reruns[one.function] = max(_reruns[one.function], one.times)
            if _reruns[one.function] >= settings.spark.guard_reruns:
                _stays.add(one.function.key)


def exactly_run(
    run: Callable[[Sequence[GuardedFunction]], T],
    settings: Settings,
    known: Sequence[GuardedFunction] = (),
) -> T:
    """What `run` gives, whose functions Spark computes and Python where Spark cannot tell.

    Args:
        run: makes its DataFrames and runs their jobs; whatever it does, it does again. It is given
            the functions whose guards have failed.
        settings: say how many reruns of a function there are before it stays in Python.
        known: functions whose guards have failed on the same items before.
    """
    failed = {guarded.key: guarded for guarded in known}
    others = False
    while True:
        token = _in_python.set(_in_python.get() | failed.keys() | ({_EVERY} if others else set()))
        try:
            found = run(tuple(failed.values()))
        except (PySparkException, Py4JError) as error:
            guarded = _failed(error)
            if guarded is None or guarded.key in failed:
                raise
            # A job tells of one function. Where a second one fails, more may, one job each.
            others = len(failed) > len(known)
            failed[guarded.key] = guarded
            continue
        finally:
            _in_python.reset(token)
        for guarded in failed.values():
            if guarded not in known:
                _note(guarded, settings)
        return found


def _note(function: GuardedFunction, settings: Settings) -> None:
    with _lock:
        _reruns[function] += 1
        stays = _reruns[function] >= settings.spark.guard_reruns
        if stays:
            _stays.add(function.key)
    how = "stays in Python from now on" if stays else "was run again in Python"
    told = "the function %s %s: Spark cannot tell what it gives for some items; %s"
    _log.warning(told, function, how, CURE)


def _failed(error: BaseException) -> GuardedFunction | None:
    found = marked(error, MARK)
    return None if found is None else GuardedFunction(**found)


def _key(fn: Fn) -> str:
    place = fn.span and (fn.span.file, fn.span.line, fn.span.column)
    return _digest(fn.name, fn.whole, str(place))


@lru_cache(maxsize=4096)
def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:16]
