"""Timestamps as INT96, which Spark and Hive write by default."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq


def has_int96(file: Path) -> bool:
    """Whether a file has timestamps as INT96, by its footer."""
    schema = pq.read_metadata(file).schema
    return any(schema.column(i).physical_type == "INT96" for i in range(len(schema)))
