"""Lineage: which fields of the inputs each field of each output is, or is computed from.

The maps of the operators are composed from the sources on; around a cycle to the least fixpoint.
Where several streams add up, a field has what it has in any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.io import SOURCE
from hydro_core.functions.lineage import FieldMap
from hydro_core.ir.graph import Endpoint, Node
from hydro_core.types.item import FieldPath, leaves

SourceField = tuple[str, FieldPath]
"""A field of an input of the program, by the input's name."""


@dataclass(frozen=True, slots=True)
class FieldLineage:
    """Of one field: the input fields whose very value it is, and those it depends on else."""

    equal: frozenset[SourceField] = frozenset()
    computed: frozenset[SourceField] = frozenset()

    @property
    def all(self) -> frozenset[SourceField]:
        """Everything that the field depends on."""
        return self.equal | self.computed


Lineage = Mapping[FieldPath, FieldLineage]
"""Of one stream: every leaf of its items."""


def lineage(typed: Typed) -> Mapping[str, Lineage]:
    """The lineage of every output of the program, by the outputs' names."""
    streams = _streams(typed)
    found: dict[str, dict[FieldPath, FieldLineage]] = {}
    for name, sinks in typed.graph.sinks.items():
        item = typed.outputs[name].item
        parts = [streams[sink.inputs[0]] for sink in sinks]
        found[name] = {path: _union(_at(part, path) for part in parts) for path, _ in leaves(item)}
    return found


def _streams(typed: Typed) -> Mapping[Endpoint, Lineage]:
    graph = typed.graph
    streams: dict[Endpoint, Lineage] = {endpoint: {} for endpoint in typed.types}
    outputs: dict[str, list[Endpoint]] = {node.id: [] for node in graph}
    for endpoint in typed.types:
        outputs[endpoint.node].append(endpoint)
    maps = {node.id: map_of(typed, node) for node in graph}
    todo = dict.fromkeys(node.id for node in reversed(list(graph)))
    while todo:
        node = graph[todo.popitem()[0]]
        for endpoint in outputs[node.id]:
            paths, fields = [p for p, _ in leaves(typed.types[endpoint].item)], maps[node.id]
            if fields is None:
                new = {p: FieldLineage(frozenset([(node.args["name"], p)])) for p in paths}
            else:
                new = {path: _field(node, fields, path, streams) for path in paths}
            if new != streams[endpoint]:
                streams[endpoint] = new
                todo |= dict.fromkeys(reader.id for reader in graph.readers(node.id))
    return streams


def map_of(typed: Typed, node: Node) -> FieldMap | None:
    """The lineage of one operator, by its inputs; None of an input of the program."""
    if node.op is SOURCE:
        return None
    types = tuple(typed.types[endpoint].item for endpoint in node.inputs)
    return node.op.lineage_of(node.args, types)


def _field(
    node: Node, fields: FieldMap, path: FieldPath, streams: Mapping[Endpoint, Lineage]
) -> FieldLineage:
    known = fields.nearest(path)
    if known is not None and known[0] in fields.equal:
        key, rest = known
        return _union(
            _at(streams[node.inputs[f.input]], (*f.path, *rest)) for f in fields.equal[key]
        )
    # a leaf of whose inside alone the map speaks is made of all of that
    inside = [*fields.equal.items(), *fields.computed.items()]
    found = _union(
        _at(streams[node.inputs[f.input]], f.path)
        for part, sources in inside
        if (part[: len(path)] == path if known is None else part == known[0])
        for f in sources
    )
    return FieldLineage(computed=found.all)


def _at(stream: Lineage, path: FieldPath) -> FieldLineage:
    """The lineage of a field, which need not be a leaf: of what is in it, or it is in."""
    if path in stream:
        return stream[path]
    inside = [known for key, known in stream.items() if key[: len(path)] == path]
    around = [known for key, known in stream.items() if path[: len(key)] == key]
    return FieldLineage(computed=_union([*inside, *around]).all)


def _union(parts: Iterable[FieldLineage]) -> FieldLineage:
    known = list(parts)
    if len(known) == 1:
        return known[0]
    none = frozenset[SourceField]()
    return FieldLineage(
        none.union(*(part.equal for part in known)), none.union(*(part.computed for part in known))
    )
