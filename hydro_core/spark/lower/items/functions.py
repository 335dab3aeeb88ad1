"""The program's functions, of items."""

from __future__ import annotations

from pyspark.sql import Column

from hydro_core.functions.fn import Fn
from hydro_core.functions.result_type import result_type
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.functions.apply import apply
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import ItemType


def fn_type(fn: Fn, item: ItemType) -> ItemType:
    """The type of what the function gives for an item."""
    return result_type(fn, (item,), spread=True)


def called(step: Step, fn: Fn) -> Column:
    """`fn` of the item, as an item of the output's type."""
    return apply(fn, F.col(ITEM), step.input.item, result=step.item, tick=F.col(TICK))


def evaluated(fn: Fn, item: ItemType) -> Column:
    """`fn` of the item, as what the function gives."""
    return apply(fn, F.col(ITEM), item, tick=F.col(TICK))
