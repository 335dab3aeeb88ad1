"""Cycles of a tick of few rows: rounds that are planned once, and run on other rows each time.

As in `fixpoint`, an operator gets in each round what is new at its inputs. What is new at the
streams where the cycle is cut passes through the driver: these are leaves of plans, one for each
step of a round, that are the same in all rounds. Of what was there before the tick a round gets the
rows that its new rows meet: before each step they are looked up, and are leaves, too. So a round
costs what is new in it, and no planning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hydro_core.ir.graph import Endpoint, Node, NodeId
from hydro_core.plan.lookups import InputPlace, StoredInput
from hydro_core.plan.stored_rows import Lookups
from hydro_core.plan.tick_plan import Kind, StateSlot, TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.executor.fixpoint import Cycle, PastState, Relations, endless, summed, unknown
from hydro_core.spark.frames.leaf import InOneJob, PlanLeaf, item_leaf
from hydro_core.spark.frames.materialize import exactly, is_of_each_job
from hydro_core.spark.frames.relation import ITEM, TICK, Relation
from hydro_core.spark.store.delta.write import first_rows
from hydro_core.spark.store.lookups.conditions import KnownItems
from hydro_core.spark.store.schema import Column
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import ItemType

RoundSearch = Callable[[str, Lookups, KnownItems], "pa.Table | None"]
"""The rows (item, t) of a slot that lookups find, by what is known of the streams of a cycle; None:
there are none.
"""


@dataclass(slots=True, eq=False)
class CutRows:
    """Rows of a cut stream: a leaf where a plan reads them."""

    item: ItemType
    table: pa.Table | None = None
    leaf: PlanLeaf | None = None

    def relation(self, spark: SparkSession) -> Relation:
        """The rows as they will be when a job runs."""
        if self.leaf is None:
            self.leaf = item_leaf(spark, self.item)
        return Relation(Kind.E, self.leaf.frame, self.item)

    def give(self, table: pa.Table | None) -> None:
        """Exchanges the rows."""
        self.table = table
        if self.leaf is not None:
            self.leaf.give(table)

    @property
    def items(self) -> Column:
        """The items, as a column."""
        if self.table is None:
            return pa.array([], arrow_type(self.item))
        return self.table[ITEM].combine_chunks()

    @property
    def count(self) -> int:
        """How many there are."""
        return 0 if self.table is None else self.table.num_rows


class CutStream:
    """A stream at which the cycle is cut: what is new in it, and what was known before."""

    def __init__(self, item: ItemType) -> None:
        self.now, self.last = CutRows(item), CutRows(item)
        """What is new in this round, and in the one before it."""
        self.known, self.known_last = CutRows(item), CutRows(item)
        """What was known before each of these."""
        self.total = CutRows(item)
        """All of it, when the rounds are over."""
        self.pieces: list[pa.Table] = []

    @property
    def so_far(self) -> pa.Table | None:
        """All that was found; None if there is nothing."""
        return pa.concat_tables(self.pieces) if self.pieces else None

    def begin(self) -> None:
        """A round begins."""
        self.known_last.give(self.known.table)
        self.last.give(self.now.table)
        self.known.give(self.so_far)
        self.now.give(None)

    def take(self, rows: pa.Table) -> None:
        """What is new in this round."""
        self.now.give(rows)
        if rows.num_rows:
            self.pieces.append(rows)

    def forget(self) -> None:
        """Gives up all rows."""
        self.pieces = []
        for rows in (self.now, self.last, self.known, self.known_last, self.total):
            rows.give(None)


class TooManyRowsError(Exception):
    """A step of a round gives more rows than pass through the driver."""


@dataclass(frozen=True, slots=True)
class MetRows:
    """An input of an operator whose stored rows are looked up in each round."""

    of: StoredInput
    leaves: Mapping[str, PlanLeaf]
    """What is found, by the slots' ids."""
    relation: Relation
    """The input, of these."""


@dataclass(frozen=True, slots=True)
class InRounds:
    """How a tick of few rows runs its cycles."""

    stored: Mapping[InputPlace, StoredInput]
    """The inputs of which the rounds look up what they meet."""
    run: Callable[[PlannedRounds], None]
    """Runs rounds that are planned, now or before each job that reads their streams."""
    bound: int | None = None
    """The most rows that a step of a round may give; None: any number."""


class _LookedUp:
    """The past of what reads slots on the way to an operator of a cycle."""

    def __init__(self, leaves: Mapping[str, PlanLeaf]) -> None:
        self._leaves = leaves

    def rows(self, slot: StateSlot) -> DataFrame:
        """The rows that were found."""
        return self._leaves[slot.id].frame


