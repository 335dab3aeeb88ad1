"""Items on which functions fail, told apart from the others.

Where Spark computes the functions, all items are fitting as long as no guard fails: then the range
runs again with the function in Python, which tells of each item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column

from hydro_core.functions.attempt import CallAttempt, Use
from hydro_core.functions.fn import Fn
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns import NotCompilable, predicate_column, to_column
from hydro_core.spark.functions.guards import asked
from hydro_core.spark.functions.udf import udf_column, udf_predicate
from hydro_core.spark.lower.linear.itemwise import kept
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.types.item import BOOLEAN, UNKNOWN, Array, ItemType, Tuple
from hydro_core.types.values import RowItem


@lowers("fitting")
def fitting(step: Step) -> Relation:
    """The items on which no function fails."""
    attempt = CallAttempt.of(step.node.args, step.input.item)
    try:
        return kept(step.input, _surely(attempt, fits=True))
    except NotCompilable:
        return kept(step.input, _in_python(step, attempt))


@lowers("failing")
def failing(step: Step) -> Relation:
    """The other items, each with which function fails on it and why."""
    attempt = CallAttempt.of(step.node.args, step.input.item)
    try:
        none = kept(step.input, _surely(attempt, fits=False))
        nothing = F.lit(None).cast(spark_type(step.item))
        return none.with_items(nothing, step.item)
    except NotCompilable:
        return kept(step.projected(_described(step, attempt)), F.col(ITEM).isNotNull())


def _surely(attempt: CallAttempt, *, fits: bool) -> Column:
    """A condition that is true of all items if they are to fit, else of none; where a guard of a
    function fails, so does the job.

    Spark computes nothing that it can do without, so the condition seems to depend on the results,
    and on the partition.
    """
    known: Column = F.spark_partition_id() >= 0 if fits else F.spark_partition_id() < 0
    for _, fn in attempt.calls:
        computed = F.xxhash64(_computed(attempt, fn))
        known = F.when(computed == F.lit(0), known).otherwise(F.when(computed != 0, known))
    return known


def _computed(attempt: CallAttempt, fn: Fn) -> Column:
    """The results of a function, as its operator has them."""
    args, result = ((F.col(ITEM), attempt.item),), attempt.result(fn)
    match attempt.use:
        case Use.TEST:
            return predicate_column(fn, args)
        case Use.PORT:
            found = to_column(fn, args, result=result)
            declared = found.isNotNull() & found.cast("string").isin(*attempt.ports)
            return F.when(declared, True).otherwise(asked(fn).cast("boolean"))
        case Use.PARTS if not isinstance(result, Array | Tuple):
            raise NotCompilable("only Python tells what can be spread")
        case Use.ITEM | Use.PARTS:
            if result == UNKNOWN:
                raise NotCompilable("only Python tells what it gives")
            return to_column(fn, args, result=result)


def _in_python(step: Step, attempt: CallAttempt) -> Column:
    def is_fitting(x: Any) -> bool:
        return attempt.on(x) is None

    return udf_predicate(_named(step, is_fitting, BOOLEAN), F.col(ITEM), step.input.item)


def _described(step: Step, attempt: CallAttempt) -> Column:
    source, place = step.arg("source"), step.arg("place")

    def described(x: Any) -> RowItem | None:
        failed = attempt.on(x)
        if failed is None:
            return None
        return RowItem(source=source, place=place, reason=failed.reason, row=attempt.row(x))

    fn = _named(step, described, step.item)
    return udf_column(fn, F.col(ITEM), step.input.item, step.item)


def _named(step: Step, call: Callable[[Any], Any], returns: ItemType) -> Fn:
    name = f"{step.node.op.name} {', '.join(fn.name for _, fn in step.arg('calls'))}"
    return Fn(name, f"function#{step.node.id}", ("x",), call, returns=returns)
