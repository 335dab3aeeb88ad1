"""The program of a flow, read and judged together with what its asset says of it."""

from __future__ import annotations

from hydro_core.analysis.infer import Typed, infer
from hydro_core.project.check import check_declaration, check_expectations, schemas_of
from hydro_core.project.cutting import check_sharding
from hydro_core.project.discover import place_of
from hydro_core.project.flow_asset import FlowAsset


def program_of(flow: FlowAsset) -> Typed:
    """The program of `flow` with its types.

    Raises:
        ProgramError: the program, or what the asset says of it, is wrong.
    """
    # The language is loaded where a program is read: of most commands it was read long ago.
    from hydro_core.lang.load import load

    graph = load(place_of(flow))
    check_declaration(flow, graph.sources, graph.sinks)
    typed = infer(graph, schemas_of(flow))
    check_outputs(flow, typed)
    check_sharding(flow, typed)
    return typed


def check_outputs(flow: FlowAsset, typed: Typed) -> None:
    """Judges what the asset expects of the outputs.

    Raises:
        ProgramError: everything that is wrong with it (code `config`).
    """
    check_expectations(flow, {name: stream.item for name, stream in typed.outputs.items()})
