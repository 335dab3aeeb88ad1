"""With which rows of the inputs of a program comes what is new in a stream, and what both share.

A row that comes, or goes, does so with rows of inputs: those that new rows of what it is made of
come with. The operators' lineage tells which fields they have in common; a computed field is left
out. So whoever has the inputs' batches knows the fields of all that a range can change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from hydro_core.analysis.lineage import map_of
from hydro_core.catalog.classes import (
    Before,
    ByKey,
    Commands,
    Distinct,
    Empty,
    Given,
    Growth,
    History,
    Matching,
    Meets,
    Ordering,
    Output,
    PerItem,
    Positional,
    Product,
    Projection,
    Running,
    Sum,
    Window,
)
from hydro_core.ir.graph import Endpoint, Node, NodeId
from hydro_core.plan.kinds import Kind
from hydro_core.plan.meeting import key_paths, keys_of_two
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.plan.versions import result_key
from hydro_core.types.item import FieldPath

KnownFields = tuple[FieldPath | None, ...]
"""Fields of items; None for one that is not known."""


class NewRowOrigins:
    """Where what is new in the streams of a plan comes from."""

    def __init__(self, plan: TickPlan) -> None:
        self._plan, self._graph, self._kinds = plan, plan.graph, plan.kinds
        self._maps = {node.id: map_of(plan.typed, node) for node in plan.graph}

    def of(self, stream: Endpoint, fields: KnownFields) -> set[tuple[str, KnownFields]] | None:
        """The inputs with which all comes that is new in a stream, and the fields there.

        None where something comes without a row of an input.
        """
        if not self.adds(stream.node):
            return None
        sources = {node.id: name for name, node in self._graph.sources.items()}
        todo: list[tuple[NodeId, KnownFields]] = [(stream.node, fields)]
        seen, found = set(todo), set[tuple[str, KnownFields]]()
        while todo:
            name, wanted = todo.pop()
            if name in sources:
                found.add((sources[name], wanted))
                continue
            node = self._graph[name]
            before = self._comes_with(node)
            if before is None:
                return None
            shared = self.shared(node, wanted)
            more = {(node.inputs[i].node, self.through(node, i, shared)) for i in before}
            todo += more - seen
            seen |= more
        return found

    def adds(self, stream: NodeId) -> bool:
        """Whether what is new in a stream is told apart from the rest."""
        return self._kinds[stream] is not Kind.G or stream in self._plan.in_changes

    def tells(self, node: Node) -> bool:
        """Whether what is new in what reaches back is made of what is new in the inputs."""
        streams = (node.id, *(e.node for e in node.inputs))
        reaches_back = self._kinds[node.id] is not Kind.E
        return reaches_back and all(map(self.adds, streams))

    def tells_changes(self, node: Node) -> bool:
        """Whether results by key of a history are told by those of the keys that are new."""
        return node.id in self._plan.in_changes and self._kinds[node.inputs[0].node] is Kind.H

    def shared(self, node: Node, fields: KnownFields) -> KnownFields:
        """The fields of an item by which all items are found that it depends on.

        A result by key depends on items of before, of which it shares the key alone.
        """
        key = None if self._kinds[node.id] is Kind.E else result_key(node)
        if key is None:
            return fields
        parts = {part for part, *_ in key_paths(key)}
        return tuple(f if f and f[0] in parts else None for f in fields)

    def through(self, node: Node, i: int, fields: KnownFields) -> KnownFields:
        """The fields of an input that fields of the output are, where they are."""
        found = self._maps[node.id]
        equal = {} if found is None else found.equal
        keys = _keys_through(node, i)

        def one(path: FieldPath) -> FieldPath | None:
            for length in range(len(path), -1, -1):
                for field in equal.get(path[:length], ()):
                    if field.input == i:
                        return (*field.path, *path[length:])
                if path[:length] in keys:
                    return (*keys[path[:length]], *path[length:])
            return None

        return tuple(None if path is None else one(path) for path in fields)

    def _comes_with(self, node: Node) -> range | None:
        """The inputs with whose new rows all new rows of a node come."""
        kinds = [self._kinds[e.node] for e in node.inputs]
        events, told = [k is Kind.E for k in kinds], all(self.adds(e.node) for e in node.inputs)
        cls, every, found = node.cls, range(len(kinds)), None
        match cls:
            case Empty() | PerItem() | Projection() | Sum():
                found = every if told else None
            case History(before):
                found = every if events[0] and not before else None
            case Product() | Matching() | Distinct() if self.tells(node):
                found = every
            case Product() | Matching():
                found = _of_events(cls, kinds)
            case Growth(signed):
                found = every if told and not (signed and events[0]) else None
            case Running(changes=changes):
                if result_key(node) is not None and (told if changes else events[-1]):
                    found = every[-1:]
            case Distinct() | ByKey() | Ordering() | Positional():
                alone = self.tells_changes(node) or (node.spec.zero and all(events))
                found = every if alone else None
            case Given() | Output() | Window() | Before() | Commands():
                found = None
            case _:
                assert_never(cls)
        return found


def _of_events(cls: Product | Matching, kinds: Sequence[Kind]) -> range | None:
    """The inputs with whose rows all pairs or matches come that are events."""
    both, keeps = range(2), cls.keeps if isinstance(cls, Product) else frozenset({0})
    alone = (both[i : i + 1] for i in both if kinds[i] is Kind.E and set(keeps) <= {i})
    return next(alone, both if set(kinds) == {Kind.E} else None)


def _keys_through(node: Node, i: int) -> Mapping[FieldPath, FieldPath]:
    """The parts of the key in an item, each with where it is in an item of an input with which the
    item comes or goes: one that is padded, or only asked for, has no other field in common.
    """
    cls = node.cls
    if isinstance(cls, Product) and cls.meets is Meets.KEY:
        keys = keys_of_two(cls.meets, node)
        return dict(zip(keys[0], keys[i], strict=True))
    if isinstance(cls, Matching):
        keys = keys_of_two(cls.compares, node)
        return dict(zip(keys[0], keys[i], strict=True))
    return {}
