"""What a plan still computes over all of history in each tick, and why no rule could help."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hydro_core.catalog.parts import can_go_on, why_no_parts, why_not_moving
from hydro_core.catalog.spec import Args
from hydro_core.errors import Span
from hydro_core.ir.graph import Node
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.loops import PREFIX
from hydro_core.optimize.rules.algebra import NEGATIONS
from hydro_core.optimize.shape import NO_ARGS, Payload
from hydro_core.optimize.space import ClassId, ENode, Space

QUIET = frozenset({"persist", "old", "prev", "chain", "union", "bag", "sink", "window"})
"""Shapes that hold or hand on what is there; they compute nothing."""
PROBES = frozenset({"join", "cross", "join:semi", "cross_singleton"})
"""Shapes that look a small side up in a large one."""
KEEPS: Mapping[str, int] = {**dict.fromkeys(NEGATIONS, 0), "join:left": 0, "join:right": 1}
"""Shapes that look the items of this input up in the other one."""
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
        "aggregate_moved",
        "limit",
    }
)
"""Shapes whose result is a state, not a history."""


GOES_ON = frozenset(
    {
        *("persist", "old", "aggregate_moved", "aggregate_result"),
        *(name for name in CONDENSING if name.endswith("_from")),
    }
)
"""Shapes that carry a stream from tick to tick."""


@dataclass(frozen=True, slots=True)
class Note:
    """An operator that reads all of history each tick, and the reason."""

    operator: str
    name: str
    """The node of the program, or the operator where the plan made it."""
    reason: str
    span: Span | None = field(default=None, compare=False)
    reads: str = "all of history"

    def __str__(self) -> str:
        place = f" ({self.span.file}:{self.span.line}:{self.span.column})" if self.span else ""
        called = f"`{self.operator}`" if self.name == self.operator else f"`{self.name}`"
        return f"{called}{place} reads {self.reads} in each tick: {self.reason}"


def notes_of(
    origins: Mapping[str, Node], space: Space, plan: Plan, payloads: Sequence[Payload] = ()
) -> tuple[Note, ...]:
    """What of the plan is not incremental."""
    histories = _histories(space, plan)
    windows = _windows(space, plan)
    found: dict[Note, None] = {}
    for cls in sorted(plan.choice):
        node = space.nodes[plan.choice[cls]]
        name = _plain(node)
        if name in QUIET or _could_be_stored(space, cls):
            continue
        args = NO_ARGS if node.payload is None or not payloads else payloads[node.payload].args
        if _reads_history(node, name, histories):
            found.setdefault(_note(origins, space, node, _reason(node, name, args)))
        elif name in CONDENSING and windows.intersection(node.inputs):
            note = _note(origins, space, node, _why_whole_window(name, args))
            found.setdefault(replace(note, reads="all of its window"))
    return tuple(found)


def _could_be_stored(space: Space, cls: ClassId) -> bool:
    """Whether the rules found a way to store the stream, which is dearer than to compute it."""
    return any(_plain(space.nodes[i]) in GOES_ON for i in space.of[cls])


def _reads_history(node: ENode, name: str, histories: set[ClassId]) -> bool:
    """Whether the node goes through a history, other than to look something up in it."""
    large = [c in histories for c in node.inputs]
    if name.startswith(PREFIX):
        return False
    if name in PROBES:
        return all(large)
    if name in KEEPS:
        return large[KEEPS[name]]
    return any(large)


def _histories(space: Space, plan: Plan) -> set[ClassId]:
    """The classes that hold all of history, from `persist` and `old` on."""

    def holds(node: ENode, name: str, found: set[ClassId]) -> bool:
        return name in {"persist", "old"} or (
            name not in CONDENSING and _reads_history(node, name, found)
        )

    return _least(space, plan, holds)


def _windows(space: Space, plan: Plan) -> set[ClassId]:
    """The classes that hold the last ticks, from `window` on."""

    def holds(node: ENode, name: str, found: set[ClassId]) -> bool:
        return name == "window" or (
            name not in CONDENSING and name != "prev" and any(c in found for c in node.inputs)
        )

    return _least(space, plan, holds)


def _least(
    space: Space, plan: Plan, holds: Callable[[ENode, str, set[ClassId]], bool]
) -> set[ClassId]:
    """The least set of classes of which `holds` is true, given those that are in it."""
    found: set[ClassId] = set()
    changed = True
    while changed:
        changed = False
        for cls, chosen in plan.choice.items():
            node = space.nodes[chosen]
            if cls not in found and holds(node, _plain(node), found):
                found.add(cls)
                changed = True
    return found


def _plain(node: ENode) -> str:
    return node.shape.name.removesuffix("!").removesuffix(":global")


def _note(origins: Mapping[str, Node], space: Space, node: ENode, reason: str) -> Note:
    name = _plain(node)
    own = [n for n, c in space.named.items() if c == node.cls and n in origins]
    own.sort(key=lambda n: (origins[n].op is not node.shape.op, n))
    if not own:
        return Note(name, name, reason)
    return Note(origins[own[0]].op.name, own[0], reason, origins[own[0]].span)


def _why_whole_window(name: str, args: Args) -> str:
    if name in {"aggregate", "aggregate_from"}:
        functions = [a.function for _, a in args.get("aggregates", ())]
        exact = [f for f in functions if f not in {"count", "count_if", "sum", "avg"}]
        if exact:
            return why_not_moving(exact[0], exact=True)
        rounded = [f for f in functions if f in {"sum", "avg"}]
        return why_not_moving(rounded[0], exact=False) if rounded else "its rows are counted anew"
    return f"`{name}` has no inverse: it cannot be told what it was without what leaves"


def _reason(node: ENode, name: str, args: Args) -> str:
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
        whole = [a.function for _, a in args.get("aggregates", ()) if not can_go_on(a.function)]
        if whole:
            return why_no_parts(whole[0])
        return "not all of its aggregates can be merged from partial results"
    return f"{name} has no rule that carries its result from tick to tick"
