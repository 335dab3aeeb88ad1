"""Delta tables at any location, opened by delta-rs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hydro_core.storage.problems import is_of_store, problem
from hydro_core.storage.remote import DataPlace, RemotePath, file_known

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable, Transaction


_MOST = 16
_LAST: dict[RemotePath, DeltaTable] = {}
"""The table that was opened last at a location: a status asks for it several times at the same
version, and each time its whole log would be read.
"""
_LOCK = Lock()
_OFTEN = 10


def delta_table(place: DataPlace, version: int | None = None) -> DeltaTable:
    """A Delta table at a version, or the latest one, read-only.

    Raises:
        DeltaError: there is no table, or it cannot be read.
        InfrastructureError: the store does not let it be read.
    """
    if not isinstance(place, RemotePath):
        return opened_table(place, version)
    table = _LAST.get(place)
    if table is None or version is None or table.version() != version:
        table = opened_table(place, version)
    with _LOCK:
        _LAST.pop(place, None)
        _LAST[place] = table
        if len(_LAST) > _MOST:
            # The one that was asked for least recently.
            del _LAST[next(iter(_LAST))]
    return table


def opened_table(place: DataPlace, version: int | None = None) -> DeltaTable:
    """The same, to be read and written: the object is not shared.

    Raises:
        DeltaError: there is no table, or it cannot be read.
        InfrastructureError: the store does not let it be read.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    if not isinstance(place, RemotePath):
        return DeltaTable(str(place), version=version)
    try:
        return DeltaTable(_url(place), version=version, storage_options=place.for_delta)
    except TableNotFoundError:
        raise
    except (DeltaError, OSError) as error:
        if is_of_store(str(error)):
            # A direct request may give a more precise error.
            (place / "_delta_log").is_dir()
            raise problem(str(error), str(place), place.bucket, "read") from None
        raise


def created_table(
    place: DataPlace,
    schema: pa.Schema,
    name: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
) -> DeltaTable:
    """A new Delta table without rows.

    Raises:
        DeltaError: there is one.
    """
    from deltalake import DeltaTable

    options = place.for_delta if isinstance(place, RemotePath) else None
    return DeltaTable.create(
        _url(place) if isinstance(place, RemotePath) else str(place),
        schema,
        mode="error",
        name=name,
        configuration=configuration,
        storage_options=options,
    )


def write_table(
    place: DataPlace,
    rows: pa.Table,
    name: str,
    configuration: Mapping[str, str | None] | None,
    numbers: Sequence[Transaction],
) -> None:
    """Writes a new Delta table with rows in one commit: it exists with all of them, or not at all.

    Raises:
        DeltaError: the table exists.
    """
    from deltalake import CommitProperties, write_deltalake

    write_deltalake(
        _url(place) if isinstance(place, RemotePath) else str(place),
        rows,
        mode="error",
        name=name,
        configuration=configuration,
        commit_properties=CommitProperties(app_transactions=list(numbers)),
        storage_options=place.for_delta if isinstance(place, RemotePath) else None,
    )


def log_configuration(place: DataPlace, entries: int) -> dict[str, str | None]:
    """The settings of a table's log: the interval of its checkpoints, which is shorter in a store,
    since each reader requests every entry after the last one.

    In a store no commit removes expired entries, since that would list the whole log:
    `without_old_entries` does it from time to time.
    """
    if not isinstance(place, RemotePath):
        return {"delta.checkpointInterval": str(entries)}
    often = str(min(entries, _OFTEN))
    return {"delta.checkpointInterval": often, "delta.enableExpiredLogCleanup": "false"}


def without_old_entries(place: DataPlace, table: DeltaTable) -> None:
    """Removes the entries of a table's log in a store that are older than its retention."""
    if isinstance(place, RemotePath):
        table.cleanup_metadata()


def without_files(
    place: DataPlace, table: DeltaTable, hours: int, kept: Callable[[], None]
) -> None:
    """Removes files that no version of the last `hours` hours contains, nor any other version.

    In a store the files are listed first. Then the callback raises if another process has taken the
    lease: that process may have written files that no version contains yet. Files that it writes
    later are not in the list.
    """
    in_store = isinstance(place, RemotePath)
    gone = table.vacuum(
        retention_hours=hours, dry_run=in_store, enforce_retention_duration=False, full=True
    )
    if not isinstance(place, RemotePath):
        table.update_incremental()
    elif gone:
        kept()
        place.store.delete([(place / unquote(name)).key for name in gone])


def entry_of(place: DataPlace, version: int) -> DataPlace:
    """The file of a Delta table's log that committed a version."""
    return place / "_delta_log" / f"{version:020}.json"


def is_table(place: DataPlace) -> bool:
    if not isinstance(place, RemotePath):
        return place.exists()
    # A request for a folder lists it; a long log has a checkpoint.
    return (place / "_delta_log/_last_checkpoint").is_file() or (place / "_delta_log").is_dir()


def _url(place: RemotePath) -> str:
    return f"{'s3' if place.kind == 's3' else place.scheme}://{place.bucket}/{place.key}"


def data_files(table: DeltaTable, *columns: str) -> list[dict[str, Any]]:
    """A row for each data file, with the given columns of the log: `path`, `size_bytes`,
    `max.tick`.

    A column that the log lacks is None. The rest is not read: pyarrow loads pandas when it converts
    an instant to Python, and when it reads a stream as a table; a reader of the ledger alone avoids
    it.
    """
    import pyarrow as pa

    found = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()
    there = [name for name in columns if name in found.column_names]
    absent = dict.fromkeys(columns)
    return [{**absent, **row} for row in found.select(there).to_pylist()]


def sizes_in(place: DataPlace, table: DeltaTable) -> Mapping[str, int]:
    """The bytes of a table's files by its log, which saves a request to the store for each of them;
    empty for a directory, where a request costs nothing.
    """
    rows = data_files(table, "path", "size_bytes") if isinstance(place, RemotePath) else ()
    return {unquote(row["path"]): row["size_bytes"] or 0 for row in rows}


def table_file(place: DataPlace, path: str, sizes: Mapping[str, int]) -> DataPlace:
    """A file of a table, with its size if the log has it: files never change."""
    size = sizes.get(path)
    return place / path if size is None else file_known(place, path, size, 0)
