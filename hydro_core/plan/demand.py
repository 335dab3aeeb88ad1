"""Which streams are needed in one form alone, histories for what a range adds to them.

A history behind which only its additions are looked at (`delta`, an output that is stored as a
history) need not be computed again for the ticks before the range: a join of two histories is then
what is new on one side with all of the other, and what is new on the other with the past of the
one.
"""

from __future__ import annotations

from collections.abc import Collection

from hydro_core.catalog.classes import Growth, Output
from hydro_core.catalog.spec import OrderRule, State
from hydro_core.ir.graph import Node, NodeId
from hydro_core.plan.changes import changes_suffice
from hydro_core.plan.kinds import Kind
from hydro_core.plan.tick_plan import TickPlan


def in_one_form(plan: TickPlan, outputs: Collection[str]) -> frozenset[NodeId]:
    """The nodes of whose streams nobody needs more than their form tells: the changes of those that
    are told by them, and of histories what a range adds.

    `outputs` are the names of those outputs of which that is enough.
    """
    changes = changes_suffice(plan.graph, plan.in_changes, plan.kinds, outputs)
    return additions_only(plan, outputs) | (changes & plan.in_changes)


def additions_only(plan: TickPlan, outputs: Collection[str]) -> frozenset[NodeId]:
    """The nodes that give histories of which nobody needs the rows of before a range.

    `outputs` are the names of those outputs whose additions are enough.
    """
    alone = {c.nodes[0] for c in plan.components if c.how == "once"}
    stored = {slot.stream.node for slot in plan.slots}
    found = {n for n in alone - stored if plan.kinds[n] is Kind.H}
    while whole := {n for n in found if not _suffice(plan, n, found, outputs)}:
        found -= whole
    return frozenset(found)


def _suffice(plan: TickPlan, node: NodeId, found: set[NodeId], outputs: Collection[str]) -> bool:
    """Whether additions are enough for all that read the node."""
    if isinstance(plan.graph[node].cls, Output):
        return plan.graph[node].args["name"] in outputs
    return all(
        isinstance(reader.cls, Growth)
        or (reader.id in found and (isinstance(reader.cls, Output) or _goes_row_by_row(reader)))
        for reader in plan.graph.readers(node)
    )


def _goes_row_by_row(node: Node) -> bool:
    """Whether every row comes from one row, of the same tick."""
    alone = len(node.inputs) == 1 or node.spec.variadic or node.spec.order is OrderRule.KEEPS_IF_ALL
    return node.spec.state is State.NONE and alone and all(p.linear for p, _ in node.reads())
