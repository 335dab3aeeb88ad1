"""Functions of a program on Spark: as columns where these are exact, else in Python workers."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column

from hydro_core.functions.fn import Fn
from hydro_core.functions.result_type import result_type
from hydro_core.spark.frames.dry import BLANK, dry_run
from hydro_core.spark.functions.columns import (
    NotCompilable,
    predicate_column,
    to_column,
)
from hydro_core.spark.functions.guards import Noting, noting
from hydro_core.spark.functions.udf import udf_column, udf_predicate
from hydro_core.types.item import ItemType


def apply(
    fn: Fn,
    column: Column,
    item: ItemType,
    *,
    result: ItemType | None = None,
    tick: Column | None = None,
) -> Column:
    """The results of `fn` on the items of `column`, as items of type `result` (default: what `fn`
    gives).

    A failing function fails the job; `tick`, where given, is named by the error.
    """
    wanted = result if result is not None else result_type(fn, (item,), spread=True)

    return _compiled_or_in_python(
        fn,
        lambda: to_column(fn, ((column, item),), result=wanted),
        lambda noted: udf_column(fn, column, item, wanted, tick, noted),
    )


def is_column(fn: Fn, item: ItemType) -> bool:
    """Whether `fn` of items of this type is a column of Spark, not one that Python computes."""
    try:
        with dry_run():
            to_column(fn, ((BLANK, item),), result=result_type(fn, (item,), spread=True))
    except NotCompilable:
        return False
    return True


def apply_predicate(
    fn: Fn, column: Column, item: ItemType, *, tick: Column | None = None
) -> Column:
    """Whether what `fn` gives for the items of `column` is true as Python sees it: never null."""
    return _compiled_or_in_python(
        fn,
        lambda: predicate_column(fn, ((column, item),)),
        lambda noted: udf_predicate(fn, column, item, tick, noted),
    )


def _compiled_or_in_python(
    fn: Fn, compiled: Callable[[], Column], in_python: Callable[[Noting | None], Column]
) -> Column:
    try:
        return compiled()
    except NotCompilable:
        pass
    try:
        noted = noting(fn, compiled)
    except NotCompilable:
        # It is no expression of Spark anyway: there is nothing to compare with.
        noted = None
    return in_python(noted)
