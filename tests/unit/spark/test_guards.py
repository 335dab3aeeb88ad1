"""Which functions stay in Python: each is counted by itself."""

from __future__ import annotations

from dataclasses import replace

from pyspark.errors import PySparkException

from hydro_core.functions.fn import Fn
from hydro_core.lang.resolve import parse
from hydro_core.settings import Settings
from hydro_core.spark.functions.guards import exactly_run, mark, runs_in_python


def _function(text: str, file: str) -> Fn:
    fn: Fn = parse(f"a -> map({text}) -> out", file=file).named("map")[0].args["f"]
    return fn


def _run_again(fn: Fn) -> None:
    def run() -> None:
        if not runs_in_python(fn):
            raise PySparkException(mark(fn))

    exactly_run(run, Settings())


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
