"""`hydrotick rules`: what rules become; executes nothing of them."""

from __future__ import annotations

from hydro_core.cli import output
from hydro_core.cli.command import Asked
from hydro_core.cli.program_arguments import graph_of
from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.ir.graph import Graph
from hydro_core.lang.print import to_text, unwritable_columns


def command(arguments: Asked) -> int:
    graph = graph_of(arguments)
    _refuse_words_of_python(graph)
    text = to_text(graph)
    if arguments.format == "json":
        output.print_json({"program": text})
        return 0
    output.print_warnings(graph.warnings)
    output.print_text(text.removesuffix("\n"))
    return 0


def _refuse_words_of_python(graph: Graph) -> None:
    """Raises where a column has a name that no program `*.hydro` can give one."""
    found = {name: node for node, name in reversed(list(unwritable_columns(graph)))}
    if found:
        raise ProgramError(
            *(
                Diagnostic(
                    "name",
                    f"`{name}` is a word of Python, and no program `*.hydro` can name a column so",
                    node.span,
                    node.op.called,
                    help=f"call it `{name}_` in `.decl`, or where the rule's head names it; as "
                    "rules the program runs as it is",
                )
                for name, node in sorted(found.items())
            )
        )
