"""The ledger of a pipeline: a Delta table with a row per commit, the last thing that a tick writes.

What the ledger does not name has not happened: tables that are ahead of it are set back. It is
read and written without a JVM, so sensors and `status` have it in some ten milliseconds. Rows are
numbered in sequence, and the transaction of each names its number, so of two writers that got as
far as here one fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from hydro_core.delta_path import refuse_path
from hydro_core.errors import DataError, Diagnostic, HydroError, TransientError
from hydro_core.faults import fault_of
from hydro_core.plan.tick_plan import Mode
from hydro_core.spark.functions.reruns import RERUN_COLUMNS, Rerun, rerun_of, row_of_rerun
from hydro_core.spark.store.delta_actions import data_files
from hydro_core.spark.store.input_reads import INPUT_COLUMNS, InputRead, read_of, row_of
from hydro_core.spark.store.stored_format import note_format, refuse_newer

LEDGER = "_ledger"
_APPLICATION = "hydrotick"
_FILES_BEFORE_COMPACTION = 100
RESTORE = (
    "`hydrotick reset` and then `hydrotick backfill` make all of it again from what is landed; "
    "where that is gone, restore the pipeline's directory from a backup"
)
"""What helps where stored files are lost or broken."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One row of the ledger: ticks `first` to `last` are done, the tables stand at `versions`."""

    sequence: int
    first: int
    last: int
    plan: str
    versions: Mapping[str, int]
    rows: Mapping[str, int]
    started: datetime
    committed: datetime
    inputs: tuple[InputRead, ...] = ()
    start: datetime | None = None
    """Where the window of the first tick starts, in time."""
    end: datetime | None = None
    """Where the window of the last tick ends."""
    checks: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each table holds: enough to see whether another program can go on from it."""
    reruns: tuple[Rerun, ...] = ()
    """The functions for which ranges up to this one ran again in Python."""
    back: bool | None = False
    """Whether it went back to a program that had served before; None: an earlier version wrote it,
    which did not say.
    """

    @property
    def ticks(self) -> range:
        """The ticks of this commit."""
        return range(self.first, self.last + 1)

    @property
    def ran_again(self) -> tuple[Rerun, ...]:
        """The functions for which the ticks of this commit ran again in Python."""
        return tuple(one for one in self.reruns if one.commit == self.sequence)

    def replaces(self, table: str) -> bool:
        """Whether a tick replaces all rows of a table, by its name."""
        return self.tables.get(table, {}).get("mode") == Mode.LAST.value


_TIME = pa.timestamp("us", tz="UTC")
_COLUMNS: dict[str, pa.DataType] = {
    "sequence": pa.int64(),
    "first": pa.int64(),
    "last": pa.int64(),
    "plan": pa.string(),
    "versions": pa.map_(pa.string(), pa.int64()),
    "rows": pa.map_(pa.string(), pa.int64()),
    "inputs": pa.list_(pa.struct(INPUT_COLUMNS)),
    "start": _TIME,
    "end": _TIME,
    "started": _TIME,
    "committed": _TIME,
    "checks": pa.string(),
    "tables": pa.string(),
    "reruns": pa.list_(pa.struct(RERUN_COLUMNS)),
    "back": pa.bool_(),
}
_SCHEMA = pa.schema(_COLUMNS)


class Ledger:
    """The commits of the pipeline in `directory`, as read first; `refresh` looks again."""

    def __init__(self, directory: Path, replaced: Callable[[], None] = lambda: None) -> None:
        """`replaced` is called where another ledger is found in the place of the one read first."""
        self.directory = directory
        self._replaced = replaced
        self.appended: Callable[[Commit], None] = lambda _: None
        self._identity: tuple[int, int] | None = None
        self._path = directory / LEDGER
        self._table: DeltaTable | None = None
        self._last: Commit | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a ledger; there is one before any other table of the pipeline."""
        return self._path.exists()

    @property
    def version(self) -> int:
        """The version of its table that was read last; -1 where there is none."""
        table = self._open()
        return -1 if table is None else table.version()

    def create(self) -> None:
        """Makes an empty ledger where there is none: whole, as others may read it meanwhile."""
        if self.exists:
            return
        refuse_path(self.directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f"{LEDGER}-", dir=self.directory) as part:
            made = Path(part) / LEDGER
            DeltaTable.create(made, _SCHEMA, name=LEDGER, mode="error")
            try:
                made.rename(self._path)
            except OSError:
                if not self.exists:  # another writer was first otherwise, and the lock will tell
                    raise
        note_format(self.directory)

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
        table = self._table
        if table is None:
            self._open()
            return self._last
        if self._identity != self._first_entry():
            self._table = self._last = None
            self._replaced()
            self._open()
            return self._last
        known = table.version()
        # An entry of the log follows another, and the oldest ones are removed first.
        if self._entry(known).exists() and not self._entry(known + 1).exists():
            return self._last
        try:
            table.update_incremental()
        except DeltaError as error:
            raise _unreadable(self._path, error) from error
        if table.version() != known:
            self._last = self._read_last(table)
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
        if self.last is not None and tick in self.last.ticks:
            return self.last
        found = [commit for commit in self.commits(since=tick) if tick in commit.ticks]
        return found[-1] if found else None

    def programs(self) -> tuple[Commit, ...]:
        """The programs that have served and were not given up, each by its last commit: that which
        serves comes last.
        """
        served: list[str] = []
        last: dict[str, Commit] = {}
        for commit in self.commits(since=-1):
            last[commit.plan] = commit
            if served[-1:] == [commit.plan]:
                continue
            if commit.plan in served and commit.back in (True, None):
                while served[-1] != commit.plan:
                    served.pop()
            else:
                served.append(commit.plan)
        return tuple(last[plan] for plan in served)

    def last_reads(self) -> tuple[InputRead, ...]:
        """What the last ticks that are committed have read of the inputs."""
        last = self.last
        if last is None or last.inputs:
            return () if last is None else last.inputs
        # The last row may be of maintenance, which reads no input; ticks that were taken back
        # are beyond it.
        found = [c for c in self.commits(since=last.last) if c.inputs and c.last == last.last]
        return found[-1].inputs if found else ()

    def reads_at(self, tick: int) -> tuple[InputRead, ...]:
        """What had been read of the inputs when a tick was done; nothing before tick 0."""
        commit = self.commit_of(tick) if tick >= 0 else None
        return () if commit is None else commit.inputs

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
            raise AssertionError(f"commit {commit.sequence} where {expected} is next")
        # This handle has seen the row before; one of another writer since then conflicts.
        properties = CommitProperties(
            app_transactions=[Transaction(_APPLICATION, commit.sequence)],
            custom_metadata={"ticks": f"{commit.first}..{commit.last}"},
        )
        try:
            write_deltalake(
                table,
                _rows([commit]),
                mode="append",
                # A ledger that an earlier version made has fewer columns.
                schema_mode="merge",
                commit_properties=properties,
            )
        except CommitFailedError as error:
            raise _overtaken(self.directory, commit) from error
        self._last = commit
        self._compact(table)
        self.appended(commit)

    def _compact(self, table: DeltaTable) -> None:
        """One file of the many small ones, now and then: reading a file costs some milliseconds."""
        if self._last is None or (self._last.sequence + 1) % _FILES_BEFORE_COMPACTION:
            return
        try:
            table.optimize.compact()
        except DeltaError:  # the commit itself stands, and the next time will do
            self._table = None

    def _open(self) -> DeltaTable | None:
        if self._table is None and self.exists:
            refuse_newer(self.directory)
            self._identity = self._first_entry()
            try:
                self._table = DeltaTable(self._path)
            except DeltaError as error:
                raise _unreadable(self._path, error) from error
            self._last = self._read_last(self._table)
        return self._table

    def _first_entry(self) -> tuple[int, int] | None:
        """The file that the log begins with, which no other has; None where it is not kept."""
        try:
            found = self._entry(0).stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _entry(self, version: int) -> Path:
        return self._path / "_delta_log" / f"{version:020}.json"

    def _read_last(self, table: DeltaTable) -> Commit | None:
        files = self._files(table)
        if not files:
            return None
        unknown = [path for path, sequence, _ in files if sequence is None]
        newest = max((f for f in files if f[1] is not None), key=lambda f: f[1] or 0, default=None)
        found = self._read([*unknown, *([newest[0]] if newest else [])])
        return max(found, key=lambda commit: commit.sequence, default=None)

    def _files(self, table: DeltaTable) -> list[tuple[str, int | None, int | None]]:
        """The data files, with their largest sequence and tick where the statistics have them."""
        names = ("path", "max.sequence", "max.last")
        return [tuple(row[name] for name in names) for row in data_files(table, *names)]

    def _read(self, files: Iterable[str]) -> list[Commit]:
        rows: list[dict[str, Any]] = []
        for file in files:
            try:
                found = pq.ParquetFile(self._path / file).read()
                rows += _without_zones(found).to_pylist(maps_as_pydicts="strict")
            except (OSError, pa.ArrowException) as error:
                raise _unreadable(self._path, error) from error
        return [_commit(row) for row in rows]


