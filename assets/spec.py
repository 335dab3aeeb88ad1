"""What an asset folder declares: a program, where its inputs land, its ticks, and what must hold of
its outputs.

A `FlowAsset` is data. `orchestration.factory` makes Dagster assets, checks and jobs of it;
`hydrotick` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Landing:
    """A table that outside systems write and ticks read.

    `path` is relative to the project's data directory. `column` says which tick a row belongs to: a
    date or timestamp that the flow's ticks cut up, or a long that is the tick's number; without it
    the whole table arrives at tick 0.
    """

    path: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Ticks:
    """The tick axis: windows of length `every` from `start` (UTC), up to `end` where the flow has
    an end.
    """

    start: datetime
    every: Literal["15m", "1h", "1d", "1w", "1mo"] = "1d"
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Expect:
    """What must hold of a column of an output in every tick; a broken one stops the tick before it
    commits.
    """

    column: str
    not_null: bool = False
    unique: bool = False
    at_least: float | int | date | None = None
    at_most: float | int | date | None = None
    one_of: tuple[Any, ...] = ()
    matches: str | None = None


@dataclass(frozen=True, slots=True)
class FlowAsset:
    """A flow as an asset folder gives it.

    `program` is a `*.hydro` file or `module:attribute`. `schemas` types the inputs that the program
    does not declare, as Spark DDL. `outputs` has a sentence for each output, which the UI shows.
    """

    name: str
    program: Path | str
    ticks: Ticks
    inputs: Mapping[str, Landing]
    description: str = ""
    expect: Mapping[str, tuple[Expect, ...]] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[str, ...] = ()
    land: Callable[[Path], None] | None = None
    """Puts the data that the folder brings with it below a landing directory."""
