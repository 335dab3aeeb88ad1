"""Cost of a chosen plan by stream, now and with more history, and its rows read in every tick."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, assert_never

from hydro_core.catalog.classes import (
    AsOf,
    History,
    ItemEffect,
    KeyMatch,
    Linear,
    Ordering,
    Output,
    OverTime,
    PairedItems,
    PastExtent,
    PerItem,
    PerKey,
    PerPosition,
    PositionalOrder,
    PreviousTick,
    Product,
    StreamEnd,
    Sum,
    TickDifference,
    Window,
)
from hydro_core.catalog.forms import Form
from hydro_core.catalog.spec import NO_ARGS, Args
from hydro_core.errors import Span
from hydro_core.ir.graph import Node
from hydro_core.optimize.cost import CostModel, RowsTouched, Statistics
from hydro_core.optimize.egraph import ClassId, ENode, Space
from hydro_core.optimize.extract import Forms, Plan
from hydro_core.optimize.reasons import (
    could_go_on,
    of_changing_input,
    of_history,
    of_single,
    of_state,
    of_window,
)
from hydro_core.optimize.rule import FeedbackShape, Payload, ShapeClass

# Costs of a chosen plan by stream and statement, now and with a longer history.


LATER = 2.0
"""A stream grows with history if it has more rows after so many times the history."""
LONGER = 10.0
"""Statements report their cost at so many times the history, too."""
_GROWS = 1.1
"""A stream has grown if it has more than so many times the rows."""


class StreamCost(NamedTuple):
    """Rows of one stream in a tick: rows read for it, rows that it has, rows that it stores."""

    reads: float
    makes: float
    stores: float


@dataclass(frozen=True, slots=True)
class PlanCosts:
    """Costs of a plan in a tick, at one length of history: in total, and by stream."""

    total: float
    streams: Mapping[ClassId, StreamCost]


@dataclass(frozen=True, slots=True)
class ChosenPlan:
    """A plan, with the representations in which its streams are wanted."""

    space: Space
    payloads: Sequence[Payload]
    first: Sequence[int]
    """The nodes of the program, from which sizes are estimated."""
    forms: Forms
    found: Plan
    """The plan in the space of representations."""

    @property
    def plan(self) -> Plan:
        """The plan in the space of values."""
        return self.forms.plan(self.found)

    def costs(self, statistics: Statistics) -> PlanCosts:
        """The costs with such data."""
        model = CostModel(self.space, self.payloads, statistics)
        sizes = model.sizes(self.first)
        touched, rows = model.touched(sizes, self.forms)

        def node(cls: ClassId) -> RowsTouched:
            return touched[self.found.choice[cls]]

        forms = defaultdict[ClassId, list[ClassId]](list)
        for cls in self.found.choice:
            forms[self.forms.streams[cls][0]].append(cls)
        streams = {
            stream: _of_forms([(self.forms.streams[c][1], node(c), rows[c]) for c in of])
            for stream, of in forms.items()
        }
        ends = {n.cls for n in self.space.nodes if isinstance(n.shape.cls, Output)}
        streams |= {c: of._replace(makes=0.0) for c, of in streams.items() if c in ends}
        return PlanCosts(sum(node(c).cost for c in self.found.choice), streams)

    def growing(self, statistics: Statistics) -> frozenset[ClassId]:
        """The streams that have notably more rows once history is twice as long."""
        now, later = (
            CostModel(self.space, self.payloads, of).sizes(self.first)
            for of in (statistics, statistics.longer(LATER))
        )
        grown = (c for c, (a, b) in enumerate(zip(now, later, strict=True)) if b > _GROWS * a)
        return frozenset(grown)


def _of_forms(found: Sequence[tuple[Form, RowsTouched, float]]) -> StreamCost:
    """The cost of a stream in all wanted representations; a lookup emits no rows."""
    return StreamCost(
        sum(touched.reads + touched.makes for _, touched, _ in found),
        min((rows for form, _, rows in found if form is not Form.LOOKED_UP), default=0.0),
        sum(touched.stores for _, touched, _ in found),
    )


@dataclass(frozen=True, slots=True)
class StreamName:
    """The operator, the name and the span of a stream: of the program, or of the operator alone."""

    operator: str
    name: str
    span: Span | None = None


class StreamNames:
    """The names of the streams of a space, in a program whose nodes have these ids."""

    def __init__(self, origins: Mapping[str, Node], space: Space) -> None:
        self.origins, self.space = origins, space
        self._own = defaultdict[ClassId, list[str]](list)
        for name, cls in space.named.items():
            if name in origins:
                self._own[cls].append(name)

    def of(self, node: ENode) -> StreamName:
        """The program's name for the output of the node."""
        own = sorted(
            self._own.get(node.cls, ()),
            key=lambda n: (self.origins[n].op is not node.shape.op, n),
        )
        if not own:
            return StreamName(node.shape.plain, node.shape.plain)
        origin = self.origins[own[0]]
        return StreamName(origin.op.name, own[0], origin.span)


@dataclass(frozen=True, slots=True)
class StatementCost:
    """Rows of one stream in a tick."""

    operator: str
    name: str
    """The node of the program, or the operator if only the plan has the stream."""
    line: int | None
    now: StreamCost
    longer: StreamCost
    """At ten times the history."""

    def as_json(self) -> Mapping[str, Any]:
        """The cost as `--format json` prints it."""
        return {
            "operator": self.operator,
            "name": self.name,
            "line": self.line,
            **self.now._asdict(),
            "at_ten_times_the_history": self.longer._asdict(),
        }


