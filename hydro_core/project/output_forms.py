"""Whether the outputs of a plan can be kept as the asset says."""

from __future__ import annotations

from hydro_core.errors import ProgramError
from hydro_core.ir.graph import Endpoint, NodeId
from hydro_core.plan.streams import stream_forms
from hydro_core.plan.tick_plan import Kind, TickPlan
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.types.item import Order

_CURE = (
    "`as: table` is kept as the output is, whatever comes and goes; `-> persist()` before the "
    "output keeps all that ever came"
)


def refuse_not_growing(flow: FlowAsset, plan: TickPlan) -> None:
    """Refuses to append to the table of an output that does not only grow.

    Raises:
        ProgramError: which one, and why (code `config`).
    """
    whys = {one.stream: one.why for one in stream_forms(plan)}
    problems = []
    for name, output in flow.tables.items():
        streams = [sink.inputs[0].node for sink in plan.graph.sinks.get(name, ())]
        if output.as_ == "append" and not all(_grows(plan, stream) for stream in streams):
            said = f"`{name}` does not only grow: {whys.get(name, 'rows go')}"
            place = f"outputs.{name}"
            problems.append(flow.problem_at(f"{place}.as", said, _CURE, at=place))
    if problems:
        raise ProgramError(*problems)


def _grows(plan: TickPlan, stream: NodeId) -> bool:
    of = plan.typed.types.get(Endpoint(stream))
    is_ordered = of is not None and of.order is Order.TOTAL
    return plan.kinds[stream] is Kind.H and stream not in plan.in_changes and not is_ordered
