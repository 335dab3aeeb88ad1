"""The ledger of a pipeline: a Delta table with a row per commit, the last thing that a tick writes.

What the ledger does not name has not happened: tables that are ahead of it are set back. It is
read and written without a JVM, so sensors and `status` have it in some ten milliseconds. Rows are
numbered in sequence, and the transaction of each names its number, so of two writers that got as
far as here one fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from hydro_core.errors import DataError, HydroError, TransientError
from hydro_core.machine.faults import fault_of, refuse_path
from hydro_core.spark.store.delta.actions import stored_file
from hydro_core.spark.store.layout import note_format, refuse_other_format
from hydro_core.spark.store.ledger.lock import WriterLock
from hydro_core.spark.store.ledger.records import (
    LEDGER_SCHEMA,
    Commit,
    InputRead,
    as_rows,
    programs_of,
    records_in,
)
from hydro_core.storage.arrow import opened
from hydro_core.storage.delta import (
    created_table,
    data_files,
    entry_of,
    is_table,
    log_configuration,
    opened_table,
    without_old_entries,
    write_table,
)
from hydro_core.storage.places import Identity, identity_of
from hydro_core.storage.remote import DataPlace, RemotePath
from hydro_core.types.records import of_record

LEDGER = "_ledger"
APPLICATION = "hydrotick"
WRITER = "hydrotick.writer"
"""The application by which the log of a ledger in a store has the number of whoever wrote last."""
_FILES_BEFORE_COMPACTION = _CHECKPOINTED = 100
RESTORE = (
    "`hydrotick reset` and then `hydrotick backfill` make all of it again from what is landed; "
    "where that is gone, restore the pipeline's directory from a backup"
)
"""What helps where stored files are lost or broken."""


class Ledger:
    """The commits of the pipeline in `directory`, as read first; `refresh` looks again."""

    def __init__(
        self,
        directory: DataPlace,
        replaced: Callable[[], None] = lambda: None,
        appended: Callable[[Commit], None] = lambda _: None,
    ) -> None:
        """`replaced` is called where another process has committed since the last look, or another
        ledger is in the place: what is known of tables may be of such as are there no more;
        `appended` with each commit that is added here.
        """
        self.directory = directory
        self._replaced, self._appended = replaced, appended
        self._first: Identity | None = None
        self._newest: Identity | None = None
        """That of the log's entry of the version read last: after a month the first is gone."""
        self._path = directory / LEDGER
        self._table: DeltaTable | None = None
        self._last: Commit | None = None
        self._seen: tuple[Commit | None] | None = None
        """The last commit at the last look, or that was made here since."""

    @cached_property
    def lock(self) -> WriterLock:
        """The right to write to the pipeline."""
        return WriterLock(self.directory, self.fence, self._number)

    @property
    def exists(self) -> bool:
        """Whether there is a ledger; there is one before any other table of the pipeline."""
        return (self._table is not None and isinstance(self._path, RemotePath)) or is_table(
            self._path
        )

    @property
    def version(self) -> int:
        """The version of its table that was read last; -1 where there is none."""
        table = self._open()
        return -1 if table is None else table.version()

    def create(self, commits: Sequence[Commit] = ()) -> None:
        """Makes a ledger where there is none, with these rows: whole, as others may read it
        meanwhile.

        Raises:
            TransientError: another writer was first, with other rows (code `state`).
        """
        if self.exists and not commits:
            return
        refuse_path(self.directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        # It comes first: a ledger without it is of before any release.
        note_format(self.directory)
        try:
            if isinstance(self.directory, Path):
                with TemporaryDirectory(prefix=f"{LEDGER}-", dir=self.directory) as part:
                    self._create_at(Path(part) / LEDGER, commits)
                    (Path(part) / LEDGER).rename(self.directory / LEDGER)
            else:
                self._create_at(self._path, commits)
        except (DeltaError, OSError) as error:
            # Another writer was first; or it is there, and the answer that it is got lost.
            self._table = None
            if not self.exists:
                self.lock.doubts()
                raise _unreadable(self._path, error) from error
            if commits and self.commits(since=-1) != tuple(commits):
                raise overtaken(self.directory, "it was restored") from error

    def _create_at(self, place: DataPlace, commits: Sequence[Commit]) -> None:
        in_store = isinstance(place, RemotePath)
        often = log_configuration(place, _CHECKPOINTED) if in_store else None
        if not commits:
            created_table(place, LEDGER_SCHEMA, LEDGER, often)
            return
        number = self.lock.number
        right = [] if number is None else [Transaction(WRITER, number)]
        numbers = [Transaction(APPLICATION, commits[-1].sequence), *right]
        write_table(place, as_rows(commits, LEDGER_SCHEMA), LEDGER, often, numbers)

    def _number(self) -> int | None:
        """The number of the writer that committed last, 0 where none had one; None without a
        ledger.
        """
        self._refreshed()
        return None if self._table is None else self._table.transaction_version(WRITER) or 0

    def fence(self, number: int) -> None:
        """Sees to it that nobody commits any more who has a lesser number.

        Raises:
            TransientError: somebody has a greater one (code `state`).
        """
        known, table = self._number(), self._table
        if known is None or table is None:
            return
        if known > number:
            raise overtaken(self.directory)
        properties = CommitProperties(app_transactions=[Transaction(WRITER, number)])
        try:
            table.create_write_transaction(
                [], "append", table.schema(), commit_properties=properties
            )
        except CommitFailedError as error:
            # It is there, if only the answer got lost; if not, who had the right before was first.
            if self._number() != number:
                raise overtaken(self.directory) from error
        except DeltaError as error:
            raise _unreadable(self._path, error) from error
        self._table = None

    @property
    def last(self) -> Commit | None:
        """The last commit; None before the first."""
        self._open()
        return self._last

    @property
    def last_tick(self) -> int | None:
        """The last committed tick; None before the first commit."""
        return None if self.last is None else self.last.last

    @property
    def last_run(self) -> Commit | None:
        """The commit that made the last committed tick; None where there is none.

        It is not the last one where maintenance has added a row, which has no ticks of its own.
        """
        last = self.last
        return None if last is None or last.last < 0 else self.commit_of(last.last)

    def refresh(self) -> Commit | None:
        """The last commit, read anew: another process may have written it."""
        found = self._refreshed()
        if self._seen not in (None, (found,)):
            self._replaced()
        self._seen = (found,)
        return found

    def _refreshed(self) -> Commit | None:
        table = self._table
        if table is None:
            self._open()
            return self._last
        if (self._first, self._newest) != (self._entry(0), self._newest_of(table)):
            self._table = self._last = self._seen = None
            self._replaced()
            return self.last
        known = table.version()
        # An entry of the log follows another, and the oldest ones are removed first.
        if entry_of(self._path, known).is_file() and not entry_of(self._path, known + 1).is_file():
            return self._last
        try:
            table.update_incremental()
        except DeltaError as error:
            raise _unreadable(self._path, error) from error
        if table.version() != known:
            self._last = self._read_last(table)
            self._newest = self._newest_of(table)
        return self._last

    def commits(self, since: int = 0) -> tuple[Commit, ...]:
        """The commits with ticks from `since` on, in the order in which they were made."""
        table = self._open()
        if table is None:
            return ()
        files = [path for path, _, last in self._files(table) if last is None or last >= since]
        found = [commit for commit in self._read(files) if commit.last >= since]
        return tuple(sorted(found, key=lambda commit: commit.sequence))

    def commit_of(self, tick: int) -> Commit | None:
        """The commit that made `tick`, the latest where it was made again."""
        if (last := self.last) is not None and tick in last.ticks:
            return last
        found = [commit for commit in self.commits(since=tick) if tick in commit.ticks]
        return found[-1] if found else None

    def programs(self) -> tuple[Commit, ...]:
        """The programs that have served and were not given up, each by its last commit: that which
        serves comes last.
        """
        return programs_of(self.commits(since=-1))

    def last_reads(self) -> tuple[InputRead, ...]:
        """What the last ticks that are committed have read of the inputs."""
        last = self.last
        if last is None or last.inputs:
            return () if last is None else last.inputs
        # The last row may be of maintenance, which reads none; ticks taken back are beyond it.
        found = [c for c in self.commits(since=last.last) if c.inputs and c.last == last.last]
        return found[-1].inputs if found else ()

    def append(self, commit: Commit) -> None:
        """Adds a commit: with that its ticks are done.

        Raises:
            DataError: another writer has committed since this ledger was read (code `state`).
        """
        table = self._open()
        if table is None:
            raise AssertionError("the ledger is created before anything is committed")
        expected = 0 if self._last is None else self._last.sequence + 1
        if commit.sequence != expected:
            if self.lock.number is not None:  # it was read before another began
                raise self._overtaken(commit)
            raise AssertionError(f"commit {commit.sequence} where {expected} is next")
        right = self._right(table, commit)
        # The row before has been seen; one of another writer since then conflicts.
        properties = CommitProperties(
            app_transactions=[Transaction(APPLICATION, commit.sequence), *right],
            custom_metadata={"ticks": f"{commit.first}..{commit.last}"},
        )
        try:
            write_deltalake(
                table,
                as_rows([commit], LEDGER_SCHEMA),
                mode="append",
                commit_properties=properties,
            )
        except CommitFailedError as error:
            if not self._is_there(commit):
                raise self._overtaken(commit) from error
        except (DeltaError, OSError):
            self.lock.doubts()
            raise
        self._last, self._seen = commit, (commit,)
        self._compact(table)
        self._newest = self._newest_of(table)
        self._appended(commit)

    def _right(self, table: DeltaTable, commit: Commit) -> list[Transaction]:
        """By what a commit in a store is known to be of whoever has the right to it: it conflicts
        with whatever another has written since the table was read.
        """
        number = self.lock.number
        if number is None:
            return []
        if (table.transaction_version(WRITER) or 0) > number:
            # If the lease is this one's all the same, its next owner gets a greater number.
            self.lock.doubts()
            raise self._overtaken(commit)
        return [Transaction(WRITER, number)]

    def _overtaken(self, commit: Commit) -> TransientError:
        return overtaken(self.directory, f"ticks {commit.first} to {commit.last} ran")

    def _is_there(self, commit: Commit) -> bool:  # though the answer that it is got lost
        if not isinstance(self.directory, RemotePath):
            return False
        self._table = self._last = None
        last, of = self.last, (commit.sequence, commit.started, commit.committed)
        return last is not None and (last.sequence, last.started, last.committed) == of

    def _compact(self, table: DeltaTable) -> None:
        """One file of the many small ones, now and then: reading a file costs some milliseconds."""
        if self._last is None or (self._last.sequence + 1) % _FILES_BEFORE_COMPACTION:
            return
        try:
            table.optimize.compact()
            without_old_entries(self._path, table)
        except DeltaError:  # the commit itself stands, and the next time will do
            self._table = None

    def _open(self) -> DeltaTable | None:
        if self._table is None and self.exists:
            refuse_other_format(self.directory)
            self._first = self._entry(0)
            try:
                self._table = opened_table(self._path)
            except DeltaError as error:
                raise _unreadable(self._path, error) from error
            self._newest = self._newest_of(self._table)
            self._last = self._read_last(self._table)
            self._seen = self._seen or (self._last,)
        return self._table

    def _newest_of(self, table: DeltaTable) -> Identity | None:
        # In a store nothing changes places.
        return None if isinstance(self._path, RemotePath) else self._entry(table.version())

    def _entry(self, version: int) -> Identity | None:
        """The file of the log that made a version, which no other has; None if it is not kept."""
        try:
            return identity_of(entry_of(self._path, version))
        except FileNotFoundError:
            return None

    def _read_last(self, table: DeltaTable) -> Commit | None:
        files = self._files(table)
        unknown = [path for path, sequence, _ in files if sequence is None]
        newest = max((f for f in files if f[1] is not None), key=lambda f: f[1] or 0, default=None)
        found = self._read([*unknown, *([newest[0]] if newest else [])])
        return max(found, key=lambda commit: commit.sequence, default=None)

    def _files(self, table: DeltaTable) -> list[tuple[DataPlace, int | None, int | None]]:
        """The data files, with their largest sequence and tick where the statistics have them."""
        rows = data_files(table, "path", "size_bytes", "max.sequence", "max.last")
        return [
            (stored_file(self._path, row), row["max.sequence"], row["max.last"]) for row in rows
        ]

    def _read(self, files: Iterable[DataPlace]) -> list[Commit]:
        rows: list[dict[str, Any]] = []
        for file in files:
            try:
                found = pq.ParquetFile(opened(file)).read()
                rows += records_in(found)
            except (OSError, pa.ArrowException) as error:
                raise _unreadable(self._path, error) from error
        return [of_record(Commit, row) for row in rows]


def state_error(message: str, help: str) -> DataError:  # noqa: A002
    """The error that says what is wrong with the stored state, and the cure."""
    return DataError.of("state", message, help=help)


def _unreadable(path: DataPlace, error: Exception) -> HydroError:
    told = fault_of(error, str(path))
    if told is not None:
        return told
    first_line = str(error).strip().partition("\n")[0]
    return state_error(f"the ledger in {path} cannot be read: {first_line}", RESTORE)


def overtaken(directory: DataPlace, what: str = "this ran") -> TransientError:
    """The error of who finds that another has written to a pipeline, or a table, meanwhile."""
    return TransientError.of(
        "state",
        f"another writer committed to the pipeline in {directory} while {what}; "
        "nothing of this run counts",
        help="let one process at a time run the ticks of a pipeline, then start this one again",
    )