def statement_costs(
    named: StreamNames, chosen: ChosenPlan, statistics: Statistics
) -> Iterator[StatementCost]:
    """The costs of a plan's streams, in the order of the program; others come last."""
    now, longer = (chosen.costs(of).streams for of in (statistics, statistics.longer(LONGER)))
    choice = chosen.plan.choice
    places = {name: place for place, name in enumerate(named.origins)}
    streams = [(named.of(named.space.nodes[node]), cls) for cls, node in choice.items()]
    for of, cls in sorted(streams, key=lambda s: (places.get(s[0].name, len(places)), s[1])):
        line = of.span.line if of.span else None
        yield StatementCost(of.operator, of.name, line, now[cls], longer[cls])


# Notes: operators that read a whole history, window or running result in each tick though few rows
# are new, the reason why no rule applies, and what to write instead.


_OF_HISTORY, _OF_RESULT = "all of history", "all rows of a running result"


@dataclass(frozen=True, slots=True)
class Note:
    """An operator that reads all of history each tick, and the reason."""

    operator: str
    name: str
    """The node of the program, or the operator if only the plan has the stream."""
    reason: str
    cure: str
    span: Span | None = field(default=None, compare=False)
    reads: str = _OF_HISTORY

    @property
    def message(self) -> str:
        """The operator and the reason, without span and help."""
        called = f"`{self.operator}`" if self.name == self.operator else f"`{self.name}`"
        return f"{called} reads {self.reads} in each tick: {self.reason}"

    def __str__(self) -> str:
        place = f"{self.span.file}:{self.span.line}:{self.span.column}: " if self.span else ""
        return f"{place}{self.message}\n  help: {self.cure}"


def notes_of(
    named: StreamNames, plan: Plan, growing: Collection[ClassId], payloads: Sequence[Payload] = ()
) -> tuple[Note, ...]:
    """The operators of the plan that are not incremental, apart from those that read only streams
    which do not grow with history.
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
    """The nearest node above that reads a whole history in each tick; None if there is none, or if
    the node itself could not go on from additions alone.
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
    """True if each item is paired with one that changes; its followers then get no note of their
    own.
    """
    cls = node.shape.cls
    return isinstance(cls, Product) and cls.meets is PairedItems.SINGLE


def _could_be_stored(space: Space, cls: ClassId) -> bool:
    """True if the rules found a way to store the stream, which costs more than to compute it."""
    stored = (PastExtent.HISTORY, PastExtent.STATE)
    ways = (space.nodes[i].shape.cls for i in space.of[cls])
    return any(way.holds in stored or way == PerItem(ItemEffect.RESULT) for way in ways)


def _reads(node: ENode, held: set[ClassId]) -> bool:
    """True if the node reads all rows of a held stream, not only matched ones."""
    cls, large = node.shape.cls, [c in held for c in node.inputs]
    match cls:
        case FeedbackShape(new=True):
            return False
        case Product(PairedItems.SINGLE):
            return large[0]
        case Product(PairedItems.ALL):
            # a few items paired with all of a history are as many rows
            return all(large)
        case Product(keeps=keeps) if len(keeps) < 2:
            # a small side is looked up in a large one; an input whose rows stay without a match is
            # read as a whole
            return large[next(iter(keeps))] if keeps else any(large)
        case KeyMatch(wanted):
            return all(large) if wanted else large[0]
        case AsOf(keyed=True):
            return large[0]
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return any(large)
        case FeedbackShape():
            return any(large)
        case _:
            assert_never(cls)


def _holds_history(node: ENode, found: set[ClassId]) -> bool:
    """True if the node gives all of history, from `persist` and `old` on."""
    own = node.shape.cls.holds
    return own is PastExtent.HISTORY or (
        not own.condenses and not _compares(node) and _reads(node, found)
    )


def _holds_window(node: ENode, found: set[ClassId]) -> bool:
    """True if the node gives the last ticks, from `window` on."""
    cls = node.shape.cls
    if cls.holds is PastExtent.WINDOW:
        return True
    smaller = cls.holds.condenses or isinstance(cls, PreviousTick)
    return not smaller and any(c in found for c in node.inputs)


def _holds_state(node: ENode, found: set[ClassId]) -> bool:
    """True if the node gives a running result of many rows, as it is or row-wise."""
    cls = node.shape.cls
    if cls.holds is PastExtent.STATE:
        return not node.shape.single
    passes = not cls.holds.condenses and not isinstance(cls, TickDifference)
    return passes and not _compares(node) and _reads(node, found)


def _goes_through(node: ENode, states: set[ClassId]) -> bool:
    """True if the node reads all rows of a running result, though few have changed.

    Row-wise operators forward updates, and an operator that updates a result has them.
    """
    cls = node.shape.cls
    if cls.holds is PastExtent.STATE:
        return any(c in states for c in node.inputs)
    by_item = node.shape.linear == (True,)
    return not by_item and not isinstance(cls, TickDifference) and _reads(node, states)


def _is_quiet(cls: ShapeClass) -> bool:
    """True if the operator stores or forwards its input and computes nothing."""
    match cls:
        case Sum(widens):
            return not widens
        case Ordering(sorts):
            return not sorts
        case StreamEnd() | History() | Window() | PreviousTick():
            return True
        case Linear() | Product() | PerKey() | PositionalOrder() | OverTime() | FeedbackShape():
            return False
        case _:
            assert_never(cls)


def _least(space: Space, plan: Plan, holds: Callable[[ENode, set[ClassId]], bool]) -> set[ClassId]:
    """The least set of classes wanted as values for which `holds`, given the classes in the set."""
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
