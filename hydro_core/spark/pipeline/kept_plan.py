"""The plan of a tick of few rows, kept: what Spark has planned once, it runs tick by tick.

Of a small tick nearly all is planning, and what is planned is the same each time: the rows that
arrive and the stored rows that they meet are leaves (`hydro_core.spark.frames.leaf`), which get
other rows for each tick. A plan counts ticks, too; so in a kept one every tick is `LATER`, what is
stored lies before it, and the ticks of rows are moved on their way in and out.

A kept plan tells of no failure: the tick whose job fails is planned by itself and runs again, and
that one says what there is to say.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from hydro_core.ir.graph import Endpoint
from hydro_core.plan.cycles import cycles_within_ticks, in_planned_rounds
from hydro_core.plan.stored_rows import Lookups
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.spark.executor.executor import Job, RangeResult, run_range
from hydro_core.spark.executor.planned_rounds import PlannedRounds, RoundSearch
from hydro_core.spark.frames.leaf import InOneJob, PlanLeaf
from hydro_core.spark.frames.materialize import held_for_each_job, is_of_each_job
from hydro_core.spark.frames.relation import TICK
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.inputs.batches import arrow_schema, relation_schema
from hydro_core.spark.store.lookups.conditions import KnownItems
from hydro_core.spark.store.schema import TableSpec
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import LONG, TIMESTAMP

LATER = 1 << 40
"""The tick that every tick is to a kept plan: later than any that there will be."""

TickTimes = tuple[datetime | None, datetime | None]

_CLOCK_COLUMNS = {TICK: LONG, "tick": LONG, "start": TIMESTAMP, "end": TIMESTAMP}
_CLOCK = spark_types.StructType(
    [spark_types.StructField(name, spark_type(of)) for name, of in _CLOCK_COLUMNS.items()]
)
_CLOCK_ROWS = pa.schema([(name, arrow_type(of)) for name, of in _CLOCK_COLUMNS.items()])


def can_be_kept(plan: TickPlan) -> bool:
    """Whether a tick is planned at once: some cycles take a plan for each of their rounds."""
    return all(in_planned_rounds(plan, cycle) for cycle in cycles_within_ticks(plan))


@dataclass(frozen=True, slots=True)
class TickRows:
    tick: int
    times: TickTimes
    arrived: Mapping[str, pa.Table]
    """The rows (item, t) of the inputs that have any, by their names."""
    stored: Callable[[StateSlot], pa.Table]
    """The rows of a slot that the tick reads."""
    search: RoundSearch
    """Finds further ones for the rounds of cycles."""


@dataclass(slots=True)
class _Leaves:
    """The leaves of a plan, each made when it is first read: the past of the job, too."""

    plan: TickPlan
    session: SparkSession
    specs: Mapping[str, TableSpec]
    """The tables of the slots, by their ids."""
    inputs: dict[str, PlanLeaf] = field(default_factory=dict)
    slots: dict[StateSlot, PlanLeaf] = field(default_factory=dict)
    clock: PlanLeaf | None = None

    def arriving(self) -> Mapping[str, DataFrame]:
        """A leaf for each input."""
        for name, node in self.plan.graph.sources.items():
            item = self.plan.typed.types[Endpoint(node.id)].item
            self.inputs[name] = PlanLeaf(self.session, relation_schema(item), arrow_schema(item))
        return {name: leaf.frame for name, leaf in self.inputs.items()}

    def rows(self, slot: StateSlot) -> DataFrame:
        """The stored rows of a slot."""
        if slot not in self.slots:
            spec = self.specs[slot.id]
            self.slots[slot] = PlanLeaf(self.session, spec.spark_schema, spec.arrow_schema)
        return self.slots[slot].frame

    def times(self) -> DataFrame:
        """The tick and its times."""
        if self.clock is None:
            self.clock = PlanLeaf(self.session, _CLOCK, _CLOCK_ROWS)
        return self.clock.frame

    def give(self, given: TickRows) -> None:
        """Exchanges the rows of all leaves for those of a tick."""
        on = LATER - given.tick
        for name, leaf in self.inputs.items():
            leaf.give(_moved(given.arrived.get(name), TICK, on))
        for slot, leaf in self.slots.items():
            leaf.give(_moved(given.stored(slot), self.specs[slot.id].tick, on))
        if self.clock is not None:
            row = dict(zip(_CLOCK_ROWS.names, (LATER, given.tick, *given.times), strict=True))
            self.clock.give(pa.Table.from_pylist([row], _CLOCK_ROWS))

    def done(self) -> None:
        """Gives up rows that are many."""
        clock = [self.clock] if self.clock is not None else []
        for leaf in (*self.inputs.values(), *self.slots.values(), *clock):
            leaf.done()


def _moved(rows: pa.Table | None, tick: str, on: int) -> pa.Table | None:
    """The rows with their ticks so many later."""
    if rows is None or not rows.num_rows:
        return None
    at = rows.schema.get_field_index(tick)
    return rows.set_column(at, rows.schema.field(at), pc.add(rows[tick], on))


def at_tick(rows: pa.Table, column: str, tick: int) -> pa.Table:
    """What a kept plan gave, its ticks those of a tick."""
    at = rows.schema.get_field_index(column)
    return rows.set_column(at, rows.schema.field(at), pc.add(rows[column], tick - LATER))


class KeptPlan:
    """The plan of a tick for some tables, in a session for few rows."""

    def __init__(
        self,
        plan: TickPlan,
        specs: Mapping[str, TableSpec],
        job: Job,
        frames: Callable[[Job, RangeResult], Mapping[str, DataFrame]],
    ) -> None:
        """Plans it: `job` is how the tick runs, without what it is computed from, and `frames` what
        each table gets of what the job gives.
        """
        self._leaves = _Leaves(plan, job.spark, specs)
        self._rounds: list[PlannedRounds] = []
        self._settings = job.settings
        kept = replace(
            job,
            first=LATER,
            last=LATER,
            sources=self._leaves.arriving(),
            past=self._leaves,
            clock=self._leaves.times,
            in_rounds=job.in_rounds and replace(job.in_rounds, run=self._rounds.append),
        )
        with held_for_each_job(job.spark) as self._held:
            self._tables = InOneJob(frames(kept, run_range(kept)))

    @property
    def is_of_each_job(self) -> bool:
        """Whether nothing of it is computed for its first tick alone."""
        frame = self._tables.frame
        rounds = all(one.is_of_each_job for one in self._rounds)
        return self._held.of_each_job and rounds and (frame is None or is_of_each_job(frame))

    def run(self, given: TickRows) -> Mapping[str, pa.Table]:
        """What the tables get in a tick, by their names, its ticks those of `LATER`."""

        def search(slot: str, lookups: Lookups, known: KnownItems) -> pa.Table | None:
            return _moved(given.search(slot, lookups, known), TICK, LATER - given.tick)

        self._leaves.give(given)
        try:
            for rounds in self._rounds:
                rounds.run(search, self._settings)
            return self._tables.collect()
        finally:
            for rounds in self._rounds:
                rounds.done()
            self._held.forget()
            self._leaves.done()


PlanKey = tuple[object, ...]
"""What a plan is known by: first whose it is, then what else it depends on."""


class KeptPlans:
    """The plans that a process keeps: those that were used last, of owners that are there."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._plans: OrderedDict[PlanKey, KeptPlan | None] = OrderedDict()
        self._lock = Lock()
        self._gone: deque[object] = deque()
        """Owners that are gone, whose plans are to be dropped."""

    def run(
        self, key: PlanKey, made: Callable[[], KeptPlan], given: Callable[[], TickRows]
    ) -> Mapping[str, pa.Table] | None:
        """What the tables get by the plan known by the key, made if it is not there.

        None where it cannot be kept, or its job fails.
        """
        try:
            plan = self.of(key, made)
            return None if plan is None else plan.run(given())
        except (PySparkException, Py4JError, OSError, EOFError):
            self.drop(key)
            return None
        except BaseException:
            # A job that was interrupted may go on, and leave rows of its tick where they are held.
            self.drop(key)
            raise

    def of(self, key: PlanKey, made: Callable[[], KeptPlan]) -> KeptPlan | None:
        """The plan known by the key, made if it is not there; None where it cannot be kept."""
        self._drop_of_gone()
        with self._lock:
            if key in self._plans:
                self._plans.move_to_end(key)
                return self._plans[key]
        plan = made()
        found = plan if plan.is_of_each_job else None
        with self._lock:
            self._plans[key] = found
            while len(self._plans) > self._most:
                self._plans.popitem(last=False)
        return found

    def drop(self, key: PlanKey) -> None:
        """Forgets a plan; it is made again when it is asked for."""
        with self._lock:
            self._plans.pop(key, None)

    def disown(self, owner: object) -> None:
        """Notes that nobody asks for the plans of an owner any more.

        It is called wherever garbage is collected, so it takes no lock: the plans are dropped when
        the next one is asked for.
        """
        self._gone.append(owner)

    def __len__(self) -> int:
        """How many it keeps."""
        self._drop_of_gone()
        return len(self._plans)

    def _drop_of_gone(self) -> None:
        with self._lock:
            while self._gone:
                owner = self._gone.popleft()
                for key in [key for key in self._plans if key[0] is owner]:
                    del self._plans[key]


KEPT_PLANS = KeptPlans(16)
"""What this process keeps: some megabytes of the JVM's heap for each."""
