"""`hydrotick rules`: what rules become; executes nothing of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from hydro_core.cli import output
from hydro_core.cli.program_arguments import add_param_argument, graph_of
from hydro_core.lang.print import to_text


def command(words: Sequence[str]) -> int:
    """Prints the operators that rules become, as the program `*.hydro` that means the same."""
    parser = argparse.ArgumentParser(prog="hydrotick rules", description=command.__doc__)
    parser.add_argument("file", metavar="FILE", help="rules `*.dl`")
    parser.add_argument(
        "--to", choices=("hydro",), default="hydro", help="the form (default: hydro)"
    )
    add_param_argument(parser)
    output.add_format_argument(parser)
    arguments = parser.parse_args(words)
    graph = graph_of(arguments)
    text = to_text(graph)
    if arguments.format == "json":
        output.print_json({"program": text})
        return 0
    output.print_warnings(graph.warnings)
    output.print_text(text.removesuffix("\n"))
    return 0
