"""Joins of two histories: a range with a past computes what it adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from hydro_core.spark.lower.algebra import Range, product
from hydro_core.spark.lower.items import make_tuple
from hydro_core.spark.relation import ITEM, TICK, Kind, Relation
from hydro_core.types.item import LONG, Tuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

import pytest

from tests.spark.engines import cuts, on_reference, on_spark, program

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("additions", [False, True])
def test_the_pairs_of_the_past_are_left_out_where_nobody_needs_them(
    additions: bool, spark: SparkSession
) -> None:
    def history(rows: list[tuple[int, int]]) -> Relation:
        return Relation(Kind.H, spark.createDataFrame(rows, f"{ITEM} long, {TICK} long"), LONG)

    left, right = history([(1, 0), (2, 3), (2, 3)]), history([(1, 1), (1, 4), (2, 0)])
    keys = ([F.col(ITEM)], [F.col(ITEM)])
    found = product(
        left, right, keys, make_tuple, Tuple((LONG, LONG)), Range(2, 5, additions=additions)
    )
    rows = sorted((row.item[0], row.t) for row in found.frame.collect())
    assert rows == ([] if additions else [(1, 1)]) + [(1, 4), (2, 3), (2, 3)]


PROGRAM = """
p = a -> persist(); q = b -> persist()
p -> [0]j; q -> [1]j; j = join()
j -> filter(lambda k, v: v[0] >= v[1]) -> delta() -> new
q -> map(lambda k, v: v) -> [0]c; p -> [1]c; c = cross() -> delta() -> pairs
p -> join(right=q, how="semi") -> delta() -> met
"""


def test_every_cut_gives_the_same(spark: SparkSession) -> None:
    schemas = dict.fromkeys("ab", "(string, long)")
    ticks = [
        {"a": [["x", 1], ["x", 2]], "b": [["x", 1], [None, 2]]},
        {"a": [[None, 5]], "b": []},
        {"a": [["x", 1]], "b": [["x", 0], ["x", 0], ["y", 1]]},
        {"a": [["y", 7], [None, 1]], "b": [[None, 3]]},
    ]
    compiled = program(PROGRAM, schemas, ticks)
    wanted = on_reference(compiled, ticks)
    for ranges in cuts(len(ticks)):
        assert on_spark(compiled, ticks, ranges, spark) == wanted, ranges
