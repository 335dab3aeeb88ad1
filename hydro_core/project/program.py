"""The program of a flow, read and judged with what its asset says of it: types, shards, outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hydro_core.artifact.deployment import Sharding
from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.ir.graph import Endpoint, NodeId
from hydro_core.lang.params import Params, params_of
from hydro_core.plan.streams import stream_forms
from hydro_core.plan.tick_plan import Kind, TickPlan
from hydro_core.project.check import check_declaration, check_types, schemas_of
from hydro_core.project.discover import is_module
from hydro_core.project.flow_asset import FlowAsset, Shards
from hydro_core.project.quarantine import asks, with_quarantine
from hydro_core.types.item import Order

if TYPE_CHECKING:
    from hydro_core.analysis.infer import Typed
    from hydro_core.compile import CompiledProgram
    from hydro_core.ir.graph import Graph
    from hydro_core.optimize.optimizer import OptimizedProgram
    from hydro_core.shards.program import ShardedProgram
    from hydro_core.shards.together import ShardedPlan


def program_of(flow: FlowAsset, served: Collection[str] = ()) -> CompiledProgram:
    """The program of `flow`.

    Args:
        served: inputs that ticks read until it is deployed: the asset still says where they land.

    Raises:
        ProgramError: the program, or what the asset says of it, is wrong.
    """
    # The language is loaded where a program is read: of most commands it was read long ago.
    from hydro_core.compile import compile_graph

    graph = written_graph(flow)
    read = graph.sources.keys() | (flow.inputs.keys() - set(served))
    flow = replace(flow, inputs={n: of for n, of in flow.inputs.items() if n in read})
    if asks(flow):
        graph = with_quarantine(flow, graph, schemas_of(flow))
    check_declaration(flow, graph.sources, graph.sinks)
    program = compile_graph(graph, schemas_of(flow))
    check_columns(flow, program.typed)
    check_sharding(flow, program)
    return program


def written_graph(flow: FlowAsset) -> Graph:
    """The graph of a flow's program as it is written, before it is judged by its asset.

    Raises:
        ProgramError: there is no such program, or it is wrong.
    """
    from hydro_core.lang.load import load
    from hydro_core.project.discover import graph_of_module

    try:
        spec, params = str(flow.program), params_given(flow)
        if flow.folder is None:
            return load(spec, params)
        if is_module(flow):
            return graph_of_module(flow.folder, spec, params)
        return load(str(flow.folder / spec), params)
    except ProgramError as error:
        # What is wrong with its file as a whole is said where the asset names it.
        named = flow.places.get("program")
        raise ProgramError(*(replace(d, span=d.span or named) for d in error.diagnostics)) from None


def unread(flow: FlowAsset, program: CompiledProgram) -> Iterator[Diagnostic]:
    """Warnings of inputs that the program does not read: those that the one before it reads stay in
    the asset until it is deployed, and only what is stored can tell which these are.
    """
    for name in flow.inputs:
        if name not in program.graph.sources:
            said = f"the program has no input `{name}`"
            cure = "it stays until the program is deployed if the one before reads it, else goes"
            yield replace(flow.problem_at(f"inputs.{name}", said, cure), severity="warning")


def params_given(flow: FlowAsset) -> Params:
    """The parameters that the asset gives the program, and where.

    Raises:
        ProgramError: one is no name, or no item (code `config`).
    """
    places = {name: flow.places.get(f"params.{name}") for name in flow.params}
    return params_of(flow.params, {name: span for name, span in places.items() if span})


def check_columns(flow: FlowAsset, typed: Typed) -> None:
    """Judges what the asset says of the columns of inputs and outputs.

    Raises:
        ProgramError: everything that is wrong with it (code `config`).
    """
    items = {name: stream.item for name, stream in typed.outputs.items()}
    check_types(flow, typed.schemas, items)


def sharding_of(flow: FlowAsset) -> Sharding | None:
    """The shards that an asset asks for; None where it is not to be cut."""
    asked = flow.shards if isinstance(flow.shards, Shards) else Shards(flow.shards)
    if asked.count == 1:
        return None
    on = {name: (by,) if isinstance(by, str) else tuple(by) for name, by in asked.on.items()}
    return Sharding(asked.count, on, tuple(asked.replicate))


def served(sharding: Sharding | None) -> str:
    return (
        "what serves is not in shards" if sharding is None else f"what serves has {sharding.says}"
    )


def check_sharding(flow: FlowAsset, program: CompiledProgram) -> None:
    """Judges whether the program can be cut as the asset asks.

    Raises:
        ProgramError: it cannot, and what forbids it (code `config`).
    """
    asked = sharding_of(flow)
    if asked is not None:
        _cut(flow, program, asked)


def in_shards(
    flow: FlowAsset,
    program: CompiledProgram,
    planned: Callable[[CompiledProgram], OptimizedProgram],
) -> tuple[Sharding, ShardedPlan] | None:
    """The shards of a flow, by a plan for one of them.

    None where it is not to be cut.

    Raises:
        ProgramError: it cannot be cut as the asset asks (code `config`).
    """
    from hydro_core.shards.together import ShardedPlan

    asked = sharding_of(flow)
    if asked is None:
        return None
    cut = _cut(flow, program, asked)
    return replace(asked, says=cut.described), ShardedPlan.of(cut, planned)


def _cut(flow: FlowAsset, program: CompiledProgram, asked: Sharding) -> ShardedProgram:
    from hydro_core.shards.program import Spelling, sharded

    def replicate(names: Sequence[str]) -> str:
        return f"replicate: [{', '.join(names)}]"

    spelling = Spelling(
        "`on`", replicate, f"leave `shards` of `{flow.name}` out: it runs as a whole then"
    )
    try:
        return sharded(program, asked.count, asked.on or None, asked.replicate, spelling)
    except ProgramError as error:
        place, said = flow.places.get("shards"), f"flow `{flow.name}`, `shards`: "
        raise ProgramError(
            *(
                replace(d, code="config", message=f"{said}{d.message}", span=d.span or place)
                for d in error.diagnostics
            )
        ) from None


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
