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

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(slots=True)
class _Building:
    space: Space
    grows: frozenset[ClassId]
    events: frozenset[ClassId]
    nodes: list[ENode]
    origins: list[int]
    of: list[list[int]]
    streams: list[tuple[ClassId, Form]]
    ids: dict[tuple[ClassId, Form], ClassId] = field(default_factory=dict)
    todo: list[tuple[ClassId, Form]] = field(default_factory=list)

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


def values_only(space: Space) -> Forms:
    """The space in which nothing is told by its changes."""
    of = tuple(
        tuple(i for i in options if not _reads_changes_alone(space.nodes[i]))
        for options in space.of
    )
    streams = tuple((cls, Form.VALUES) for cls in range(len(of)))
    return Forms(replace(space, of=of), streams, tuple(range(len(space.nodes))))


def with_forms(space: Space, payloads: Sequence[Payload] = ()) -> Forms:
    """The space with all forms that somebody may want; `payloads`: the arguments of operators."""
    extremes = Extremes(space, payloads)
    streams = [(cls, Form.VALUES) for cls in range(len(space.of))]
    origins = list(range(len(space.nodes)))
    made: list[list[int]] = [[] for _ in space.of]
    grows, events = _growing(space), _events(space)
    work = _Building(space, grows, events, list(space.nodes), origins, made, streams)
    for cls, options in enumerate(space.of):
        stored = [i for i in options if isinstance(space.nodes[i].shape.cls, Running)]
        work.of[cls] += [i for i in options if i not in stored]
        if stored:
            work.add(ENode(INTEGRATE, None, (work.cls(cls, Form.CHANGES),), cls), -1)
        for i in options:
            node = space.nodes[i]
            if _takes_changes(node):
                told = (work.cls(node.inputs[0], Form.CHANGES),)
                work.add(replace(node, inputs=told), i)
            side = _looked_up_by_events(work, node)
            if side is not None:
                inputs = list(node.inputs)
                inputs[side] = work.cls(node.inputs[side], Form.LOOKED_UP)
                work.add(replace(node, inputs=tuple(inputs)), i)
            _of_extremes(work, extremes, i)
    while work.todo:
        _give(work, *work.todo.pop())
    return _alive(work)


def _of_extremes(work: _Building, extremes: Extremes, i: int) -> None:
    """The ways to have values for which few rows of an input are looked at, or of both."""
    node = work.space.nodes[i]
    side = extremes.looked_up(node)
    if side is not None:
        stream, shape = node.inputs[side], node.shape
        rest = (c for j, c in enumerate(node.inputs) if j != side)
        told = (work.cls(stream, Form.CHANGES), work.cls(stream, Form.LOOKED_UP), *rest)
        sorts = (Sort.BAG,) * len(told)
        shape = replace(shape, inputs=sorts, strict=(False,) * len(told))
        work.add(ENode(shape, node.payload, told, node.cls), i)
    few = extremes.met_by_few(node)
    if few is not None:
        inputs = list(node.inputs)
        inputs[few] = work.cls(node.inputs[few], Form.LOOKED_UP)
        work.add(replace(node, inputs=tuple(inputs)), i)


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
        grows = stream in work.grows
        if form is Form.CHANGES and grows and looks_up(cls):
            continue  # what is new in a history is found by rules
        inputs = tuple(work.cls(c, _served(work, c, wanted, grows=grows)) for c in node.inputs)
        shape = node.shape
        if form in (Form.CHANGES, Form.GROWTH) and looks_up(cls):
            # beside what changes in an input, its rows are looked up by the keys of what changes
            inputs += tuple(work.cls(c, Form.LOOKED_UP) for c in node.inputs)
            shape = replace(shape, inputs=shape.inputs * 2, strict=shape.strict * 2)
        work.add(ENode(shape, node.payload, inputs, work.cls(stream, form)), i)


def _served(work: _Building, stream: ClassId, wanted: Form, *, grows: bool) -> Form:
    """The form that serves who wants another: of a history, among what takes rows back, growth."""
    growth = wanted is Form.CHANGES and not grows and stream in work.grows
    return Form.GROWTH if growth else wanted


def _growing(space: Space) -> frozenset[ClassId]:
    """The streams that can be given as histories."""
    found: set[ClassId] = set()
    while more := {n.cls for n in space.nodes if n.cls not in found and _grows(n, found)}:
        found |= more
    return frozenset(found)


def _grows(node: ENode, growing: set[ClassId]) -> bool:
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


def _events(space: Space) -> frozenset[ClassId]:
    """The streams whose items can be those of one tick alone."""
    found: set[ClassId] = set()
    while more := {n.cls for n in space.nodes if n.cls not in found and _is_of_events(n, found)}:
        found |= more
    return frozenset(found)


def _is_of_events(node: ENode, events: set[ClassId]) -> bool:
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


def _takes_changes(node: ENode) -> bool:
    cls = node.shape.cls
    return not isinstance(cls, FeedbackShape) and node.shape.is_bags and cls.takes_changes


def _reads_changes_alone(node: ENode) -> bool:
    cls = node.shape.cls
    return isinstance(cls, Running) and cls.changes
