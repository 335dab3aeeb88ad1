"""What a landing must be for ticks to be read from it, and the errors that say so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import pyarrow.compute as pc
from deltalake import DeltaTable

from hydro_core.errors import DataError, Diagnostic
from hydro_core.files.arrived import Arrived
from hydro_core.files.places import DELTA, Found
from hydro_core.spark.store.store.delta_actions import data_files
from hydro_core.spark.store.store.input_reads import InputRead
from hydro_core.ticks.batches import InputFile, refuse, require_columns
from hydro_core.types.columns import declared_columns
from hydro_core.types.values import ValueProblem

if TYPE_CHECKING:
    import pyarrow.dataset as ds


@contextmanager
def told(file: InputFile) -> Iterator[None]:
    """What is wrong with a value is told with its input."""
    try:
        yield
    except ValueProblem as problem:
        refuse(file, str(problem), "give the start and end of each tick")


def refuse_unfit(arrived: Arrived, before: InputRead | None) -> None:
    """Refuses an input that cannot be what the ticks are read from."""
    _refuse_another_kind(arrived.file, arrived.found, before)
    require_columns(arrived.file, declared_columns(arrived.item) or {}, arrived.found.names)
    _refuse_no_ticks(arrived)


def _refuse_another_kind(file: InputFile, found: Found, before: InputRead | None) -> None:
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


def _refuse_no_ticks(arrived: Arrived) -> None:
    """Refuses a tick column that tells no ticks, as far as its type says so."""
    column, types = arrived.file.column, arrived.found.types
    if column is None or types is None or column not in types:
        return
    if str(types[column]) in ("boolean", "float", "double", "binary"):
        refuse(
            arrived.file,
            f"the tick column `{column}` is {types[column]}, which tells no tick",
            "use a column with the tick's number, a date or a timestamp",
        )


def refuse_nulls(arrived: Arrived, rows: ds.Dataset, column: str) -> None:
    """Rows without a tick would never arrive; the files' statistics tell of them."""
    if arrived.found.version is None:
        nulls = rows.count_rows(filter=pc.field(column).is_null())
    else:
        table = DeltaTable(arrived.file.path, version=arrived.found.version)
        count = f"null_count.{column}"
        nulls = sum(row[count] or 0 for row in data_files(table, count))
    if nulls:
        refuse(
            arrived.file,
            f"{nulls:,} of its rows have a null in `{column}`",
            "give every row its tick when it lands",
        )


def refuse_input(name: str, message: str, cure: str) -> NoReturn:
    """Raises an error of an input (code `input`)."""
    raise DataError(Diagnostic("input", f"input `{name}`: {message}", help=cure))
