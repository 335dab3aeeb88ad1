"""A range of ticks that is computed and not committed yet, with the rows its checks expect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.catalog.forms import Form
from hydro_core.catalog.spec import State
from hydro_core.errors import HydroError
from hydro_core.ir.graph import NodeId
from hydro_core.machine.faults import faults_as_errors
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.executor.shell import failures_as_errors
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.functions.reruns import GuardedFunction, counted
from hydro_core.spark.inputs.batches import Batch
from hydro_core.spark.lower.registry import Times
from hydro_core.spark.pipeline.tables import Tables
from hydro_core.spark.store.delta.write import WrittenRows
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.ledger.records import Commit, InputRead
from hydro_core.spark.store.outputs.changes import shown_at
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


_COMPILED_ROWS = 60_000
"""So many may arrive where the plan is kept, and what it is compiled to with it."""

_COMPILED_BYTES = 64 * MEBIBYTE
"""And rows of so many bytes: the heap of the driver has them all."""


def rows_at_hand(inputs: Mapping[str, Batch]) -> float:
    """How many rows arrive; infinitely many where that is not known."""
    counts = [batch.rows_at_hand for batch in inputs.values()]
    return float("inf") if None in counts else sum(n or 0 for n in counts)


def is_compiled(inputs: Mapping[str, Batch]) -> bool:
    """Whether what arrives is little enough for one task, if the plan is kept and compiled."""
    tables = [batch.rows for batch in inputs.values() if isinstance(batch.rows, pa.Table)]
    few = rows_at_hand(inputs) <= _COMPILED_ROWS
    return few and sum(rows.nbytes for rows in tables) <= _COMPILED_BYTES


def expected_rows(before: Commit | None, table: str, run: RangeRequest) -> float:
    """How many rows a table is to get if the range is as the one before."""
    if before is None or not before.ticks:
        return 0
    return before.rows.get(table, 0) / len(before.ticks) * (run.last - run.first + 1)


def empty_tables(
    plan: TickPlan, tables: Tables, inputs: Mapping[str, Batch]
) -> Mapping[str, WrittenRows]:
    """The tables that get no rows, since nothing came that could reach them."""
    there = {name for name, batch in inputs.items() if not batch.is_empty}
    empty = surely_empty(plan, set(plan.graph.sources) - there)
    sinks = plan.graph.sinks
    return {
        spec.name: WrittenRows(spec, 0, spec.arrow_schema.empty_table())
        for spec in (
            *(tables.state[slot.id] for slot in plan.slots if slot.stream.node in empty),
            *(tables.outputs[n] for n, all_ in sinks.items() if all(s.id in empty for s in all_)),
        )
    }


def as_they_came(
    plan: TickPlan, tables: Tables, inputs: Mapping[str, Batch], last: int
) -> Mapping[str, WrittenRows]:
    """What the slots keep that store an input, where its rows are at hand, up to a `last` tick."""
    sources = {node.id: name for name, node in plan.graph.sources.items()}
    found = {}
    for slot in plan.slots:
        if slot.ordered or slot.stream.node not in sources:
            continue
        spec = tables.state[slot.id]
        batch = inputs.get(sources[slot.stream.node])
        if batch is None:
            found[spec.name] = WrittenRows(spec, 0, spec.arrow_schema.empty_table())
        elif isinstance(batch.rows, pa.Table):
            rows = batch.rows
            if slot.form is Form.VALUES:
                rows = rows.filter(pc.field(TICK) == last)
            rows = rows.select([TICK, ITEM]).cast(spec.arrow_schema)
            found[spec.name] = WrittenRows(spec, rows.num_rows, rows)
    return found


def surely_empty(plan: TickPlan, inputs: Collection[str]) -> frozenset[NodeId]:
    """The nodes that give nothing where these inputs are empty: a day without new airlines needs no
    job that finds out how many there are.

    Those with an input that is not, with a past, or in a cycle are left out: so are operators of
    which one empty input would do, since others may fail on what the other one has.
    """
    graph = plan.graph
    found = {graph.sources[name].id for name in inputs}
    for component in plan.components:
        for name in component.nodes if component.how == "once" else ():
            node = graph[name]
            if (
                node.inputs
                and node.spec.zero
                and node.spec.state is State.NONE
                and all(stream.node in found for stream in node.inputs)
            ):
                found.add(name)
    return frozenset(found)
