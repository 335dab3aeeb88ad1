"""What a plan still goes through in each tick, though little of it is new: a history, a window, or
all rows of a running result; why no rule could help, and what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    Before,
    Ends,
    Growth,
    History,
    Linear,
    Matching,
    Ordering,
    OverTime,
    PerItem,
    PerKey,
    PerPosition,
    Positional,
    Product,
    Sum,
    Window,
)
from hydro_core.catalog.properties import Holds
from hydro_core.catalog.spec import NO_ARGS, Args
from hydro_core.catalog.variants import Gives, Meets
from hydro_core.errors import Span
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.growth import StreamNames
from hydro_core.optimize.reasons import (
    could_go_on,
    of_changing_input,
    of_history,
    of_single,
    of_state,
    of_window,
)
from hydro_core.optimize.shape import FeedbackShape, Payload, ShapeClass
from hydro_core.optimize.space import ClassId, ENode, Space

_OF_HISTORY, _OF_RESULT = "all of history", "all rows of a running result"


@dataclass(frozen=True, slots=True)
class Note:
    """An operator that reads all of history each tick, and the reason."""

    operator: str
    name: str
    """The node of the program, or the operator where the plan made it."""
    reason: str
    cure: str
    span: Span | None = field(default=None, compare=False)
    reads: str = _OF_HISTORY

    @property
    def message(self) -> str:
        """What it does and why, without its place and cure."""
        called = f"`{self.operator}`" if self.name == self.operator else f"`{self.name}`"
        return f"{called} reads {self.reads} in each tick: {self.reason}"

    def __str__(self) -> str:
        place = f"{self.span.file}:{self.span.line}:{self.span.column}: " if self.span else ""
        return f"{place}{self.message}\n  help: {self.cure}"


def notes_of(
    named: StreamNames, plan: Plan, growing: Collection[ClassId], payloads: Sequence[Payload] = ()
) -> tuple[Note, ...]:
    """What of the plan is not incremental; what goes through streams that do not grow with history
    is not told.
    """
    space = named.space
    histories = _least(space, plan, _holds_history).intersection(growing)
    windows = _least(space, plan, _holds_window)
    states = _least(space, plan, _holds_state).intersection(growing)
    found: dict[Note, None] = {}
    for cls in sorted(plan.choice):
        node = space.nodes[plan.choice[cls]]
        if cls in plan.in_changes or _is_quiet(node.shape.cls) or _could_be_stored(space, cls):
            continue
        args = NO_ARGS if node.payload is None or not payloads else payloads[node.payload].args
        if _compares(node) and (node.inputs[0] in histories | states):
            reason = of_single(named.of(space.nodes[plan.choice[node.inputs[1]]]).name)
            reads = _OF_RESULT if node.inputs[0] in states else _OF_HISTORY
        elif _reads(node, histories):
            before = _made_anew(space, plan, histories, cls, args)
            own = None if before is None else named.of(before).name
            reason = of_changing_input(own) if own else of_history(node.shape, args)
            reads = _OF_HISTORY
        elif node.shape.cls.holds.condenses and windows.intersection(node.inputs):
            reason, reads = of_window(node.shape, args), "all of its window"
        elif _goes_through(node, states):
            reason, reads = of_state(node.shape), _OF_RESULT
        else:
            continue
        of = named.of(node)
        found.setdefault(Note(of.operator, of.name, reason.why, reason.cure, of.span, reads))
    return tuple(found)


def _made_anew(
    space: Space, plan: Plan, histories: set[ClassId], cls: ClassId, args: Args
) -> ENode | None:
    """The nearest node above, if there is one, that goes through a history and could not be helped;
    where the node itself could do with what only grows.
    """
    node = space.nodes[plan.choice[cls]]
    if not could_go_on(node.shape, args):
        return None
    todo = [c for c in node.inputs if c in histories]
    seen = {cls}
    while todo:
        above = todo.pop(0)
        if above in seen:
            continue
        seen.add(above)
        made = space.nodes[plan.choice[above]]
        if not _is_quiet(made.shape.cls):
            return made
        todo += [c for c in made.inputs if c in histories]
    return None


def _compares(node: ENode) -> bool:
    """Whether the node brings each item together with one that changes: who follows is not told."""
    cls = node.shape.cls
    return isinstance(cls, Product) and cls.meets is Meets.SINGLE


def _could_be_stored(space: Space, cls: ClassId) -> bool:
    """Whether the rules found a way to store the stream, which is dearer than to compute it."""
    stored = (Holds.HISTORY, Holds.STATE)
    ways = (space.nodes[i].shape.cls for i in space.of[cls])
    return any(way.holds in stored or way == PerItem(Gives.RESULT) for way in ways)


def _reads(node: ENode, held: set[ClassId]) -> bool:
    """Whether the node goes through what is held, other than to look something up in it."""
    cls, large = node.shape.cls, [c in held for c in node.inputs]
    match cls:
        case FeedbackShape(new=True):
            return False
        case Product(Meets.SINGLE):
            return large[0]
        case Product(Meets.ALL):
            # a few items that meet all of a history make so many rows
            return all(large)
        case Product(keeps=keeps) if len(keeps) < 2:
            # a small side is looked up in a large one; items that stay are looked up all
            return large[next(iter(keeps))] if keeps else any(large)
        case Matching(wanted):
            return all(large) if wanted else large[0]
        case AsOf(keyed=True):
            return large[0]
        case Ends() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return any(large)
        case FeedbackShape():
            return any(large)
        case _:
            assert_never(cls)


def _holds_history(node: ENode, found: set[ClassId]) -> bool:
    """Whether the node gives all of history, from `persist` and `old` on."""
    own = node.shape.cls.holds
    return own is Holds.HISTORY or (
        not own.condenses and not _compares(node) and _reads(node, found)
    )


def _holds_window(node: ENode, found: set[ClassId]) -> bool:
    """Whether the node gives the last ticks, from `window` on."""
    cls = node.shape.cls
    if cls.holds is Holds.WINDOW:
        return True
    smaller = cls.holds.condenses or isinstance(cls, Before)
    return not smaller and any(c in found for c in node.inputs)


def _holds_state(node: ENode, found: set[ClassId]) -> bool:
    """Whether the node gives a running result of many rows, as it is or item by item."""
    cls = node.shape.cls
    if cls.holds is Holds.STATE:
        return not node.shape.single
    passes = not cls.holds.condenses and not isinstance(cls, Growth)
    return passes and not _compares(node) and _reads(node, found)


def _goes_through(node: ENode, states: set[ClassId]) -> bool:
    """Whether the node goes through a running result, all rows of it, though few have changed.

    Changes pass through what goes item by item, and are known where a result is updated.
    """
    cls = node.shape.cls
    if cls.holds is Holds.STATE:
        return any(c in states for c in node.inputs)
    by_item = node.shape.linear == (True,)
    return not by_item and not isinstance(cls, Growth) and _reads(node, states)


def _is_quiet(cls: ShapeClass) -> bool:
    """Whether it holds or hands on what is there, and computes nothing."""
    match cls:
        case Sum(widens):
            return not widens
        case Ordering(sorts):
            return not sorts
        case Ends() | History() | Window() | Before():
            return True
        case Linear() | Product() | PerKey() | Positional() | OverTime() | FeedbackShape():
            return False
        case _:
            assert_never(cls)


def _least(space: Space, plan: Plan, holds: Callable[[ENode, set[ClassId]], bool]) -> set[ClassId]:
    """The least set of classes, wanted by their values, of which `holds` is true, given those that
    are in it.
    """
    found: set[ClassId] = set()
    changed = True
    while changed:
        changed = False
        for cls, chosen in plan.choice.items():
            node = space.nodes[chosen]
            if cls not in found and cls not in plan.in_changes and holds(node, found):
                found.add(cls)
                changed = True
    return found
