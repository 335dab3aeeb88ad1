"""Delta tables of a pipeline: appended to, set back, listed and vacuumed, without a JVM.

Their versions are what the ledger speaks of. Rows come as Arrow, or as Parquet files that Spark has
already written below the table's directory; either way it is one small commit of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from hydro_core.catalog.forms import Form
from hydro_core.errors import DataError, HydroError
from hydro_core.files.parquet import files_as_dataset, in_pieces
from hydro_core.machine.faults import fault_of, raise_outage
from hydro_core.spark.store.delta.actions import (
    DataFile,
    added,
    named_types,
    removed,
    stored_file,
    summed_to,
    summing,
    with_order,
)
from hydro_core.spark.store.ledger.ledger import RESTORE, overtaken, state_error
from hydro_core.spark.store.schema import TableSpec
from hydro_core.storage.arrow import opened
from hydro_core.storage.delta import (
    created_table,
    data_files,
    entry_of,
    is_table,
    log_configuration,
    opened_table,
    without_files,
    without_old_entries,
)
from hydro_core.storage.places import are_there, remove_tree
from hydro_core.storage.remote import DataPlace, RemotePath

STAGED = "staged"
"""The directory, within a table's, of files that Spark writes."""

_TIERS = tuple(n * 1024 * 1024 for n in (1, 16, 256))
"""Files are joined with those of their own tier, so each byte is written again a few times only.

Those that are more than half as large as a tier's files are to be, two of which make none of them,
wait for the next one.
"""


ROWS_OF_A_GROUP = 1 << 15
"""The rows of a row group of state, of which those are read in which a row is met."""

# Of state: what delta-rs takes by itself, but for the size of row groups.
_WRITTEN = WriterProperties(compression="SNAPPY", max_row_group_size=ROWS_OF_A_GROUP)
_JOINED = WriterProperties(
    compression="ZSTD", compression_level=4, max_row_group_size=ROWS_OF_A_GROUP
)

FileActions = Iterable[AddAction | RemoveAction]
WriteMode = Literal["append", "overwrite"]