def state_error(message: str, help: str) -> DataError:  # noqa: A002
    """The error that says what is wrong with the stored state, and the cure."""
    return DataError(Diagnostic(code="state", message=message, help=help))


def _without_zones(rows: pa.Table) -> pa.Table:
    """The rows with instants that have no zone: of those with one pyarrow makes pandas' own.

    They are looked at anew, not cast: to cast, it loads all its functions.
    """
    local = pa.timestamp("us")
    for place, column in enumerate(rows.schema):
        if column.type == _TIME:
            seen = [chunk.view(local) for chunk in rows.column(place).chunks]
            rows = rows.set_column(place, column.with_type(local), pa.chunked_array(seen, local))
    return rows


def _rows(commits: Iterable[Commit]) -> pa.Table:
    rows = [
        {
            "sequence": c.sequence,
            "first": c.first,
            "last": c.last,
            "plan": c.plan,
            "versions": sorted(c.versions.items()),
            "rows": sorted(c.rows.items()),
            "inputs": [row_of(read) for read in c.inputs],
            "start": c.start,
            "end": c.end,
            "started": c.started,
            "committed": c.committed,
            "checks": json.dumps(c.checks, sort_keys=True),
            "tables": json.dumps(c.tables, sort_keys=True),
            "reruns": [row_of_rerun(one) for one in c.reruns],
            "back": c.back,
        }
        for c in commits
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _commit(row: Mapping[str, Any]) -> Commit:
    known: dict[str, Any] = {field.name: row[field.name] for field in _SCHEMA if field.name in row}
    known["inputs"] = tuple(read_of(found) for found in known["inputs"])
    # A ledger of an earlier version has none.
    known["reruns"] = tuple(rerun_of(found) for found in known.get("reruns") or ())
    known.setdefault("back", None)
    known["checks"] = json.loads(known["checks"])
    known["tables"] = json.loads(known["tables"])
    for name, moment in known.items():
        if isinstance(moment, datetime):
            known[name] = moment.replace(tzinfo=UTC)
    return Commit(**known)


def _unreadable(path: Path, error: Exception) -> HydroError:
    told = fault_of(error, str(path))
    if told is not None:
        return told
    first_line = str(error).strip().partition("\n")[0]
    return state_error(
        f"the ledger in {path} cannot be read: {first_line}",
        RESTORE,
    )


def _overtaken(directory: Path, commit: Commit) -> TransientError:
    return TransientError(
        Diagnostic(
            "state",
            f"another writer committed to the pipeline in {directory} while ticks {commit.first} "
            f"to {commit.last} ran; nothing of this run counts",
            help="let one process at a time run the ticks of a pipeline, then start this one again",
        )
    )
