"""`hydrotick graph`: draws a program with its strata; executes nothing of it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from hydro_core.cli import output
from hydro_core.cli.program_arguments import graph_of, program_parser, schemas_of
from hydro_core.compile import compile_graph, draw
from hydro_core.errors import DataError

FORMATS = ("mermaid", "dot", "svg", "text", "json")


def command(words: Sequence[str]) -> int:
    """Draws a program with its strata."""
    parser = program_parser("graph", command.__doc__)
    parser.add_argument(
        "--format", choices=FORMATS, help="default: by the name of --out, else mermaid"
    )
    parser.add_argument("--out", metavar="PATH", help="write the drawing to a file")
    arguments = parser.parse_args(words)
    graph = graph_of(arguments)
    drawing = draw(
        compile_graph(graph, schemas_of(arguments, graph), partial=True), _style(arguments)
    )
    if arguments.out is None:
        output.print_text(drawing)
        return 0
    try:
        Path(arguments.out).write_text(drawing + "\n", encoding="utf-8")
    except OSError as problem:
        message = f"{arguments.out!r} cannot be written: {problem.strerror}"
        raise DataError.of("config", message, help="choose another --out") from None
    output.print_error(f"wrote {arguments.out}")
    return 0


def _style(arguments: argparse.Namespace) -> str:
    if arguments.format is not None:
        return str(arguments.format)
    suffix = Path(arguments.out or "").suffix.removeprefix(".")
    return suffix if suffix in FORMATS else "mermaid"
