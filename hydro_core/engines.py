"""Both engines by one call: what runs a program, whole, on ticks that come one after another."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hydro_core.compile import Compiled, optimized
from hydro_core.errors import DataError, Diagnostic
from hydro_core.optimize.statistics import Statistics
from hydro_core.reference.interpreter import run_ticks
from hydro_core.settings import Settings
from hydro_core.ticks.tick import TickInput

Engine = Literal["reference", "spark"]
Outputs = Mapping[str, list[Any]]


def _nobody(_: str) -> None:
    """Nobody is told."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How a program is cut into shards."""

    shards: int
    on: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    """The fields by which inputs are routed; nothing: a derived choice is taken."""
    replicate: Collection[str] = ()
    """The inputs that every shard gets whole."""
    told: Callable[[str], None] = _nobody
    """Is told in a line what is routed by what."""
    stats: Statistics | None = None
    """What is known of the inputs, by which exchanges and broadcasts are chosen."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a program is run."""

    engine: Engine = "reference"
    optimized: bool = True
    as_range: bool = False
    settings: Settings = field(default_factory=Settings)
    spark: Any = None
    """A Spark session to use; None: one of this process."""
    cut: Cut | None = None
    """How it is cut into shards; None: it runs whole."""


def run_whole(program: Compiled, ticks: Iterable[TickInput], options: Options) -> Iterator[Outputs]:
    """The outputs of every tick, as items."""
    if options.optimized:
        program = optimized(program, goal="range" if options.as_range else "tick")
    if options.engine == "spark":
        return _run_on_spark(program, ticks, options)
    return run_ticks(program.typed, program.strata, ticks, options.settings)


def _run_on_spark(
    program: Compiled, ticks: Iterable[TickInput], options: Options
) -> Iterator[Outputs]:
    return _spark_module("memory").run_in_memory(  # type: ignore[no-any-return]
        program.typed,
        program.strata,
        ticks,
        options.settings,
        as_range=options.as_range,
        spark=options.spark,
    )


def files_on_spark() -> Any:
    """The module that runs programs on files with Spark."""
    return _spark_module("files.run")


def _spark_module(name: str) -> Any:
    # Imported when it is asked for: Spark takes seconds to load, and most commands do without it.
    try:
        return importlib.import_module(f"hydro_core.spark.{name}")
    except ModuleNotFoundError:
        raise DataError(
            Diagnostic(
                "config", "the Spark engine is not available", help="use `--engine reference`"
            )
        ) from None
