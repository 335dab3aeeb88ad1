"""An input: what lies at its path, and the type of its items. No Spark is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from hydro_core.spark.files.places import FoundFiles
from hydro_core.spark.files.rows import fits_whole, tells_ticks
from hydro_core.ticks.batches import InputFile, refuse
from hydro_core.ticks.landed import misfit
from hydro_core.types.item import ItemType
from hydro_core.types.values import UNFIT


@dataclass(frozen=True, slots=True)
class Arrived:
    """An input: what lies at its path, and the type of its items."""

    file: InputFile
    found: FoundFiles
    item: ItemType


def is_exact(arrived: Arrived, columns: Mapping[str, ItemType]) -> bool:
    """Whether casts make the items, and tell the ticks."""
    types = arrived.found.types or {}
    column = arrived.file.column
    return all(fits_whole(types[n], to) for n, to in columns.items()) and (
        column is None or tells_ticks(types[column])
    )


def refuse_misfit(
    arrived: Arrived, tick: int, problem: str, where: tuple[Path, int, str]
) -> NoReturn:
    """Refuses a value that is no item; it is told by its file, its row there and its column."""
    file, row, column = where
    told = misfit(problem, row, column)
    refuse(arrived.file, f"in tick {tick}, `{file.name}`: {told}", UNFIT)
