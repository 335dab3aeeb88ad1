"""Programs over rows of many more columns than they read, and their outputs without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.errors import ProgramError
from hydro_core.ir.graph import Graph
from hydro_core.types.item import LONG, STRING, Field, ItemType, Row

COLUMNS = 40
_MARK = "unread"


def widened(program: CompiledProgram) -> CompiledProgram | None:
    """The program over wider rows; None where it has no rows, or may not have more columns."""
    types = {name: stream.item for name, stream in program.typed.inputs.items()}
    wide = {name: _wider(name, of) for name, of in types.items() if isinstance(of, Row)}
    if not wide:
        return None
    sources = {node.id: name for name, node in program.graph.sources.items() if name in wide}
    nodes = (
        node.with_(args=node.args.with_(schema=wide[sources[node.id]]))
        if node.id in sources
        else node
        for node in program.graph
    )
    graph = Graph.of(nodes, program.graph.name, program.graph.warnings)
    try:
        return compile_graph(graph, {**types, **wide})
    except ProgramError:
        # Two inputs of one kind that are joined or added up, say.
        return None


def wider(ticks: Sequence[Mapping[str, Sequence[Any]]]) -> list[dict[str, list[Any]]]:
    """The ticks with values in the columns that nobody reads: the same in every row."""
    return [
        {name: [_padded(name, item) for item in items] for name, items in tick.items()}
        for tick in ticks
    ]


def narrow(value: Any) -> Any:
    """A value of JSON without those columns."""
    match value:
        case dict():
            return {n: narrow(v) for n, v in value.items() if not n.startswith(_MARK)}
        case list():
            return list(map(narrow, value))
        case _:
            return value


def _names(name: str) -> list[str]:
    return [f"{_MARK}_{name}_{i}" for i in range(COLUMNS)]


def _wider(name: str, of: Row) -> ItemType:
    more = (Field(n, LONG if i % 2 else STRING) for i, n in enumerate(_names(name)))
    return Row((*of.fields, *more))


def _padded(name: str, item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    return {**item, **{n: i if i % 2 else f"text {i}" for i, n in enumerate(_names(name))}}
