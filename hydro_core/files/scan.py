"""A scan: the rows of an input that are read, of which files and of which ticks, and as what items.

It is told before a row is read. Two execute it: this process by Arrow (`reading`), and Spark
(`hydro_core.spark.files.frames`). What only all rows tell is judged here, whoever has read them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from hydro_core.files.inputs import (
    FileRow,
    InputFile,
    first_lacking,
    fits_whole,
    item_type_of,
    numbers_ticks,
    refuse,
    refuse_before_start,
    refuse_mixed,
    refuse_without_tick,
    require_columns,
    require_ticks,
)
from hydro_core.files.kinds import JSON_LINES
from hydro_core.files.places import FileSet, Survey, find
from hydro_core.files.row_batch import misfit
from hydro_core.files.rows import WantedColumns
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.tick_range import Numbers, TickRange
from hydro_core.types.item import UNKNOWN, ItemType, declared_columns, required_columns
from hydro_core.types.values import UNFIT

if TYPE_CHECKING:
    import pyarrow.dataset as ds


class Misfit(NamedTuple):
    """A value that is no item: its tick, its column and file by their numbers, its row there."""

    tick: int
    place: int
    file: int
    row: int
    problem: str


@dataclass(frozen=True, slots=True)
class Scan:
    """An input: what lies at its path, the type of its items, and the ticks that are read."""

    file: InputFile
    fileset: FileSet
    item: ItemType
    zone: str = "UTC"
    """That of dates, and of times that name none, in the tick column."""
    ticks: TickRange | None = None
    """Those whose rows are read; None: all rows, as of tick 0."""

    @property
    def columns(self) -> Mapping[str, ItemType]:
        """The columns that the items are made of."""
        return declared_columns(self.item) or {}

    @property
    def wanted(self) -> WantedColumns:
        """What is made of each row."""
        required = required_columns(self.item)
        return WantedColumns(self.columns, self.file.column, required, self.zone)

    @property
    def names(self) -> list[str]:
        """The columns that are read: those of its items, and the one that tells the ticks."""
        column = self.file.column
        return list(dict.fromkeys([*self.columns, *([column] if column else [])]))

    @property
    def tells_ticks(self) -> bool:
        column = self.file.column
        return column is None or numbers_ticks((self.fileset.types or {})[column])

    @property
    def is_exact(self) -> bool:
        """Whether casts make the items, and tell the ticks."""
        types = self.fileset.types or {}
        fit = (n in types and fits_whole(types[n], to) for n, to in self.columns.items())
        return all(fit) and self.tells_ticks

    def where(self, rows: ds.Dataset) -> ds.Expression | None:
        """What surely holds of the rows of the ticks; None: of all of them."""
        if self.ticks is None or self.file.column is None:
            return None
        return self.ticks.within(self.file.column, rows.schema.field(self.file.column).type)

    def numbers(self, rows: pa.Table | pa.RecordBatch) -> Numbers:
        """The ticks of rows."""
        if self.ticks is None or self.file.column is None:
            return np.zeros(rows.num_rows, np.int64)
        return self.ticks.numbers(rows[self.file.column])

    def refuse_misfit(self, found: Misfit, files: Sequence[DataPlace]) -> NoReturn:
        """Refuses a value that is no item; it is told by its file, its row there and its column."""
        told = misfit(found.problem, found.row, list(self.columns)[found.place])
        refuse(self.file, f"in tick {found.tick}, `{files[found.file].name}`: {told}", UNFIT)


def scans_of(
    files: Sequence[InputFile], declared: Mapping[str, ItemType], survey: Survey = map
) -> list[Scan]:
    """The inputs; what a program declares of them must be there. No row is made yet.

    Args:
        files: the inputs.
        declared: the types of their items, where a program declares them.
        survey: asks files for what only all of their rows tell.

    Raises:
        DataError: one is not there, cannot be read, or lacks a column (code `input`).
    """
    scans = []
    for file in files:
        of = declared.get(file.name, UNKNOWN)
        columns = declared_columns(of) or {}
        found = find(file, columns, survey)
        require_columns(file, columns, found.names, found.lacking)
        require_ticks(file, found.types)
        item = of if columns else item_type_of(found.types or {}, file.column)
        scans.append(Scan(file, found, item))
    return scans


@dataclass(slots=True)
class Findings:
    """What all rows of a scan tell together, besides their items."""

    names: dict[DataPlace, dict[str, None]] = field(default_factory=dict)
    """The columns that rows of each file have, of those that have rows."""
    without_tick: str | None = None
    """Why a row tells no tick."""
    numbers: bool = False
    """Whether ticks are told by numbers."""
    moments: bool = False
    """Whether ticks are told by times."""
    too_early: tuple[int, int, int] | None = None
    """A row with a negative number: its file, its row there, and the number."""

    def note(self, file: DataPlace, names: Collection[str]) -> None:
        """Adds columns of a file's rows."""
        self.names.setdefault(file, {}).update(dict.fromkeys(names))

    def refuse(self, scan: Scan, files: Sequence[DataPlace]) -> None:
        """Refuses columns that are missing, and rows that are of no tick.

        Args:
            scan: what was read.
            files: those that were read of it.

        Raises:
            DataError: what is wrong first (code `input`).
        """
        if scan.fileset.form.declared and scan.fileset.kind == JSON_LINES:
            # Only the rows tell that a file lacks a column: none has the key.
            there = dict.fromkeys(name for names in self.names.values() for name in names if name)
            lacking = first_lacking(scan.columns, self.names.items())
            require_columns(scan.file, scan.columns, list(there), lacking)
        if scan.file.column is None:
            return
        if self.without_tick is not None:
            refuse_without_tick(scan.file, self.without_tick)
        if self.numbers and self.moments:
            refuse_mixed(scan.file, scan.file)
        if self.too_early is not None:
            number, row, tick = self.too_early
            refuse_before_start(scan.file, FileRow(files[number], row), tick, None)
