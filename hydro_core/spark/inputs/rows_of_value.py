"""The landed rows that have one value in a column: found, and taken out of Delta tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.exceptions import DeltaError

from hydro_core.errors import DataError
from hydro_core.files.reading import read
from hydro_core.files.scan import Scan
from hydro_core.machine.faults import fault_of
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.frames.row_hashes import row_hashes
from hydro_core.spark.inputs.arrivals.landings import LandingView
from hydro_core.spark.inputs.arrivals.listing import Hashed
from hydro_core.spark.inputs.arrivals.row_bags import unmatched
from hydro_core.spark.inputs.arrivals.source import LandingSource, Snapshot
from hydro_core.spark.store.delta.erased import erase_log
from hydro_core.storage.remote import DataPlace
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import Field, ItemType, Row


@dataclass(frozen=True, slots=True)
class RowsOfValue:
    """The rows of an input that have a value in a column of its own."""

    source: LandingSource
    column: str
    value: Any

    @property
    def type(self) -> ItemType:
        """The column's."""
        return self.source.columns[self.column]

    def files(self, scan: Scan | None = None) -> Mapping[DataPlace, int]:
        """How many rows each file has, of whatever ticks; those without any are not named.

        Raises:
            DataError: a file cannot be read (code `input`).
        """
        at = scan or self.source.scan()
        item = Row((Field(self.column, self.type),))
        column = replace(at, item=item, file=replace(at.file, column=None))
        found = {}
        for file in at.fileset.files:
            items = read(column, [file]).items
            rows = int(np.count_nonzero(self._mask(items)))
            if rows:
                found[file] = rows
        return found

    def read_by(self, seen: LandingView) -> list[int]:
        """The committed ticks that have read the rows that are there now."""
        hashed = self.hashed(seen.now.version or 0, seen.until)
        late = seen.off.late.where(~unmatched(seen.off.late.hashes, hashed.hashes))
        own = unmatched(hashed.hashes, seen.off.elsewhere.hashes)
        ticks = [*hashed.ticks[own].tolist(), *late.arrived.tolist()]
        return [tick for tick in dict.fromkeys(ticks) if tick < seen.until]

    def hashed(self, version: int | None, until: int) -> Hashed:
        """The rows of the ticks before one, as a version of the Delta table has them; None: as they
        are there now.
        """
        at = self.source.scan(None if version is None else Snapshot("", version))
        files = list(self.files(at))
        rows = self.source.rows(at, files, (0, until - 1))
        rows = rows.filter(pa.array(self._mask(rows[ITEM].combine_chunks())))
        return Hashed(rows[TICK].to_numpy(), row_hashes(rows))

    def delete(self) -> int:
        """Takes the rows out of the Delta table by one commit, and gives its version after it.

        Raises:
            DataError: the table cannot be written (code `input`).
        """
        path = self.source.file.path
        try:
            table = DeltaTable(path)
            table.delete(f'"{self.column}" = {_literal(self.value)}')
            table.update_incremental()
            # The entry of the log says which rows went, so it is not to be the last one.
            nothing = PostCommitHookProperties()
            table.create_write_transaction(
                [], "append", table.schema(), post_commithook_properties=nothing
            )
            table.update_incremental()
            return table.version()
        except DeltaError as error:
            first_line = str(error).strip().partition("\n")[0]
            raise fault_of(error, path) or DataError.of(
                "input",
                f"input `{self.source.file.name}`: the rows cannot be deleted from the Delta table "
                f"{path}: {first_line}",
                help="delete them with what writes the table, then run this again",
            ) from error

    def erase_history(self, version: int) -> None:
        """Removes what the Delta table held before a version: its files, and its log."""
        path = Path(self.source.file.path)
        erase_log(path, version)
        DeltaTable(path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    def _mask(self, items: Any) -> npt.NDArray[np.bool_]:
        names = list(self.source.columns)
        struct = pa.types.is_struct(items.type)
        place = 0 if struct and items.type.num_fields == 1 else names.index(self.column)
        column = pc.struct_field(items, [place]) if struct else items
        wanted = pa.scalar(self.value, arrow_type(self.type))
        equal: Any = pc.equal(column, wanted)
        mask: npt.NDArray[np.bool_] = equal.fill_null(False).to_numpy(zero_copy_only=False)
        return mask


def _literal(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return "'" + str(value).replace("'", "''") + "'"
