"""The Python API: a program is built by calls, and is the same graph as its text.

>>> flow = Flow("words")
>>> flow.source("lines", "string").flat_map(lambda line: line.split()).unique().sink("words")
>>> print(flow.to_text(), end="")
lines = source("string")
lines -> flat_map(lambda line: line.split()) -> unique() -> words
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hydro_core.compile import compile_flow, compile_graph, draw
from hydro_core.ir.graph import Graph
from hydro_core.lang.flow import FlowBuilder, Schema
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType

if TYPE_CHECKING:
    from hydro_core.analysis.partition.partitioning import Partitioning
    from hydro_core.analysis.slices import SliceAnswer
    from hydro_core.engines import Engine
    from hydro_core.printing.programs import BestPlan, CheckedProgram
    from hydro_core.printing.tables import TickOutputs

Schemas = Mapping[str, Schema]


class Flow(FlowBuilder):
    """A program in the making, and what can be asked of it; `graph()` is what it amounts to."""

    def check(self, schemas: Schemas | None = None) -> CheckedProgram:
        """The program with its types and strata: printed, what `hydrotick check` prints."""
        from hydro_core.printing.programs import checked

        return checked(compile_flow(self._warned(), _types(schemas), self.promised))

    def optimize(self, schemas: Schemas | None = None, **options: Any) -> BestPlan:
        """The optimized program and its cost before and after: printed, what `hydrotick optimize`
        prints.

        Options are `stats`, and `explain`: then it comes with the rules that lead there.
        """
        from hydro_core.printing.programs import shown_plan

        return shown_plan(self.check(schemas), **options)

    def partition(
        self,
        on: Mapping[str, str | Sequence[str]] | None = None,
        *,
        schemas: Schemas | None = None,
    ) -> Partitioning:
        """How the program can be cut into shards: what `hydrotick partition` answers.

        With `on` one choice is judged: of some inputs the dotted path, or paths, of the fields by
        which it is routed.
        """
        from hydro_core.analysis.partition.partitioning import judge, partition

        typed = self.check(schemas).typed
        return partition(typed) if on is None else judge(typed, on)

    def slice(self, output: str, *columns: str, schemas: Schemas | None = None) -> SliceAnswer:
        """What of each input can matter for rows of an output with given values in some columns."""
        from hydro_core.analysis.slices import slice_answer

        return slice_answer(self.check(schemas).typed, output, columns)

    def run(
        self,
        ticks: Iterable[Mapping[str, Sequence[Any]]],
        *,
        engine: Engine = "reference",
        schemas: Schemas | None = None,
        **options: Any,
    ) -> Iterator[TickOutputs]:
        """The outputs of every tick, in order, as they are computed: lists of items by the names of
        the outputs, which a notebook shows as tables.

        Options are `start` and `every`, the time at which the first tick begins and how long each
        is (`"1d"`); `optimize`, `as_range`, `settings` and `spark`; and `shards`, to run in so many
        shards, with `on` (the fields by which inputs are routed) and `replicate` (inputs that every
        shard gets whole).
        """
        from hydro_core.printing.tables import TickOutputs
        from hydro_core.running import run_flow

        found = run_flow(self._warned(), _types(schemas), ticks, engine=engine, **options)
        return map(TickOutputs, found)

    def draw(self, style: str = "svg", schemas: Schemas | None = None) -> str:
        """A drawing with the strata: svg, mermaid, dot or text."""
        program = compile_graph(self.graph(), _types(schemas), partial=True)
        return draw(program, style)

    def _repr_html_(self) -> str:
        return self.draw()

    def _warned(self) -> Graph:
        """The program; what it warns of is told as Python tells warnings."""
        graph = self.graph()
        for warning in graph.warnings:
            warnings.warn(warning.render(), stacklevel=3)
        return graph


def _types(schemas: Schemas | None) -> Mapping[str, ItemType]:
    given = schemas or {}
    return {n: parse_ddl(s) if isinstance(s, str) else s for n, s in given.items()}
