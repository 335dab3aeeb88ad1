"""The way of a program from its text to what runs, a line for each step.

Whoever has a part of the way behind him (a graph, types, a plan) takes the rest of it from here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hydro_core.analysis.conditions import with_one_name
from hydro_core.analysis.infer import Typed, infer
from hydro_core.analysis.strata import Strata, stratify
from hydro_core.errors import ProgramError
from hydro_core.ir import render
from hydro_core.ir.graph import Graph, NodeId
from hydro_core.lang.resolve import parse
from hydro_core.plan.planner import plan, plan_of
from hydro_core.plan.semantic_hash import NO_HASHES
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.types.item import ItemType

if TYPE_CHECKING:
    from hydro_core.optimize.cost import Statistics
    from hydro_core.optimize.optimizer import OptimizedProgram


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program that can be optimized, drawn and run."""

    typed: Typed
    strata: Strata

    @property
    def graph(self) -> Graph:
        return self.typed.graph

    def _repr_html_(self) -> str:
        """The drawing with its strata and types, in a notebook."""
        picture = render.picture_of(self.graph, self.strata.of, self.typed.types)
        return render.svg(picture)


def executable(
    text: str, schemas: Mapping[str, ItemType] | None = None, *, optimize: bool = True
) -> TickPlan:
    """The whole way of a program: from its text to what runs, if not optimized as it is written."""
    program = compile_text(text, schemas)
    return planned(program, best_plan(program) if optimize else None)


def compile_text(
    text: str,
    schemas: Mapping[str, ItemType] | None = None,
    *,
    file: str = "<text>",
    name: str = "flow",
    bindings: Mapping[str, Any] | None = None,
) -> CompiledProgram:
    """A text with its types and strata; `schemas` are those of inputs that it does not declare."""
    return compile_graph(parse(text, file=file, name=name, bindings=bindings), schemas)


def compile_graph(
    graph: Graph, schemas: Mapping[str, ItemType] | None = None, *, partial: bool = False
) -> CompiledProgram:
    """The types and strata of a graph; if `partial`, inputs without a schema have unknown items."""
    return stratified(infer(graph, schemas, partial=partial))


def compile_flow(
    graph: Graph, schemas: Mapping[str, ItemType], promised: Mapping[str, ItemType]
) -> CompiledProgram:
    """A flow with its types and strata; `promised` are the schemas of its forward references."""
    compiled = compile_graph(graph, schemas)
    for name, item in promised.items():
        found = compiled.typed.of(name).item if name in graph.nodes else item
        if found != item:
            message = f"`{name}` was announced as {item}, but its items are {found}"
            help_ = "announce what it is, or leave the schema away"
            raise ProgramError.of("type", message, graph[name].span, name, help=help_)
    return compiled


def stratified(typed: Typed) -> CompiledProgram:
    """A program of which the types are known; its joins have one name for each part of a key."""
    typed = with_one_name(typed)
    return CompiledProgram(typed, stratify(typed))


def best_plan(
    program: CompiledProgram,
    stats: Statistics | None = None,
    *,
    explain: bool = False,
    served_by: Statistics | None = None,
) -> OptimizedProgram:
    """The cheapest plan of a program, with its costs; if it is to `explain`, with its proof.

    `served_by`: what was known of the data when the plan was made that serves.
    """
    # Imported here: most commands take a program as it is.
    from hydro_core.optimize.optimizer import optimize

    return optimize(program.typed, stats, explain=explain, served_by=served_by)


def optimized(program: CompiledProgram, stats: Statistics | None = None) -> CompiledProgram:
    """The cheapest plan of a program as a program that runs on either engine."""
    return stratified(best_plan(program, stats).typed)


def planned(
    program: CompiledProgram,
    best: OptimizedProgram | None = None,
    known: Mapping[NodeId, str] = NO_HASHES,
) -> TickPlan:
    """What runs on Spark: a program as it is written, or by its best plan.

    Args:
        program: the program.
        best: its optimized plan, if it has one.
        known: the hashes of streams of that plan that are none of the program.
    """
    if best is None:
        return plan(program.typed, known)
    return plan_of(program.typed, best.typed, best.streams, known)


def draw(program: CompiledProgram, style: str) -> str:
    """A drawing of a program with its strata: svg, mermaid, dot, text or json."""
    picture = render.picture_of(program.graph, program.strata.of, program.typed.types)
    if style == "json":
        return json.dumps(render.json(picture), ensure_ascii=False)
    drawings = {d.__name__: d for d in (render.svg, render.mermaid, render.dot, render.text)}
    if style not in drawings:
        help_ = "the formats are svg, mermaid, dot, text and json"
        raise ProgramError.of("config", f"there is no format {style!r}", help=help_)
    return drawings[style](picture)
