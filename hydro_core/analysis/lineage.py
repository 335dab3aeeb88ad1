"""Lineage: input fields of every output field, and the descriptions that columns inherit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.itemwise import SOURCE
from hydro_core.functions.lineage import FieldMap
from hydro_core.ir.graph import Endpoint, Node, NodeId
from hydro_core.lang.comments import Comments
from hydro_core.types.item import FieldPath, ItemType, Row, leaves

# Lineage: for each field of each output, the input fields that it copies or is computed from.
#
# The maps of the operators are composed from the sources on; around a cycle to the least fixpoint.
# For a union of streams, the lineage of a field is the union of its lineages.


SourceField = tuple[str, FieldPath]
"""A field of an input of the program, by the input's name."""


@dataclass(frozen=True, slots=True)
class FieldLineage:
    """Lineage of one field: the input fields that it copies, and the others that it depends on."""

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
    # A leaf whose inner fields the map names depends on all of them.
    inside = [*fields.equal.items(), *fields.computed.items()]
    found = _union(
        _at(streams[node.inputs[f.input]], f.path)
        for part, sources in inside
        if (part[: len(path)] == path if known is None else part == known[0])
        for f in sources
    )
    return FieldLineage(computed=found.all)


def _at(stream: Lineage, path: FieldPath) -> FieldLineage:
    """The lineage of a field, leaf or not: of the leaves in it, or of the leaf that contains it."""
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


# Descriptions of columns: those of inputs, and those of outputs where the value is unchanged.
#
# A column of an output has the description that the last operator on its way gave it, else that of
# the input's column that it copies everywhere, apart from rows that a join has padded.


Descriptions = Mapping[str, Mapping[str, str]]
"""Column descriptions by the name of an input or of an output; columns without one are absent."""


@dataclass(frozen=True, slots=True)
class ColumnDescriptions:
    """The descriptions of a program's columns."""

    inputs: Descriptions
    outputs: Descriptions


def described(program: Typed, comments: Comments) -> ColumnDescriptions:
    """The descriptions of columns.

    Args:
        program: the program as it is written; a plan may have merged several operators into one.
        comments: the comments of its text.
    """
    said = _Description(program, comments)
    inputs = {name: said.of(Endpoint(node.id)) for name, node in program.graph.sources.items()}
    outputs: dict[str, Mapping[str, str]] = {}
    for name, sinks in program.graph.sinks.items():
        parts = [said.of(sink.inputs[0]) for sink in reversed(sinks)]
        outputs[name] = {column: text for part in parts for column, text in part.items()}
    return ColumnDescriptions(inputs, outputs)


class _Description:
    def __init__(self, program: Typed, comments: Comments) -> None:
        self._program, self._comments = program, comments
        self._own: dict[NodeId, Mapping[str, str]] = {}
        self._maps: dict[NodeId, FieldMap | None] = {}

    def of(self, stream: Endpoint) -> Mapping[str, str]:
        """The descriptions of a stream's columns."""
        columns = _columns(self._program.types[stream].item)
        found = {column: self._field(stream, (column,)) for column in columns}
        return {column: text for column, text in found.items() if text}

    def _field(self, stream: Endpoint, path: FieldPath) -> str:
        seen: set[tuple[Endpoint, FieldPath]] = set()
        todo = [(stream, path)]
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            found = self._said_at(*at)
            if found:
                return found
            todo += reversed(list(self._same(*at)))
        return ""

    def _said_at(self, stream: Endpoint, path: FieldPath) -> str:
        if len(path) != 1:
            return ""
        node = self._program.graph[stream.node]
        if node.id not in self._own:
            columns = _columns(self._program.types[stream].item)
            self._own[node.id] = self._comments.of_columns(node.span, columns)
        return self._own[node.id].get(path[0], "")

    def _same(self, stream: Endpoint, path: FieldPath) -> Iterator[tuple[Endpoint, FieldPath]]:
        """The fields of the node's inputs whose very value a field is, where it is not padded."""
        node = self._program.graph[stream.node]
        if node.id not in self._maps:
            self._maps[node.id] = map_of(self._program, node)
        fields = self._maps[node.id]
        if fields is None:
            return
        key, rest = fields.nearest(path) or ((), ())
        same = fields.equal if key in fields.equal else fields.padded
        for field in sorted(same.get(key, ())):
            yield node.inputs[field.input], (*field.path, *rest)


def _columns(item: ItemType) -> tuple[str, ...]:
    return item.names if isinstance(item, Row) else ()
