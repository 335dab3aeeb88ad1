"""Where Spark cannot tell what a function gives, the range runs again with it in Python."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from hydro_core.engines import Options
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json
from hydro_core.settings import Settings
from hydro_core.spark.functions.guards import reruns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LARGE = 2**40
FORMS = {
    "map": "map(lambda r: r.v * r.v // 3 % 1000)",
    "filter": "filter(lambda r: r.v * r.v > 5)",
    "a fold of Spark": "fold(0, lambda s, r: s + r.v * r.v // r.v, commutative=True)",
    "a fold of an array": "fold(0, lambda s, r: (s + r.v * r.v) % 97, commutative=True)",
    "an argument": "aggregate(by='k', n=sum(lambda r: r.v * r.v % 1009))",
    "a history": "persist() -> aggregate(by='k', n=sum(lambda r: r.v * r.v % 2003)) -> changes()",
}


def _outputs(
    text: str, ticks: list[Any], spark: SparkSession, settings: Settings | None = None, **how: Any
) -> list[Any]:
    graph = parse(text)
    told = run_json(graph, {}, ticks, Options())
    on_spark = Options("spark", spark=spark, settings=settings or Settings(), **how)
    assert run_json(graph, {}, ticks, on_spark) == told
    return told


def _program(form: str) -> str:
    return f'rows = source("k string, v long")\nrows\n  -> {form} -> out'


def _ticks(*values: int | None) -> list[Any]:
    return [{"rows": [{"k": "a", "v": v}]} for v in values]


@pytest.mark.parametrize("form", FORMS)
def test_python_is_asked(spark: SparkSession, form: str, caplog: pytest.LogCaptureFixture) -> None:
    before = sum(reruns().values())
    with caplog.at_level(logging.WARNING, "hydro_core.spark.functions.guards"):
        _outputs(_program(FORMS[form]), _ticks(2, LARGE), spark, as_range=True)
    assert sum(reruns().values()) == before + 1
    assert [r.getMessage() for r in caplog.records if "Spark cannot tell" in r.getMessage()]


def test_within_a_cycle(spark: SparkSession) -> None:
    text = """
seeds = source("long")
steps = union()
seeds -> steps
steps -> map(lambda x: x * x // 7 % 1013) -> unique() -> steps
steps -> unique() -> out
"""
    before = sum(reruns().values())
    _outputs(text, [{"seeds": [2**40]}, {"seeds": [5]}], spark)
    assert sum(reruns().values()) > before


def test_what_is_not_evaluated_asks_nobody(spark: SparkSession) -> None:
    before = reruns()
    lazy = [
        "10 // r.v if r.v else None",
        "r.v is not None and 10 // r.v > 1 if r.v != 0 else False",
        "[10 // x for x in [r.v, 1] if x]",
        "r.v is None or r.v == 0 or 10 // r.v > 2",
        "(r.v or 1) * 7 // (r.v or 1)",
    ]
    text = _program("map(lambda r: (" + ", ".join(lazy) + "))")
    _outputs(text, _ticks(0, 3, None), spark, as_range=True)
    assert reruns() == before


def test_a_function_that_keeps_asking_stays_in_python(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    before = sum(reruns().values())
    settings = Settings().with_(guard_reruns=2)
    text = _program("map(lambda r: r.v * r.v // 11 % 501)")
    with caplog.at_level(logging.WARNING, "hydro_core.spark.functions.guards"):
        _outputs(text, _ticks(LARGE, LARGE, LARGE, 3), spark, settings)
    assert sum(reruns().values()) == before + 2
    assert "stays in Python from now on" in caplog.text


def test_several_functions_ask_one_after_the_other(spark: SparkSession) -> None:
    before = sum(reruns().values())
    form = "map(lambda r: r.v * r.v // 13 % 2**50) -> filter(lambda x: x * x > 17) "
    _outputs(_program(form), _ticks(LARGE), spark)
    assert sum(reruns().values()) - before in (1, 2)
