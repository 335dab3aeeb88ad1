"""`hydrotick check`: parses, types and stratifies a program; executes nothing of it."""

from __future__ import annotations

import argparse

from hydro_core.cli import output
from hydro_core.cli.schemas import add_schema_argument, schemas_of
from hydro_core.compile import compile_graph
from hydro_core.lang.load import load
from hydro_core.report import as_json


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
        output.print_json(as_json(compiled.typed, compiled.strata))
        return 0
    output.print_warnings(graph.warnings)
    output.print_text(str(compiled))
    return 0
