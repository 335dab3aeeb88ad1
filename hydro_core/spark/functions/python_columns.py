"""Columns that Python computes, and who has made some.

Behind such a column Spark does not know any more how the rows lie, not even that they are in one
partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import types as spark_types
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]


@dataclass(slots=True)
class PythonColumns:
    """The columns that Python computes, as they are made."""

    made: int = 0


_recorder: ContextVar[PythonColumns | None] = ContextVar("python_columns", default=None)


@contextmanager
def python_columns() -> Iterator[PythonColumns]:
    """Counts the columns that are made within, those of a block within it, too."""
    outer, columns = _recorder.get(), PythonColumns()
    token = _recorder.set(columns)
    try:
        yield columns
    finally:
        _recorder.reset(token)
        if outer is not None:
            outer.made += columns.made


def python_function(run: Callable[..., Any], result: spark_types.DataType) -> Callable[..., Column]:
    """From Arrow arrays to one of them, as a function of columns whose result has this type."""
    made: Callable[..., Column] = arrow_udf(run, result)

    def column(*arguments: Column) -> Column:
        recorder = _recorder.get()
        if recorder is not None:
            recorder.made += 1
        return made(*arguments)

    return column
