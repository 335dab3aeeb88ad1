"""Spark's functions of columns, and a way to try them without a Spark.

Whatever makes columns takes `F` from here. Within `dry_run()` every column is a `BLANK`, which
takes part in everything and stands for nothing: so the compiler itself says what it can compile,
and no JVM is needed to ask it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import Column
from pyspark.sql import functions as spark_functions

__all__ = ["BLANK", "F", "dry_run"]

_dry: ContextVar[bool] = ContextVar("dry", default=False)


@contextmanager
def dry_run() -> Iterator[None]:
    """Within it, functions of columns give blanks."""
    token = _dry.set(True)
    try:
        yield
    finally:
        _dry.reset(token)


class _DryColumn:
    """A column of a dry run: whatever is done with it gives it again."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _gives_blank

    def __bool__(self) -> bool:
        raise TypeError("a column is neither true nor false")

    __hash__ = object.__hash__


def _gives_blank(*arguments: Any, **named: Any) -> Any:
    """Functions among the arguments are called: what they do is part of what is tried."""
    for argument in (*arguments, *named.values()):
        if inspect.isfunction(argument):
            argument(*(BLANK for _ in inspect.signature(argument).parameters))
    return BLANK


def _operator(self: Any, *others: Any) -> Any:
    return BLANK


_OPERATORS = """
add radd sub rsub mul rmul truediv rtruediv mod rmod and rand or ror invert neg getitem
eq ne lt le gt ge
"""
for _name in _OPERATORS.split():
    setattr(_DryColumn, f"__{_name}__", _operator)

BLANK = cast("Column", _DryColumn())
"""The column of a dry run."""


class _Functions:
    """Spark's functions; whether they are tried only is asked when they are called."""

    def __getattr__(self, name: str) -> Any:
        of_spark = getattr(spark_functions, name)

        def function(*arguments: Any, **named: Any) -> Any:
            return (_gives_blank if _dry.get() else of_spark)(*arguments, **named)

        setattr(self, name, function)
        return function


if TYPE_CHECKING:
    from pyspark.sql import functions as F
else:
    F = _Functions()
