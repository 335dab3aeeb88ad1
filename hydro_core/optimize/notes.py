"""What a plan still computes over all of history in each tick, and why no rule could help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hydro_core.optimize.cost import CostModel, Statistics
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.rules.algebra import NEGATIONS
from hydro_core.optimize.space import ENode, Problem, Space

QUIET = frozenset({"persist", "old", "prev", "chain", "bag", "sink", "window"})
"""Shapes that hold or hand on what is there; they compute nothing."""
PROBES = frozenset({*NEGATIONS, "join", "cross", "join:semi", "cross_singleton"})
"""Shapes that look a small side up in a large one."""
RUNNING = ("_from", "latest", "aggregate", "unique")


@dataclass(frozen=True, slots=True)
class Note:
    """An operator that reads all of history each tick, and the reason."""

    operator: str
    reason: str

    def __str__(self) -> str:
        return f"`{self.operator}` reads all of history in each tick: {self.reason}"


def notes_of(problem: Problem, space: Space, plan: Plan) -> tuple[Note, ...]:
    """What of the plan is not incremental."""
    grows = _grows(problem, space)
    found: dict[Note, None] = {}
    for cls in sorted(plan.choice):
        node = space.nodes[plan.choice[cls]]
        name = node.shape.name.removesuffix("!").removesuffix(":global")
        large = [grows[c] and not _is_state(space, plan, c, cls) for c in node.inputs]
        if name in QUIET or not any(large) or (name in PROBES and not all(large)):
            continue
        if name in NEGATIONS and not large[0]:
            continue
        found.setdefault(Note(_called(space, node, name), _reason(node, name)))
    return tuple(found)


def _grows(problem: Problem, space: Space) -> Sequence[bool]:
    """The classes whose size follows the length of history."""
    few, many = (
        CostModel(space, problem.payloads, Statistics(ticks=t), "tick").sizes() for t in (1e2, 1e4)
    )
    return [b > 4 * a for a, b in zip(few, many, strict=True)]


def _is_state(space: Space, plan: Plan, cls: int, reader: int) -> bool:
    """Whether the class is, through chains, what the reader itself was the tick before."""
    node = space.nodes[plan.choice[cls]]
    if node.shape.name == "prev":
        return node.inputs[0] == reader or _is_state_of(space, plan, node.inputs[0])
    if node.shape.name == "chain":
        return _is_state(space, plan, node.inputs[0], reader)
    return False


def _is_state_of(space: Space, plan: Plan, cls: int) -> bool:
    return space.nodes[plan.choice[cls]].shape.name.endswith(RUNNING)


def _called(space: Space, node: ENode, name: str) -> str:
    names = sorted(n for n, c in space.named.items() if c == node.cls and not n.startswith("bag "))
    return names[0] if names else name


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
