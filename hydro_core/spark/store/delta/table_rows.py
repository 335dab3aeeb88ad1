"""Rows of stored tables, as Arrow reads their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hydro_core.files.parquet import files_as_dataset, in_pieces
from hydro_core.machine.faults import raise_outage
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.ledger.ledger import RESTORE, state_error


def existing_files(table: StoredTable, first: int, last: int) -> list[DataFile]:
    """The files that may hold rows of these ticks; of a store whoever reads tells what is missing.

    Raises:
        DataError: one of them is not there (code `state`).
    """
    files = [file for file in table.files() if file.rows != 0 and file.may_hold(first, last)]
    for file in files:
        if isinstance(file.path, Path) and not file.path.exists():
            raise state_error(
                f"the table {table.path} has lost its file {file.path.name}",
                RESTORE,
            )
    return files


def rows_of(
    table: StoredTable, files: Iterable[DataFile], where: ds.Expression | None = None
) -> pa.Table:
    """The rows of files of a table for which a condition holds."""
    with table_errors(table):
        return _dataset(table, files).to_table(filter=where)


def pieces_of(
    table: StoredTable, files: Iterable[DataFile], where: ds.Expression | None = None
) -> Iterator[pa.Table]:
    """The same a piece at a time; at least one, which tells the columns."""
    with table_errors(table):
        yield from pieces_or_empty(_dataset(table, files), None, where)


def pieces_or_empty(
    rows: ds.Dataset, columns: Sequence[str] | None, where: ds.Expression | None
) -> Iterator[pa.Table]:
    """The rows of a dataset a piece at a time; where there are none, one without rows."""
    some = False
    for piece in in_pieces(rows, columns, where):
        some = True
        yield piece
    if not some:
        empty = rows.schema.empty_table()
        yield empty if columns is None else empty.select(list(columns))


def rows_since(table: StoredTable, tick: int) -> int:
    """The number of rows of a tick and those after it: their column alone is read."""
    files = (file for file in table.files() if file.last is None or file.last >= tick)
    return _dataset(table, files).count_rows(filter=ds.field(table.spec.tick) >= tick)


def last_tick(table: StoredTable, until: int) -> int | None:
    """The last tick up to one of which there are rows."""
    tick = table.spec.tick
    rows = _dataset(table, (file for file in table.files() if file.may_hold(0, until)))
    found: int | None = pc.max(rows.to_table([tick], ds.field(tick) <= until)[tick]).as_py()
    return found


def _dataset(table: StoredTable, files: Iterable[DataFile]) -> ds.Dataset:
    return files_as_dataset((file.path for file in files), table.spec.arrow_schema)


@contextmanager
def table_errors(table: StoredTable) -> Iterator[None]:
    """A file that cannot be read becomes an error of the table.

    Raises:
        DataError: a file is broken (code `state`).
    """
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the disk failed, not the file
            raise
        raise_outage(error, str(table.path))
        first_line = str(error).partition("\n")[0]
        problem = f"a file of the table {table.path} cannot be read: {first_line}"
        raise state_error(problem, RESTORE) from error
