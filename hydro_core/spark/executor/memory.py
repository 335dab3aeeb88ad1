"""Ticks that come and go in memory: what `run --engine spark` and tests use.

State stays in the driver, as Arrow tables.

A tick is one Spark job: all outputs and all new state are collected together, as the columns of
one wide table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hydro_core.catalog.forms import Form
from hydro_core.ir.graph import Endpoint
from hydro_core.plan.lookups import InputPlace, RowDemand, StoredInput, lookups, round_lookups
from hydro_core.plan.planner import longest_range
from hydro_core.plan.stored_rows import ExtremeRows, Lookups
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.executor.executor import Job, RangeResult
from hydro_core.spark.executor.planned_rounds import InRounds, PlannedRounds
from hydro_core.spark.executor.shell import run_ticks
from hydro_core.spark.frames.leaf import InOneJob, frame_of, table_frame, together
from hydro_core.spark.frames.materialize import collected, exactly
from hydro_core.spark.frames.relation import COUNT, ITEM, ORD, TICK
from hydro_core.spark.lower.relations import positioned
from hydro_core.spark.session.session import few_rows_session, shared_session
from hydro_core.spark.store.lookups.conditions import KnownItems, MatchedRows
from hydro_core.spark.store.lookups.search import LeadingRows, StoredSearch, came, leading
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.arrow import from_arrow, to_arrow
from hydro_core.types.item import ItemType
from hydro_core.types.values import sort_key


def run_in_memory(
    plan: TickPlan,
    ticks: Iterable[TickInput],
    settings: Settings | None = None,
    *,
    as_range: bool = False,
    spark: SparkSession | None = None,
) -> Iterator[Outputs]:
    """The outputs of every tick, in their order where they have one, else sorted.

    If `as_range`, all ticks are computed in one pass.
    """
    settings = settings or Settings()
    session = few_rows_session(spark or shared_session(settings.spark))
    memory = Memory(plan, session, settings)
    given = iter(ticks)
    if as_range:
        whole = list(given)
        memory.end = len(whole)
        yield from memory.run(whole)
        return
    while batch := list(islice(given, 1)):
        yield from memory.run(batch)


@dataclass(slots=True)
class Memory:
    """A program between two ranges of ticks: what it keeps, and which tick comes next."""

    plan: TickPlan
    spark: SparkSession
    settings: Settings
    next: int = 0
    end: int | None = None
    """The tick before which all ends, if it is known: what nobody will read is not kept."""
    kept: dict[str, pa.Table] = field(default_factory=dict)
    given: Mapping[int, TickInput] = field(default_factory=dict)
    found: Mapping[str, pa.Table] = field(default_factory=dict)
    """The kept rows that the range which runs can meet, of slots of which not all are needed."""
    _in_rounds: Mapping[InputPlace, StoredInput] = field(init=False)
    _lookups: Mapping[bool, Mapping[str, RowDemand]] = field(init=False)
    """Which rows a range needs; a single tick: in rounds of cycles further ones are looked up."""

    def __post_init__(self) -> None:
        self._in_rounds = round_lookups(self.plan)
        whole = lookups(self.plan, ())
        in_rounds = lookups(self.plan, (), self._in_rounds) if self._in_rounds else whole
        self._lookups = {False: whole, True: in_rounds}

    @property
    def directory(self) -> None:
        """There are no files."""

    def rows(self, slot: StateSlot) -> DataFrame | None:
        """The kept rows of a slot that the range can meet: this is the `Past` of the next range."""
        table = self.found.get(slot.id, self.kept.get(slot.id))
        if table is None or not table.num_rows:
            return None
        return together(table_frame(self.spark, table))

    def run(self, ticks: Sequence[TickInput]) -> Iterator[Outputs]:
        """The outputs of the next ticks, as one range or as few as may be.

        If a tick fails, those before it are kept.
        """
        self.given = dict(enumerate(ticks, self.next))
        last = self.next + len(ticks) - 1
        longest = longest_range(self.plan, self.settings)
        return chain.from_iterable(run_ticks(self, self.next, last, longest))

    def job(self, first: int, last: int) -> Job:
        """The job of some of the given ticks."""
        ticks = {t: self.given[t] for t in range(first, last + 1)}
        arrived = self._arrived(ticks)
        batches = {
            name: (to_arrow([x for _, x in pairs], item), item)
            for name, (pairs, item) in arrived.items()
        }
        is_tick = first == last
        search = StoredSearch(self.plan, self._lookups[is_tick], self)
        self.found = search.rows(batches, is_tick=is_tick)
        return Job(
            self.plan,
            first,
            last,
            self.spark,
            {name: frame_of(self.spark, *batch) for name, batch in arrived.items()},
            past=self,
            settings=self.settings,
            times={t: (given.start, given.end) for t, given in ticks.items() if given.start},
            materialize=collected,
            in_rounds=InRounds(self._in_rounds, self._run_rounds) if is_tick else None,
        )

    def ticks(self, slot: StateSlot) -> tuple[int, int]:
        """All ticks of before, of every slot."""
        return 0, self.next - 1

    def _run_rounds(self, rounds: PlannedRounds) -> None:
        def search(name: str, found: Lookups, known: KnownItems) -> pa.Table:
            slot = self.plan.slot(name)
            return self.met(
                slot, MatchedRows(RowDemand(found), slot.item, known, (0, self.next - 1))
            )

        rounds.run(search, self.settings)

    def met(self, slot: StateSlot, met: MatchedRows) -> pa.Table:
        """The kept rows of a slot that are met."""
        if slot.id in self.kept:
            return met.of(self.kept[slot.id])
        numbers = (TICK, COUNT) if slot.form is Form.CHANGES else (TICK,)
        none = {name: pa.array([], pa.int64()) for name in numbers}
        return pa.table({ITEM: to_arrow([], slot.item), **none})

    def lead(self, slot: StateSlot, rows: ExtremeRows, count: int) -> LeadingRows | None:
        """The first of the kept rows of a slot that came."""
        kept = self.kept.get(slot.id)
        if kept is None:
            return None
        return leading(came(kept, 0, self.next - 1), slot.item, rows, count)

    def take(self, job: Job, found: RangeResult) -> list[Outputs]:
        """The outputs of each tick; what else the job gives is kept."""
        follows = job.last + 1 != self.end
        tables = self._collect(found if follows else RangeResult(found.outputs, {}), job)
        if follows:
            self._keep(tables)
        self.next = job.last + 1
        return self._outputs(tables, job.first, job.last)

    def _arrived(
        self, ticks: Mapping[int, TickInput]
    ) -> Mapping[str, tuple[list[tuple[int, Any]], ItemType]]:
        """The items of each input that has any, with their ticks, and their type."""
        found = {}
        for name, node in self.plan.graph.sources.items():
            item = self.plan.typed.types[Endpoint(node.id)].item
            pairs = [(t, x) for t, given in ticks.items() for x in given.batches.get(name, ())]
            if pairs:
                found[name] = pairs, item
        return found

    def _collect(self, result: RangeResult, job: Job) -> dict[str, pa.Table]:
        """All outputs and slots, each a table (item, t[, ord]), by one job."""
        frames = {}
        for name, relation in result.outputs.items():
            events = relation.events(job.first, job.last)
            frame = positioned(events) if events.ordered else events.frame.select(ITEM, TICK)
            frames[_output(name)] = exactly(frame, relation.item)
        frames |= {_slot(slot): frame for slot, frame in result.state.items()}
        return InOneJob(frames).collect()

    def _keep(self, tables: Mapping[str, pa.Table]) -> None:
        for slot in self.plan.slots:
            new, old = tables[_slot(slot.id)], self.kept.get(slot.id)
            if slot.form is not Form.VALUES and old is not None:
                new = pa.concat_tables([old, new])
            self.kept[slot.id] = new.combine_chunks()

    def _outputs(self, tables: Mapping[str, pa.Table], first: int, last: int) -> list[Outputs]:
        types = self.plan.typed.outputs
        found = {name: _by_tick(tables[_output(name)], t.item) for name, t in types.items()}
        return [
            {name: ticks.get(t, []) for name, ticks in found.items()}
            for t in range(first, last + 1)
        ]


def _output(name: str) -> str:
    return f"output {name}"


def _slot(slot: str) -> str:
    return f"slot {slot}"


def _by_tick(table: pa.Table, item: ItemType) -> dict[int, list[Any]]:
    """The items of each tick: in their order if the table has one, else sorted."""
    ordered = ORD in table.column_names
    if ordered:
        table = table.sort_by(ORD)
    found: dict[int, list[Any]] = {}
    ticks: list[Any] = table[TICK].to_pylist()
    for t, x in zip(ticks, from_arrow(table[ITEM], item), strict=True):
        found.setdefault(t, []).append(x)
    return found if ordered else {t: sorted(items, key=sort_key) for t, items in found.items()}
