"""An aggregate that is made of others needs nothing of its own on Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import optimized
from tests.spark.engines import assert_same, on_reference, program
from tests.support.added_aggregate import add_range

pytestmark = pytest.mark.spark

TEXT = """r = source("k string, v long")
r -> aggregate(by="k", a=range("v")) -> tick
r -> persist() -> aggregate(by="k", a=range("v"), n=count()) -> ever
r -> window(2) -> aggregate(by="k", a=range("v")) -> moved
"""
TICKS = [
    {"r": [{"k": "x", "v": 3}, {"k": "x", "v": -4}, {"k": "y", "v": None}]},
    {"r": []},
    {"r": [{"k": "x", "v": 5}, {"k": "y", "v": 1}]},
]


def test_as_written_and_as_planned(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    add_range(monkeypatch)
    written = program(TEXT, {}, TICKS)
    plan = optimized(written)
    assert repr(on_reference(plan, TICKS)) == repr(on_reference(written, TICKS))
    for of in (written, plan):
        assert_same(of, TICKS, [(1, 1, 1), (3,), (1, 2)], spark)