def met_rows(
    plan: TickPlan,
    place: InputPlace,
    of: StoredInput,
    spark: SparkSession,
    streams: Callable[[Sequence[NodeId], PastState], Relations],
) -> MetRows:
    """An input of an operator of a cycle, of the stored rows that are found.

    Args:
        plan: what runs.
        place: the operator and its input.
        of: how its rows are looked up.
        spark: the session.
        streams: computes some operators over another past.
    """
    leaves = {slot: item_leaf(spark, plan.slot(slot).item) for slot in of.found}
    node, port = place
    stream = plan.graph[node].inputs[port]
    return MetRows(of, leaves, streams(of.way, _LookedUp(leaves))[Endpoint(stream.node)])


def met_by(rows: CutRows, of: StoredInput, slot: str, search: RoundSearch) -> pa.Table | None:
    """The stored rows of a slot that new rows of a cycle meet."""
    found = search(slot, of.found[slot], {str(of.by): (rows.items, rows.item)})
    return None if found is None else found.select([ITEM, TICK])


@dataclass(slots=True)
class _Step:
    """A job of a round."""

    frames: dict[Endpoint, Relation] = field(default_factory=dict)
    """What it gives: what is new in some cut streams."""
    drivers: list[CutRows] = field(default_factory=list)
    """The rows of which some must be there for it to give anything; not so in the first round."""
    met: list[tuple[MetRows, CutRows]] = field(default_factory=list)
    """What is looked up for it, by which rows."""
    job: InOneJob | None = None

    def plan(self, bound: int | None) -> None:
        """Makes the job; where there are more rows than the bound, it gives one more than these."""
        frames = {
            str(e): exactly(r.frame, r.item).select(ITEM, TICK) for e, r in self.frames.items()
        }
        if bound is not None:
            frames = {name: first_rows(frame, bound) for name, frame in frames.items()}
        self.job = InOneJob(frames) if frames else None


@dataclass(frozen=True, slots=True)
class _NewRows:
    """What is new in a stream of the cycle, to who reads it."""

    relation: Relation
    level: int = 0
    """The step in which it can be read."""
    drivers: tuple[CutRows, ...] = ()
    """The rows from which it comes."""
    rows: CutRows | None = None
    """Of a cut stream, these rows."""
    known: CutRows | None = None
    """Of a cut stream, those that were known before."""


@dataclass
class _Round:
    """The plan of the first round, or of any other one: made node by node."""

    cycle: Cycle
    known: Relations
    met: Mapping[InputPlace, MetRows]
    cuts: Mapping[Endpoint, CutStream]
    spark: SparkSession
    bound: int | None
    first: bool
    steps: dict[int, _Step] = field(default_factory=dict)
    now: dict[Endpoint, _NewRows] = field(default_factory=dict)

    def planned(self) -> tuple[_Step, ...]:
        """Its steps, in their order."""
        for node in self.cycle.nodes:
            self._add(node)
        steps = tuple(self.steps[level] for level in sorted(self.steps))
        for step in steps:
            step.plan(self.bound)
        return steps

    def _add(self, node: Node) -> None:
        """What is new at the output of a node."""
        news = {i: self._new(e) for i, e in enumerate(node.inputs) if self.cycle.is_inside(e)}
        level = max((new.level for new in news.values()), default=0)
        drivers = tuple(dict.fromkeys(d for new in news.values() for d in new.drivers))
        step = self.steps.setdefault(level, _Step())
        for port in range(len(node.inputs)):
            met = self.met.get((node.id, port))
            rows = None if met is None else self._new(met.of.by).rows
            if met is not None and rows is not None:
                step.met.append((met, rows))
        stream, found = Endpoint(node.id), self._gain(node, news)
        cut = self.cuts.get(stream)
        if cut is None:
            self.now[stream] = _NewRows(found, level, drivers)
            return
        if self.cycle.is_set(stream) and not self.first:
            found = unknown(found, cut.known.relation(self.spark))
        step.frames[stream] = found
        step.drivers += [d for d in drivers if d not in step.drivers]
        new = cut.now.relation(self.spark)
        self.now[stream] = _NewRows(new, level + 1, (cut.now,), cut.now, cut.known)

    def _new(self, stream: Endpoint) -> _NewRows:
        """What is new in a stream in this round; where it closes the cycle, in the one before."""
        if stream in self.now:
            return self.now[stream]
        cut = self.cuts[stream]
        if self.first:
            return _NewRows(self.cycle.empty(stream), rows=cut.last, known=cut.known_last)
        last = cut.last.relation(self.spark)
        return _NewRows(last, 0, (cut.last,), cut.last, cut.known_last)

    def _gain(self, node: Node, news: Mapping[int, _NewRows]) -> Relation:
        """What a node gives of what is new; in the first round all that enters the cycle is."""
        if self.first:
            every = range(len(node.inputs))
            inputs = [news[i].relation if i in news else self._outside(node, i) for i in every]
            return self._applied(node, inputs)
        if self.cycle.is_additive(node) or len(node.inputs) == 1:
            return self._applied(node, [new.relation for new in news.values()])
        return summed([self._applied(node, self._term(node, news, i)) for i in news])

    def _applied(self, node: Node, inputs: Sequence[Relation]) -> Relation:
        return self.cycle.apply(node, inputs, with_past=False)[Endpoint(node.id)]

    def _term(self, node: Node, news: Mapping[int, _NewRows], position: int) -> list[Relation]:
        """The inputs of the term that has news at a position (`fixpoint`)."""
        inputs = []
        for i in range(len(node.inputs)):
            new = news.get(i)
            if new is None:
                inputs.append(self._outside(node, i))
            elif i == position or new.known is None:
                inputs.append(new.relation)
            else:
                before = new.known.relation(self.spark)
                inputs.append(summed([before, new.relation]) if i < position else before)
        return inputs

    def _outside(self, node: Node, i: int) -> Relation:
        """An input that comes from outside."""
        met = self.met.get((node.id, i))
        if met is not None:
            return met.relation
        stream = node.inputs[i]
        return self.known[stream if stream in self.known else Endpoint(stream.node)]


