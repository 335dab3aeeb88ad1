"""Published tables of outputs: kept up with the ledger by each commit, whatever their size."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from hydro_core.errors import HydroError
from hydro_core.plan.tick_plan import Kind, TickPlan, keys_of
from hydro_core.settings import ROWS_AT_ONCE
from hydro_core.spark.executor.shell import failures_as_errors
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.parquet import spark_name, write_parquet
from hydro_core.spark.frames.relation import expanded
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.ledger.records import Commit
from hydro_core.spark.store.outputs.changes import NetChanges, difference, net, net_changes, signed
from hydro_core.spark.store.outputs.published import (
    PUBLISHED,
    PublishedTable,
    published_path,
    shown_sequence,
)
from hydro_core.spark.store.schema import TableSpec, recorded_table
from hydro_core.spark.store.snapshots import frame_as_of
from hydro_core.spark.store.store import Store
from hydro_core.storage.delta import is_table
from hydro_core.storage.places import entries_in, remove_tree
from hydro_core.storage.remote import DataPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Where more rows differ than one process holds, executors write them, or all of the output where
# rows go, too; and the table takes the files over in one version.


@dataclass(frozen=True, slots=True)
class LargerTables:
    """What executors do for the tables of a pipeline."""

    held: int
    """So many rows this process holds at once."""
    session: Callable[[], SparkSession]
    """Gives the Spark that runs them."""

    def is_large(self, spec: TableSpec, rows: int) -> bool:
        """Whether so many rows of an output are theirs; what has no type is not known to Spark."""
        return rows > self.held and not spec.has_unknown

    def add(self, table: PublishedTable, store: Store, commit: Commit, first: int) -> bool:
        """Adds what ticks from one on have changed; gives whether that could be done."""
        spec, spark = table.spec, self.session()
        frame = store.frame(spark, spec.name, first, commit.last)
        if frame is None or not (spec.is_log or spec.kind is Kind.H):
            return False
        if not spec.is_log:
            self._write(table, frame, commit, "append")
            return True
        rows, by = signed(None, frame, table.names, spec.count_column)
        if rows is None:
            return False
        changes = net(rows, by)
        few = self._few(changes, by)
        if few is not None:
            return table.apply(few.typed(table.schema), commit)
        if changes.where(F.col(by) < 0).limit(1).count():
            self._replace(table, store, commit)
        else:
            self._write(table, expanded(changes, by), commit, "append")
        return True

    def restate(self, table: PublishedTable, store: Store, commit: Commit) -> None:
        """Makes it hold the rows of the output and no others: by what differs, if that is less."""
        there = table.files_of_ours()
        if there is not None:
            before = _of_files(self.session(), there, table)
            rows, by = signed(before, self._now(table, store, commit), table.names)
            few = None if rows is None else self._few(net(rows, by), by)
            if few is not None and table.apply(few.typed(table.schema), commit):
                return
        self._replace(table, store, commit)

    def _few(self, changes: DataFrame, by: str) -> NetChanges | None:
        """Changes that are not many, in this process."""
        most = min(self.held, ROWS_AT_ONCE)
        found = changes.limit(most + 1).toArrow()
        if found.num_rows > most:
            return None
        rows = found.drop_columns([by])
        return NetChanges(rows, found[by].to_numpy())

    def _replace(self, table: PublishedTable, store: Store, commit: Commit) -> None:
        self._write(table, self._now(table, store, commit), commit, "overwrite")

    def _now(self, table: PublishedTable, store: Store, commit: Commit) -> DataFrame | None:
        """The rows of the output as of a commit; None where there are none."""
        if commit.last < 0:
            return None
        return frame_as_of(store, self.session(), table.spec, commit.last)

    def _write(
        self,
        table: PublishedTable,
        frame: DataFrame | None,
        commit: Commit,
        mode: Literal["append", "overwrite"],
    ) -> None:
        table.made()
        if frame is None:
            table.take({}, commit, mode)
            return
        folder = table.path / f"part-{uuid.uuid4()}"
        rows = frame.select(*map(quoted, table.names))
        table.take(write_parquet(rows, folder, table.schema), commit, mode)


def _of_files(
    spark: SparkSession, files: Sequence[DataPlace], table: PublishedTable
) -> DataFrame | None:
    if not files:
        return None
    schema = StructType([StructField(name, spark_type(item)) for name, item in table.columns])
    return spark.read.schema(schema).parquet(*(spark_name(spark, file) for file in files))


# The ledger comes first: what a table shows has happened. Whatever ends the process between the
# two leaves a table that is a commit behind, and the next tick brings it up before all else.
# Where more than ticks has come since (a correction, another program), it is compared with the
# output as it is now.


OutputKeys = Mapping[str, Sequence[str]]
"""By the names of outputs the columns of which an output has at most one row for each value."""


@dataclass(frozen=True, slots=True)
class PublishPolicy:
    """The names of outputs that are tables of their own."""

    names: frozenset[str]
    going: Callable[[], Collection[str]]
    """Gives the outputs that a program which is not deployed has no more, or has otherwise: what is
    said beside it of their tables counts when it is deployed.
    """


class PublishedOutputs:
    """The outputs of a pipeline that are tables of their own."""

    def __init__(
        self,
        directory: DataPlace,
        ledger: Ledger,
        program: tuple[str, Callable[[], OutputKeys]],
        step: Callable[[str], None],
        larger: LargerTables,
        wanted: PublishPolicy | None = None,
    ) -> None:
        """The outputs of the pipeline in a directory: `program` is what commits know it by, and the
        keys of its outputs, as far as they are known; without `wanted` they stay as they are.
        """
        self._directory, self._ledger, self._program, self._step = directory, ledger, program, step
        self._larger, self._wanted = larger, wanted
        self.behind: Mapping[str, str] = {}
        """The tables that could not be brought up by this process, each with why."""

    def follow(self, commit: Commit | None) -> None:
        """Brings the tables to a commit, the last one, if they show another.

        The pipeline's lock is held. What cannot be written stays behind, and is written next time.
        """
        if self._wanted is None or commit is None:
            return
        specs = list(self._kept(commit, self._wanted))
        self._remove_others(specs)
        name, known = self._program
        keys = known() if commit.plan == name else {}
        tables = [PublishedTable(self._directory, s, keys.get(s.of, ())) for s in specs]
        late = [table for table in tables if table.sequence() != commit.sequence]
        if not late:
            return
        self._step("to publish")
        store = Store(self._directory, [table.spec for table in late])
        failed = {}
        for table in late:
            try:
                with failures_as_errors(directory=self._directory):
                    self._bring(table, store, commit)
            except (DeltaError, OSError, pa.ArrowException, HydroError) as error:
                failed[table.spec.of] = str(error).strip().partition("\n")[0]
            self._step(f"published {table.spec.of}")
        self.behind = failed

    def compact(self, keep_hours: int) -> None:
        """Joins the files of the tables, and removes those that were replaced long ago."""
        commit = self._ledger.last
        self.follow(commit)
        for table in self._there(commit):
            table.compact(keep_hours)
            self._step(f"compacted the table {table.spec.of}")

    def erase(self) -> None:
        """Removes all that the tables held before, and do not hold now."""
        for table in self._there(self._ledger.last):
            table.erase()
            self._step(f"erased the table {table.spec.of}")

    def _there(self, commit: Commit | None) -> Iterator[PublishedTable]:
        for spec in specs_of(commit) if commit is not None else ():
            table = PublishedTable(self._directory, spec)
            if table.opened() is not None:
                yield table

    def _kept(self, commit: Commit, wanted: PublishPolicy) -> Iterator[TableSpec]:
        there: Collection[DataPlace] = ()
        others = [spec for spec in specs_of(commit) if spec.of not in wanted.names]
        if others:
            there = set(entries_in(self._directory / PUBLISHED))
        others = [s for s in others if published_path(self._directory, s) in there]
        going = wanted.going() if others else ()
        yield from (spec for spec in specs_of(commit) if spec.of in wanted.names)
        yield from (spec for spec in others if spec.of in going)

    def _remove_others(self, specs: Iterable[TableSpec]) -> None:
        """Removes the tables of outputs that there are no more, or that are logs now."""
        stay = {published_path(self._directory, spec) for spec in specs}
        for place in entries_in(self._directory / PUBLISHED):
            if place not in stay:
                remove_tree(place)

    def _bring(self, table: PublishedTable, store: Store, commit: Commit) -> None:
        spec, shown = table.spec, table.sequence()
        store.tables[spec.name].look_at(commit.versions[spec.name])
        first = None if shown is None else self._added_since(shown, commit, spec)
        if first is None or not self._advance(table, store, commit, first):
            self._restate(table, store, commit)

    def _advance(self, table: PublishedTable, store: Store, commit: Commit, first: int) -> bool:
        """Adds what the ticks from one on have changed; gives whether that could be done."""
        rows = store.rows_within(table.spec.name, first, commit.last)
        if self._larger.is_large(table.spec, rows):
            return self._larger.add(table, store, commit, first)
        return _advance(table, store, commit, first)

    def _restate(self, table: PublishedTable, store: Store, commit: Commit) -> None:
        first = commit.last if table.spec.kind is Kind.E else 0
        rows = store.rows_within(table.spec.name, first, commit.last)
        if self._larger.is_large(table.spec, max(rows, table.row_count())):
            self._larger.restate(table, store, commit)
        else:
            table.restate(rows_now(store, table.spec, commit.last), commit)

    def _added_since(self, shown: int, commit: Commit, spec: TableSpec) -> int | None:
        """The first tick after those that a table shows; None where more than ticks has come."""
        ledger = self._ledger
        commits = ledger.commits(since=max(commit.first - 1, -1))
        if all(one.sequence != shown for one in commits):
            commits = ledger.commits(since=-1)
        since = [one for one in commits if one.sequence >= shown]
        if [one.sequence for one in since] != list(range(shown, commit.sequence + 1)):
            return None
        record = since[0].tables.get(spec.name)
        for before, after in pairwise(since):
            adds = after.first == before.last + 1 and after.last >= before.last
            if not adds or after.tables.get(spec.name) != record:
                return None
        return since[0].last + 1


def keys_of_outputs(plan: TickPlan, tables: Mapping[str, TableSpec]) -> OutputKeys:
    """The keys of the outputs of a plan that are known, by their columns in the outputs' tables."""
    known = keys_of(plan.typed)
    found = {}
    for name, sinks in plan.graph.sinks.items():
        key = known.get(sinks[0].inputs[0].node) if len(sinks) == 1 else None
        columns = [column for column, _ in tables[name].items]
        named = columns[:1] if key == () else list(key or ())
        if named and set(named) <= set(columns):
            found[name] = named
    return found


