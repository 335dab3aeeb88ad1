"""Spark jobs of a range of ticks, and the stored rows that it needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import assert_never
from weakref import finalize

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from hydro_core.catalog.classes import (
    Linear,
    OpClass,
    OverTime,
    PerKey,
    PerPosition,
    Product,
    RunningResult,
    StreamEnd,
)
from hydro_core.catalog.forms import Form
from hydro_core.files.parquet import parquet_format
from hydro_core.ir.graph import behind
from hydro_core.plan.lookups import InputPlace, RowDemand, StoredInput, lookups, round_lookups
from hydro_core.plan.stored_rows import ExtremeRows, Lookups
from hydro_core.plan.streams import in_one_form
from hydro_core.plan.tick_plan import StateSlot, TickPlan, TimeBound
from hydro_core.settings import MEBIBYTE, Settings
from hydro_core.spark.executor.executor import Job, RangeResult
from hydro_core.spark.executor.planned_rounds import InRounds, PlannedRounds, TooManyRowsError
from hydro_core.spark.executor.shell import attempt
from hydro_core.spark.frames.column_names import ITEM
from hydro_core.spark.frames.materialize import held_until_the_end
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.functions.guards import in_python_for_good
from hydro_core.spark.functions.reruns import GuardedFunction
from hydro_core.spark.inputs.batches import Batch
from hydro_core.spark.pipeline.kept_plan import KEPT_PLANS, KeptPlan, TickRows, at_tick, can_be_kept
from hydro_core.spark.pipeline.prepared import (
    ComputedRange,
    RangeRequest,
    as_they_came,
    empty_tables,
    expected_rows,
    is_compiled,
    rows_at_hand,
)
from hydro_core.spark.pipeline.tables import Tables
from hydro_core.spark.session.session import (
    compiling_session,
    few_rows_session,
    has_few_rows,
    small_ranges_session,
)
from hydro_core.spark.store.cached_rows import ROW_CACHE, LiveRows
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.delta.write import (
    PendingRows,
    WrittenRows,
    collect_all,
    few_written,
    first_rows_of,
    materialized_within,
    output_frame,
    write_all,
)
from hydro_core.spark.store.ledger.records import Commit
from hydro_core.spark.store.lookups.conditions import KnownItems, MatchedRows
from hydro_core.spark.store.lookups.lookup_files import LookupFiles, stored_leaf, without_cancelled
from hydro_core.spark.store.lookups.search import (
    LeadingRows,
    StoredSearch,
    came,
    leading,
    places_in_order,
)
from hydro_core.spark.store.schema import Column, TableSpec, in_order, leaf_of
from hydro_core.spark.store.snapshots import summed
from hydro_core.spark.store.store import CommittedPast, Store
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.untimed import refuse_untimed, timed_nodes
from hydro_core.types.item import ItemType


def leading_rows(
    table: StoredTable,
    lookup_files: LookupFiles,
    wanted: tuple[ExtremeRows, ItemType],
    count: int,
    last: int,
) -> LeadingRows | None:
    """The first rows of a log that came up to a `last` tick: so many of each large file, and of all
    others together. None where too much would be gone through, or something cannot be read: whoever
    reads all of it says what.
    """
    rows, item = wanted
    schema = table.spec.arrow_schema
    files = [file for file in table.files() if file.rows != 0 and file.may_hold(0, last)]
    leaf = stored_leaf(schema, item, rows.leaf)
    ends = (0, count) if rows.greatest else (count, 0)
    looked_up, rest = lookup_files.leading(files, schema, leaf, ends)
    parts = [
        LeadingRows(came(part, 0, last), _last_value(part, wanted)[: int(more)])
        for part, more in looked_up
    ]
    try:
        paths = [str(file.path) for file in rest]
        stored = ds.dataset(paths, schema=schema, format=parquet_format())
        held = ROW_CACHE.rows(Path(str(table.path)).joinpath, stored, schema.names)
        if held is stored and paths:
            return None
        parts.append(leading(came(held.to_table(), 0, last), item, rows, count))
    except (pa.ArrowInvalid, OSError):
        return None
    items = pa.concat_arrays([part.items for part in parts])
    return LeadingRows(items, pa.concat_arrays([part.beyond for part in parts]))


def _last_value(part: pa.Table, wanted: tuple[ExtremeRows, ItemType]) -> Column:
    """The value that comes last of those of some rows, in their order; of none nothing."""
    rows, item = wanted
    values = in_order(leaf_of(part[ITEM].combine_chunks(), item, rows.leaf))
    order = places_in_order(values)
    return values.take(pa.array(order[:1] if rows.greatest else order[-1:]))


SEARCHED_ROWS = 10_000_000
"""State of which more rows are gone through is left to Spark: to search them here would take longer
than a job does."""


@dataclass(frozen=True, slots=True)
class SearchedTables:
    """The state of a pipeline for a range that starts at a tick."""

    store: Store
    specs: Mapping[str, TableSpec]
    first: int

    def ticks(self, slot: StateSlot) -> tuple[int, int]:
        """The first and the last tick of a slot that the range reads."""
        return slot.ticks_read(self.first)

    def met(self, slot: StateSlot, met: MatchedRows) -> pa.Table | None:
        """The stored rows of a slot that are met; None where too many would be looked at."""
        name = self.specs[slot.id].name
        many = self.store.lookup_files.gone_through(self.store.tables[name])
        return self.store.met(name, met) if many <= SEARCHED_ROWS else None

    def lead(self, slot: StateSlot, rows: ExtremeRows, count: int) -> LeadingRows | None:
        """So many rows of a slot that came, the first by a leaf; None where they cannot be told."""
        table = self.store.tables[self.specs[slot.id].name]
        files = self.store.lookup_files
        return leading_rows(table, files, (rows, slot.item), count, self.first - 1)


def alive_rows(
    plan: TickPlan,
    store: Store,
    tables: Mapping[str, TableSpec],
    run: RangeRequest,
    asked: tuple[Collection[str], int],
) -> Mapping[str, pa.Table]:
    """The rows of such slots by the slots' ids, of those that have few.

    Rows that have left are not read, nor those that stay where nobody looks at them.

    `asked` are the outputs of which what they add or change is all that is looked at, and how many
    rows are few.

    Raises:
        DataError: a tick has no times, and rows leave by them (code `input`).
    """
    nodes = timed_nodes(plan.graph)
    for tick in range(run.first, run.last + 1) if nodes else ():
        if None in run.times.get(tick, (None,)):
            raise refuse_untimed(nodes[0], tick)
    slots = [(slot, slot.bound) for slot in plan.slots if slot.bound and not slot.ordered]
    start, _ = run.times.get(run.first, (None, None))
    _, end = run.times.get(run.last, (None, None))
    if not slots or start is None or end is None:
        return {}
    added, most = asked
    alone = in_one_form(plan, added)
    found = {}
    for slot, bound in slots:
        # What leaves first is what leaves the shortest of the windows over these rows.
        ends = [TimeBound.of(plan.graph[reader]) for reader in slot.readers]
        leaves = [one.since(end) for one in ends if one is not None]
        upto = max(leaves) if alone.issuperset(slot.readers) else None
        alive = LiveRows(bound, bound.since(start), upto)
        rows = store.few_alive(tables[slot.id].name, run.first - 1, alive, most)
        if rows is not None:
            found[slot.id] = rows
    return found


KEPT_ROWS = 2_000
"""Changes of which no more are found are handed to Spark as they are: to sum them up is no gain."""
SUMMED_ROWS = 1_000_000
"""Up to so many changes are summed up here, so that each item is one row."""


def as_it_is(rows: pa.Table, slot: StateSlot, spec: TableSpec, first: int, few: int) -> pa.Table:
    """Stored rows of a slot for the range that starts at `first`, many changes as their sum."""
    if slot.form is Form.CHANGES and min(few, KEPT_ROWS) < rows.num_rows <= SUMMED_ROWS:
        return summed(without_cancelled(rows), spec, slot.ticks_read(first)[1])
    return rows


def whole_results(plan: TickPlan) -> Iterator[StateSlot]:
    """The slots of which a tick may be handed what is there, whenever that came.

    Nothing looks further back than the tick before at what they are read for.
    """
    over_time = [node for node in plan.graph if _is_over_time(node.cls)]
    back = behind(plan.graph, [stream.node for node in over_time for stream in node.inputs])
    for slot in plan.slots:
        readers = [plan.graph[reader] for reader in slot.readers]
        if (
            slot.form is Form.CHANGES
            and not slot.ordered
            and all(isinstance(node.cls, RunningResult) and node.id not in back for node in readers)
        ):
            yield slot


def _is_over_time(cls: OpClass) -> bool:
    """Whether other ticks decide what an operator gives."""
    match cls:
        case OverTime():
            return True
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition():
            return False
        case _:
            assert_never(cls)


# A small range is mostly overhead, so it runs without what serves large ones, and rows that a
# slot keeps as they came in need no job at all.


_FEW_ARRIVALS = 20_000
"""Of more rows that arrive, what is not compiled costs more than stages do."""

_QUICK_STATE = 64 * MEBIBYTE
"""State of more bytes than this wants the session for large ranges."""


class RangeJobs:
    """Computes ranges of a plan over the tables of a store."""

    def __init__(self, plan: TickPlan, tables: Tables, store: Store, settings: Settings) -> None:
        self.plan, self.tables, self.store, self.settings = plan, tables, store, settings
        self._kept_as = object()
        """What the plan is known by among those that the process keeps."""
        finalize(self, KEPT_PLANS.disown, self._kept_as)

    @cached_property
    def in_rounds(self) -> Mapping[InputPlace, StoredInput]:
        """The inputs of which rounds of cycles look up what they meet."""
        return round_lookups(self.plan)

    @cached_property
    def _lookups(self) -> Mapping[bool, Mapping[str, RowDemand]]:
        # Whoever only looks at a pipeline runs nothing.
        sinks = self.plan.graph.sinks
        whole = lookups(self.plan, sinks)
        return {False: whole, True: lookups(self.plan, sinks, self.in_rounds)}

    @cached_property
    def _whole_results(self) -> Sequence[StateSlot]:
        return tuple(whole_results(self.plan))

    @cached_property
    def made_of(self) -> Mapping[str, frozenset[str]]:
        """The inputs of which each table is made, by the tables' names."""
        graph, sinks = self.plan.graph, self.plan.graph.sinks
        state, outputs = self.tables.state, self.tables.outputs
        streams = {state[slot.id].name: [slot.stream.node] for slot in self.plan.slots}
        streams |= {spec.name: [sink.id for sink in sinks[n]] for n, spec in outputs.items()}
        reached = {name: behind(graph, nodes) for name, nodes in streams.items()}
        return {
            name: frozenset(n for n, source in graph.sources.items() if source.id in nodes)
            for name, nodes in reached.items()
        }

    @held_until_the_end()
    def compute(
        self,
        run: RangeRequest,
        inputs: Mapping[str, Batch],
        spark: SparkSession,
        before: Commit | None,
    ) -> ComputedRange:
        """What each table gets; `before` is the last commit.

        Raises:
            DataError: a function failed (code `runtime`), or a stored file is broken (`state`).
            InfrastructureError: Spark, the disk or the like failed; the same may succeed later.
        """
        came = as_they_came(self.plan, self.tables, inputs, run.last)
        known = {**empty_tables(self.plan, self.tables, inputs), **came}
        if len(known) == len(self.tables.all):
            return ComputedRange(known, ())
        in_rounds = bool(self.in_rounds) and run.first == run.last
        past = self._found(run, inputs, in_rounds=in_rounds)
        in_python: Sequence[GuardedFunction] = ()
        if self._has_few_rows(run, inputs, past, before):
            few = rows_at_hand(inputs) <= _FEW_ARRIVALS
            session = few_rows_session(spark) if few else compiling_session(spark)
            storage = _Range(self, run, inputs, session, past, before, came)
            with suppress(TooManyRowsError):
                found = self._by_kept_plan(storage)
                if found is not None:
                    return ComputedRange({**found, **came}, ())
                if few:
                    storage = replace(storage, known=known)
                    found, in_python = attempt(storage, run.first, run.last)
                if found is not None:
                    return ComputedRange({**known, **found}, in_python)
        if in_rounds:
            past = self._found(run, inputs, in_rounds=False)
        session = self._session(spark, inputs, past)
        storage = _Range(self, run, inputs, session, past, before, known)
        found, in_python = attempt(storage, run.first, run.last, in_python)
        if found is None:
            raise AssertionError("any number of rows fits the last session")
        return ComputedRange({**known, **found}, in_python)

    def _by_kept_plan(self, storage: _Range) -> Mapping[str, WrittenRows] | None:
        """What the tables get, by the plan that is kept; None where the tick runs by its own."""
        if not self._may_be_kept(storage.run):
            return None
        key = self._kept_as, storage.session, in_python_for_good()
        tables = KEPT_PLANS.run(key, storage.kept_plan, storage.tick_rows)
        return None if tables is None else storage.written(tables)

    def _may_be_kept(self, run: RangeRequest) -> bool:
        return 0 < run.first == run.last and can_be_kept(self.plan)

    def _found(
        self, run: RangeRequest, inputs: Mapping[str, Batch], *, in_rounds: bool
    ) -> Mapping[str, pa.Table]:
        """The rows that the batches meet of slots of which they meet few, by the slots' ids; but
        for those that rounds of cycles look up, if they do.
        """
        few = self.settings.spark.few_rows
        alive = alive_rows(self.plan, self.store, self.tables.state, run, (self.added, few))
        batches = {
            name: (batch.rows[ITEM].combine_chunks(), batch.item)
            for name, batch in inputs.items()
            if isinstance(batch.rows, pa.Table)
        }
        if rows_at_hand(inputs) > few:
            return alive
        state = SearchedTables(self.store, self.tables.state, run.first)
        search = StoredSearch(self.plan, self._lookups[in_rounds], state)
        found = dict(search.rows(batches, is_tick=run.first == run.last))
        for slot in self._whole_results:
            table = self.tables.state[slot.id].name
            if slot.id not in {*found, *alive} and self.store.tables[table].rows <= SUMMED_ROWS:
                found[slot.id] = self.store.arrow(table, *slot.ticks_read(run.first))
        some = {
            name: as_it_is(rows, self.plan.slot(name), self.tables.state[name], run.first, few)
            for name, rows in found.items()
        }
        return {**alive, **{name: rows for name, rows in some.items() if rows.num_rows <= few}}

    @property
    def added(self) -> list[str]:
        """The outputs that store what they add, or change."""
        outputs = self.tables.outputs
        return [n for n, spec in outputs.items() if spec.is_log or spec.kind is Kind.H]

    def _has_few_rows(
        self,
        run: RangeRequest,
        inputs: Mapping[str, Batch],
        past: Mapping[str, pa.Table],
        before: Commit | None,
    ) -> bool:
        """Whether little arrives, and little is stored that it can meet.

        What comes of it passes through the driver, so the range before must have given little, too.
        """
        came, stored = rows_at_hand(inputs), [file.rows for file in self._stored(past)]
        if None in stored:
            return False
        met = sum(rows.num_rows for rows in past.values()) + sum(n or 0 for n in stored)
        given = max((expected_rows(before, spec.name, run) for spec in self.tables.all), default=0)
        settings = self.settings.spark
        few = came <= _FEW_ARRIVALS or (self._may_be_kept(run) and is_compiled(inputs))
        few = few and came + met <= settings.few_rows
        return few and max(came, given) <= settings.small_write_rows

    def _stored(self, past: Mapping[str, pa.Table]) -> list[DataFile]:
        """The files of the state, apart from slots of which the rows are at hand."""
        specs = (spec for slot, spec in self.tables.state.items() if slot not in past)
        return [file for spec in specs for file in self.store.tables[spec.name].files()]

    def _session(
        self, spark: SparkSession, inputs: Mapping[str, Batch], past: Mapping[str, pa.Table]
    ) -> SparkSession:
        """The session that suits the size of the range; all its DataFrames belong to it."""
        if (
            any(batch.rows_at_hand is None for batch in inputs.values())
            or sum(file.size for file in self._stored(past)) > _QUICK_STATE
        ):
            return spark
        return small_ranges_session(spark)


