"""What aggregates are over, where Python computes it: columns of the rows, made before these are
grouped.

So each function runs once for a row, however many partial results are made of what it gives, and
Spark groups rows of which it knows how they lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hydro_core.catalog.spec import Aggregate
from hydro_core.functions.fn import Fn
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.relation import ITEM
from hydro_core.spark.functions.apply import is_column
from hydro_core.spark.lower.items.columns import make_row, own_columns
from hydro_core.spark.lower.items.functions import evaluated, fn_type
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import Field, ItemType, Row


def with_arguments(step: Step) -> Step:
    """The step with aggregates over columns in place of functions that stay in Python."""
    item, aggregates = step.input.item, step.node.args.get("aggregates", ())
    names = _names_of_functions(aggregates, item)
    if not names or not isinstance(item, Row):
        return step
    made = {name: evaluated(fn, item) for fn, name in names.items()}
    row = make_row((own_columns(item) | made).items())
    frame = together(step.input.frame.withColumn(ITEM, row))
    fields = (Field(name, fn_type(fn, item)) for fn, name in names.items())
    rows = step.input.with_(frame=frame, item=Row((*item.fields, *fields)))
    over = tuple((name, _over_columns(one, names)) for name, one in aggregates)
    node = step.node
    return step.with_(inputs=(rows,), node=node.with_(args=node.args.with_(aggregates=over)))


def _names_of_functions(
    aggregates: tuple[tuple[str, Aggregate], ...], item: ItemType
) -> Mapping[Fn, str]:
    """A column that the row does not have for each function that is no expression of Spark."""
    functions = dict.fromkeys(
        argument
        for _, aggregate in aggregates
        for argument in aggregate.arguments
        if isinstance(argument, Fn) and not is_column(argument, item)
    )
    taken = set(item.names) if isinstance(item, Row) else set()
    free = (name for i in range(len(functions) + len(taken)) if (name := f"f{i}") not in taken)
    return dict(zip(functions, free, strict=False))


def _over_columns(aggregate: Aggregate, names: Mapping[Fn, str]) -> Aggregate:
    arguments = tuple(
        names.get(argument, argument) if isinstance(argument, Fn) else argument
        for argument in aggregate.arguments
    )
    return replace(aggregate, arguments=arguments)