class StoredTable:
    """The table of a spec, below the directory of a pipeline."""

    def __init__(self, directory: DataPlace, spec: TableSpec, *, checkpoint_interval: int) -> None:
        self.spec = spec
        self.path = directory / spec.name
        self._checkpoint_interval = checkpoint_interval
        self._table: DeltaTable | None = None
        self._listed: tuple[int, list[DataFile]] | None = None

    @property
    def exists(self) -> bool:
        """Whether there is anything at its place."""
        return (self._table is not None and isinstance(self.path, RemotePath)) or is_table(
            self.path
        )

    @property
    def version(self) -> int:
        """The version that this object has seen last."""
        return self._open().version()

    def is_at(self, version: int) -> bool:
        """Whether the table stands at this version, neither before nor beyond."""
        if entry_of(self.path, version + 1).is_file():
            return False
        known = self._table is not None and self._table.version() == version
        if known and entry_of(self.path, version).is_file():
            return True
        self.forget()
        return self._open().version() == version

    def look_at(self, version: int) -> None:
        """Reads the table as it is at this version, until `is_at` or `restore` is asked."""
        if self.is_at(version):
            return
        try:
            self._table = opened_table(self.path, version)
        except DeltaError as error:
            raise self._without(version, error) from error
        self._listed = None

    def create(self) -> None:
        """Makes the table, without rows."""
        often = log_configuration(self.path, self._checkpoint_interval)
        try:
            self._table = created_table(self.path, self.spec.arrow_schema, configuration=often)
        except DeltaError as error:
            if isinstance(self.path, RemotePath) and is_table(self.path):
                raise overtaken(self.path) from error
            raise

    def forget(self) -> None:
        """Looks at the table anew when it is next asked for."""
        self._table = self._listed = None

    def drop(self) -> None:
        """Takes the table away."""
        self.forget()
        remove_tree(self.path, ignore_errors=True)

    def restore(self, version: int) -> None:
        """Makes the table hold again what it held at `version`.

        Raises:
            DataError: its log, or a file that it held, is not there any more (code `state`).
        """
        self.forget()
        table = self._open()
        if table.version() < version:
            raise self._without(version, f"it ends at {table.version()}")
        if table.version() == version:
            return
        if isinstance(self.path, RemotePath):
            # While delta-rs sets a table back nothing else goes on in this process, a lease ends.
            files = self.files_at(version)
            if not are_there(file.path for file in files):
                raise self._removed(version)
            self.hold(files)
            return
        try:
            with self._one_version(table):
                table.restore(version)
        except DeltaError as error:
            if "missing file" not in str(error):
                raise self._lost(f"cannot be set back to version {version}", error) from error
            raise self._removed(version) from error

    def append(self, rows: pa.Table) -> None:
        """Adds the rows, or puts them in the place of all others, as the form of the table says."""
        if rows.num_rows == 0 and (self.spec.form is not Form.VALUES or not self.files()):
            return
        self._write(rows, self._mode)

    def append_files(self, files: Iterable[DataPlace], first: int, last: int) -> None:
        """Adds Parquet files that lie below the table's directory and hold these ticks."""
        adds = [added(self._seen(f, first, last), self.path, self.spec.tick) for f in files]
        if adds or self.spec.form is Form.VALUES:
            self._commit(adds, self._mode)

    def files(self) -> list[DataFile]:
        """The data files of the version that was seen last."""
        table = self._open()
        if self._listed is None or self._listed[0] != table.version():
            self._listed = table.version(), self._list(table)
        return self._listed[1]

    def _list(self, table: DeltaTable) -> list[DataFile]:
        tick = self.spec.tick
        names = ("path", "size_bytes", "num_records", f"min.{tick}", f"max.{tick}")
        rows = data_files(table, *names)
        return [DataFile(stored_file(self.path, row), *(row[n] for n in names[1:])) for row in rows]

    def files_at(self, version: int) -> list[DataFile]:
        """The data files of an earlier version; they may have been removed from the disk since.

        Raises:
            DataError: the version is not known any more (code `state`).
        """
        try:
            return self._list(opened_table(self.path, version))
        except DeltaError as error:
            raise self._without(version, error) from error

    def hold(self, files: Iterable[DataFile], *, summed_to: int = -1) -> None:
        """Holds these files and no others, by one commit of its log; its columns become the spec's.

        The files lie below the table's directory. `summed_to` is the last tick that its rows do not
        tell apart from those before it.
        """
        wanted = {file.path: file for file in files}
        held = {file.path: file for file in self.files()}
        same_columns = self.schema_matches()
        new = [file for path, file in wanted.items() if path not in held]
        gone = [file for path, file in held.items() if path not in wanted]
        adds = [added(file, self.path, self.spec.tick) for file in new]
        said, columns = self._summing(summed_to), self.spec.arrow_schema
        if not same_columns:
            if len(gone) < len(held):
                raise AssertionError(f"{self.path} cannot keep files that have other columns")
            self._commit(adds, "overwrite", Schema.from_arrow(with_order(columns)), said)
        elif adds or gone:
            removes = [removed(file, self.path) for file in gone]
            self._commit([*adds, *removes], "append", Schema.from_arrow(columns), said)

    def small_files(self) -> int:
        """The number of files of the smallest tier."""
        return self._of_tier(_TIERS[0])

    def compact(self, least: int) -> None:
        """Joins the files of each tier that has at least so many of them."""
        table = self._open()
        how = _JOINED if self.spec.role == "state" else None
        for tier in _TIERS:
            if self._of_tier(tier) >= least:
                with self._one_version(table):
                    table.optimize.compact(target_size=tier, writer_properties=how)
                without_old_entries(self.path, table)

    def _of_tier(self, size: int) -> int:
        return sum(2 * file.size < size for file in self.files())

    def rewrite(self, rows: pa.Table, *, summed_to: int = -1) -> None:
        """Puts the rows in the place of all others; see `hold`."""
        self._write(rows, "overwrite", self._summing(summed_to))

    def summed_to(self) -> int:
        """The last tick that may not be told apart from those before it any more; -1: none."""
        return summed_to(self._open(), (file.first for file in self.files()))

    def vacuum(self, hours: int, kept: Callable[[], None] = lambda: None) -> None:
        """Removes files that no version of the last so many hours holds, nor ever a version; `kept`
        raises where another has taken over.
        """
        without_files(self.path, self._open(), hours, kept)

    @property
    def rows(self) -> int:
        """The number of rows of the version that was seen last."""
        return sum(file.rows or 0 for file in self.files())

    def schema_matches(self) -> bool:
        """Whether the stored columns are those of the spec."""
        found: Any = self._open().schema().to_arrow()
        return named_types(pa.schema(found)) == named_types(self.spec.arrow_schema)

    def _write(self, rows: pa.Table, mode: WriteMode, said: CommitProperties | None = None) -> None:
        table = self._open()
        # Its overloads tell modes apart that are one call.
        write: Any = write_deltalake
        with self._one_version(table):
            write(
                table,
                rows.cast(self.spec.arrow_schema),
                mode=mode,
                commit_properties=said,
                writer_properties=_WRITTEN if self.spec.role == "state" else None,
            )

    def _commit(
        self,
        actions: FileActions,
        mode: WriteMode,
        columns: Schema | None = None,
        said: CommitProperties | None = None,
    ) -> None:
        table = self._open()
        with self._one_version(table):
            table.create_write_transaction(
                list(actions),
                mode,
                columns or table.schema(),
                commit_properties=said,
                post_commithook_properties=PostCommitHookProperties(),
            )

    def _summing(self, tick: int) -> CommitProperties | None:
        return summing(tick) if tick >= 0 else None

    @contextmanager
    def _one_version(self, table: DeltaTable) -> Iterator[None]:
        """Within it one version is written, which is seen then.

        Raises:
            TransientError: somebody else has written as well, maybe rows (code `state`).
        """
        before = table.version()
        try:
            yield
        except CommitFailedError as error:
            raise fault_of(error, str(self.path)) or overtaken(self.path) from error
        if table.version() == before:
            table.update_incremental()
        if table.version() > before + 1:
            raise overtaken(self.path)

    @property
    def _mode(self) -> WriteMode:
        return "overwrite" if self.spec.form is Form.VALUES else "append"

    def _open(self) -> DeltaTable:
        if self._table is None:
            try:
                self._table = opened_table(self.path)
            except DeltaError as error:
                raise self._lost("cannot be read", error) from error
        return self._table

    def _seen(self, file: DataPlace, first: int, last: int) -> DataFile:
        rows = pq.read_metadata(opened(file)).num_rows
        return DataFile(file, file.stat().st_size, rows, first, last)

    def _removed(self, version: int) -> DataError:
        return state_error(
            f"the table {self.path} cannot be set back to version {version}: "
            "files of it were removed",
            "go back less far, or restore the pipeline's directory from a backup; "
            "`hydrotick compact --keep-hours` says how long files are kept",
        )

    def _without(self, version: int, error: Exception | str) -> HydroError:
        return self._lost(f"has lost its version {version}", error)

    def _lost(self, what: str, error: Exception | str) -> HydroError:
        fault = fault_of(error, str(self.path)) if isinstance(error, Exception) else None
        if fault is not None:
            return fault
        first_line = str(error).strip().partition("\n")[0]
        return state_error(
            f"the table {self.path} {what}: {first_line}",
            RESTORE,
        )


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


_LOG = "_delta_log"


def erase_log(path: DataPlace, version: int) -> None:
    """Removes the entries of a Delta table's log before a version, which a checkpoint replaces.

    What came after that version stays.
    """
    opened_table(path, version).create_checkpoint()
    for file in (path / _LOG).iterdir():
        number = file.name.partition(".")[0]
        if number.isdecimal() and int(number) < version:
            file.unlink()
