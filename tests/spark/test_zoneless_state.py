"""Rows with moments that have no zone are kept from tick to tick, within one process too."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.engines import assert_same, program

pytestmark = pytest.mark.spark

SOURCE = 'a = source("k string, at timestamp_ntz, v long")\n'
TICKS = [
    {"a": [{"k": "x", "at": "2024-01-01T00:00:00", "v": 1}, {"k": "y", "at": None, "v": 2}]},
    {},
    {"a": [{"k": "x", "at": "2024-01-01T00:00:01", "v": 3}]},
]


@pytest.mark.parametrize(
    "text",
    [
        'a -> persist() -> latest(by="k", order="v") -> out',
        "a -> persist() -> reduce(lambda x, y: x if x.v > y.v else y, commutative=True) -> out",
        'a -> persist() -> aggregate(by="k", last=max("at"), at=min_by("at", "v")) -> out',
    ],
)
def test_moments_without_a_zone(text: str, spark: SparkSession) -> None:
    of = program(SOURCE + text, {}, TICKS)
    assert_same(of, TICKS, [(1, 1, 1), (2, 1)], spark)
