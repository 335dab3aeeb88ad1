"""Every row of an Arrow table is one of its DataFrame, whatever chunks the table has."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hydro_core.spark
from hydro_core.spark.frames.leaf import table_frame

pytestmark = pytest.mark.spark

OF_LISTS = {"pipeline/pipeline.py", "lower/linear.py", "frames/leaf.py"}
"""Modules that make frames of lists, and the one that does so of tables."""


def test_no_row_behind_an_empty_chunk_is_lost(spark: SparkSession) -> None:
    for sizes in product((0, 2), repeat=4):
        chunks = [pa.array(range(size), pa.int64()) for size in sizes]
        table = pa.table({"v": pa.chunked_array(chunks, pa.int64())})
        assert table_frame(spark, table).count() == sum(sizes), sizes


def test_tables_become_frames_in_one_place() -> None:
    root = Path(str(hydro_core.spark.__file__)).parent
    found = {
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        if re.search(r"\bcreateDataFrame\(", file.read_text())
    }
    assert found == OF_LISTS
