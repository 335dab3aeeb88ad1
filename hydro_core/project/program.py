"""The program of a flow, read and judged together with what its asset says of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.lang.params import Params, params_of
from hydro_core.project.check import check_declaration, check_types, schemas_of
from hydro_core.project.cutting import check_sharding
from hydro_core.project.discover import is_module
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.quarantine import asks, with_quarantine

if TYPE_CHECKING:
    from hydro_core.analysis.infer import Typed
    from hydro_core.compile import Compiled
    from hydro_core.ir.graph import Graph


def program_of(flow: FlowAsset, served: Collection[str] = ()) -> Compiled:
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
    from hydro_core.project.modules import graph_of_module

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


def unread(flow: FlowAsset, program: Compiled) -> Iterator[Diagnostic]:
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
