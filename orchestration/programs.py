"""The program of a flow, compiled: what definitions, runs and commands start from."""

from __future__ import annotations

from pathlib import Path

from assets.spec import FlowAsset
from hydro_core.analysis.infer import infer
from hydro_core.analysis.strata import stratify
from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.ir.graph import Graph
from hydro_core.lang.load import load
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.types.ddl import parse_ddl


def plan_of(flow: FlowAsset) -> TickPlan:
    """The plan by which the ticks of `flow` run.

    Raises:
        ProgramError: the program is wrong.
    """
    program = flow.program if isinstance(flow.program, str) else str(Path(flow.program))
    schemas = {name: parse_ddl(text) for name, text in flow.schemas.items()}
    graph = load(program)
    _same_inputs(flow, graph)
    typed = infer(graph, schemas)
    return plan(typed, stratify(typed))


def _same_inputs(flow: FlowAsset, graph: Graph) -> None:
    read, landed = set(graph.sources), set(flow.inputs)
    if read == landed:
        return
    names = ", ".join(f"`{name}`" for name in sorted(read ^ landed))
    raise ProgramError(
        Diagnostic(
            code="config",
            message=f"the flow `{flow.name}` and its program do not have the same inputs: {names}",
            help="say in the asset's `inputs` where each input of the program lands",
        )
    )
