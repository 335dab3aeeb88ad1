"""From the batches of a range to the rows of its tables: which Spark jobs run, and how.

A small range is mostly overhead, so it runs without what serves large ones, and rows that a slot
keeps as they came in need no job at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hydro_core.analysis.infer import Typed
from hydro_core.errors import DataError
from hydro_core.faults import fault_of
from hydro_core.plan.nothing import surely_empty
from hydro_core.plan.tick_plan import Mode, StateSlot, TickPlan
from hydro_core.settings import MEBIBYTE, Settings
from hydro_core.spark.batches import Batch
from hydro_core.spark.ended import ended_jvm
from hydro_core.spark.executor import RangeResult, run_range
from hydro_core.spark.failures import data_error, find_failure
from hydro_core.spark.few_rows import few_rows_session
from hydro_core.spark.guards import exactly_run
from hydro_core.spark.ledger import Commit, state_error
from hydro_core.spark.pipeline_prepared import Run
from hydro_core.spark.relation import ITEM, TICK, Kind
from hydro_core.spark.store import CommittedPast, Store
from hydro_core.spark.store_schema import TableSpec
from hydro_core.spark.store_table import DataFile
from hydro_core.spark.store_write import (
    Pending,
    Written,
    collect_all,
    output_frame,
    settled_within,
    write_all,
)

_QUICK = {
    # Its estimates and its stages cost more than a small job does; sizes of files are known.
    "spark.sql.adaptive.enabled": "false",
}
"""What differs in the session for small ranges."""

_QUICK_STATE = 64 * MEBIBYTE
"""State of more bytes than this wants the session for large ranges."""

_BROKEN_FILES = ("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER", "PATH_NOT_FOUND")
"""Spark's names for files that are not what they should be."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a plan, by the slots' ids and by the outputs' names."""

    state: Mapping[str, TableSpec]
    outputs: Mapping[str, TableSpec]

    @property
    def all(self) -> tuple[TableSpec, ...]:
        """All of them, the state first."""
        return (*self.state.values(), *self.outputs.values())


