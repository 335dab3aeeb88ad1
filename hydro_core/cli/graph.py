"""`hydrotick graph`: draws a program with its strata; executes nothing of it."""

from __future__ import annotations

from pathlib import Path

from hydro_core.cli import output
from hydro_core.cli.command import Asked
from hydro_core.cli.program_arguments import graph_of, schemas_of
from hydro_core.compile import compile_graph, draw
from hydro_core.machine.faults import written_at

_SUFFIXES = ("mermaid", "dot", "svg", "text", "json")


def command(arguments: Asked) -> int:
    graph = graph_of(arguments)
    suffix = Path(arguments.out or "").suffix.removeprefix(".")
    style = arguments.format or (suffix if suffix in _SUFFIXES else "mermaid")
    drawing = draw(compile_graph(graph, schemas_of(arguments, graph), partial=True), style)
    if arguments.out is None:
        output.print_text(drawing)
        return 0
    with written_at(Path(arguments.out), "--out"):
        Path(arguments.out).write_text(drawing + "\n", encoding="utf-8")
    output.print_error(f"wrote {arguments.out}")
    return 0
