"""`hydrotick check`: parses, types and stratifies a program; executes nothing of it.

Without a program, every flow of the project: its declaration and its program, a line for each.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.spec import functions_of
from hydro_core.cli import output
from hydro_core.cli.schemas import add_schema_argument, schemas_of
from hydro_core.compile import Compiled, best_plan, compile_graph, planned
from hydro_core.lang.load import load
from hydro_core.plan.told_as import written_whole
from hydro_core.report import as_json, table

_WIDEST = 48
"""Characters of a function in the table of functions."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of `hydrotick check`."""
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="`*.hydro`, or `module:attribute`; without one, all flows of the project",
    )
    add_schema_argument(parser)
    output.add_format_argument(parser)


def misuse(arguments: argparse.Namespace) -> str | None:
    """What is wrong with the arguments together."""
    if arguments.file is not None:
        return None
    if arguments.schema:
        return "--schema is about a FILE: the flows of a project have theirs in their assets"
    from hydro_core.project.discover import PROJECT, project_above

    if not os.environ.get(PROJECT) and project_above(Path.cwd()) is None:
        return "name a FILE, or go to a project: there is no folder `assets` here, nor above"
    return None


def run(arguments: argparse.Namespace) -> int:
    """Prints inputs, outputs, types and strata; of all flows, whether they are whole."""
    if arguments.file is None:
        from hydro_core.cli.check_project import check_project

        return check_project(arguments.format)
    graph = load(arguments.file)
    compiled = compile_graph(graph, schemas_of(arguments, graph))
    functions = _functions(compiled.typed)
    whole = _stored_anew(compiled)
    if arguments.format == "json":
        known = as_json(compiled.typed, compiled.strata)
        output.print_json({**known, "stored_anew": whole, "functions": functions})
        return 0
    output.print_warnings(graph.warnings)
    output.print_text("\n\n".join((str(compiled), *whole)))
    if functions:
        output.print_text("\n" + _as_table(functions))
    return 0


def _stored_anew(compiled: Compiled) -> list[str]:
    """What is said of outputs of which all rows are stored in each tick, also by the best plan."""
    if not any(written_whole(planned(compiled))):
        return []  # the best plan takes longer than all else here
    return list(written_whole(planned(compiled, best_plan(compiled))))


def _functions(typed: Typed) -> list[dict[str, Any]]:
    """How the functions run on Spark; asked without starting one."""
    if not any(True for node in typed.graph for _ in functions_of(node.args)):
        return []
    # Imported here: PySpark takes a second to load.
    from hydro_core.spark.lower.explained import function_runs

    return [
        {
            "operator": found.node.id,
            "function": found.fn.name,
            "line": found.fn.span.line if found.fn.span else None,
            "runs_as": found.runtime.how,
            "why": found.runtime.reason,
            "why_line": found.runtime.place[0] or None,
        }
        for found in function_runs(typed)
    ]


def _as_table(functions: list[dict[str, Any]]) -> str:
    rows = []
    for function in functions:
        name = function["function"]
        shown = name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"
        why = function["why"] or ""
        place = f" (line {function['why_line']})" if function["why_line"] else ""
        rows.append([function["operator"], shown, function["runs_as"], why + place])
    return table(["stream", "function", "on Spark", "why"], rows)
