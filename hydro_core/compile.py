"""The way of a program from its text to strata, a line for each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hydro_core.analysis.infer import Typed, infer
from hydro_core.analysis.strata import Strata, stratify
from hydro_core.ir.graph import Graph
from hydro_core.lang.resolve import parse
from hydro_core.types.item import ItemType


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program that can be optimized, drawn and run."""

    typed: Typed
    strata: Strata

    @property
    def graph(self) -> Graph:
        """The program."""
        return self.typed.graph


def compile_text(
    text: str,
    schemas: Mapping[str, ItemType] | None = None,
    *,
    file: str = "<text>",
    name: str = "flow",
    bindings: Mapping[str, Any] | None = None,
) -> Compiled:
    """A program's text, types and strata; `schemas` are those of inputs that it does not declare."""
    return compile_graph(parse(text, file=file, name=name, bindings=bindings), schemas)


def compile_graph(graph: Graph, schemas: Mapping[str, ItemType] | None = None) -> Compiled:
    """The types and strata of a graph."""
    typed = infer(graph, schemas)
    return Compiled(typed, stratify(typed))