def _advance(table: PublishedTable, store: Store, commit: Commit, first: int) -> bool:
    """Adds what the ticks from one on have changed; gives whether that could be done."""
    spec = table.spec
    if not (spec.is_log or spec.kind is Kind.H) and first <= commit.last:
        return False
    rows = store.arrow(spec.name, first, commit.last)
    counts: Any = rows[spec.count_column].to_numpy() if spec.is_log else [1] * len(rows)
    return table.apply(net_changes(rows.select(table.names), counts, table.columns), commit)


def rows_now(store: Store, spec: TableSpec, last: int) -> pa.Table:
    """The rows of an output as of a tick; of none before the first."""
    first = 0 if spec.kind is Kind.H else last
    return store.rows(spec.name, first, last) if last >= 0 else spec.plain_schema.empty_table()


def specs_of(commit: Commit) -> Iterator[TableSpec]:
    """The tables of the outputs that a commit names."""
    for name, record in commit.tables.items():
        if record["role"] == "output" and name in commit.versions:
            yield recorded_table(name, record)


def compared(directory: DataPlace, commit: Commit) -> tuple[list[str], list[str]]:
    """What is wrong with the tables below a pipeline's directory, and what is worth a word.

    Each is compared with the output as of the last committed tick, row by row.
    """
    problems, notes = [], []
    for spec in specs_of(commit):
        table = PublishedTable(directory, spec)
        if not is_table(table.path):
            continue
        shown = table.sequence()
        if shown != commit.sequence:
            notes.append(
                f"the table {table.path} is not at the last commit: something is being written, or "
                "was cut off, and the next tick brings it there"
            )
            continue
        store = Store(directory, [spec])
        store.tables[spec.name].look_at(commit.versions[spec.name])
        if _summed_now(store, table, commit.last) == _summed(table.pieces(), table.names):
            continue
        now = rows_now(store, spec, commit.last).select(table.names)
        differing = difference(now, table.rows(), table.columns).copies
        if differing:
            problems.append(
                f"the table {table.path} differs in {differing:,} rows from its output as of the "
                "last tick: remove it, and the next tick makes it again"
            )
    return problems, notes


