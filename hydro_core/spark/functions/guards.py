"""Guards: where Spark's result may differ from Python's, Python computes it.

A compiled function is a plain expression of Spark. An item for which it is not exact (None instead
of a number, a result of more than 64 bits, a divisor 0) fails the job with a mark that names the
function. `exactly_run` then repeats the job with that function in Python workers: there it is
exact, and if it fails it fails with Python's own error. A failed job names one function; if a
second one fails, all run in Python, since more may follow: a range is computed at most three times.
In that run each function also gets Spark's results for its items, and every function with a
different result is recorded: so all are reported at once. A function whose guard fails repeatedly
on items that Python has a result for stays in Python: for the lifetime of the process, and in the
next process, if the ledger of a pipeline has counted it.
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
"""Gives the functions for which a range is repeated; it is complete after the run."""

MARK = "hydrotick-guard:"
_log = logging.getLogger(__name__)


Marks = frozenset[str]


class _Union(AccumulatorParam[Marks]):
    """Marks that workers have recorded."""

    def zero(self, value: Marks) -> Marks:
        return frozenset()

    def addInPlace(self, value1: Marks, value2: Marks) -> Marks:  # noqa: N802 - Spark's name
        return value1 | value2


_in_python: ContextVar[frozenset[str]] = ContextVar("in_python", default=frozenset())
_recorder: ContextVar[Accumulator[Marks] | None] = ContextVar("recorder", default=None)
"""The recorder while all functions run in Python: it collects the marks of failed guards."""
_as_spark_says: ContextVar[bool] = ContextVar("as_spark_says", default=False)
_reruns: Counter[GuardedFunction] = Counter()
_stays: set[str] = set()
_lock = Lock()


def mark(fn: Fn) -> str:
    """The text of a job's failure after which the function runs in Python."""
    file, line = (fn.span.file, fn.span.line) if fn.span else (None, None)
    return MARK + json.dumps(asdict(GuardedFunction(_key(fn), fn.name, file, line)))


def runs_in_python(fn: Fn) -> bool:
    """True if the function runs in Python now, even if it could be an expression of Spark."""
    if _as_spark_says.get():
        return False
    chosen = _in_python.get()
    return _recorder.get() is not None or (bool(chosen or _stays) and _key(fn) in chosen | _stays)


def asked(fn: Fn) -> Column:
    """A column that fails the job, which is then repeated with the function in Python."""
    return F.lit(None) if _as_spark_says.get() else F.raise_error(F.lit(mark(fn)))


def noting(fn: Fn, compiled: Callable[[], Column]) -> PythonComparison | None:
    """Spark's results for the items, null where unknown, for comparison with the function's.

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
    """Spark's results for the items of a function, to be compared with Python's."""

    column: Column
    accumulator: Accumulator[Marks]
    mark: str


def in_python_for_good() -> frozenset[str]:
    """The functions that stay in Python, by their keys."""
    with _lock:
        return frozenset(_stays)


def recall(known: Iterable[RerunCount], settings: Settings) -> None:
    """Restores the counts of repeated runs from earlier processes."""
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
    """The result of `run`, whose functions Spark computes where it is exact, and Python elsewhere.

    Args:
        run: builds its DataFrames and runs their jobs; it may be called again. After its jobs its
            argument gives the functions whose guards have failed.
        settings: the number of repeated runs after which a function stays in Python.
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
            # A failed job names one function. If a second one fails, more may, one job each.
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
    """Counts the repeated runs, and logs all of them in one warning."""
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
