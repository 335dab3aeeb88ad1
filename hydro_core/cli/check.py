"""`hydrotick check`: parses, types and stratifies a program; executes nothing of it.

Without a program, every flow of the project: its declaration and its program, a line for each.
"""

from __future__ import annotations

import os
from pathlib import Path

from hydro_core.cli import output
from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.program_arguments import graph_of, schemas_of
from hydro_core.compile import compile_graph
from hydro_core.printing.programs import checked


def command(arguments: Asked) -> int:
    if wrong := _misuse(arguments):
        raise MisuseError(wrong)
    if arguments.file is None:
        from hydro_core.cli.check_project import check_project

        return check_project(arguments.format)
    graph = graph_of(arguments)
    program = checked(compile_graph(graph, schemas_of(arguments, graph)))
    if arguments.format == "json":
        output.print_json(program.as_json())
        return 0
    output.print_warnings(graph.warnings)
    output.print_text(str(program))
    return 0


def _misuse(arguments: Asked) -> str | None:
    if arguments.file is not None:
        return None
    if arguments.schema:
        return "--schema is about a FILE: the flows of a project have theirs in their assets"
    if arguments.param:
        return "--param is about a FILE: the flows of a project have theirs in their assets"
    from hydro_core.project.discover import PROJECT, project_above

    if not os.environ.get(PROJECT) and project_above(Path.cwd()) is None:
        return "name a FILE, or go to a project: there is no folder `assets` here, nor above"
    return None
