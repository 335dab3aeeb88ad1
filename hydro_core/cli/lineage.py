"""`hydrotick lineage`: which input fields every output field comes from; executes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hydro_core.analysis.lineage import FieldLineage, SourceField, lineage
from hydro_core.cli import output
from hydro_core.cli.command import Asked
from hydro_core.cli.program_arguments import graph_of, schemas_of
from hydro_core.compile import compile_graph
from hydro_core.printing.tables import table


def command(arguments: Asked) -> int:
    graph = graph_of(arguments)
    found = lineage(compile_graph(graph, schemas_of(arguments, graph)).typed)
    if arguments.format == "json":
        output.print_json({name: _as_json(fields) for name, fields in found.items()})
        return 0
    for name, fields in found.items():
        rows = [
            [".".join(path) or "(the item)", _listed(known.equal), _listed(known.computed)]
            for path, known in fields.items()
        ]
        output.print_text(table([name, "equals", "computed from"], rows) + "\n")
    return 0


def _as_json(fields: Mapping[tuple[str, ...], FieldLineage]) -> Mapping[str, Any]:
    return {
        ".".join(path): {"equal": _names(known.equal), "computed": _names(known.computed)}
        for path, known in fields.items()
    }


def _names(sources: Iterable[SourceField]) -> list[str]:
    return sorted(".".join((name, *path)) for name, path in sources)


def _listed(sources: Iterable[SourceField]) -> str:
    return ", ".join(_names(sources)) or "–"
