"""What functions of the program give, as columns of the rows, made before groups and windows.

So each function runs once for a row, however many results are made of what it gives, Python may
compute it, and Spark groups rows of which it knows how they lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyspark.sql import Column

from hydro_core.catalog.spec import Aggregate
from hydro_core.functions.fn import Fn
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.relation import ITEM
from hydro_core.spark.functions.apply import is_column
from hydro_core.spark.lower.items.columns import (
    column_types,
    evaluated,
    fn_type,
    make_row,
    own_columns,
)
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import Field, ItemType, Row


def with_arguments(step: Step) -> Step:
    """The step with aggregates over columns in place of functions that stay in Python."""
    item, aggregates = step.input.item, step.node.args.get("aggregates", ())
    arguments = (argument for _, aggregate in aggregates for argument in aggregate.arguments)
    in_python = (a for a in arguments if isinstance(a, Fn) and not is_column(a, item))
    row, of, names = with_results(item, in_python)
    if not names or not isinstance(item, Row):
        return step
    rows = step.input.with_(frame=together(step.input.frame.withColumn(ITEM, row)), item=of)
    over = tuple((name, over_columns(one, names)) for name, one in aggregates)
    node = step.node
    return step.with_(inputs=(rows,), node=node.with_(args=node.args.with_(aggregates=over)))


def with_results(
    item: ItemType, functions: Iterable[Fn]
) -> tuple[Column, ItemType, Mapping[Fn, str]]:
    """The items with what functions give as further columns, their type, and the columns' names."""
    asked, taken = list(dict.fromkeys(functions)), column_types(item)
    free = (name for i in range(len(asked) + len(taken)) if (name := f"f{i}") not in taken)
    names = dict(zip(asked, free, strict=False))
    if not names:
        return F.col(ITEM), item, names
    made = {name: evaluated(fn, item) for fn, name in names.items()}
    fields = [Field(name, fn_type(fn, item)) for fn, name in names.items()]
    wider = Row((*item.fields, *fields)) if isinstance(item, Row) else item
    return make_row((own_columns(item) | made).items()), wider, names


def over_columns(aggregate: Aggregate, names: Mapping[Fn, str]) -> Aggregate:
    """The aggregate, over columns in place of functions of rows."""
    arguments = (names.get(a, a) if isinstance(a, Fn) else a for a in aggregate.arguments)
    return replace(aggregate, arguments=tuple(arguments))
