"""The way of a program from its text to strata, a line for each step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hydro_core.analysis.infer import Typed, infer
from hydro_core.analysis.strata import Strata, stratify
from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.ir import render
from hydro_core.ir.graph import Graph
from hydro_core.lang.resolve import parse
from hydro_core.report import as_text
from hydro_core.types.item import ItemType

if TYPE_CHECKING:
    from hydro_core.optimize.cost import Goal
    from hydro_core.optimize.statistics import Statistics


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program that can be optimized, drawn and run."""

    typed: Typed
    strata: Strata

    @property
    def graph(self) -> Graph:
        """The program."""
        return self.typed.graph

    def __str__(self) -> str:
        return as_text(self.typed, self.strata)

    def _repr_html_(self) -> str:
        """The drawing with its strata and types, in a notebook."""
        picture = render.picture_of(self.graph, self.strata.of, self.typed.types)
        return render.svg(picture)


def compile_text(
    text: str,
    schemas: Mapping[str, ItemType] | None = None,
    *,
    file: str = "<text>",
    name: str = "flow",
    bindings: Mapping[str, Any] | None = None,
) -> Compiled:
    """A text with its types and strata; `schemas` are those of inputs that it does not declare."""
    return compile_graph(parse(text, file=file, name=name, bindings=bindings), schemas)


def compile_graph(
    graph: Graph, schemas: Mapping[str, ItemType] | None = None, *, partial: bool = False
) -> Compiled:
    """The types and strata of a graph; if `partial`, inputs without a schema have unknown items."""
    typed = infer(graph, schemas, partial=partial)
    return Compiled(typed, stratify(typed))


def compile_flow(
    graph: Graph, schemas: Mapping[str, ItemType], promised: Mapping[str, ItemType]
) -> Compiled:
    """A flow with its types and strata; `promised` are the schemas of its forward references."""
    compiled = compile_graph(graph, schemas)
    for name, item in promised.items():
        found = compiled.typed.of(name).item if name in graph.nodes else item
        if found != item:
            message = f"`{name}` was announced as {item}, but its items are {found}"
            help_ = "announce what it is, or leave the schema away"
            raise ProgramError(Diagnostic("type", message, graph[name].span, name, help=help_))
    return compiled


def optimized(compiled: Compiled, stats: Statistics | None = None, goal: Goal = "tick") -> Compiled:
    """The cheapest plan of a program: what runs, unless the program shall run as written."""
    # Imported here: most commands take a program as it is.
    from hydro_core.optimize.optimizer import optimize

    plan = optimize(compiled.typed, compiled.strata, stats, goal)
    return compile_graph(plan.graph, {n: t.item for n, t in compiled.typed.inputs.items()})


def draw(graph: Graph, style: str, schemas: Mapping[str, ItemType] | None = None) -> str:
    """A drawing of a program with its strata: svg, mermaid, dot, text or json."""
    compiled = compile_graph(graph, schemas, partial=True)
    picture = render.picture_of(graph, compiled.strata.of, compiled.typed.types)
    match style:
        case "svg":
            return render.svg(picture)
        case "mermaid":
            return render.mermaid(picture)
        case "dot":
            return render.dot(picture)
        case "text":
            return render.text(picture)
        case "json":
            return json.dumps(render.json(picture), ensure_ascii=False)
        case _:
            help_ = "the formats are svg, mermaid, dot, text and json"
            raise ProgramError(Diagnostic("config", f"there is no format {style!r}", help=help_))
