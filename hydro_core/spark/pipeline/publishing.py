"""Brings the outputs that people read as tables to where the ledger is, commit by commit.

The ledger comes first: what a table shows has happened. Whatever ends the process between the two
leaves a table that is a commit behind, and the next tick brings it up before all else. Where ticks
were only added since, a table gets what these have changed; else (what was computed again, another
program, rows that were forgotten) it is compared with the output as it is now.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from deltalake.exceptions import DeltaError

from hydro_core.errors import HydroError
from hydro_core.plan.tick_plan import TickPlan, keys_of
from hydro_core.spark.executor.shell import failures_as_errors
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.pipeline.larger_tables import LargerTables
from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.outputs.net_changes import difference, net_changes
from hydro_core.spark.store.outputs.published import (
    PUBLISHED,
    PublishedTable,
    published_path,
    shown_sequence,
)
from hydro_core.spark.store.schema import TableSpec, recorded_table
from hydro_core.spark.store.store import Store
from hydro_core.storage.delta import is_table
from hydro_core.storage.places import entries_in, remove_tree
from hydro_core.storage.remote import DataPlace

OutputKeys = Mapping[str, Sequence[str]]
"""By the names of outputs the columns of which an output has at most one row for each value."""


class PublishedOutputs:
    """The outputs of a pipeline that are tables of their own."""

    def __init__(
        self,
        directory: DataPlace,
        ledger: Ledger,
        program: tuple[str, Callable[[], OutputKeys]],
        step: Callable[[str], None],
        larger: LargerTables,
    ) -> None:
        """The outputs of the pipeline in a directory: `program` is what commits know it by, and the
        keys of its outputs, as far as they are known.
        """
        self._directory, self._ledger, self._program, self._step = directory, ledger, program, step
        self._larger = larger
        self.wanted: frozenset[str] | None = None
        """The names of these outputs; None: nobody has said, and they stay as they are."""
        self.going: Callable[[], Collection[str]] = tuple
        """Gives the outputs that a program which is not deployed has no more, or has otherwise:
        what is said beside it of their tables counts when it is deployed.
        """
        self.behind: Mapping[str, str] = {}
        """The tables that could not be brought up by this process, each with why."""

    def follow(self, commit: Commit | None) -> None:
        """Brings the tables to a commit, the last one, if they show another.

        The pipeline's lock is held. What cannot be written stays behind, and is written next time.
        """
        if self.wanted is None or commit is None:
            return
        specs = list(self._kept(commit, self.wanted))
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

    def _kept(self, commit: Commit, wanted: Collection[str]) -> Iterator[TableSpec]:
        there: Collection[DataPlace] = ()
        others = [spec for spec in specs_of(commit) if spec.of not in wanted]
        if others:
            there = set(entries_in(self._directory / PUBLISHED))
        others = [s for s in others if published_path(self._directory, s) in there]
        going = self.going() if others else ()
        yield from (spec for spec in specs_of(commit) if spec.of in wanted)
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