class RangeJobs:
    """Computes ranges of a plan over the tables of a store."""

    def __init__(self, plan: TickPlan, tables: Tables, store: Store, settings: Settings) -> None:
        self._plan, self._tables, self._store, self._settings = plan, tables, store, settings
        self._quick: SparkSession | None = None

    def compute(
        self, run: Run, inputs: Mapping[str, Batch], spark: SparkSession, before: Commit | None
    ) -> Mapping[str, Written]:
        """What each table gets, by the tables' names; `before` is the last commit.

        Raises:
            DataError: a function failed (code `runtime`), or a stored file is broken (`state`).
            InfrastructureError: Spark, the disk or the like failed; the same may succeed later.
        """
        try:
            return exactly_run(lambda: self._computed(run, inputs, spark, before), self._settings)
        except (PySparkException, Py4JError, OSError, EOFError) as error:
            raise _failure(self._store.directory, error, self._plan.typed) from error

    def _computed(
        self, run: Run, inputs: Mapping[str, Batch], spark: SparkSession, before: Commit | None
    ) -> Mapping[str, Written]:
        known = {**self._nothing(inputs), **self._as_they_came(run, inputs)}
        if self._has_few_rows(inputs):
            few = self._pending(run, inputs, few_rows_session(spark), before, known)
            collected = collect_all(few, self._bound)
            if collected is not None:
                return {**known, **collected}
        many = self._pending(run, inputs, self._session(spark, inputs), before, known)
        return {**known, **write_all(many, self._bound, (run.first, run.last))}

    @property
    def _bound(self) -> int:
        return self._settings.spark.small_write_rows

    def _has_few_rows(self, inputs: Mapping[str, Batch]) -> bool:
        """Whether little arrives, and little is stored that it can meet."""
        most = min(self._settings.spark.few_rows, self._bound)
        counts = [
            *(batch.rows_at_hand for batch in inputs.values()),
            *(file.rows for file in self._stored()),
        ]
        return sum(most + 1 if count is None else count for count in counts) <= most

    def _stored(self) -> list[DataFile]:
        """The files of the state."""
        tables = (self._store.tables[spec.name] for spec in self._tables.state.values())
        return [file for table in tables for file in table.files()]

    def _session(self, spark: SparkSession, inputs: Mapping[str, Batch]) -> SparkSession:
        """The session that suits the size of the range; all its DataFrames belong to it."""
        if (
            not all(batch.is_small for batch in inputs.values())
            or sum(file.size for file in self._stored()) > _QUICK_STATE
        ):
            return spark
        if self._quick is None:
            self._quick = spark.newSession()
            for key, value in {**_settings_of(spark), **_QUICK}.items():
                self._quick.conf.set(key, value)
        return self._quick

    def _result(self, run: Run, inputs: Mapping[str, Batch], session: SparkSession) -> RangeResult:
        names = {slot: spec.name for slot, spec in self._tables.state.items()}
        return run_range(
            self._plan,
            run.first,
            run.last,
            spark=session,
            sources={name: batch.frame(session) for name, batch in inputs.items()},
            past=CommittedPast(self._store, names, session, run.first),
            settings=self._settings,
            times=run.times,
            settle=settled_within(self._bound),
            added=[name for name, spec in self._tables.outputs.items() if spec.kind is Kind.H],
        )

    def _nothing(self, inputs: Mapping[str, Batch]) -> Mapping[str, Written]:
        """The tables that get no rows, since nothing came that could reach them."""
        there = {name for name, batch in inputs.items() if not batch.is_empty}
        empty = surely_empty(self._plan, set(self._plan.graph.sources) - there)
        state, outputs = self._tables.state, self._tables.outputs
        sinks = self._plan.graph.sinks
        return {
            spec.name: Written(spec, 0, spec.arrow_schema.empty_table())
            for spec in (
                *(state[slot.id] for slot in self._plan.slots if slot.stream.node in empty),
                *(outputs[n] for n, all_ in sinks.items() if all(s.id in empty for s in all_)),
            )
        }

    def _as_they_came(self, run: Run, inputs: Mapping[str, Batch]) -> Mapping[str, Written]:
        """What the slots keep that store an input, where its rows are at hand."""
        sources = {node.id: name for name, node in self._plan.graph.sources.items()}
        found = {}
        for slot in self._plan.slots:
            if slot.ordered or slot.stream.node not in sources:
                continue
            spec = self._tables.state[slot.id]
            batch = inputs.get(sources[slot.stream.node])
            if batch is None:
                found[spec.name] = Written(spec, 0, spec.arrow_schema.empty_table())
            elif isinstance(batch.rows, pa.Table):
                rows = _kept(batch.rows, slot, run.last).cast(spec.arrow_schema)
                found[spec.name] = Written(spec, rows.num_rows, rows)
        return found

    def _pending(
        self,
        run: Run,
        inputs: Mapping[str, Batch],
        session: SparkSession,
        before: Commit | None,
        known: Collection[str],
    ) -> Mapping[str, Pending]:
        """The rows of the tables, but for those of which they are known."""
        result = self._result(run, inputs, session)
        frames = {self._tables.state[slot].name: frame for slot, frame in result.state.items()}
        for output, spec in self._tables.outputs.items():
            relation = result.outputs[output]
            frames[spec.name] = output_frame(relation, spec, run.first, run.last)
        arrived = sum(batch.read.rows or 0 for batch in inputs.values())
        return {
            name: Pending(
                self._store.tables[name],
                frame,
                max(arrived, _expected(before, name, run)) <= self._bound,
            )
            for name, frame in frames.items()
            if name not in known
        }


def _kept(rows: pa.Table, slot: StateSlot, last: int) -> pa.Table:
    if slot.mode is Mode.LAST:
        rows = rows.filter(pc.field(TICK) == last)
    return rows.select([TICK, ITEM])


def _expected(before: Commit | None, table: str, run: Run) -> float:
    """How many rows a table is to get if the range is as the one before."""
    if before is None or not before.ticks:
        return 0
    return before.rows.get(table, 0) / len(before.ticks) * (run.last - run.first + 1)


def _settings_of(spark: SparkSession) -> Mapping[str, str]:
    """What was set on the session after it was started, which a new one does not inherit."""
    keys = ("spark.sql.shuffle.partitions",)
    return {key: value for key in keys if (value := spark.conf.get(key, None)) is not None}


def _failure(directory: Path, error: Exception, typed: Typed) -> DataError:
    """What a failed job says: a stored file that cannot be read is not the program's fault."""
    text = str(error)
    if find_failure(error) is not None:
        return data_error(error, typed)
    if any(name in text for name in _BROKEN_FILES) and str(directory) in text:
        return state_error(
            f"a file of the pipeline in {directory} cannot be read",
            "restore the directory from a backup, or remove all of it and run the ticks again",
        )
    of_the_machine = ended_jvm(error) or fault_of(error, vanished=True)
    return of_the_machine or data_error(error, typed)
