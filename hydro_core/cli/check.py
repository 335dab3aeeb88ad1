"""`hydrotick check`: parses, types and stratifies a program; executes nothing of it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from hydro_core.cli import output
from hydro_core.cli.schemas import add_schema_argument, schemas_of
from hydro_core.compile import Compiled, compile_graph
from hydro_core.ir.graph import Node
from hydro_core.lang.load import load
from hydro_core.types.ddl import to_ddl
from hydro_core.types.stream import StreamType


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of `hydrotick check`."""
    parser.add_argument("file", metavar="FILE", help="`*.hydro`, or `module:attribute`")
    add_schema_argument(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(arguments: argparse.Namespace) -> int:
    """Prints inputs, outputs, types and strata."""
    graph = load(arguments.file)
    compiled = compile_graph(graph, schemas_of(arguments, graph))
    if arguments.format == "json":
        output.print_json(as_json(compiled))
        return 0
    output.print_warnings(graph.warnings)
    output.print_text(as_text(compiled))
    return 0


def as_json(compiled: Compiled) -> Mapping[str, Any]:
    """What `--format json` prints."""
    typed, strata = compiled.typed, compiled.strata
    return {
        "name": compiled.graph.name,
        "inputs": {name: to_ddl(stream.item) for name, stream in typed.inputs.items()},
        "outputs": {name: _stream(stream) for name, stream in typed.outputs.items()},
        "streams": {str(endpoint): _stream(stream) for endpoint, stream in typed.types.items()},
        "strata": [list(strata.members(number)) for number in range(strata.count)],
        "recursive": [sorted(cycle) for cycle in strata.recursive],
        "handoffs": [
            {"stream": str(endpoint), "from": before, "to": after}
            for endpoint, before, after in strata.handoffs
        ],
        "warnings": [warning.as_json() for warning in compiled.graph.warnings],
    }


def _stream(stream: StreamType) -> Mapping[str, Any]:
    return {"type": to_ddl(stream.item), "order": stream.order.value, "single": stream.single}


def as_text(compiled: Compiled) -> str:
    """What is printed for people."""
    typed = compiled.typed
    inputs = [[name, to_ddl(stream.item)] for name, stream in typed.inputs.items()]
    outputs = [
        [name, to_ddl(stream.item), stream.order.value] for name, stream in typed.outputs.items()
    ]
    parts = [
        f"{compiled.graph.name}: {len(compiled.graph.nodes)} operators in {_plural(compiled.strata.count)}",
        output.table(["input", "items"], inputs) if inputs else "no inputs",
        output.table(["output", "items", "order"], outputs) if outputs else "no outputs",
        output.table(["stratum", "stream", "operator", "items", "order"], _rows(compiled)),
    ]
    if compiled.strata.recursive:
        cycles = (", ".join(sorted(cycle)) for cycle in compiled.strata.recursive)
        parts.append("\n".join(f"runs to a fixpoint: {cycle}" for cycle in cycles))
    return "\n\n".join(parts)


def _plural(count: int) -> str:
    return "1 stratum" if count == 1 else f"{count} strata"


def _rows(compiled: Compiled) -> list[list[str]]:
    rows = []
    for number in range(compiled.strata.count):
        for i, name in enumerate(compiled.strata.members(number)):
            node = compiled.graph[name]
            rows.append([str(number) if i == 0 else "", name, node.op.name, *_types(compiled, node)])
    return rows


def _types(compiled: Compiled, node: Node) -> tuple[str, str]:
    if node.op.outputs == "none":
        return "", ""
    stream = compiled.typed.of(node.id)
    return to_ddl(stream.item), "ordered" if stream.order.value == "TotalOrder" else ""
