"""What a plan still computes over all of history in each tick, and why no rule could help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hydro_core.errors import Span
from hydro_core.ir.graph import Node
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.loops import PREFIX
from hydro_core.optimize.rules.algebra import NEGATIONS
from hydro_core.optimize.space import ClassId, ENode, Space

QUIET = frozenset({"persist", "old", "prev", "chain", "union", "bag", "sink", "window"})
"""Shapes that hold or hand on what is there; they compute nothing."""
PROBES = frozenset({"join", "cross", "join:semi", "cross_singleton"})
"""Shapes that look a small side up in a large one."""
CONDENSING = frozenset(
    {
        "fold",
        "reduce",
        "fold_keyed",
        "reduce_keyed",
        "latest",
        "aggregate",
        "fold_from",
        "reduce_from",
        "fold_keyed_from",
        "reduce_keyed_from",
        "latest_from",
        "aggregate_from",
        "limit",
    }
)
"""Shapes whose result is a state, not a history."""


@dataclass(frozen=True, slots=True)
class Note:
    """An operator that reads all of history each tick, and the reason."""

    operator: str
    name: str
    """The node of the program, or the operator where the plan made it."""
    reason: str
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        place = f" ({self.span.file}:{self.span.line}:{self.span.column})" if self.span else ""
        called = f"`{self.operator}`" if self.name == self.operator else f"`{self.name}`"
        return f"{called}{place} reads all of history in each tick: {self.reason}"


def notes_of(origins: Mapping[str, Node], space: Space, plan: Plan) -> tuple[Note, ...]:
    """What of the plan is not incremental."""
    histories = _histories(space, plan)
    found: dict[Note, None] = {}
    for cls in sorted(plan.choice):
        node = space.nodes[plan.choice[cls]]
        name = _plain(node)
        if name in QUIET or _could_be_stored(space, cls):
            continue
        if _reads_history(node, name, histories):
            found.setdefault(_note(origins, space, node, name))
    return tuple(found)


def _could_be_stored(space: Space, cls: ClassId) -> bool:
    """Whether the rules found a way to store the stream, which is dearer than to compute it."""
    return any(_plain(space.nodes[i]) in {"persist", "old"} for i in space.of[cls])


def _reads_history(node: ENode, name: str, histories: set[ClassId]) -> bool:
    """Whether the node goes through a history, other than to look something up in it."""
    large = [c in histories for c in node.inputs]
    if name.startswith(PREFIX):
        return False
    if name in PROBES:
        return all(large)
    if name in NEGATIONS:
        return large[0]
    return any(large)


def _histories(space: Space, plan: Plan) -> set[ClassId]:
    """The classes that hold all of history: the least fixpoint from `persist` and `old`."""
    found: set[ClassId] = set()
    changed = True
    while changed:
        changed = False
        for cls, chosen in plan.choice.items():
            node = space.nodes[chosen]
            name = _plain(node)
            holds = name in {"persist", "old"} or (
                name not in CONDENSING and _reads_history(node, name, found)
            )
            if holds and cls not in found:
                found.add(cls)
                changed = True
    return found


def _plain(node: ENode) -> str:
    return node.shape.name.removesuffix("!").removesuffix(":global")


def _note(origins: Mapping[str, Node], space: Space, node: ENode, name: str) -> Note:
    reason = _reason(node, name)
    own = [n for n, c in space.named.items() if c == node.cls and n in origins]
    own.sort(key=lambda n: (origins[n].op is not node.shape.op, n))
    if not own:
        return Note(name, name, reason)
    return Note(origins[own[0]].op.name, own[0], reason, origins[own[0]].span)


def _reason(node: ENode, name: str) -> str:
    if name == "delta":
        return "its input may lose items, so what is new cannot be told from the batch alone"
    if name.startswith("loop"):
        return "it is a cycle inside a tick, which starts again in each tick"
    if name in {"join:left", "join:right", "join:outer"}:
        return "a padded row disappears when a match arrives"
    if any(node.shape.linear) or name in NEGATIONS:
        return "its input is not a history that only grows"
    if name in {"fold", "reduce", "fold_keyed", "reduce_keyed"}:
        return "its function does not go on from a stored result of the same type"
    if name == "aggregate":
        return "not all of its aggregates can be merged from partial results"
    return f"{name} has no rule that carries its result from tick to tick"
