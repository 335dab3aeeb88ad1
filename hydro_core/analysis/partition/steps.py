"""Flow steps: the facts about every operator that the analysis uses, read from the catalogue once
for each program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.terms import (
    FieldAt,
    KeyTerm,
    TermTable,
    all_rewritten,
    is_computable,
    is_exact,
    keeps_value,
    leaf_paths,
    of_tree,
)
from hydro_core.catalog.spec import Always, OnAnyField, OnKey, sides_of_key
from hydro_core.functions.lineage import FieldMap
from hydro_core.ir.graph import Endpoint, Node, NodeId, behind, components, predecessors
from hydro_core.types.item import FieldPath, ItemType, at


@dataclass(frozen=True)
class ShardKey:
    """The fields of a key, for every input and for the output; items with equal ones need one
    shard.

    A field of the key has one name for all of them: its path in the key.
    """

    inputs: tuple[TermTable, ...]
    """For each input, from its items' fields to the key's."""
    fields: tuple[TermTable, ...]
    """For each input, from the key's fields to its items'."""
    output: TermTable
    """From the key's fields to the output's."""


@dataclass(frozen=True)
class FlowStep:
    """An operator of the program, as the analysis sees it."""

    node: Node
    forward: tuple[TermTable, ...]
    """For each input, from terms over its items to terms over the output's."""
    backward: tuple[TermTable, ...]
    """For each input, from the output's fields to terms over its items."""
    linear: tuple[bool, ...]
    adds_up: bool
    """Every item of the output depends on one item of one input only."""
    key: ShardKey | None

    @cached_property
    def inputs(self) -> tuple[NodeId, ...]:
        """The nodes that it reads."""
        return tuple(endpoint.node for endpoint in self.node.inputs)


@dataclass(frozen=True)
class InputLeaves:
    """An input of the program: its leaves and their functional dependencies."""

    name: str
    item: ItemType
    leaves: tuple[FieldPath, ...]
    dependencies: tuple[tuple[frozenset[FieldPath], FieldPath], ...]
    """Leaves, and one leaf that they determine."""


@dataclass(frozen=True)
class Steps:
    """A program as the analysis sees it: its inputs and all that leads to an output."""

    typed: Typed
    groups: tuple[tuple[FlowStep, ...], ...]
    """Strongly connected components (an operator that feeds itself, with its cycle); each after
    those that it reads.
    """
    sources: Mapping[NodeId, InputLeaves]
    of: Mapping[NodeId, FlowStep] = field(default_factory=dict)
    known: dict[tuple[int, frozenset[KeyTerm]], frozenset[KeyTerm]] = field(default_factory=dict)
    """Cached results of `carried`, by the identity of the table."""
    routed: dict[tuple[str, KeyTerm | None], frozenset[KeyTerm]] = field(default_factory=dict)
    """Cached terms of an input that is routed by a term."""

    def carried(self, terms: frozenset[KeyTerm], table: TermTable) -> frozenset[KeyTerm]:
        """All terms over the other item that these terms imply; `table` is one of a step's."""
        key = (id(table), terms)
        if key not in self.known:
            self.known[key] = all_rewritten(terms, table)
        return self.known[key]

    def __iter__(self) -> Iterator[FlowStep]:
        return (step for group in self.groups for step in group)

    def cut(self, replicated: Collection[str] = ()) -> frozenset[NodeId]:
        """The streams that depend on an input that is not whole on every shard."""
        cut = {node for node, source in self.sources.items() if source.name not in replicated}
        for group in self.groups:
            if any(step.node.id in cut or not cut.isdisjoint(step.inputs) for step in group):
                cut |= {step.node.id for step in group}
        return frozenset(cut)

    def parts(self, replicated: Collection[str] = ()) -> tuple[Steps, ...]:
        """The streams that are cut, in parts that share no stream: each part has its own choice."""
        cut = self.cut(replicated)
        part: dict[NodeId, set[NodeId]] = {}
        for step in (step for step in self if step.node.id in cut):
            together = set[NodeId]()
            # In a cycle, a reader of a stream may precede it.
            for name in (step.node.id, *cut.intersection(step.inputs)):
                together |= part.get(name, {name})
            part |= dict.fromkeys(together, together)
        distinct = {id(members): members for members in part.values()}.values()
        return tuple(self._only(members) for members in distinct)

    def _only(self, members: set[NodeId]) -> Steps:
        groups = tuple(group for group in self.groups if group[0].node.id in members)
        sources = {name: source for name, source in self.sources.items() if name in members}
        of = {step.node.id: step for group in groups for step in group}
        return Steps(self.typed, groups, sources, of, self.known, self.routed)


