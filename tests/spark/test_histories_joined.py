"""Joins of two histories: a range with a past computes what it adds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from hydro_core.compile import compile_text, optimized
from hydro_core.plan.planner import plan
from hydro_core.plan.streams import new_pairs
from hydro_core.settings import Settings
from hydro_core.spark.frames.relation import ITEM, TICK, Kind, Relation
from hydro_core.spark.inputs.batches import Batch, batch_of
from hydro_core.spark.lower.items import make_tuple
from hydro_core.spark.lower.relations import Range, product
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.types.item import LONG, Tuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

import pytest

from tests.spark.engines import on_reference, on_spark, program

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


@pytest.mark.parametrize("optimize", [False, True], ids=["as written", "its plan"])
def test_two_ranges_give_the_same(optimize: bool, spark: SparkSession) -> None:
    schemas = dict.fromkeys("ab", "(string, long)")
    # of the first tick, one side has nothing that is stored
    ticks = [
        {"a": [["x", 1], ["x", 2]], "b": []},
        {"a": [[None, 5]], "b": [["x", 1], [None, 2]]},
        {"a": [["x", 1]], "b": [["x", 0], ["x", 0], ["y", 1]]},
        {"a": [["y", 7], [None, 1]], "b": [[None, 3]]},
    ]
    compiled = program(PROGRAM, schemas, ticks)
    wanted = on_reference(compiled, ticks)
    made = optimized(compiled) if optimize else compiled
    if optimize:
        assert len(list(new_pairs(plan(made.typed)))) == 2
    for ranges in ((1, 3), (2, 2)):
        assert on_spark(made, ticks, ranges, spark) == wanted, ranges


def test_an_output_that_is_stored_as_a_history_gets_what_a_range_adds(
    tmp_path: Path, spark: SparkSession
) -> None:
    text = """
    a = source("k string, v long"); b = source("k string, w long")
    p = a -> persist(); q = b -> persist()
    p -> join(right=q, on="k") -> out
    """
    compiled = compile_text(text)
    ready = plan(compiled.typed)
    settings = Settings().with_(master="local[2]", memory="1g")
    stored = Pipeline(tmp_path / "flow", ready, settings, spark)
    rows = [("x", 1, 0), ("y", 2, 1), ("x", 3, 2), ("y", 4, 3)]

    def batches(first: int, last: int) -> dict[str, Batch]:
        given = [row for row in rows if first <= row[2] <= last]
        ticks = pa.array([t for _, _, t in given], pa.int64())
        keys = [k for k, _, _ in given]
        return {
            name: batch_of(
                name,
                pa.table({"k": keys, column: [v for _, v, _ in given]}),
                ready.typed.inputs[name].item,
                ticks,
            )
            for name, column in (("a", "v"), ("b", "w"))
        }

    for first, last in ((0, 1), (2, 2), (3, 3)):
        stored.run_range(first, last, batches(first, last))
    found = stored.output("out", every=True).to_pylist()
    wanted = [
        {"tick": max(s, t), "k": k, "v": v, "w": w}
        for k, v, s in rows
        for other, w, t in rows
        if k == other
    ]
    assert sorted(map(str, found)) == sorted(map(str, wanted))
