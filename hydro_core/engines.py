"""Both engines by one call: what runs a program, whole, on ticks that come one after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hydro_core.compile import CompiledProgram, optimized, planned
from hydro_core.reference.interpreter import run_ticks
from hydro_core.settings import Settings
from hydro_core.ticks.tick import Outputs, TickInput

Engine = Literal["reference", "spark"]


@dataclass(frozen=True, slots=True)
class ShardingOptions:
    """How a program is cut into shards."""

    shards: int
    on: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    """The fields by which inputs are routed; nothing: a derived choice is taken."""
    replicate: Collection[str] = ()
    """The inputs that every shard gets whole."""
    progress: Callable[[str], None] = lambda _: None
    """Is told in a line what is routed by what; unless it is said, nobody is."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a program is run."""

    engine: Engine = "reference"
    optimized: bool = True
    as_range: bool = False
    settings: Settings = field(default_factory=Settings)
    spark: Any = None
    """A Spark session to use; None: one of this process."""
    cut: ShardingOptions | None = None
    """How it is cut into shards; None: it runs whole."""


def run_whole(
    program: CompiledProgram, ticks: Iterable[TickInput], options: Options
) -> Iterator[Outputs]:
    """The outputs of every tick, as items."""
    if options.optimized:
        program = optimized(program)
    if options.engine == "reference":
        return run_ticks(program.typed, program.strata, ticks, options.settings)
    # Imported when it is asked for: Spark takes seconds to load, and most commands do without it.
    from hydro_core.spark.executor.memory import run_in_memory

    as_range, spark = options.as_range, options.spark
    return run_in_memory(planned(program), ticks, options.settings, as_range=as_range, spark=spark)
