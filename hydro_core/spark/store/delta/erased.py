"""Rows taken out of a stored table, and out of all that it ever held.

Rows go by one commit of the table's log, which names files without them in the place of those that
had them; so they can be set back until the ledger speaks of it. What the table held before goes
after that: the files, and the entries of the log, whose statistics have values of the rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.files.parquet import files_as_dataset, write_parquet_file
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.schema import TableSpec, flattened
from hydro_core.spark.store.values import places_of
from hydro_core.storage.delta import opened_table
from hydro_core.storage.remote import DataPlace
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import FieldPath, at, children

_LOG = "_delta_log"

Column = Any
"""An array of Arrow's."""


class KeyedRows:
    """The rows of a table that have one value in a field of their items."""

    def __init__(self, spec: TableSpec, path: FieldPath, value: Any) -> None:
        """The field is a leaf, of a type whose equal values are equal to every function."""
        self.spec, self._path, self.value = spec, path, value
        self._column, self._places = _place(spec, path)

    def mask(self, rows: pa.Table) -> Column:
        """Which of some rows they are; the rows have at least the column of the field."""
        column = rows[self._column].combine_chunks()
        found = pc.struct_field(column, self._places) if self._places else column
        item = at(self.spec.item, self._path)
        if item is None:
            raise AssertionError(f"{self.spec.item} has no field {self._path}")
        try:
            wanted = pa.scalar(self.value, arrow_type(item))
        except (pa.ArrowInvalid, OverflowError):  # beyond what the column can hold
            return pa.array(np.zeros(len(column), np.bool_))
        return pc.equal(found, wanted).fill_null(False)

    def count(self, table: StoredTable, files: Collection[DataPlace] | None = None) -> int:
        """How many there are, in the files of the version that was seen last, or in others."""
        held = [file.path for file in table.files()] if files is None else files
        return sum(pc.sum(self.mask(rows)).as_py() or 0 for rows in self._columns(held))

    def take_out(self, table: StoredTable) -> int:
        """Takes them out of a table, and gives their number.

        What stays of an ordered tick is numbered anew, as it would be had they never been there.
        """
        place = self.spec.place if self.spec.role == "output" else None
        held = table.files()
        hits = [file for file in held if self.count(table, [file.path])]
        if not hits:
            return 0
        gone = self._places_of(hits, place)
        touched = held if place else hits
        files = [self._rest(f, table, place, gone) if f in touched else f for f in held]
        count = self.count(table)
        recorded = table.summed_to() if self.spec.forgets else -1
        table.hold((file for file in files if file is not None), summed_to=recorded)
        return count

    def _rest(
        self, file: DataFile, table: StoredTable, place: str | None, gone: dict[int, Column]
    ) -> DataFile | None:
        """The file without the rows; the same one if nothing of it changes."""
        rows = _read([file.path], self.spec)
        others: Column = pc.invert(self.mask(rows))
        left = rows.filter(others)
        if place:
            left = _numbered_anew(left, (self.spec.tick, place), gone)
            if left.equals(rows):
                return file
        if left.num_rows == 0:
            return None
        made = table.path / f"part-{uuid.uuid4()}.parquet"
        size = write_parquet_file(left, made)
        ticks = left[self.spec.tick].to_numpy()
        return DataFile(made, size, left.num_rows, int(ticks.min()), int(ticks.max()))

    def _places_of(self, files: Sequence[DataFile], place: str | None) -> dict[int, Column]:
        """The positions, by tick and in order, that are taken away."""
        if place is None:
            return {}
        rows = _read([file.path for file in files], self.spec)
        rows = rows.filter(self.mask(rows))
        ticks, places = rows[self.spec.tick].to_numpy(), rows[place].to_numpy()
        return {int(tick): np.sort(places[ticks == tick]) for tick in np.unique(ticks)}

    def _columns(self, files: Collection[DataPlace]) -> Iterator[pa.Table]:
        for file in files:
            yield _read([file], self.spec, [self._column])


def erase_files(table: StoredTable, kept: Callable[[], None] = lambda: None) -> int:
    """Removes the files that a table does not hold now, and gives its version after it; `kept`
    raises where another has taken over.
    """
    recorded = table.summed_to() if table.spec.forgets else -1
    table.vacuum(0, kept)
    if recorded >= 0:
        # The entry of the log that says so goes with its history.
        table.note_summed(recorded)
    return table.version


def erase_log(path: DataPlace, version: int) -> None:
    """Removes the entries of a Delta table's log before a version, which a checkpoint replaces.

    What came after that version stays.
    """
    opened_table(path, version).create_checkpoint()
    for file in (path / _LOG).iterdir():
        number = file.name.partition(".")[0]
        if number.isdecimal() and int(number) < version:
            file.unlink()


def _numbered_anew(rows: pa.Table, names: tuple[str, str], gone: dict[int, Column]) -> pa.Table:
    tick, place = names
    ticks, places = rows[tick].to_numpy(), rows[place].to_numpy().copy()
    for number, taken in gone.items():
        own = ticks == number
        places[own] -= np.searchsorted(taken, places[own])
    index = rows.schema.names.index(place)
    return rows.set_column(index, rows.schema.field(index), pa.chunked_array([pa.array(places)]))


def _read(
    files: Collection[DataPlace], spec: TableSpec, columns: list[str] | None = None
) -> pa.Table:
    return files_as_dataset(files, spec.arrow_schema).to_table(columns=columns)


def _place(spec: TableSpec, path: FieldPath) -> tuple[str, list[int]]:
    """The column that has a field, and the places of the steps within it."""
    item, steps = spec.item, list(path)
    if spec.role == "output" and steps:
        names = [name for name, _ in children(item)]
        column, item = list(flattened(item))[names.index(steps.pop(0))]
    else:
        column = spec.items[0][0]
    return column, places_of(item, steps)
