"""Every row of a table of Arrow reaches Spark, in whatever parts it stands."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hydro_core.spark.frames.arrow_frame import arrow_frame
from hydro_core.spark.frames.few_rows import few_rows_session
from hydro_core.spark.frames.items import ITEM, TICK
from hydro_core.spark.inputs.batches import batch_of
from hydro_core.types.item import LONG

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
FILES = [p for package in ("hydro_core", "orchestration") for p in (ROOT / package).rglob("*.py")]


@pytest.mark.parametrize("has_rows", list(product((0, 2), repeat=3)), ids=str)
def test_parts_without_rows_end_nothing(spark: SparkSession, has_rows: tuple[int, ...]) -> None:
    parts = [pa.array(range(10 * i, 10 * i + n), pa.int64()) for i, n in enumerate(has_rows)]
    # Columns need not be cut where others are.
    whole = pa.concat_arrays(parts)
    rows = pa.table({"x": pa.chunked_array(parts, pa.int64()), "y": whole})
    for session in (spark, few_rows_session(spark)):
        frame = arrow_frame(session, rows)
        assert frame.toArrow().to_pylist() == [{"x": x, "y": x} for x in whole.to_pylist()]
    assert arrow_frame(spark, rows, frame.schema).count() == sum(has_rows)


def test_a_tick_without_rows_within_a_batch(spark: SparkSession) -> None:
    batch = batch_of("x", pa.table({ITEM: [1]}), LONG, 0)
    for tick, items in ((1, []), (2, [5, 6])):
        more = pa.table({ITEM: pa.array(items, pa.int64()), TICK: pa.array([tick] * len(items))})
        batch = batch.with_rows(more)
    assert batch.frame(spark).select(ITEM).toArrow()[ITEM].to_pylist() == [1, 5, 6]


def test_no_other_way_leads_there() -> None:
    """What is not a list that stands there goes by `arrow_frame`."""
    found = [
        str(file.relative_to(ROOT))
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "createDataFrame"
        and not isinstance(node.args[0], ast.List | ast.ListComp)
    ]
    assert found == ["hydro_core/spark/frames/arrow_frame.py"]
