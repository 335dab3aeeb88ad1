"""Values and changes among the plans to choose from: the form of a stream is a property of a plan.

A class of equal streams may be wanted by its values, by its changes, or as a history by its growth.
Each is a class of its own here, with the nodes that give that form of inputs in the forms that they
need; so what a stream costs is what it costs in the form in which it is wanted. Who pairs changes
with the rows of their keys wants these looked up, which is a form, too: found where they are
stored, once for all who ask, or in what they are made of. Two things lead from one form to the
other. An operator that stores its result knows its changes, and *integrates*
them where somebody wants the values. `delta` and `changes` *differentiate*: they read the changes
where they are told, else they compare the values with those of the tick before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    Distinct,
    Ends,
    Given,
    Growth,
    Linear,
    Matching,
    OrderedByKey,
    OverTime,
    PerPosition,
    Product,
    Running,
)
from hydro_core.catalog.forms import Form, looks_up, needed
from hydro_core.catalog.variants import Meets
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.extremes import Extremes
from hydro_core.optimize.shape import INTEGRATE, FeedbackShape, Payload, Sort
from hydro_core.optimize.space import ClassId, ENode, Space


@dataclass(frozen=True, slots=True)
class Forms:
    """A space with the classes of streams in further forms, after those of the values."""

    space: Space
    streams: tuple[tuple[ClassId, Form], ...]
    """Of each class: the class of its values, and the form."""
    nodes: tuple[int, ...]
    """Of each node: the node in the space of values that it is; -1 for one that hands on a form."""

    def plan(self, found: Plan) -> Plan:
        """The plan in the space of values, with the classes that are wanted by changes alone.

        A stream that is wanted in several forms is computed once, by what gives them all.
        """
        best: dict[ClassId, tuple[int, int]] = {}
        for cls, chosen in found.choice.items():
            stream, form = self.streams[cls]
            node = self.nodes[chosen]
            if node >= 0:
                best[stream] = max(best.get(stream, (-1, -1)), (_RANK.index(form), node))
        choice = {stream: node for stream, (_, node) in best.items()}
        wanted = {self.streams[c][0] for c in found.choice if self.streams[c][1] is Form.VALUES}
        return replace(found, choice=choice, in_changes=frozenset(choice.keys() - wanted))


_RANK = (Form.LOOKED_UP, Form.VALUES, Form.CHANGES, Form.GROWTH)
"""What a later form gives serves who wants an earlier one."""


class _Building:
    """The space with the forms that are wanted so far; `todo` are those that nothing gives yet."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.grows, self.events = _least(space, _grows), _least(space, _is_of_events)
        self.nodes, self.origins = list(space.nodes), list(range(len(space.nodes)))
        self.of: list[list[int]] = [[] for _ in space.of]
        self.streams = [(cls, Form.VALUES) for cls in range(len(space.of))]
        self.ids: dict[tuple[ClassId, Form], ClassId] = {}
        self.todo: list[tuple[ClassId, Form]] = []

    def cls(self, stream: ClassId, form: Form) -> ClassId:
        if form is Form.VALUES:
            return stream
        if (stream, form) not in self.ids:
            self.ids[stream, form] = len(self.of)
            self.of.append([])
            self.streams.append((stream, form))
            self.todo.append((stream, form))
        return self.ids[stream, form]

    def add(self, node: ENode, origin: int) -> None:
        """One more way to have a class."""
        self.of[node.cls].append(len(self.nodes))
        self.nodes.append(node)
        self.origins.append(origin)

    def look_up(self, side: int | None, origin: int) -> None:
        """One more way to have values: an input, if there is one, is looked up in."""
        node = self.space.nodes[origin]
        if side is not None:
            inputs = list(node.inputs)
            inputs[side] = self.cls(node.inputs[side], Form.LOOKED_UP)
            self.add(replace(node, inputs=tuple(inputs)), origin)


def values_only(space: Space) -> Forms:
    """The space in which nothing is told by its changes."""
    of = tuple(
        tuple(i for i in options if not _reads_changes(space.nodes[i])) for options in space.of
    )
    streams = tuple((cls, Form.VALUES) for cls in range(len(of)))
    return Forms(replace(space, of=of), streams, tuple(range(len(space.nodes))))


def with_forms(space: Space, payloads: Sequence[Payload] = ()) -> Forms:
    """The space with all forms that somebody may want; `payloads`: the arguments of operators."""
    extremes = Extremes(space, payloads)
    work = _Building(space)
    for cls, options in enumerate(space.of):
        stored = [i for i in options if isinstance(space.nodes[i].shape.cls, Running)]
        work.of[cls] += [i for i in options if i not in stored]
        if stored:
            work.add(ENode(INTEGRATE, None, (work.cls(cls, Form.CHANGES),), cls), -1)
        for i in options:
            node = space.nodes[i]
            if node.shape.is_bags and node.shape.cls.takes_changes:
                told = (work.cls(node.inputs[0], Form.CHANGES),)
                work.add(replace(node, inputs=told), i)
            work.look_up(_looked_up_by_events(work, node), i)
            _of_extremes(work, extremes, i)
            work.look_up(extremes.met_by_few(node), i)
    while work.todo:
        _give(work, *work.todo.pop())
    return _alive(work)


