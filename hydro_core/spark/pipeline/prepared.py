"""A range of ticks that is computed but not committed: to be looked at, then kept or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hydro_core.errors import HydroError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.spark.executor.shell import failures_as_errors
from hydro_core.spark.functions.reruns import GuardedFunction, counted
from hydro_core.spark.lower.registry import Times
from hydro_core.spark.store.delta.write import WrittenRows
from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.spark.store.ledger.input_reads import InputRead
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.outputs.shown_ticks import shown_at
from hydro_core.spark.store.store import OnStep, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """What is known of a range before it is computed."""

    first: int
    last: int
    times: Times
    plan: str
    inputs: tuple[InputRead, ...]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class ComputedRange:
    """What a range gives."""

    written: Mapping[str, WrittenRows]
    """What each table gets, by the tables' names."""
    in_python: Sequence[GuardedFunction]
    """The functions for which it ran again: Spark could not tell what they give."""


class PreparedRange:
    """The results of a range; as a context manager it is abandoned unless it was committed."""

    def __init__(
        self,
        run: RangeRequest,
        store: Store,
        ledger: Ledger,
        computed: ComputedRange,
        done: Callable[[], None],
        step: OnStep,
    ) -> None:
        self.run = run
        self.written = computed.written
        """What each table gets, by the tables' names."""
        self._in_python = computed.in_python
        self._store, self._ledger, self._done, self._step = store, ledger, done, step
        self._decided = False
        self._versions: Mapping[str, int] | None = None
        self._summed_up: dict[str, WrittenRows] = {}

    def __enter__(self) -> PreparedRange:
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()

    @property
    def ticks(self) -> range:
        return range(self.run.first, self.run.last + 1)

    @property
    def inputs(self) -> tuple[InputRead, ...]:
        return self.run.inputs

    @property
    def state(self) -> Mapping[str, WrittenRows]:
        """What the state slots get, by their ids."""
        return {w.spec.of: w for w in self.written.values() if w.spec.role == "state"}

    @property
    def outputs(self) -> Mapping[str, WrittenRows]:
        """What the outputs get, by their names."""
        return {w.spec.of: w for w in self.written.values() if w.spec.role == "output"}

    @property
    def rows(self) -> Mapping[str, int]:
        """The number of rows that each table gets."""
        return {name: written.rows for name, written in self.written.items()}

    def stored_rows(self, table: str) -> int:
        """The number of rows that a table has now, by its name: these among them once written.

        Of a log, how many its changes sum up to.
        """
        return self._store.row_count(table)

    def read_back(self, table: str) -> Iterator[pa.Table]:
        """The rows of the range as a table holds them, by its name; `write` comes before.

        They are read piece by piece where they are many; there is at least one piece.
        """
        return self._pieces(table, self.run.first, self.run.last)

    def read_before(self, table: str) -> Iterator[pa.Table]:
        """The rows of the ticks before the range as a table holds them, by its name."""
        return self._pieces(table, 0, self.run.first - 1)

    def shown(self, output: str, session: Callable[[], SparkSession]) -> WrittenRows:
        """The rows that an output has at the ticks of the range; `write` comes before.

        Args:
            output: its name.
            session: gives the Spark that sums up a log of many changes.
        """
        written = self.outputs[output]
        if not written.spec.is_log:
            return written
        if output not in self._summed_up:
            ticks = self.run.first, self.run.last
            with failures_as_errors(directory=self._store.directory):
                shown = shown_at(self._store, written.spec, ticks, session)
            self._summed_up[output] = shown
        return self._summed_up[output]

    def _pieces(self, table: str, first: int, last: int) -> Iterator[pa.Table]:
        few = self._store.rows_within(table, first, last) <= self._store.held_rows
        if few and self.written[table].table is not None:
            return iter((self._store.arrow(table, first, last),))
        return self._store.pieces(table, first, last)

    def write(self) -> None:
        """Puts the rows into the tables, ahead of the ledger: readable, not yet of the past.

        Checks may look at what was written before `commit` or `abandon` decides.
        """
        if self._versions is None:
            ticks = (self.run.first, self.run.last)
            with self._faults_as_errors():
                before, _ = self.run.times.get(self.run.first, (None, None))
                self._versions = self._store.commit(self.written, ticks, self._step, before)
            self._step("tables")

    def commit(self, checks: Mapping[str, Any] | None = None) -> Commit:
        """Makes the range part of the past; `checks` are kept in the ledger as they are.

        Raises:
            DataError: another writer was faster (code `state`); then nothing of this range counts.
        """
        if self._decided:
            raise RuntimeError("the range is committed or abandoned already")
        self._decided = True
        try:
            with self._faults_as_errors():
                return self._commit(checks or {})
        finally:
            self._end()

    def abandon(self) -> None:
        """Gives the results up; nothing remains of them."""
        if self._decided:
            return
        self._decided = True
        try:
            for written in self.written.values():
                written.discard()
            if self._versions is not None:
                self._store.recover(self._ledger.last)
        finally:
            self._end()

    def _end(self) -> None:
        try:
            # It is decided by now, and what stays there the pipeline's upkeep removes.
            with suppress(OSError, HydroError):
                for shown in self._summed_up.values():
                    shown.discard()
        finally:
            self._done()

    def _faults_as_errors(self) -> AbstractContextManager[None]:
        return faults_as_errors(f"the pipeline in {self._store.directory}")

    def _commit(self, checks: Mapping[str, Any]) -> Commit:
        run, last = self.run, self._ledger.last
        self.write()
        sequence = 0 if last is None else last.sequence + 1
        commit = Commit(
            sequence=sequence,
            first=run.first,
            last=run.last,
            plan=run.plan,
            versions=self._versions or {},
            rows=self.rows,
            started=run.started,
            committed=datetime.now(UTC),
            inputs=run.inputs,
            start=run.times[run.first][0] if run.first in run.times else None,
            end=run.times[run.last][1] if run.last in run.times else None,
            checks=checks,
            tables={name: t.spec.record() for name, t in self._store.tables.items()},
            reruns=counted(last.reruns if last else (), self._in_python, sequence, self.ticks),
        )
        self._ledger.append(commit)
        self._step("ledger")
        return commit
