"""The runtime of each function of a program on Spark, as the compiler decides it, without a
Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from hydro_core.analysis.identity import functions_in
from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import (
    ByKey,
    ItemEffect,
    Linear,
    OverTime,
    PerItem,
    PerKey,
    PerPosition,
    PositionalOrder,
    Product,
    StreamEnd,
)
from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import Place
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Node
from hydro_core.plan.tick_plan import Kind, is_in_order
from hydro_core.spark.frames.dry import BLANK, dry_run
from hydro_core.spark.frames.relation import Relation
from hydro_core.spark.functions.columns import NotCompilable, predicate_column, to_column
from hydro_core.spark.lower.keyed import ReplayedFold, summary_of
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import ItemType, Order

RunsAs = Literal["column", "aggregate", "arrow udf", "nowhere"]


@dataclass(frozen=True, slots=True)
class Runtime:
    """The runtime of a function, and the reason if it is Python."""

    how: RunsAs
    reason: str | None = None
    place: Place = (0, 0)
    """Line and column of the part that cannot be a column; (0, 0) for the function as a whole."""

    def __str__(self) -> str:
        """For people: `arrow udf: a format of its own (line 3)`."""
        line = f" (line {self.place[0]})" if self.place[0] else ""
        return self.how if self.reason is None else f"{self.how}: {self.reason}{line}"


@dataclass(frozen=True, slots=True)
class FunctionRun:
    """A function of a node, and how it runs."""

    node: Node
    fn: Fn
    runtime: Runtime


def function_runs(typed: Typed) -> Iterator[FunctionRun]:
    """Every function of a program with how it runs on Spark."""
    for node in typed.graph:
        for fn, over in functions_in(node, typed):
            yield FunctionRun(node, fn, _runtime_at(typed, node, fn, over))


def runtime(fn: Fn, inputs: tuple[ItemType, ...], *, result: ItemType | None = None) -> Runtime:
    """How `fn` runs on items of these types; two types are those of an accumulator and an item."""

    def compiled() -> None:
        wanted = result if result is not None else result_type(fn, inputs, spread=True)
        to_column(fn, [(BLANK, item) for item in inputs], result=wanted)

    return _tried(compiled)


def _tried(compiled: Callable[[], Any]) -> Runtime:
    try:
        with dry_run():
            compiled()
    except NotCompilable as problem:
        return Runtime("arrow udf", problem.reason, problem.place)
    return Runtime("column")


def _runtime_at(typed: Typed, node: Node, fn: Fn, over: tuple[ItemType, ...]) -> Runtime:
    item = (typed.types.get(node.inputs[0]) or typed.of(node.inputs[0].node)).item
    cls = node.cls
    match cls:
        case PerItem(ItemEffect.SAME):
            return Runtime("nowhere", "Spark gives no place to look from")
        case PerItem(ItemEffect.SOME):
            return _tried(lambda: predicate_column(fn, ((BLANK, item),)))
        case PerItem(ItemEffect.ONE | ItemEffect.UP_TO_ONE):
            return runtime(fn, (item,), result=typed.of(node.id).item)
        case PositionalOrder():
            return Runtime("arrow udf", f"`{node.op.name}` goes from item to item")
        case ByKey() if cls.is_fold:
            return _fold(typed, node, item)
        case Product():
            return runtime(fn, over)
        case StreamEnd() | Linear() | PerKey() | PerPosition() | OverTime():
            return runtime(fn, (item,))
        case _:
            assert_never(cls)


def _fold(typed: Typed, node: Node, item: ItemType) -> Runtime:
    """An aggregate of Spark, or else a fold of the array of a group's items."""
    out = typed.of(node.id)
    ordered = typed.of(node.inputs[0].node).order is Order.TOTAL
    given = Relation(Kind.E, BLANK, item, ordered)  # type: ignore[arg-type]
    nothing: Any = None
    step = Step(node, (given,), out.item, out.order is Order.TOTAL, Kind.E, 0, 0, nothing)
    try:
        with dry_run():
            along = summary_of(step).in_time(step, False)
    except TypeProblem as problem:
        return Runtime("arrow udf", problem.message, problem.place)
    if not isinstance(along, ReplayedFold):
        return Runtime("aggregate")
    found = runtime(along.fn, (along.acc, along.of), result=along.acc)
    where = "in their order" if is_in_order(node, ordered) else "in any order"
    gathered = f"over the items of a group, gathered {where}"
    if found.reason is None:
        return Runtime("column", gathered)
    return Runtime("arrow udf", f"{gathered}: {found.reason}", found.place)
