"""Which functions stay in Python: each is counted by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.errors import PySparkException

from hydro_core.functions.tree import Fn
from hydro_core.lang.resolve import parse
from hydro_core.settings import Settings
from hydro_core.spark.functions.guards import (
    FailedGuards,
    _reruns,
    exactly_run,
    mark,
    recall,
    runs_in_python,
)
from hydro_core.spark.functions.reruns import GuardedFunction, RerunCount


def _function(text: str, file: str) -> Fn:
    fn: Fn = parse(f"a -> map({text}) -> out", file=file).named("map")[0].args["f"]
    return fn


def _run_again(fn: Fn) -> None:
    found = exactly_run(lambda failed: _asked(fn, failed), Settings())
    assert [function.name for function in found] == [fn.name]


def _asked(fn: Fn, failed: FailedGuards) -> Sequence[GuardedFunction]:
    """What a job does that computes the function for an item of which Spark cannot tell."""
    if not runs_in_python(fn):
        raise PySparkException(mark(fn))
    return failed()


def test_functions_of_one_name_and_line_are_counted_apart() -> None:
    one, other = (
        _function("lambda x: x + 41", "one.hydro"),
        _function("lambda x: x + 43", "two.hydro"),
    )
    other = replace(other, name=one.name)
    for fn in (one, one, other):
        _run_again(fn)
    assert not runs_in_python(one)
    assert not runs_in_python(other)
    _run_again(one)
    assert runs_in_python(one)
    assert not runs_in_python(other)


def test_what_earlier_processes_have_counted_counts() -> None:
    fn = _function("lambda x: x + 47", "three.hydro")
    (function,) = exactly_run(lambda failed: _asked(fn, failed), Settings())
    assert (function.file, function.line) == ("three.hydro", 1)
    recall([RerunCount(function, 2, 5, 5, 5)], Settings())
    assert not runs_in_python(fn)
    recall([RerunCount(function, 3, 6, 6, 6)], Settings())
    assert runs_in_python(fn)


def test_what_is_known_to_fail_is_asked_of_python_at_once_and_not_counted_again() -> None:
    fn, runs = _function("lambda x: x + 53", "four.hydro"), list[int]()

    def run(failed: FailedGuards) -> Sequence[GuardedFunction]:
        runs.append(len(failed()))
        return _asked(fn, failed)

    known = exactly_run(run, Settings())
    before = dict(_reruns)
    assert exactly_run(run, Settings(), known) == known
    assert (runs, dict(_reruns)) == ([0, 1, 1], before)
