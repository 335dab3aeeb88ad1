"""The program of a flow, compiled: what definitions, runs and commands start from."""

from __future__ import annotations

from pathlib import Path

from assets.check import check_declaration, check_expectations, schemas_of
from assets.spec import FlowAsset
from hydro_core.compile import Compiled, compile_graph
from hydro_core.lang.load import load
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import TickPlan


def plan_of(flow: FlowAsset) -> TickPlan:
    """The plan by which the ticks of `flow` run.

    Raises:
        ProgramError: the program, or what the asset says of it, is wrong.
    """
    program = naive_of(flow)
    return plan(program.typed, program.strata)


def naive_of(flow: FlowAsset) -> Compiled:
    """The program as it is written: what all that runs is judged by.

    Raises:
        ProgramError: the program, or what the asset says of it, is wrong.
    """
    graph = load(program_of(flow))
    check_declaration(flow, graph.sources, graph.sinks)
    program = compile_graph(graph, schemas_of(flow))
    outputs = program.typed.outputs
    check_expectations(flow, {name: stream.item for name, stream in outputs.items()})
    return program


def program_of(flow: FlowAsset) -> str:
    """The program as it is loaded; a file is relative to the asset's folder."""
    program = flow.program
    if flow.folder is None or (isinstance(program, str) and not program.endswith(".hydro")):
        return str(program)
    return str(flow.folder / Path(program))
