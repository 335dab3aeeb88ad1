"""Runs a program in shards on either engine, as one program in which they stand side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hydro_core.compile import Compiled, best_plan
from hydro_core.engines import Options, run_whole
from hydro_core.shards.program import Sharded
from hydro_core.shards.together import Together, as_written
from hydro_core.ticks.tick import Outputs, TickInput


def run_shards(program: Sharded, ticks: Iterable[TickInput], options: Options) -> Iterator[Outputs]:
    """The outputs of every tick, as items: those of the whole program."""
    planned = side_by_side(program, optimize=options.optimized)
    return run_whole(planned, ticks, replace(options, optimized=False))


def side_by_side(program: Sharded, *, optimize: bool) -> Compiled:
    """What runs: all shards by their best plan, or as they are written."""
    return Together.of(program, best_plan if optimize else as_written).compiled
