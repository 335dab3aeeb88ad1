"""Inputs of which it is known what lies at their paths, before a row of them is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hydro_core.files.inputs import (
    InputFile,
    first_lacking,
    fits_whole,
    item_type_of,
    numbers_ticks,
    require_columns,
    require_ticks,
)
from hydro_core.files.kinds import JSON_LINES
from hydro_core.files.places import FoundFiles, Survey, find, survey_here
from hydro_core.storage.remote import DataPlace
from hydro_core.types.columns import declared_columns
from hydro_core.types.item import UNKNOWN, ItemType


@dataclass(frozen=True, slots=True)
class Arrived:
    """An input: what lies at its path, and the type of its items."""

    file: InputFile
    found: FoundFiles
    item: ItemType

    @property
    def columns(self) -> Mapping[str, ItemType]:
        """The columns that the items are made of."""
        return declared_columns(self.item) or {}


def arrive(
    files: Sequence[InputFile], declared: Mapping[str, ItemType], survey: Survey = survey_here
) -> list[Arrived]:
    """The inputs; what a program declares of them must be there. No row is made yet.

    Args:
        files: the inputs.
        declared: the types of their items, where a program declares them.
        survey: how files are asked for what only all of their rows tell.

    Raises:
        DataError: one is not there, cannot be read, or lacks a column (code `input`).
    """
    arrived = []
    for file in files:
        of = declared.get(file.name, UNKNOWN)
        columns = declared_columns(of) or {}
        found = find(file, columns, survey)
        require_columns(file, columns, found.names, found.lacking)
        require_ticks(file, found.types)
        item = of if columns else item_type_of(found.types or {}, file.column)
        arrived.append(Arrived(file, found, item))
    return arrived


def require_read(
    arrived: Arrived, columns: Iterable[str], read: Mapping[DataPlace, Collection[str]]
) -> None:
    """Refuses an input of JSON lines for what only reading its rows tells: that a file lacks a
    column, since no row of it has the key.

    Args:
        arrived: the input.
        columns: those that were to be read.
        read: the names that rows of each file have, of those that have rows.
    """
    if arrived.found.kind != JSON_LINES:
        return
    there = dict.fromkeys(name for names in read.values() for name in names if name)
    lacking = first_lacking(columns, read.items())
    require_columns(arrived.file, columns, list(there), lacking)


def is_exact(arrived: Arrived, columns: Mapping[str, ItemType]) -> bool:
    """Whether casts make the items, and tell the ticks."""
    types = arrived.found.types or {}
    column = arrived.file.column
    return all(n in types and fits_whole(types[n], to) for n, to in columns.items()) and (
        column is None or numbers_ticks(types[column])
    )