def _of_extremes(work: _Building, extremes: Extremes, i: int) -> None:
    """The way to have values for which few rows of an input are looked at."""
    node = work.space.nodes[i]
    side = extremes.looked_up(node)
    if side is not None:
        stream, shape = node.inputs[side], node.shape
        rest = (c for j, c in enumerate(node.inputs) if j != side)
        told = (work.cls(stream, Form.CHANGES), work.cls(stream, Form.LOOKED_UP), *rest)
        sorts = (Sort.BAG,) * len(told)
        shape = replace(shape, inputs=sorts, strict=(False,) * len(told))
        work.add(ENode(shape, node.payload, told, node.cls), i)


def _give(work: _Building, stream: ClassId, form: Form) -> None:
    """The ways to have a stream in a form."""
    if form is Form.LOOKED_UP:
        work.add(ENode(INTEGRATE, None, (stream,), work.cls(stream, form)), -1)
        if any(isinstance(work.space.nodes[i].shape.cls, Running) for i in work.space.of[stream]):
            stored = work.cls(stream, Form.CHANGES)
            work.add(ENode(INTEGRATE, None, (stored,), work.cls(stream, form)), -1)
    for i in work.space.of[stream]:
        node = work.space.nodes[i]
        cls = node.shape.cls
        if isinstance(cls, FeedbackShape) or node.shape.output is not Sort.BAG:
            continue
        wanted = needed(cls, form)
        if wanted is None or not (wanted is Form.VALUES or node.shape.is_bags):
            continue
        grows, shape = stream in work.grows, node.shape
        if form is Form.CHANGES and grows and looks_up(cls):
            continue  # what is new in a history is found by rules
        # a history, among what takes rows back, is told by its growth
        histories = work.grows if wanted is Form.CHANGES and not grows else frozenset[ClassId]()
        inputs = tuple(work.cls(c, Form.GROWTH if c in histories else wanted) for c in node.inputs)
        if form in (Form.CHANGES, Form.GROWTH) and looks_up(cls):
            # beside what changes in an input, its rows are looked up by the keys of what changes
            inputs += tuple(work.cls(c, Form.LOOKED_UP) for c in node.inputs)
            shape = replace(shape, inputs=shape.inputs * 2, strict=shape.strict * 2)
        work.add(ENode(shape, node.payload, inputs, work.cls(stream, form)), i)


def _least(space: Space, holds: Callable[[ENode, set[ClassId]], bool]) -> frozenset[ClassId]:
    """The streams of which something holds by a node that gives them, given those it holds of."""
    found: set[ClassId] = set()
    while more := {n.cls for n in space.nodes if n.cls not in found and holds(n, found)}:
        found |= more
    return frozenset(found)


def _grows(node: ENode, growing: set[ClassId]) -> bool:
    """Whether the node can give its stream as a history."""
    cls = node.shape.cls
    if isinstance(cls, FeedbackShape) or node.shape.output is not Sort.BAG:
        return False
    match needed(cls, Form.GROWTH):
        case Form.VALUES:
            return True
        case Form.GROWTH:
            return bool(node.inputs) and node.shape.is_bags and growing.issuperset(node.inputs)
        case _:
            return False


def _is_of_events(node: ENode, events: set[ClassId]) -> bool:
    """Whether the items that the node gives can be those of one tick alone."""
    cls, inputs = node.shape.cls, [c in events for c in node.inputs]
    match cls:
        case Given() | Growth():
            return True
        case Linear() | Distinct() | ByKey() | OrderedByKey():
            return all(inputs)
        case Product(keeps=keeps):
            return any(inputs) and all(inputs[i] for i in keeps)
        case Matching() | AsOf():
            return inputs[0]
        case FeedbackShape() | Ends() | Running() | PerPosition() | OverTime():
            return False
        case _:
            assert_never(cls)


def _looked_up_by_events(work: _Building, node: ENode) -> int | None:
    """The input of a product, or a match, that the items of one tick look up in."""
    cls, sides = node.shape.cls, list[int]()
    if isinstance(cls, Product) and cls.meets is Meets.KEY:
        sides = [i for i in (0, 1) if i not in cls.keeps]
    if isinstance(cls, Matching):
        sides = [1, 0] if cls.wanted else [1]
    if isinstance(cls, AsOf) and cls.keyed:
        sides = [1]
    if not node.shape.is_bags:
        return None
    events = work.events
    found = (i for i in sides if node.inputs[1 - i] in events and node.inputs[i] not in events)
    return next(found, None)


def _alive(work: _Building) -> Forms:
    """Without nodes that need a form which nothing gives."""
    of = [tuple(options) for options in work.of]
    changed = True
    while changed:
        left = [tuple(i for i in o if all(of[c] for c in work.nodes[i].inputs)) for o in of]
        changed, of = left != of, left
    space = Space(tuple(work.nodes), tuple(of), work.space.roots, work.space.named)
    return Forms(space, tuple(work.streams), tuple(work.origins))


def _reads_changes(node: ENode) -> bool:
    cls = node.shape.cls
    return isinstance(cls, Running) and cls.changes