@dataclass(frozen=True, slots=True)
class _Range:
    """The tables of a pipeline, as what one range reads and writes."""

    of: RangeJobs
    run: RangeRequest
    inputs: Mapping[str, Batch]
    session: SparkSession
    past: Mapping[str, pa.Table]
    """The rows of slots of which not all are needed."""
    before: Commit | None
    known: Collection[str]
    """The tables whose rows are known without a job."""

    @property
    def plan(self) -> TickPlan:
        """The pipeline's plan."""
        return self.of.plan

    @property
    def settings(self) -> Settings:
        """The limits of the jobs."""
        return self.of.settings

    @property
    def directory(self) -> DataPlace:
        """The pipeline's directory."""
        return self.of.store.directory

    def job(self, first: int, last: int) -> Job:
        sources = {name: batch.frame(self.session) for name, batch in self.inputs.items()}
        job = self._job(first, last, sources)
        return replace(job, past=self._past, times=self.run.times)

    def _job(self, first: int, last: int, sources: Mapping[str, DataFrame]) -> Job:
        """The job without what is stored of the ticks before, and without times."""
        return Job(
            self.plan,
            first,
            last,
            self.session,
            sources,
            settings=self.settings,
            materialize=materialized_within(self._bound),
            added=self.of.added,
            in_rounds=self._in_rounds(lambda rounds: rounds.run(self._search, self.settings)),
        )

    def _in_rounds(self, run: Callable[[PlannedRounds], None]) -> InRounds | None:
        is_tick = self.run.first == self.run.last
        few = is_tick and has_few_rows(self.session)
        return InRounds(self.of.in_rounds, run, self._bound) if few else None

    def _search(self, name: str, found: Lookups, known: KnownItems) -> pa.Table:
        """What a round of a cycle looks up."""
        slot, few = self.plan.slot(name), self.settings.spark.few_rows
        ticks = slot.ticks_read(self.run.first)
        met = MatchedRows(RowDemand(found), slot.item, known, ticks)
        rows = self.of.store.met(self.of.tables.state[name].name, met)
        if rows.num_rows > few:
            raise TooManyRowsError(name)
        return rows

    @property
    def _past(self) -> CommittedPast:
        names = {slot: spec.name for slot, spec in self.of.tables.state.items()}
        return CommittedPast(self.of.store, names, self.session, self.run.first, self.past)

    def kept_plan(self) -> KeptPlan:
        """The plan of the tick, for this one and those after it."""
        return KeptPlan(
            self.plan,
            self.of.tables.state,
            self._job(self.run.first, self.run.last, {}),
            lambda job, found: first_rows_of(self._pending(job, found), self._bound),
        )

    def tick_rows(self) -> TickRows:
        """What the tick is computed from; all that arrives is at hand."""
        run = self.run
        return TickRows(
            run.first,
            run.times.get(run.first, (None, None)),
            {name: b.rows for name, b in self.inputs.items() if isinstance(b.rows, pa.Table)},
            self._past.arrow,
            self._search,
        )

    def written(self, tables: Mapping[str, pa.Table]) -> Mapping[str, WrittenRows] | None:
        """What the tables get by a kept plan; None where that is more than few rows."""
        specs = {spec.name: spec for spec in self.of.tables.all}
        moved = {
            name: at_tick(rows, specs[name].tick, self.run.first) for name, rows in tables.items()
        }
        return few_written(moved, specs, self._bound)

    def take(
        self, job: Job, found: RangeResult
    ) -> tuple[Mapping[str, WrittenRows] | None, Sequence[GuardedFunction]]:
        """The rows of the tables that are not known, and the functions for which it ran again.

        None where they are more than few, in a session for few rows.
        """
        pending = self._pending(job, found)
        if has_few_rows(self.session):
            return collect_all(pending, self._bound), job.in_python()
        return write_all(pending, self._bound, (job.first, job.last)), job.in_python()

    @property
    def _bound(self) -> int:
        return self.of.settings.spark.small_write_rows

    def _pending(self, job: Job, found: RangeResult) -> Mapping[str, PendingRows]:
        state, outputs = self.of.tables.state, self.of.tables.outputs
        frames = {state[slot].name: frame for slot, frame in found.state.items()}
        for output, spec in outputs.items():
            frames[spec.name] = output_frame(found.outputs[output], spec, job.first, job.last)
        return {
            name: PendingRows(
                self.of.store.tables[name],
                frame,
                max(self._arrived(name), expected_rows(self.before, name, self.run)) <= self._bound,
            )
            for name, frame in frames.items()
            if name not in self.known
        }

    def _arrived(self, table: str) -> int:
        """How many rows arrive that can reach a table."""
        names = self.of.made_of[table]
        return sum(self.inputs[name].read.rows or 0 for name in names if name in self.inputs)
