"""What a plan still goes through in each tick, though little of it is new: a history, a window, or
all rows of a running result; why no rule could help, and what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hydro_core.catalog.internal import RUNNING as RUNNING_OPERATORS
from hydro_core.catalog.spec import Args
from hydro_core.errors import Span
from hydro_core.ir.graph import Node
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.loops import PREFIX
from hydro_core.optimize.reasons import (
    Reason,
    could_go_on,
    of_changing_input,
    of_history,
    of_state,
    of_window,
)
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
        *(op.name for op in RUNNING_OPERATORS),
        "limit",
    }
)
"""Shapes whose result is a state, not a history."""


OF_ALL = frozenset({"running_fold", "running_reduce"})
RUNNING = frozenset(op.name for op in RUNNING_OPERATORS) - OF_ALL
"""Shapes that update a result of many rows in place: they touch the keys of what is new."""
CHANGES = frozenset({"delta", "changes"})
"""Shapes that are told by a running result what has changed of it."""
GOES_ON = frozenset({"persist", "old", "aggregate_result", *OF_ALL, *RUNNING})
"""Shapes that carry a stream from tick to tick."""


@dataclass(frozen=True, slots=True)
class Note:
    """An operator that reads all of history each tick, and the reason."""

    operator: str
    name: str
    """The node of the program, or the operator where the plan made it."""
    reason: str
    cure: str
    span: Span | None = field(default=None, compare=False)
    reads: str = "all of history"

    @property
    def message(self) -> str:
        """What it does and why, without its place and cure."""
        called = f"`{self.operator}`" if self.name == self.operator else f"`{self.name}`"
        return f"{called} reads {self.reads} in each tick: {self.reason}"

    def __str__(self) -> str:
        place = f"{self.span.file}:{self.span.line}:{self.span.column}: " if self.span else ""
        return f"{place}{self.message}\n  help: {self.cure}"


def notes_of(
    origins: Mapping[str, Node], space: Space, plan: Plan, payloads: Sequence[Payload] = ()
) -> tuple[Note, ...]:
    """What of the plan is not incremental."""
    held = _Held(_histories(space, plan), _windows(space, plan), _states(space, plan))
    found: dict[Note, None] = {}
    for cls in sorted(plan.choice):
        node = space.nodes[plan.choice[cls]]
        name = _plain(node)
        if name in QUIET or _could_be_stored(space, cls):
            continue
        args = NO_ARGS if node.payload is None or not payloads else payloads[node.payload].args
        if _reads(node, name, held.histories):
            before = _made_anew(space, plan, held.histories, cls, args)
            own = None if before is None else _named(origins, space, before)[1]
            reason = of_changing_input(own) if own else of_history(name, node.shape, args)
            found.setdefault(_note(origins, space, node, reason, "all of history"))
        elif name in CONDENSING and held.windows.intersection(node.inputs):
            note = _note(origins, space, node, of_window(name, args), "all of its window")
            found.setdefault(note)
        elif _goes_through(node, name, held.states):
            note = _note(origins, space, node, of_state(), "all rows of a running result")
            found.setdefault(note)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Held:
    """The classes of a plan that hold more than a batch."""

    histories: set[ClassId]
    windows: set[ClassId]
    states: set[ClassId]


def _made_anew(
    space: Space, plan: Plan, histories: set[ClassId], cls: ClassId, args: Args
) -> ENode | None:
    """The nearest node above, if there is one, that goes through a history and could not be helped;
    where the node itself could do with what only grows.
    """
    node = space.nodes[plan.choice[cls]]
    name = _plain(node)
    if not could_go_on(name, node.shape, args):
        return None
    todo = [c for c in node.inputs if c in histories]
    seen = {cls}
    while todo:
        above = todo.pop(0)
        if above in seen:
            continue
        seen.add(above)
        made = space.nodes[plan.choice[above]]
        if _plain(made) not in QUIET:
            return made
        todo += [c for c in made.inputs if c in histories]
    return None


def _could_be_stored(space: Space, cls: ClassId) -> bool:
    """Whether the rules found a way to store the stream, which is dearer than to compute it."""
    return any(_plain(space.nodes[i]) in GOES_ON for i in space.of[cls])


def _reads(node: ENode, name: str, held: set[ClassId]) -> bool:
    """Whether the node goes through what is held, other than to look something up in it."""
    large = [c in held for c in node.inputs]
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
        return name in {"persist", "old"} or (name not in CONDENSING and _reads(node, name, found))

    return _least(space, plan, holds)


def _windows(space: Space, plan: Plan) -> set[ClassId]:
    """The classes that hold the last ticks, from `window` on."""

    def holds(node: ENode, name: str, found: set[ClassId]) -> bool:
        return name == "window" or (
            name not in CONDENSING and name != "prev" and any(c in found for c in node.inputs)
        )

    return _least(space, plan, holds)


def _states(space: Space, plan: Plan) -> set[ClassId]:
    """The classes that hold a running result of many rows, as it is or item by item."""

    def holds(node: ENode, name: str, found: set[ClassId]) -> bool:
        if name in RUNNING:
            return not node.shape.single
        passes = name not in CONDENSING and name not in CHANGES
        return passes and _reads(node, name, found)

    return _least(space, plan, holds)


def _goes_through(node: ENode, name: str, states: set[ClassId]) -> bool:
    """Whether the node goes through a running result, all rows of it, though few have changed.

    Changes pass through what goes item by item, and are known where a result is updated.
    """
    if name in RUNNING:
        return any(c in states for c in node.inputs)
    by_item = node.shape.linear == (True,)
    return not by_item and name not in CHANGES and _reads(node, name, states)


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


def _named(origins: Mapping[str, Node], space: Space, node: ENode) -> tuple[str, str, Span | None]:
    """The operator, name and place of a node: the program's, or the operator's own."""
    own = [n for n, c in space.named.items() if c == node.cls and n in origins]
    own.sort(key=lambda n: (origins[n].op is not node.shape.op, n))
    if not own:
        return _plain(node), _plain(node), None
    return origins[own[0]].op.name, own[0], origins[own[0]].span


def _note(
    origins: Mapping[str, Node], space: Space, node: ENode, reason: Reason, reads: str
) -> Note:
    operator, name, span = _named(origins, space, node)
    return Note(operator, name, reason.why, reason.cure, span, reads)
