"""Functions of a program on Spark: as columns where these are exact, else in Python workers."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from hydro_core.functions.fn import Fn
from hydro_core.functions.result_type import result_type
from hydro_core.spark.columns import NotCompilable, predicate_column, to_column, truth_column
from hydro_core.spark.udf import udf_column, udf_predicate
from hydro_core.types.item import ItemType


@dataclass(frozen=True, slots=True)
class Runtime:
    """How a function runs: as a Spark column, or as a Python UDF for the reason given."""

    reason: str | None = None

    @property
    def is_column(self) -> bool:
        """Whether it runs as a column."""
        return self.reason is None

    def __str__(self) -> str:
        return "column" if self.reason is None else f"arrow udf: {self.reason}"


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
    try:
        return to_column(fn, ((column, item),), result=wanted, tick=tick)
    except NotCompilable:
        return udf_column(fn, column, item, wanted, tick)


def apply_predicate(
    fn: Fn, column: Column, item: ItemType, *, tick: Column | None = None
) -> Column:
    """Whether what `fn` gives for the items of `column` is true as Python sees it: never null."""
    try:
        return predicate_column(fn, ((column, item),), tick=tick)
    except NotCompilable:
        return udf_predicate(fn, column, item, tick)


def truth(column: Column, item: ItemType) -> Column:
    """Python's `bool(x)` of the items of a column: never null."""
    return truth_column(column, item)


def runtime(fn: Fn, inputs: tuple[ItemType, ...], *, result: ItemType | None = None) -> Runtime:
    """How `fn` runs on items of these types; two types are those of an accumulator and an item.

    It asks the compiler itself, so it needs a running Spark.
    """
    wanted = result if result is not None else result_type(fn, inputs, spread=True)
    names = [f"_{i}" for i in range(1, len(inputs) + 1)]
    arguments = [(F.col(name), item) for name, item in zip(names, inputs, strict=True)]
    try:
        to_column(fn, arguments, result=wanted)
    except NotCompilable as problem:
        return Runtime(problem.reason)
    return Runtime()
