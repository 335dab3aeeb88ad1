"""One Delta table of a pipeline: appended to, set back, and listed, without a JVM.

Its versions are what the ledger speaks of. Rows come as Arrow, or as Parquet files that Spark has
already written below the table's directory; either way it is one small commit of the log.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    write_deltalake,
)
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from hydro_core.errors import DataError, Diagnostic, TransientError
from hydro_core.plan.tick_plan import Mode
from hydro_core.spark.store.delta_log import (
    DeltaLog,
    EntryExistsError,
    LoggedFile,
    UnknownFeatureError,
)
from hydro_core.spark.store.ledger import state_error
from hydro_core.spark.store.schema import TableSpec

STAGED = "staged"
"""The directory, within a table's, of files that Spark writes."""


_SUMMED_TO = "hydrotick.summedTo"

_TIERS = tuple(n * 1024 * 1024 for n in (1, 16, 256))
"""Files are joined with those of their own tier, so each byte is written again a few times only."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table at a version, with what the log tells of its ticks."""

    path: Path
    size: int
    rows: int | None
    first: int | None
    last: int | None

    def may_hold(self, first: int, last: int) -> bool:
        """Whether rows of the ticks `first` to `last` may be in it."""
        return (self.last is None or self.last >= first) and (
            self.first is None or self.first <= last
        )


