"""What a landing must be for ticks to be read from it, and the errors that say so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import pyarrow.compute as pc

from hydro_core.errors import DataError
from hydro_core.files.inputs import InputFile, refuse, require_columns, require_ticks
from hydro_core.files.places import DELTA, FileSet
from hydro_core.files.scan import Scan
from hydro_core.spark.store.ledger.input_reads import InputRead
from hydro_core.storage.delta import data_files, delta_table
from hydro_core.types.item import is_integer
from hydro_core.types.values import ValueProblem

if TYPE_CHECKING:
    import pyarrow.dataset as ds


@contextmanager
def as_changes(file: InputFile) -> Iterator[None]:
    """What is wrong with a value is told with its input."""
    try:
        yield
    except ValueProblem as problem:
        refuse(file, str(problem), "give the start and end of each tick")


def refuse_unfit(scan: Scan, before: InputRead | None) -> None:
    """Refuses an input that cannot be what the ticks are read from."""
    _refuse_another_kind(scan.file, scan.fileset, before)
    require_columns(scan.file, scan.columns, scan.fileset.names, scan.fileset.lacking)
    require_ticks(scan.file, scan.fileset.types)


def _refuse_another_kind(file: InputFile, found: FileSet, before: InputRead | None) -> None:
    """Refuses an input that was something else when the ticks before were read, in that place."""
    if before is None or before.location != file.path:
        return
    was = before.kind or (DELTA if before.version is not None else found.kind)
    if was != found.kind:
        lost = " (its `_delta_log` is gone)" if was == DELTA else ""
        refuse(
            file,
            f"it was a {was} when the last ticks were read, and is {found.kind} now{lost}",
            "restore it as it was, or let it land in another place and change its `path`",
        )


def has_rows_without_tick(scan: Scan, rows: ds.Dataset, column: str) -> bool:
    """Whether a row would never arrive, without a tick or of a negative one; statistics tell."""
    if is_integer((scan.fileset.types or {})[column]):
        return bool(rows.count_rows(filter=pc.field(column).is_null() | (pc.field(column) < 0)))
    if scan.fileset.version is not None:
        table = delta_table(scan.file.place, scan.fileset.version)
        count = f"null_count.{column}"
        nulls = [row[count] for row in data_files(table, count)]
        # Of a column that folders name, and of some writers' files, the log counts none.
        if None not in nulls:
            return any(nulls)
    return bool(rows.count_rows(filter=pc.field(column).is_null()))


def refuse_input(name: str, message: str, cure: str) -> NoReturn:
    """Raises an error of an input (code `input`)."""
    raise DataError.of("input", f"input `{name}`: {message}", help=cure)
