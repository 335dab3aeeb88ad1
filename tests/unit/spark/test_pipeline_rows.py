"""The rows that `show` prints."""

from __future__ import annotations

import pyarrow as pa

from hydro_core.spark.pipeline.rows import sorted_rows


def test_rows_without_an_order_are_sorted() -> None:
    """Nulls first, by the columns from left to right; what has no order of its own is left out."""
    table = pa.table({"k": ["b", None, "a", "a"], "in": [{"x": 1}] * 4, "n": [1, 2, 4, 3]})
    found = sorted_rows(table, table.column_names)
    assert found["k"].to_pylist() == [None, "a", "a", "b"]
    assert found["n"].to_pylist() == [2, 3, 4, 1]


def test_nothing_to_sort_by() -> None:
    assert sorted_rows(pa.table({"x": [[2], [1]]}), ["x"])["x"].to_pylist() == [[2], [1]]
