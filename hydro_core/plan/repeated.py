"""Operators that repeat their rows over a range: once for every tick, or for every change.

All others take a row once, whatever the range. Rows times ticks grow with the square of the ticks,
so a plan that has them runs long ranges in parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from hydro_core.catalog.classes import (
    ByKey,
    Commands,
    Distinct,
    Ends,
    History,
    Linear,
    OrderedByKey,
    OverTime,
    PerKey,
    PerPosition,
    Positional,
    Product,
    Running,
    Window,
)
from hydro_core.catalog.parts import moving_split, running_split
from hydro_core.functions.known_folds import FoldParts, KnownFold, StartKept, Total, known_fold
from hydro_core.ir.graph import Node, NodeId
from hydro_core.plan.kinds import Kind, is_in_order
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.plan.versions import result_key
from hydro_core.types.stream import Order

_STANDS = {
    Kind.H: "rows that came before stay",
    Kind.G: "rows stay over several ticks",
}


def repeated(plan: TickPlan) -> Mapping[NodeId, str]:
    """The operators that repeat rows over a range, each with what it does and why, for people."""
    alone = {n for c in plan.components if c.how != "tick by tick" for n in c.nodes}
    found = {}
    for node in plan.graph:
        why = _why(plan, node) if node.id in alone else None
        if why is not None:
            found[node.id] = f"`{node.id}` ({node.op.name}) {why}"
    return MappingProxyType(found)


def _why(plan: TickPlan, node: Node) -> str | None:
    kinds = [plan.kinds[e.node] for e in node.inputs]
    stands = next((_STANDS[k] for k in kinds if k is not Kind.E), None)
    if stands is None:
        return None
    ordered = plan.typed.of(node.inputs[0].node).order is Order.TOTAL
    because = _because(node, ordered)
    if because is not None:
        return f"repeats each row at every tick of a range: {stands}, and {because}"
    if isinstance(node.cls, OrderedByKey):
        return f"orders the rows of a key again whenever they change: {stands}"
    obstacle = _obstacle(plan, node, kinds[0]) if isinstance(node.cls, ByKey) else None
    if obstacle is None:
        return None
    if result_key(node) is not None:
        return f"groups the rows of a key again whenever they change: {obstacle}"
    return f"repeats each row at every tick of a range: {obstacle}"


def _because(node: Node, ordered: bool) -> str | None:
    """Why rows that stay over several ticks are taken in each of them; None where they are not."""
    cls = node.cls
    match cls:
        case Positional() | OrderedByKey(keyed=False):
            return "its result depends on the place of an item among all"
        case History() | Window() | Running(changes=False):
            return "what is there is added anew in every tick"
        case Commands():
            return "commands that are there are given anew in every tick"
        case Distinct():
            return "it follows their order" if ordered else None
        case ByKey():
            return "it follows their order" if is_in_order(node, ordered) else None
        case Ends() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)


def _obstacle(plan: TickPlan, node: Node, kind: Kind) -> str | None:
    """Why a result is not merged from tick to tick."""
    if "aggregates" in node.args:
        item = plan.typed.of(node.inputs[0].node).item
        for name, aggregate in node.args["aggregates"]:
            function = aggregate.function
            if running_split(aggregate, item) is None:
                return f"`{function}` of `{name}` is not merged from the results of ticks"
            if kind is Kind.G and moving_split(aggregate, item) is None:
                return f"rows go again, and `{function}` of `{name}` does not tell what is left"
        return None
    if kind is Kind.H:
        return None
    known = known_fold(node.args["f"]) if "init" in node.args else None
    if known is not None and _is_sum(known):
        return None
    return "rows go again, and the result does not tell what is left"


def _is_sum(known: KnownFold) -> bool:
    match known:
        case Total() | StartKept():
            return True
        case FoldParts(parts):
            return all(map(_is_sum, parts))
        case _:
            return False
