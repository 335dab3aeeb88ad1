"""Guards: where Spark may not give what Python gives, Python is asked.

A compiled function is a plain expression of Spark. An item for which it is not exact (None where a
number is wanted, a result of more than 64 bits, a divisor 0) fails the job with a mark that names
the function. Whoever runs the job runs it again with that function in Python workers: there it is
exact, and if it fails it fails with Python's own error. A job tells of one function; where a second
one fails, all run in Python, as more may: a range is computed three times at most. There each is
given what Spark makes of its items as well, and those for which it is something else are noted: so
all are told at once. A function whose guard keeps failing on items that Python has a result for
stays in Python: for as long as the process lives, and in the next one, too, where the ledger of a
pipeline has counted it.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from threading import Lock
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import Column

from hydro_core.functions.tree import Fn
from hydro_core.settings import Settings
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.reruns import CURE, GuardedFunction, RerunCount
from hydro_core.spark.session.failures import marked

T = TypeVar("T")
FailedGuards = Callable[[], Sequence[GuardedFunction]]
"""The functions for which a range runs again: of all of them it is known when it has run."""

MARK = "hydrotick-guard:"
_log = logging.getLogger(__name__)


Marks = frozenset[str]


class _Union(AccumulatorParam[Marks]):
    """Marks that workers have noted."""

    def zero(self, value: Marks) -> Marks:
        return frozenset()

    def addInPlace(self, value1: Marks, value2: Marks) -> Marks:  # noqa: N802 - Spark's name
        return value1 | value2


_in_python: ContextVar[frozenset[str]] = ContextVar("in_python", default=frozenset())
_recorder: ContextVar[Accumulator[Marks] | None] = ContextVar("recorder", default=None)
"""Where all functions run in Python: what Spark would have asked for."""
_as_spark_says: ContextVar[bool] = ContextVar("as_spark_says", default=False)
_reruns: Counter[GuardedFunction] = Counter()
_stays: set[str] = set()
_lock = Lock()


def mark(fn: Fn) -> str:
    """The text with which a job fails for which the function is to run in Python."""
    file, line = (fn.span.file, fn.span.line) if fn.span else (None, None)
    return MARK + json.dumps(asdict(GuardedFunction(_key(fn), fn.name, file, line)))


def runs_in_python(fn: Fn) -> bool:
    """Whether the function runs in Python now, though it may be an expression of Spark."""
    if _as_spark_says.get():
        return False
    chosen = _in_python.get()
    return _recorder.get() is not None or (bool(chosen or _stays) and _key(fn) in chosen | _stays)


def asked(fn: Fn) -> Column:
    """A column that fails the job, which is run again with the function in Python."""
    return F.lit(None) if _as_spark_says.get() else F.raise_error(F.lit(mark(fn)))


def noting(fn: Fn, compiled: Callable[[], Column]) -> PythonComparison | None:
    """What Spark makes of the items, null where it cannot tell, for the function to compare with.

    None unless all functions run in Python because the guards of several have failed.
    """
    accumulator = _recorder.get()
    if accumulator is None or _key(fn) in _in_python.get():
        return None
    token = _as_spark_says.set(True)
    try:
        return PythonComparison(compiled(), accumulator, mark(fn))
    finally:
        _as_spark_says.reset(token)


@dataclass(frozen=True, slots=True)
class PythonComparison:
    """What is compared with what Python makes of the items of a function."""

    column: Column
    accumulator: Accumulator[Marks]
    mark: str


def in_python_for_good() -> frozenset[str]:
    """The functions that stay in Python, by their keys."""
    with _lock:
        return frozenset(_stays)


def recall(known: Iterable[RerunCount], settings: Settings) -> None:
    """Goes on from how often earlier processes have run functions again."""
    with _lock:
        for one in known:
            _reruns[one.function] = max(_reruns[one.function], one.times)
            if _reruns[one.function] >= settings.spark.guard_reruns:
                _stays.add(one.function.key)


def exactly_run(
    run: Callable[[FailedGuards], T],
    settings: Settings,
    known: Sequence[GuardedFunction] = (),
) -> T:
    """What `run` gives, whose functions Spark computes and Python where Spark cannot tell.

    Args:
        run: makes its DataFrames and runs their jobs; whatever it does, it does again. Once its
            jobs have run, what it is given says which guards have failed.
        settings: say how many reruns of a function there are before it stays in Python.
        known: functions whose guards have failed on the same items before.
    """
    failed = {guarded.key: guarded for guarded in known}
    recorder: Accumulator[Marks] | None = None

    def all_failed() -> tuple[GuardedFunction, ...]:
        more = map(_marked, recorder.value) if recorder is not None else ()
        found = {**failed, **{guarded.key: guarded for guarded in more}}
        return tuple(sorted(found.values(), key=lambda one: (one.file or "", one.line or 0)))

    while True:
        tokens = _in_python.set(_in_python.get() | failed.keys()), _recorder.set(recorder)
        try:
            found = run(all_failed)
        except (PySparkException, Py4JError) as error:
            guarded = _failed(error)
            if guarded is None or guarded.key in failed:
                raise
            # A job tells of one function. Where a second one fails, more may, one job each.
            if len(failed) > len(known):
                recorder = SparkContext.getOrCreate().accumulator(frozenset(), _Union())
            failed[guarded.key] = guarded
            continue
        finally:
            _in_python.reset(tokens[0])
            _recorder.reset(tokens[1])
        _note([guarded for guarded in all_failed() if guarded not in known], settings)
        return found


def _note(functions: Sequence[GuardedFunction], settings: Settings) -> None:
    """Counts the reruns, and tells of all of them at once."""
    again, stay = list[str](), list[str]()
    with _lock:
        for function in functions:
            _reruns[function] += 1
            stays = _reruns[function] >= settings.spark.guard_reruns
            _stays.update([function.key] if stays else [])
            (stay if stays else again).append(str(function))
    told = [f"ran again in Python: {', '.join(again)}"] if again else []
    told += [f"from now on in Python: {', '.join(stay)}"] if stay else []
    if told:
        _log.warning(
            "Spark cannot tell for some items what functions give; %s; %s", "; ".join(told), CURE
        )


def _failed(error: BaseException) -> GuardedFunction | None:
    found = marked(error, MARK)
    return None if found is None else GuardedFunction(**found)


def _marked(mark: str) -> GuardedFunction:
    return GuardedFunction(**json.loads(mark.removeprefix(MARK)))


def _key(fn: Fn) -> str:
    place = fn.span and (fn.span.file, fn.span.line, fn.span.column)
    return _digest(fn.name, fn.whole, str(place))


@lru_cache(maxsize=4096)
def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:16]
