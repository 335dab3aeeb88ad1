"""What a program says of columns: of its inputs', and of its outputs' where they came unchanged.

A column of an output has the description that the last operator gave it that it passed through,
else that of the input's column whose very value it is, or is wherever a join has not padded it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.lineage import map_of
from hydro_core.functions.lineage import FieldMap
from hydro_core.ir.graph import Endpoint, NodeId
from hydro_core.lang.comments import Comments
from hydro_core.types.item import FieldPath, ItemType, Row

Descriptions = Mapping[str, Mapping[str, str]]
"""By the name of an input or of an output, its columns of which something is said."""


@dataclass(frozen=True, slots=True)
class Described:
    """What is said of the columns of a program."""

    inputs: Descriptions
    outputs: Descriptions


def described(program: Typed, comments: Comments) -> Described:
    """The descriptions of columns.

    Args:
        program: as it is written: a plan may have made one operator of several.
        comments: those of its text.
    """
    said = _Said(program, comments)
    inputs = {name: said.of(Endpoint(node.id)) for name, node in program.graph.sources.items()}
    outputs: dict[str, Mapping[str, str]] = {}
    for name, sinks in program.graph.sinks.items():
        parts = [said.of(sink.inputs[0]) for sink in reversed(sinks)]
        outputs[name] = {column: text for part in parts for column, text in part.items()}
    return Described(inputs, outputs)


class _Said:
    def __init__(self, program: Typed, comments: Comments) -> None:
        self._program, self._comments = program, comments
        self._own: dict[NodeId, Mapping[str, str]] = {}
        self._maps: dict[NodeId, FieldMap | None] = {}

    def of(self, stream: Endpoint) -> Mapping[str, str]:
        """What is said of a stream's columns."""
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
