"""The stored tables of a pipeline: they stand where the last commit says, or are put there.

A tick changes nothing before all its results are there. Then the tables are appended to, the state
first and the outputs after it, and the ledger's row comes last. So whatever ends a process, tables
are either where the last commit says, or ahead of it; those that are ahead are set back before the
next tick, and those of which the ledger knows nothing are taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.files.parquet import opened_parquet
from hydro_core.plan.tick_plan import StateSlot
from hydro_core.spark.frames.leaf import table_frame, together
from hydro_core.spark.frames.parquet import spark_name
from hydro_core.spark.session.session import has_few_rows
from hydro_core.spark.store.cached_rows import ROW_CACHE, LiveRows, read_alive, take_out
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.delta.table import (
    StoredTable,
    existing_files,
    pieces_of,
    rows_of,
    table_errors,
)
from hydro_core.spark.store.delta.write import WrittenRows
from hydro_core.spark.store.ledger.ledger import RESTORE, overtaken, state_error
from hydro_core.spark.store.ledger.records import Commit
from hydro_core.spark.store.lookups.conditions import MatchedRows
from hydro_core.spark.store.lookups.lookup_files import LookupFiles, may_cancel, met_in
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.snapshots import snapshots, summed
from hydro_core.storage.remote import DataPlace, RemotePath

_WRITERS = 4

_WORTH_SUMMING = 2
"""A log with so many rows for each that is there is summed up when its files are joined."""

_SUMMED_AT_MOST = 20_000_000
"""Logs with more rows are not: summing up happens in this process."""

ALWAYS = 1 << 60
"""Later than every tick."""

OnStep = Callable[[str], None]
"""Called with the name of each step that a commit has done; tests end the process there."""


class Store:
    """The tables of one pipeline, below its directory."""

    def __init__(
        self,
        directory: DataPlace,
        specs: Iterable[TableSpec],
        *,
        checkpoint_interval: int = 100,
        compact_every: int = 16,
        lookup_bytes: int = 0,
        held_rows: int = 0,
    ) -> None:
        self.directory = directory
        self.held_rows = held_rows
        """So many rows of a table this process holds at once, where somebody asks for them."""
        self.lookup_files = LookupFiles(directory, lookup_bytes)
        self._compact_every = compact_every
        self.tables = {
            spec.name: StoredTable(directory, spec, checkpoint_interval=checkpoint_interval)
            for spec in specs
        }

    def forget(self) -> None:
        """Looks at all tables anew: others are in their places."""
        for table in self.tables.values():
            table.forget()

    def recover(self, commit: Commit | None) -> tuple[str, ...]:
        """Puts every table where the last commit left it, and tells what had to be done.

        Raises:
            DataError: a table that the ledger names is missing or broken (code `state`).
        """
        done = []
        versions = {} if commit is None else commit.versions
        for name, table in self.tables.items():
            version = versions.get(name)
            if version is None:
                if table.exists:
                    # In a store another may use it by now: its rows go alone.
                    table.hold(()) if isinstance(self.directory, RemotePath) else table.drop()
                    done.append(f"removed {name}: no commit names it")
                if not table.exists:
                    table.create()
            elif not table.exists:
                raise _missing(table, version)
            elif not table.is_at(version):
                table.restore(version)
                done.append(f"set {name} back to version {version}")
        return tuple(done)

    def check(self, commit: Commit | None) -> None:
        """Looks at the tables as the commit left them, whatever came after it.

        Those that are not there, or whose columns are others than the program's, are refused.

        Raises:
            DataError: which table, and what to do (code `state`).
        """
        for name, version in ({} if commit is None else commit.versions).items():
            table = self.tables.get(name)
            if table is None:
                continue
            if not table.exists:
                raise _missing(table, version)
            table.look_at(version)
            if not table.schema_matches():
                raise state_error(
                    f"the columns of the table {table.path} are not those of the program",
                    "run the program that made it, or start a pipeline in another directory",
                )

    def restore(self, versions: Mapping[str, int]) -> Mapping[str, int]:
        """Sets tables back to these versions, and gives those at which they now stand."""
        for name, version in versions.items():
            self.tables[name].restore(version)
        return {name: self.tables[name].version for name in versions}

    def commit(
        self,
        written: Mapping[str, WrittenRows],
        ticks: tuple[int, int],
        step: OnStep,
        before: datetime | None = None,
    ) -> Mapping[str, int]:
        """Adds what was written to the tables, and gives the versions of all after it.

        `before` is the end of the tick before these, where ticks have times.
        """
        for role in ("state", "output"):
            names = [name for name in written if self.tables[name].spec.role == role]
            if len(names) == 1 or all(written[name].rows == 0 for name in names):
                for name in names:
                    self._add(written[name], ticks, step)
                continue
            with ThreadPoolExecutor(_WRITERS, thread_name_prefix="hydrotick-commit") as pool:
                for _ in pool.map(lambda name: self._add(written[name], ticks, step), names):
                    pass
        self._compact_one(ticks[0] - 1, before)
        self.lookup_files.keep(self._files())
        step("compacted")
        return {name: table.version for name, table in self.tables.items()}

    def compact(self, last: int, step: OnStep, end: datetime | None = None) -> Mapping[str, int]:
        """Joins the small files of all tables, and gives the tables' versions after it.

        Logs of state are summed up to `last`, the last committed tick, where that is worth it; of
        state that leaves by its time, what has left by the `end` of that tick is taken out. What
        was joined stays, since the last commit speaks of it.
        """
        for name, table in self.tables.items():
            take_out(table, last, end)
            if not self._summed_up(table, last):
                table.compact(2)
            step(f"compacted {name}")
        return {name: table.version for name, table in self.tables.items()}

    def vacuum(
        self, keep_hours: int, step: OnStep, kept: Callable[[], None] = lambda: None
    ) -> Mapping[str, int]:
        """Removes the files that no table needs, nor has needed for so many hours.

        It gives the tables' versions after it; the last commit must have those of before. `kept`
        raises where another has taken over.
        """
        for name, table in self.tables.items():
            table.vacuum(keep_hours, kept)
            step(f"vacuumed {name}")
        self.lookup_files.keep(self._files())
        return {name: table.version for name, table in self.tables.items()}

    def _summed_up(self, table: StoredTable, tick: int) -> bool:
        """Sums up the changes of a log of state up to a tick, if most of them are history.

        What is read of state is what it sums up to; outputs can be read as of every tick.
        """
        if not table.spec.is_log or table.spec.role != "state" or tick < 0:
            return False
        name, rows = table.spec.name, table.rows
        if rows > _SUMMED_AT_MOST or rows < _WORTH_SUMMING * self.row_count(name):
            return False
        log = rows_of(table, existing_files(table, 0, ALWAYS))
        table.rewrite(summed(log, table.spec, tick), summed_to=tick)
        return True

    def _compact_one(self, before: int, end: datetime | None) -> None:
        """Joins the small files of the table that needs it most, so that a tick stays short.

        `before` is the last tick that is not being written, and `end` is when it ends.
        """
        for table in self.tables.values():
            take_out(table, before, end)
        need = {table: table.small_files() for table in self.tables.values()}
        full = [table for table in need if need[table] >= self._compact_every]
        if not full:
            return
        most = max(full, key=need.__getitem__)
        try:
            if not self._summed_up(most, before):
                most.compact(self._compact_every)
        except DeltaError:  # what was appended stands, and the next tick will try again
            most.forget()

    def frame(self, spark: SparkSession, name: str, first: int, last: int) -> DataFrame | None:
        """The stored rows of the ticks `first` to `last`; None where there are none."""
        table = self.tables[name]
        spec = table.spec
        if spec.has_unknown or has_few_rows(spark):
            # Spark takes 5 to 8 ms to open a file, and this process a tenth of that.
            return framed(spark, spec, self.arrow(name, first, last))
        files = existing_files(table, first, last)
        if not files:
            return None
        # Spark need not ask Delta for what is known here: its log, files and statistics.
        paths = [spark_name(spark, file.path) for file in files]
        frame = spark.read.schema(spec.spark_schema).parquet(*paths)
        tick = F.col(spec.tick)
        if not all(file.last is not None and file.last <= last for file in files):
            frame = frame.where(tick <= F.lit(last))
        if not all(file.first is not None and file.first >= first for file in files):
            frame = frame.where(tick >= F.lit(first))
        return frame

    def few_alive(self, name: str, last: int, alive: LiveRows, most: int) -> pa.Table | None:
        """The stored rows of the ticks up to `last` that their time lets matter.

        None where more than `most` rows would be looked at.
        """
        table = self.tables[name]
        files = existing_files(table, 0, last)
        with table_errors(table):
            if sum(map(alive.rows, files)) > most:
                return None
            rows = read_alive(files, table.spec.arrow_schema, alive)
        return rows.filter(pc.field(table.spec.tick) <= last)

    def arrow(self, name: str, first: int, last: int) -> pa.Table:
        """The stored rows of the ticks `first` to `last`."""
        table = self.tables[name]
        tick = ds.field(table.spec.tick)
        return rows_of(table, existing_files(table, first, last), (tick >= first) & (tick <= last))

    def pieces(self, name: str, first: int, last: int) -> Iterator[pa.Table]:
        """The same, a piece at a time, at least one: they may be more than is held at once."""
        table = self.tables[name]
        tick = ds.field(table.spec.tick)
        files = existing_files(table, first, last)
        return pieces_of(table, files, (tick >= first) & (tick <= last))

    def met(self, name: str, met: MatchedRows) -> pa.Table:
        """The rows of a table of state that a range can meet.

        What has been read of its files stays in memory, so the next tick reads what is new; of
        large ones that is what is compared.
        """
        table = self.tables[name]
        files = [] if met.ticks is None else existing_files(table, *met.ticks)
        schema = table.spec.arrow_schema
        summed = table.spec.is_log and may_cancel(schema, files, met)
        looked_up, rest = self.lookup_files.met(files, schema, met, summed=summed)
        with table_errors(table):
            gone_through = met_in([f.path for f in rest], schema, met, ROW_CACHE, summed=summed)
            return pa.concat_tables([looked_up, *gone_through])

    def rows(self, name: str, first: int, last: int) -> pa.Table:
        """What a table says of the ticks `first` to `last`: its rows, or those that are there."""
        spec = self.tables[name].spec
        if not spec.is_log:
            return self.arrow(name, first, last)
        return snapshots(self.arrow(name, 0, last), spec, range(first, last + 1))

    def rows_within(self, name: str, first: int, last: int) -> int:
        """How many rows the files have that may hold these ticks."""
        files = self.tables[name].files()
        return sum(file.rows or 0 for file in files if file.may_hold(first, last))

    def row_count(self, name: str) -> int:
        """How many rows a table has, or the changes of a log sum up to."""
        table = self.tables[name]
        if not table.spec.is_log:
            return table.rows
        count = table.spec.count_column
        return sum(
            pc.sum(batch[count]).as_py() or 0
            for file in table.files()
            for batch in opened_parquet(file.path).iter_batches(columns=[count])
        )

    def _files(self) -> Iterator[DataFile]:
        return (file for table in self.tables.values() for file in table.files())

    def size(self, name: str) -> int:
        """How many bytes the files of a table have."""
        return sum(file.size for file in self.tables[name].files())

    def _add(self, written: WrittenRows, ticks: tuple[int, int], step: OnStep) -> None:
        name = written.spec.name
        table = self.tables[name]
        if written.table is not None:
            table.append(written.table)
        else:
            try:
                table.append_files(written.files, *ticks)
            except FileNotFoundError as error:
                if not isinstance(self.directory, RemotePath):
                    raise
                # No table names them yet, so who has taken over may have removed them.
                raise overtaken(self.directory) from error
        step(name)


class CommittedPast:
    """What earlier ranges left, for the range that starts at `first`."""

    def __init__(
        self,
        store: Store,
        names: Mapping[str, str],
        spark: SparkSession,
        first: int,
        found: Mapping[str, pa.Table],
    ) -> None:
        """`found` has the rows of slots of which not all are needed, by the slots' ids."""
        self._store, self._names, self._spark, self._first = store, names, spark, first
        self._found = found

    def arrow(self, slot: StateSlot) -> pa.Table:
        """The same rows as a table, which is empty if there are none."""
        if slot.id in self._found:
            return self._found[slot.id]
        return self._store.arrow(self._names[slot.id], *slot.ticks_read(self._first))

    def rows(self, slot: StateSlot) -> DataFrame | None:
        """The committed rows of the slot, as its form says; None if there are none.

        Of a log these are all changes.
        """
        name = self._names[slot.id]
        if slot.id in self._found:
            return framed(self._spark, self._store.tables[name].spec, self._found[slot.id])
        return self._store.frame(self._spark, name, *slot.ticks_read(self._first))


def framed(spark: SparkSession, spec: TableSpec, rows: pa.Table) -> DataFrame | None:
    """Stored rows as a DataFrame; None where there are none."""
    if not rows.num_rows:
        return None
    return together(table_frame(spark, rows, spec.spark_schema))


def _missing(table: StoredTable, version: int) -> Exception:
    return state_error(
        f"the table {table.path} is missing; the ledger says that it is at version {version}",
        RESTORE,
    )
