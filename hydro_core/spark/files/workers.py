"""Files that Spark's workers read with Arrow: CSV, JSON lines, and Parquet of types Spark lacks.

The workers read as `rows_of_file` does, a file a task and a piece of it at a time.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, chdir, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from hydro_core.errors import DataError
from hydro_core.files.row_batch import FileForm
from hydro_core.files.rows import CURE, PROBLEM, WantedColumns, rows_of_file
from hydro_core.files.unreadable import refuse
from hydro_core.spark.frames.types import spark_type
from hydro_core.storage.remote import DataPlace, RemotePath


def rows_in_workers(
    session: SparkSession, files: Sequence[DataPlace], form: FileForm, wanted: WantedColumns
) -> DataFrame:
    """The rows of the files: `c0 …` and what stands beside them."""
    here = Path.cwd()

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _where_asked(here, files):
            for number in _numbers(batches):
                yield from rows_of_file(files[number], number, form, wanted)

    return _tasks(session, len(files)).mapInArrow(rows, _schema(wanted))


def survey(
    session: SparkSession, found: Callable[[DataPlace], Any], files: Sequence[DataPlace]
) -> Iterator[Any]:
    """What `found` says of each file; the error of the first that raises one is raised."""
    here = Path.cwd()

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in _numbers(batches):
            said, problem, cure = None, None, None
            try:
                with _where_asked(here, files):
                    said = pickle.dumps(found(files[number]))
            except DataError as error:
                problem, cure = error.diagnostics[0].message, error.diagnostics[0].help
            columns: list[Any] = [pa.array([number]), pa.array([said], pa.binary())]
            columns += [pa.array([text], pa.string()) for text in (problem, cure)]
            yield pa.RecordBatch.from_arrays(columns, ["n", "said", PROBLEM, CURE])

    schema = f"n long, said binary, {PROBLEM} string, {CURE} string"
    for answer in _tasks(session, len(files)).mapInArrow(rows, schema).orderBy("n").collect():
        if answer[PROBLEM] is not None:
            refuse(answer[PROBLEM], answer[CURE])
        yield pickle.loads(bytes(answer["said"]))  # noqa: S301 - our own


def _where_asked(here: Path, files: Sequence[DataPlace]) -> AbstractContextManager[None]:
    """Within it a worker finds files by paths that are relative to where the command runs: it may
    have started elsewhere. On another machine, which reads a store, there is no such place.
    """
    return nullcontext() if all(isinstance(file, RemotePath) for file in files) else chdir(here)


def _schema(wanted: WantedColumns) -> spark.StructType:
    return spark.StructType([spark.StructField(name, spark_type(of)) for name, of in wanted.made])


_MOST_TASKS = 256


def _tasks(session: SparkSession, files: int) -> DataFrame:
    """The numbers of the files, a task each, or as few as keeps tasks from being many."""
    return session.range(0, files, 1, max(1, min(files, _MOST_TASKS)))


def _numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from (int(n or 0) for n in batch.column(0).to_pylist())