def steps_of(typed: Typed) -> Steps:
    """The program's steps."""
    graph = typed.graph
    sources = {node.id: _source(typed, name, node) for name, node in graph.sources.items()}
    reads = predecessors(graph)
    # A node that leads to no output and is no input has no effect on the result of a cut.
    sinks = (sink.id for sinks in graph.sinks.values() for sink in sinks)
    used = behind(graph, sinks) | sources.keys()
    steps = {node.id: _step(typed, node) for node in graph if node.id in used}
    number = {name: i for i, name in enumerate(steps)}
    found = components({name: reads[name] for name in steps})
    groups = [sorted(group, key=number.__getitem__) for group in found]
    ordered = tuple(tuple(steps[name] for name in group) for group in groups)
    return Steps(typed, ordered, sources, steps)


def _source(typed: Typed, name: str, node: Node) -> InputLeaves:
    item = typed.types[Endpoint(node.id)].item
    leaves = leaf_paths(item)
    found = []
    for left, right in node.args["fds"]:
        lefts = frozenset(leaf for text in left for leaf in _leaves_below(leaves, text))
        found += [(lefts, leaf) for text in right for leaf in _leaves_below(leaves, text)]
    known = tuple((left, right) for left, right in found if left and right not in left)
    return InputLeaves(name, item, leaves, known)


def _leaves_below(leaves: tuple[FieldPath, ...], text: str) -> list[FieldPath]:
    path = tuple(text.split("."))
    return [leaf for leaf in leaves if leaf[: len(path)] == path]


def _step(typed: Typed, node: Node) -> FlowStep:
    types = tuple(typed.types[endpoint].item for endpoint in node.inputs)
    spec = node.spec
    output = typed.of(node.id).item
    fields = node.op.lineage_of(node.args, types) if types else FieldMap({}, {})
    same = [list(_same(fields, i, item, output)) for i, item in enumerate(types)]
    forward = tuple(_table(pairs) for pairs in same)
    backward = tuple(_table((out, came) for came, out in pairs) for pairs in same)
    linear = tuple(node.port_of(i).linear for i in range(len(types)))
    key = _key(node, types, output) if isinstance(spec.partition, OnKey | OnAnyField) else None
    adds_up = isinstance(spec.partition, Always)
    return FlowStep(node, forward, backward, linear, adds_up, key)


def _same(
    fields: FieldMap, i: int, item: ItemType, output: ItemType
) -> Iterator[tuple[KeyTerm, KeyTerm]]:
    """Terms over an input's items, each with the leaf of the output that equals it."""
    for path in leaf_paths(output):
        known, rest = fields.nearest(path) or ((), ())
        for source in fields.equal.get(known, ()):
            came = (*source.path, *rest)
            if source.input == i and keeps_value(at(item, came), at(output, path)):
                yield FieldAt(came), FieldAt(path)
    # Expressions refer to the leaves of the one input.
    for path, tree in fields.made.items() if i == 0 else ():
        term = of_tree(tree, item)
        if term is not None and is_exact(at(output, path)) and is_computable(term, item):
            yield term, FieldAt(path)


def _table(pairs: Iterable[tuple[KeyTerm, KeyTerm]]) -> TermTable:
    table: dict[KeyTerm, tuple[KeyTerm, ...]] = {}
    for term, other in pairs:
        table[term] = (*table.get(term, ()), other)
    return table


def _key(node: Node, types: tuple[ItemType, ...], output: ItemType) -> ShardKey:
    """The key's fields by their paths in it; a field with unlike types on two sides is left out."""
    places, gives = _places(node, len(types))
    sides = [_below(item, place) for item, place in zip(types, places, strict=True)]
    after = _below(output, gives)
    common = [
        name
        for name in sides[0]
        if all(
            name in side and keeps_value(at(types[0], sides[0][name]), at(item, side[name]))
            for item, side in zip(types, sides, strict=True)
        )
    ]
    kept = [
        name
        for name in common
        if name in after and keeps_value(at(types[0], sides[0][name]), at(output, after[name]))
    ]
    return ShardKey(
        tuple({FieldAt(side[name]): (FieldAt(name),) for name in common} for side in sides),
        tuple({FieldAt(name): (FieldAt(side[name]),) for name in common} for side in sides),
        {FieldAt(name): (FieldAt(after[name]),) for name in kept},
    )


FieldPaths = tuple[FieldPath, ...]
"""The fields of a key; a single one is the key itself."""


def _places(node: Node, count: int) -> tuple[list[FieldPaths], FieldPaths]:
    rule = node.spec.partition
    columns = next((c for name in ("by", "on") if (c := node.args.get(name)) is not None), None)
    if columns is not None and isinstance(rule, OnKey):
        named: list[FieldPaths] = [
            tuple((column,) for column in side) for side in sides_of_key(columns)
        ]
        return named[:count], named[0]
    if isinstance(rule, OnKey):
        return [(rule.at[i],) for i in range(count)], (rule.gives,)
    assert isinstance(rule, OnAnyField)
    return [(rule.at,)] * count, (rule.gives,)


def _below(item: ItemType, places: FieldPaths) -> dict[FieldPath, FieldPath]:
    """The leaves of a key, each by its path in the key."""
    found = {}
    for number, place in enumerate(places):
        for path in leaf_paths(item):
            if path[: len(place)] == place:
                found[str(number), *path[len(place) :]] = path
    return found