class StoredTable:
    """The table of a spec, below the directory of a pipeline."""

    def __init__(self, directory: Path, spec: TableSpec, *, checkpoint_interval: int) -> None:
        self.spec = spec
        self.path = directory / spec.name
        self._checkpoint_interval = checkpoint_interval
        self._log = DeltaLog(self.path, [spec.tick])
        self._listed: tuple[tuple[LoggedFile, ...], list[DataFile]] = (), []
        self._noted: tuple[int, int] = -1, -1
        """A version, and the last tick that its history says was summed up to."""

    @property
    def exists(self) -> bool:
        """Whether there is anything at its place."""
        return self.path.exists()

    @property
    def version(self) -> int:
        """The version that this object has seen last."""
        with self._readable():
            return self._log.version

    def is_at(self, version: int) -> bool:
        """Whether the table stands at this version, neither before nor beyond."""
        with self._readable():
            return self._log.is_at(version)

    def look_at(self, version: int) -> None:
        """Reads the table as it is at this version, until `is_at` or `restore` is asked."""
        if self.is_at(version):
            return
        self.forget()
        try:
            self._log.look_at(version)
        except DeltaError as error:
            raise self._lost(f"has lost its version {version}", error) from error

    def create(self) -> None:
        """Makes the table, without rows."""
        interval = {"delta.checkpointInterval": str(self._checkpoint_interval)}
        self.forget()
        DeltaTable.create(self.path, self.spec.arrow_schema, mode="error", configuration=interval)

    def forget(self) -> None:
        """Looks at the table anew when it is next asked for."""
        self._log.forget()
        self._noted = -1, -1

    def drop(self) -> None:
        """Takes the table away."""
        self.forget()
        shutil.rmtree(self.path, ignore_errors=True)

    def restore(self, version: int) -> None:
        """Makes the table hold again what it held at `version`.

        Raises:
            DataError: its log, or a file that it held, is not there any more (code `state`).
        """
        self.forget()
        if self.version < version:
            raise self._lost(f"has lost its version {version}", f"it ends at {self.version}")
        if self.version == version:
            return
        try:
            with self._log.by_delta_rs() as table:
                table.restore(version)
        except DeltaError as error:
            if "missing file" not in str(error):
                raise self._lost(f"cannot be set back to version {version}", error) from error
            raise state_error(
                f"the table {self.path} cannot be set back to version {version}: "
                "files of it were removed",
                "go back less far, or restore the pipeline's directory from a backup; "
                "`hydrotick compact --keep-hours` says how long files are kept",
            ) from error

    def append(self, rows: pa.Table) -> None:
        """Adds the rows, or puts them in the place of all others, as the mode of the table says."""
        if rows.num_rows:
            bounds = {self.spec.tick: _ends(rows[self.spec.tick])}
            self._add([self._log.write(rows.cast(self.spec.arrow_schema), bounds)])
        elif self.spec.mode is Mode.LAST and self.files():
            self._add([])

    def append_files(self, files: Iterable[Path], first: int, last: int) -> None:
        """Adds Parquet files that lie below the table's directory and hold these ticks."""
        added = [self._written(file, first, last) for file in files]
        if added or self.spec.mode is Mode.LAST:
            self._add(added)

    def files(self) -> list[DataFile]:
        """The data files of the version that was seen last."""
        with self._readable():
            logged = self._log.files
        if self._listed[0] is not logged:
            self._listed = logged, self._data_files(logged)
        return self._listed[1]

    def files_at(self, version: int) -> list[DataFile]:
        """The data files of an earlier version; they may have been removed from the disk since.

        Raises:
            DataError: the version is not known any more (code `state`).
        """
        try:
            return self._data_files(self._log.files_at(version))
        except DeltaError as error:
            raise self._lost(f"has lost its version {version}", error) from error

    def hold(self, files: Iterable[DataFile], *, summed_to: int = -1) -> None:
        """Holds these files and no others, by one commit of its log; its columns become the spec's.

        The files lie below the table's directory. `summed_to` is the last tick that its rows do not
        tell apart from those before it.
        """
        wanted = {file.path: file for file in files}
        held = {file.path: file for file in self.files()}
        same_columns = self.schema_matches()
        note = {_SUMMED_TO: str(summed_to)} if summed_to >= 0 else {}
        adds: list[AddAction | RemoveAction] = [
            self._adding(file) for path, file in wanted.items() if path not in held
        ]
        gone = [file for path, file in held.items() if path not in wanted]
        if not adds and not gone and same_columns:
            return
        if same_columns:
            adds += [self._removing(file) for file in gone]
        elif len(gone) < len(held):
            raise AssertionError(f"{self.path} cannot keep files that have other columns")
        with self._log.by_delta_rs() as table:
            table.create_write_transaction(
                adds,
                "append" if same_columns else "overwrite",
                Schema.from_arrow(self.spec.arrow_schema),
                commit_properties=CommitProperties(custom_metadata=note),
                post_commithook_properties=PostCommitHookProperties(),
            )

    def small_files(self) -> int:
        """The number of files of the smallest tier."""
        return sum(file.size < _TIERS[0] for file in self.files())

    def compact(self, least: int) -> None:
        """Joins the files of each tier that has at least so many of them."""
        for tier in _TIERS:
            if sum(file.size < tier for file in self.files()) >= least:
                with self._log.by_delta_rs() as table:
                    table.optimize.compact(target_size=tier)

    def sum_up(self, rows: pa.Table, tick: int) -> None:
        """Puts the rows in the place of all others: a log whose changes up to `tick` are one."""
        note = CommitProperties(custom_metadata={_SUMMED_TO: str(tick)})
        with self._log.by_delta_rs() as table:
            write_deltalake(
                table, rows.cast(self.spec.arrow_schema), mode="overwrite", commit_properties=note
            )

    def rewrite(self, rows: pa.Table) -> None:
        """Puts the rows in the place of all others."""
        with self._log.by_delta_rs() as table:
            write_deltalake(table, rows.cast(self.spec.arrow_schema), mode="overwrite")

    def summed_to(self) -> int:
        """The last tick that may not be told apart from those before it any more; -1: none."""
        # The history is as long as the pipeline's, so what was seen of it is not read again.
        version, (seen, noted) = self.version, self._noted
        if version > seen:
            table = DeltaTable(self.path, version=version)
            noted = max(noted, noted_sums(table, version - seen))
            self._noted = version, noted
        return max(noted, before_first(file.first for file in self.files()))

    def vacuum(self, hours: int) -> None:
        """Removes files that no version of the last so many hours holds, nor ever a version."""
        with self._log.by_delta_rs() as table:
            table.vacuum(
                retention_hours=hours, dry_run=False, enforce_retention_duration=False, full=True
            )

    @property
    def rows(self) -> int:
        """The number of rows of the version that was seen last."""
        return sum(file.rows or 0 for file in self.files())

    def schema_matches(self) -> bool:
        """Whether the stored columns are those of the spec."""
        with self._readable():
            return _named(self._log.schema) == _named(self.spec.arrow_schema)

    def _add(self, files: Iterable[LoggedFile]) -> None:
        with self._readable():
            try:
                self._log.add(files, replacing=self.spec.mode is Mode.LAST)
            except UnknownFeatureError as error:
                raise state_error(
                    f"the table {self.path} has got features that hydrotick does not write: "
                    f"{error}",
                    "remove them with the tool that set them, "
                    "or restore the pipeline's directory from a backup",
                ) from error
            except EntryExistsError as error:
                raise self._changed_beside() from error

    def _data_files(self, logged: Iterable[LoggedFile]) -> list[DataFile]:
        tick = self.spec.tick
        return [DataFile(self.path / f.name, f.size, f.rows, *f.bounds[tick]) for f in logged]

    def _written(self, file: Path, first: int, last: int) -> LoggedFile:
        rows, name = pq.read_metadata(file).num_rows, str(file.relative_to(self.path))
        return LoggedFile(name, file.stat().st_size, rows, {self.spec.tick: (first, last)})

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Within it a log that cannot be read becomes an error of the table."""
        try:
            yield
        except DeltaError as error:
            raise self._lost("cannot be read", error) from error

    def _adding(self, file: DataFile) -> AddAction:
        tick = self.spec.tick
        statistics: dict[str, Any] = {"nullCount": {tick: 0}}
        if file.rows is not None:
            statistics["numRecords"] = file.rows
        if file.first is not None and file.last is not None:
            statistics |= {"minValues": {tick: file.first}, "maxValues": {tick: file.last}}
        return AddAction(
            str(file.path.relative_to(self.path)),
            file.size,
            {},
            int(time.time() * 1000),
            True,
            json.dumps(statistics),
        )

    def _removing(self, file: DataFile) -> RemoveAction:
        path = str(file.path.relative_to(self.path))
        return RemoveAction(path, True, int(time.time() * 1000), file.size)

    def _changed_beside(self) -> TransientError:
        return TransientError(
            Diagnostic(
                "state",
                f"something else wrote to the table {self.path} while a tick did",
                help="let nothing but hydrotick write to it, then run the tick again",
            )
        )

    def _lost(self, what: str, error: Exception | str) -> DataError:
        first_line = str(error).strip().partition("\n")[0]
        return state_error(
            f"the table {self.path} {what}: {first_line}",
            "restore the pipeline's directory from a backup, "
            "or remove all of it and run the ticks again",
        )


def noted_sums(table: DeltaTable, entries: int | None = None) -> int:
    """The last tick that a log was summed up to by one of its last so many entries; -1: none."""
    return max((int(e[_SUMMED_TO]) for e in table.history(entries) if _SUMMED_TO in e), default=-1)


def before_first(firsts: Iterable[int | None]) -> int:
    """The tick before the first of which a log's files have rows, as far as their first is known.

    A log that was summed up begins with the tick that it was summed up to.
    """
    return min((first for first in firsts if first is not None), default=0) - 1


def _ends(ticks: Any) -> tuple[int, int]:
    found: Any = pc.min_max(ticks).as_py()
    return found["min"], found["max"]


def _named(schema: pa.Schema) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in schema]
