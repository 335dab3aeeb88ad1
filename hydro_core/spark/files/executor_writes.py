"""Whether executors write to a place and read from it by Spark's own ways, as large ticks do."""

from __future__ import annotations

import uuid

import pyarrow as pa

from hydro_core.settings import SparkSettings
from hydro_core.spark.executor.shell import failures_as_errors
from hydro_core.spark.frames.parquet import spark_name, write_parquet
from hydro_core.spark.session.session import shared_session
from hydro_core.storage.places import remove_tree
from hydro_core.storage.remote import DataPlace

_COLUMNS = pa.schema([("id", pa.int64())])


def try_writes(settings: SparkSettings, place: DataPlace) -> int:
    """Has each executor write a file to a folder of its own below the place, read it and remove it.

    It gives how many files were written.

    Raises:
        HydroError: one of them cannot; it says why.
    """
    session, folder = shared_session(settings), place / f".hydrotick-doctor-{uuid.uuid4().hex[:8]}"
    tasks = max(2, session.sparkContext.defaultParallelism)
    try:
        with failures_as_errors():
            files = write_parquet(session.range(0, tasks, 1, tasks), folder, _COLUMNS)
            names = [spark_name(session, file) for file in files]
            there = session.read.schema("id long").parquet(*names).count()
    finally:
        remove_tree(folder, ignore_errors=True)
    if there != tasks:
        raise AssertionError(f"{tasks} rows were written, of which {there} are there")
    return len(files)