def _summed_now(store: Store, table: PublishedTable, last: int) -> tuple[int, int]:
    spec = table.spec
    if last < 0:
        return 0, 0
    pieces = store.pieces(spec.name, last if spec.kind is Kind.E else 0, last)
    return _summed(pieces, table.names, spec.count_column if spec.is_log else None)


def _summed(
    pieces: Iterable[pa.Table], names: Sequence[str], count: str | None = None
) -> tuple[int, int]:
    """How many rows come in pieces, and the sum of their hashes; each as often as `count` says."""
    import numpy as np

    from hydro_core.spark.frames.row_hashes import row_hashes

    rows = sum_ = 0
    for piece in pieces:
        hashes = row_hashes(piece.select(list(names)))
        counts = np.ones(len(hashes), np.int64) if count is None else piece[count].to_numpy()
        rows += int(counts.sum())
        sum_ += int((hashes * counts.astype(np.uint64)).sum(dtype=np.uint64))
    return rows, sum_ % 2**64


def behind(directory: DataPlace, commit: Commit | None, wanted: Iterable[str]) -> tuple[str, ...]:
    """The outputs among these whose tables do not show a commit, the last one."""
    specs = {spec.of: spec for spec in specs_of(commit)} if commit is not None else {}
    sequence = None if commit is None else commit.sequence
    return tuple(
        name
        for name in wanted
        if name in specs and shown_sequence(published_path(directory, specs[name])) != sequence
    )
