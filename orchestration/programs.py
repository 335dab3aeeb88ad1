"""The program of a flow, compiled: what definitions, runs and commands start from."""

from __future__ import annotations

from pathlib import Path

from assets.check import check_declaration, check_expectations, schemas_of
from assets.spec import FlowAsset
from hydro_core.analysis.infer import infer
from hydro_core.analysis.strata import stratify
from hydro_core.lang.load import load
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import TickPlan


def plan_of(flow: FlowAsset) -> TickPlan:
    """The plan by which the ticks of `flow` run.

    Raises:
        ProgramError: the program, or what the asset says of it, is wrong.
    """
    graph = load(program_of(flow))
    check_declaration(flow, graph.sources, graph.sinks)
    typed = infer(graph, schemas_of(flow))
    check_expectations(flow, {name: stream.item for name, stream in typed.outputs.items()})
    return plan(typed, stratify(typed))


def program_of(flow: FlowAsset) -> str:
    """The program as it is loaded; a file is relative to the asset's folder."""
    program = flow.program
    if flow.folder is None or (isinstance(program, str) and not program.endswith(".hydro")):
        return str(program)
    return str(flow.folder / Path(program))