class PlannedRounds:
    """The rounds of a cycle in a tick of few rows."""

    def __init__(
        self,
        cycle: Cycle,
        known: Relations,
        met: Mapping[InputPlace, MetRows],
        spark: SparkSession,
        bound: int | None,
    ) -> None:
        """Plans them.

        Args:
            cycle: the cycle.
            known: the streams that enter it.
            met: the inputs of its operators whose stored rows are looked up.
            spark: the session.
            bound: the most rows that a step may give; None: any number.
        """
        self._cycle, self._met, self._bound = cycle, met, bound
        typed = cycle.plan.typed
        outside = cycle.read_outside
        by = (one.of.by for one in met.values())
        self._cuts = {
            e: CutStream(typed.of(e.node).item) for e in dict.fromkeys((*cycle.kept, *by, *outside))
        }
        self._first, self._others = (
            _Round(cycle, known, met, self._cuts, spark, bound, first).planned()
            for first in (True, False)
        )
        self.streams: Relations = {e: self._cuts[e].total.relation(spark) for e in outside}
        """The streams of the cycle that others read, or that are stored: all that was found."""

    @property
    def is_of_each_job(self) -> bool:
        """Whether nothing of the plans is computed for the first job alone."""
        frames = (step.job.frame for step in (*self._first, *self._others) if step.job is not None)
        return all(frame is None or is_of_each_job(frame) for frame in frames)

    def run(self, search: RoundSearch, settings: Settings) -> None:
        """Runs the rounds to their end: then the streams have their rows.

        Args:
            search: finds stored rows.
            settings: the limits of cycles.

        Raises:
            DataError: there is no end within the limits.
            TooManyRowsError: a step gives more rows than the bound.
        """
        self.done()
        for number in range(settings.max_iterations):
            for cut in self._cuts.values():
                cut.begin()
            for step in self._others if number else self._first:
                if number == 0 or any(rows.count for rows in step.drivers):
                    self._run(step, search)
            self._limit(settings)
            if not any(self._cuts[e].now.count for e in self._cycle.closing):
                for cut in self._cuts.values():
                    cut.total.give(cut.so_far)
                return
        raise endless("rounds", "max_iterations", settings.max_iterations, self._cycle)

    def done(self) -> None:
        """Gives up all rows."""
        for cut in self._cuts.values():
            cut.forget()
        for met in self._met.values():
            for leaf in met.leaves.values():
                leaf.give(None)

    def _run(self, step: _Step, search: RoundSearch) -> None:
        if step.job is None:
            return
        for met, rows in step.met:
            for slot, leaf in met.leaves.items():
                leaf.give(met_by(rows, met.of, slot, search) if rows.count else None)
        tables = step.job.collect()
        for stream in step.frames:
            new = tables[str(stream)]
            if self._bound is not None and new.num_rows > self._bound:
                raise TooManyRowsError(str(stream))
            self._cuts[stream].take(new)

    def _limit(self, settings: Settings) -> None:
        """Fails if too many items circulate."""
        known = (piece for e in self._cycle.kept for piece in self._cuts[e].pieces)
        if sum(piece.num_rows for piece in known) > settings.max_cycle_items:
            raise endless("items", "max_cycle_items", settings.max_cycle_items, self._cycle)
