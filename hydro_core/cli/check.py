"""`hydrotick check`: parses, types and stratifies a program; executes nothing of it.

Without a program, every flow of the project: its declaration and its program, a line for each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydro_core.cli import output
from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.program_arguments import graph_of, schemas_of
from hydro_core.compile import Compiled, compile_graph
from hydro_core.errors import HydroError, in_a_line
from hydro_core.printing.programs import checked
from hydro_core.project.flow_asset import FlowAsset


def command(arguments: Asked) -> int:
    if arguments.file is None:
        _refuse_misuse(arguments)
        return check_project(arguments.format)
    graph = graph_of(arguments)
    program = checked(compile_graph(graph, schemas_of(arguments, graph)))
    if arguments.format == "json":
        output.print_json(program.as_json())
        return 0
    output.print_warnings(graph.warnings)
    output.print_text(str(program))
    return 0


def _refuse_misuse(arguments: Asked) -> None:
    from hydro_core.project.discover import PROJECT, project_above

    for option in ("schema", "param"):
        if getattr(arguments, option):
            says = "is about a FILE: the flows of a project have theirs in their assets"
            raise MisuseError(f"--{option} {says}")
    if not os.environ.get(PROJECT) and project_above(Path.cwd()) is None:
        raise MisuseError(
            "name a FILE, or go to a project: there is no folder `assets` here, nor above"
        )


def check_project(style: str) -> int:
    """Prints a line for each flow of the project at hand; gives 1 if one of them is wrong."""
    from hydro_core.project.check import columns_wrong
    from hydro_core.project.discover import DiscoveredFlows, found_in, no_flows, project_root
    from hydro_core.project.program import unread

    root = project_root(os.environ)
    found = DiscoveredFlows() if root is None else found_in(root)
    wrong: dict[str, HydroError] = {broken.name: broken.error for broken in found.broken}
    programs: dict[str, Compiled] = {}
    for flow in found.flows:
        try:
            programs[flow.name] = _program(flow)
        except HydroError as error:
            wrong[flow.name] = error
    outputs = {
        name: {output: stream.item for output, stream in program.typed.outputs.items()}
        for name, program in programs.items()
    }
    for flow in found.flows:
        if flow.name in programs:
            problem = columns_wrong(flow, programs[flow.name].typed.schemas, outputs)
            if problem is not None:
                wrong[flow.name] = problem
    former = {f.name: [*unread(f, programs[f.name])] for f in found.flows if f.name in programs}
    names = sorted({*programs, *wrong})
    if style == "json":
        output.print_json({"flows": [_as_json(name, programs, wrong) for name in names]})
        return 1 if wrong else 0
    if not names and root is not None:
        output.print_text(no_flows(root))
    for name in names:
        if name in wrong:
            output.print_text(f"{name}: wrong")
            output.print_error(f"{wrong[name]}\n")
            continue
        graph = programs[name].graph
        output.print_warnings((*graph.warnings, *former[name]))
        inputs, given = (", ".join(map(in_a_line, of)) for of in (graph.sources, graph.sinks))
        output.print_text(f"{name}: ok: {inputs} -> {given}")
    return 1 if wrong else 0


def _program(flow: FlowAsset) -> Compiled:
    from hydro_core.compile import best_plan, planned
    from hydro_core.project.program import program_of, refuse_not_growing

    program = program_of(flow, served=flow.inputs)
    if any(output.as_ == "append" for output in flow.tables.values()):
        # Only a plan tells which outputs grow.
        refuse_not_growing(flow, planned(program, best_plan(program)))
    return program


def _as_json(
    name: str, programs: Mapping[str, Compiled], wrong: Mapping[str, HydroError]
) -> dict[str, Any]:
    if name in wrong:
        return {"flow": name, "error": wrong[name].as_json()}
    graph = programs[name].graph
    return {"flow": name, "inputs": list(graph.sources), "outputs": list(graph.sinks)}
