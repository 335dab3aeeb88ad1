"""Jobs: a plan runs over a range of ticks in one pass, in which the tick is a column."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, assert_never

from pyspark.sql import DataFrame, SparkSession

from hydro_core.catalog.classes import (
    ByKey,
    DistinctItems,
    Linear,
    OpClass,
    OrderedByKey,
    OverTime,
    PerKey,
    PerPosition,
    Places,
    Product,
    StreamEnd,
)
from hydro_core.catalog.forms import Form
from hydro_core.ir.graph import Endpoint, Node, NodeId
from hydro_core.plan.cycles import in_planned_rounds, seen_in
from hydro_core.plan.streams import NewPairs, NodeWay, in_one_form, new_pairs, not_needed
from hydro_core.plan.tick_plan import Component, Key, StateSlot, TickPlan, keys_of
from hydro_core.settings import Settings
from hydro_core.spark import lower as _registers_all  # noqa: F401 - by being imported
from hydro_core.spark.executor.fixpoint import (
    Cycle,
    NoPast,
    Overlay,
    PastState,
    Relations,
    fixpoint,
)
from hydro_core.spark.executor.planned_rounds import InRounds, PlannedRounds, met_rows
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.materialize import (
    Materialize,
    checkpointed,
    exactly,
    held,
    materialized,
)
from hydro_core.spark.frames.relation import (
    COUNT,
    ITEM,
    TICK,
    Kind,
    Relation,
    consolidated,
    live_rows,
)
from hydro_core.spark.functions.guards import FailedGuards
from hydro_core.spark.lower.changelogs import as_changes, changes_of, handed_on
from hydro_core.spark.lower.over_time import additions, first_seen
from hydro_core.spark.lower.registry import Step, Times, as_kind, fitted, lower
from hydro_core.spark.lower.relations import added_up, empty_frame, positioned, united, written_as
from hydro_core.spark.session.session import has_few_rows
from hydro_core.storage.remote import DataPlace
from hydro_core.types.item import Order, StreamType

# A job: from what is stored and the batches of the next ticks to outputs and what is stored.
#
# A tick, a range, a backfill and what is computed again are jobs alike.


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Job:
    """The ticks first … last of a plan, and what they are computed from."""

    plan: TickPlan
    first: int
    last: int
    spark: SparkSession
    """All DataFrames of the job belong to this session."""
    sources: Mapping[str, DataFrame]
    """The batches `item, t` of the range by the inputs' names; one that is missing is empty."""
    past: PastState = field(default_factory=NoPast)
    settings: Settings = field(default_factory=Settings)
    times: Times = field(default_factory=dict)
    clock: Callable[[], DataFrame] | None = None
    """The rows `t, tick, start, end` where the ticks stand for others: then `times` are theirs."""
    materialize: Materialize = checkpointed
    added: Collection[str] = ()
    """The outputs of which what they add or change will be read and nothing else: of histories
    `Relation.new(first)`, of others `Relation.changes`, if they tell these.
    """
    in_rounds: InRounds | None = None
    """How cycles run in rounds that are planned once; None: their rounds are planned one by one."""
    in_python: FailedGuards = tuple
    """The functions for which it runs again: of all of them it is known when it has run."""


@dataclass(frozen=True, slots=True)
class RangeResult:
    """What a job gives: all of it must be written or none."""

    outputs: Mapping[str, Relation]
    """By the outputs' names. Histories hold their past rows too: `Relation.new(first)` is what the
    range adds.
    """
    state: Mapping[str, DataFrame]
    """By the slots' ids: the rows `item, t[, ord]` that the range adds or leaves; of a log of
    changes the rows `item, t, n`.
    """


class Storage(Protocol[T_co]):
    """Where the past and the batches of ticks are, and where what they give goes.

    Memory, files and Delta tables are such places.
    """

    @property
    def plan(self) -> TickPlan:
        """The plan that the ticks run by."""

    @property
    def settings(self) -> Settings:
        """The limits of the jobs."""

    @property
    def directory(self) -> DataPlace | None:
        """Where the files of the past are, if there are any."""

    def job(self, first: int, last: int) -> Job:
        """The job of these ticks; it may read what the ticks before them have left here."""

    def take(self, job: Job, found: RangeResult) -> T_co:
        """Computes and keeps what a job gives: all of it, or it raises and nothing has changed."""


# Runs a plan over a range of ticks: one pass, in which the tick is a column.
#
# `run_range` gives DataFrames, and the caller writes or collects them, in one job or several. It
# starts jobs of its own for cycles only, and for streams with many readers behind which a long
# plan stands.


ENDLESS = 1 << 60
"""No limit."""

LONG_PLAN = 40
"""A stream behind so many operators is computed once, if several read it."""

SHORT_PLAN = 2
"""The same where rows are few: planning them again costs more than they do."""


def run_range(job: Job) -> RangeResult:
    """The outputs and the state of the job's ticks, as they would be computed."""
    plan = job.plan
    setting = RunContext(job, in_one_form(plan, job.added), keys_of(plan.typed))
    run = Run(setting, job.first, job.last, job.past)
    pairs = () if job.first == job.last else tuple(filter(run.starts, new_pairs(plan)))
    run.at_once.update({p.product: p for p in pairs})
    unread = not_needed(plan, pairs)
    for component in plan.components:
        if component.nodes[0] not in unread:
            run.evaluate(component)
    outputs = {name: run.output(name, sinks) for name, sinks in plan.graph.sinks.items()}
    return RangeResult(outputs, {slot.id: run.kept(slot) for slot in plan.slots})


@dataclass(frozen=True, slots=True)
class RunContext:
    """What is the same for every part of a run."""

    job: Job
    alone: frozenset[NodeId]
    """The streams of which nobody needs more than their form tells."""
    keys: Mapping[NodeId, Key]
    """Of streams with at most one item of each key in a tick, the key."""

    @property
    def plan(self) -> TickPlan:
        return self.job.plan

    def type_of(self, stream: Endpoint) -> StreamType:
        """The type of a stream; the copies of a `tee` have the type of what it copies."""
        typed = self.plan.typed
        return typed.types[stream] if stream in typed.types else typed.of(stream.node)


@dataclass(slots=True)
class Run:
    """A range of ticks: the streams that are known so far."""

    setting: RunContext
    first: int
    last: int
    past: PastState
    streams: dict[Endpoint, Relation] = field(default_factory=dict)
    state: dict[str, DataFrame] = field(default_factory=dict)
    """The state of slots that are read in a component that ran tick by tick."""
    weights: dict[NodeId, int] = field(default_factory=dict)
    at_once: dict[NodeId, NewPairs] = field(default_factory=dict)
    """The products that give all new pairs of two histories."""

    def starts(self, pairs: NewPairs) -> bool:
        """Whether nothing is known of a side from before the range."""
        plan = self.setting.plan
        return any(self.past.rows(plan.slot(plan.reads[way[0]])) is None for way in pairs.sides)

    def evaluate(self, component: Component) -> None:
        """Adds the streams of a component; those that it reads are known."""
        if component.how == "once":
            self._once(self.setting.plan.graph[component.nodes[0]])
        elif component.how == "fixpoint":
            self._fixpoint(component, self.setting.job.settings)
        elif self.first == self.last:
            for part in component.parts:
                self.evaluate(part)
        elif component.how == "first seen":
            self._first_seen(component)
        elif component.how == "across ticks":
            self._fixpoint(component, self._limits_across_ticks(component))
        else:
            self._tick_by_tick(component)

    def stream(self, stream: Endpoint) -> Relation:
        """A stream that is known; every port of a `tee` is its input."""
        return (
            self.streams[stream] if stream in self.streams else self.streams[Endpoint(stream.node)]
        )

    def is_known(self, stream: Endpoint) -> bool:
        """Whether the stream has been computed."""
        return stream in self.streams or Endpoint(stream.node) in self.streams

    def _once(self, node: Node) -> None:
        if node.id in self.at_once:
            inputs = list(map(self._history, self.at_once[node.id].sides))
        else:
            inputs = [self.stream(e) for e in node.inputs if self.is_known(e)]
        found = self.step(node, inputs)
        weight = 1 + sum(self.weights.get(e.node, 0) for e in node.inputs)
        if self._is_dear(node, weight) and self._is_read_again(node.id):
            found = {e: self._held(r) for e, r in found.items()}
            weight = 1
        self.weights[node.id] = weight
        self.streams.update(found)

    def _is_dear(self, node: Node, weight: int) -> bool:
        """Whether to compute a stream again costs more than to hold it."""
        if has_few_rows(self.setting.job.spark):
            return weight > SHORT_PLAN
        return (self.first < self.last and _is_grouped(node.cls)) or weight > LONG_PLAN

    def _history(self, way: NodeWay) -> Relation:
        """All of a history, of which its operator may want what was there before only."""
        first, *others = (self.setting.plan.graph[node] for node in way)
        step = self._with_past(self._step(first, [self.stream(first.inputs[0])]))
        found = step.relation(Kind.H, additions(step))
        for node in others:
            [found] = self._given(self._step(node, [found]).with_(kind=Kind.H)).values()
        return found

    def _fixpoint(self, component: Component, settings: Settings) -> None:
        setting = self.setting
        cycle = Cycle(component.nodes, setting.plan, self.step, self.empty, setting.job.materialize)
        known = {e: self.stream(e) for e in self._entering(component)}
        rounds, spark = setting.job.in_rounds, setting.job.spark
        if rounds is None or not in_planned_rounds(setting.plan, component):
            self.streams.update(fixpoint(cycle, known, settings))
            return
        met = {
            place: met_rows(setting.plan, place, one, spark, self._over_another_past)
            for place, one in rounds.stored.items()
            if place[0] in component.nodes
        }
        planned = PlannedRounds(cycle, known, met, spark, rounds.bound)
        rounds.run(planned)
        self.streams.update(planned.streams)

    def _over_another_past(self, nodes: Sequence[NodeId], past: PastState) -> Relations:
        """The streams that are known, and those of some operators over another past."""
        others = {e: r for e, r in self.streams.items() if e.node not in nodes}
        run = Run(self.setting, self.first, self.last, past, others)
        for node in map(self.setting.plan.graph.__getitem__, nodes):
            inputs = [run.stream(e) for e in node.inputs if run.is_known(e)]
            run.streams.update(run.step(node, inputs))
        return run.streams

    def _limits_across_ticks(self, component: Component) -> Settings:
        """Limits are for a tick; what does not go in circles within a tick has none."""
        settings, ticks = self.setting.job.settings, self.last - self.first + 1
        circles = any(part.how == "fixpoint" for part in component.parts)
        return settings.with_(
            max_iterations=settings.max_iterations * ticks if circles else ENDLESS,
            max_cycle_items=settings.max_cycle_items if circles else ENDLESS,
        )

    def _first_seen(self, component: Component) -> None:
        """`x = difference(d, old x)`; the members after it are what leads from x back to it."""
        plan, members = self.setting.plan, set(component.nodes)
        node, *others = (plan.graph[n] for n in component.nodes)
        stream = seen_in(node, plan.typed)
        step = self._step(node, [self.stream(stream)])
        [slot] = (s for s in plan.slots if members & set(s.readers))
        rows = self.past.rows(slot)
        known = None if rows is None else Relation(slot.kind, rows, slot.item)
        found = fitted(first_seen(step, known, once=stream != node.inputs[0]), step)
        several = self._is_read_again(node.id, members)
        self.streams[Endpoint(node.id)] = self._held(found) if several else found
        for other in others:
            self._once(other)

    def step(
        self, node: Node, inputs: Iterable[Relation], *, with_past: bool = True
    ) -> Mapping[Endpoint, Relation]:
        """What a node gives for these inputs, by its output ports."""
        step = self._step(node, inputs)
        return self._given(self._with_past(step) if with_past else step)

    def _given(self, step: Step) -> Mapping[Endpoint, Relation]:
        node = step.node.id
        passes = step.form is Form.CHANGES and step.node.cls.hands_on
        found = handed_on(step) if passes else lower(step)
        if isinstance(found, Relation):
            return {Endpoint(node): found}
        return {Endpoint(node, port): relation for port, relation in found.items()}

    def _step(self, node: Node, inputs: Iterable[Relation]) -> Step:
        setting, plan = self.setting, self.setting.plan
        kind = setting.plan.typed.of(node.id)
        return Step(
            node=node,
            inputs=tuple(inputs),
            item=kind.item,
            ordered=kind.order is Order.TOTAL,
            kind=plan.kinds[node.id],
            first=self.first,
            last=self.last,
            spark=setting.job.spark,
            singles=tuple(setting.type_of(e).single for e in node.inputs),
            keys=tuple(setting.keys.get(e.node) for e in node.inputs),
            source=setting.job.sources.get(str(node.args.get("name"))),
            times=setting.job.times,
            clock=setting.job.clock,
            form=plan.form(node.id),
            alone=node.id in setting.alone,
            materialize=setting.job.materialize,
        )

    def _with_past(self, step: Step) -> Step:
        plan = self.setting.plan
        slot_id = plan.reads.get(step.node.id)
        slot = None if slot_id is None else plan.slot(slot_id)
        rows = None if slot is None else self.past.rows(slot)
        if slot is None or rows is None or slot.form is not Form.CHANGES:
            return step.with_(past=rows)
        return step.with_(past=live_rows(rows, self.first - 1), log=rows)

    def empty(self, stream: Endpoint) -> Relation:
        """The stream without rows."""
        setting, item = self.setting, self.setting.type_of(stream).item
        empty = Relation(Kind.E, empty_frame(setting.job.spark, item), item)
        return as_kind(empty, setting.plan.kinds[stream.node], self.first)

    def output(self, name: str, sinks: Iterable[Node]) -> Relation:
        """What reaches an output.

        Sinks of one name add up, and are in no order if there are several.
        """
        found = [self.stream(Endpoint(sink.id)) for sink in sinks]
        if len(found) == 1:
            return found[0]
        known = all(r.changes or r.kind is Kind.H for r in found)
        in_changes = known and any(r.changes for r in found)
        kinds, item = {r.kind for r in found}, self.setting.plan.typed.outputs[name].item
        whole = added_up(found, item, kinds.pop() if len(kinds) == 1 else Kind.G, self.first)
        if not in_changes:
            return whole
        changes = [written_as(changes_of(r, self.first), item) for r in found]
        return whole.with_(changes=as_changes(item, united([c.frame for c in changes])))

    def kept(self, slot: StateSlot) -> DataFrame:
        """The rows of a slot that the range adds or leaves."""
        if slot.id in self.state:
            return self.state[slot.id]
        relation = self.stream(slot.stream)
        if slot.form is Form.CHANGES:
            changes = changes_of(relation, self.first).frame
            if self.first < self.last and not has_few_rows(self.setting.job.spark):
                # What comes and goes again in one file is not looked up.
                changes = changes.repartition(F.col(ITEM))
            return exactly(consolidated(changes), slot.item).select(ITEM, TICK, COUNT)
        is_last = slot.form is Form.VALUES
        events = relation.at(self.last) if is_last else relation.events(self.first, self.last)
        frame = positioned(events) if slot.ordered else events.frame.select(ITEM, TICK)
        return exactly(frame, slot.item)

    def _entering(self, component: Component) -> set[Endpoint]:
        graph, members = self.setting.plan.graph, set(component.nodes)
        return {
            e
            for n in component.nodes
            for e in graph[n].inputs
            if e.node not in members and self.is_known(e)
        }

    def _tick_by_tick(self, component: Component) -> None:
        """Only this component; what comes before and after it is run as a range."""
        plan, members = self.setting.plan, set(component.nodes)
        slots = [s for s in plan.slots if members & set(s.readers)]
        outside = self._read_outside(members)
        overlay = Overlay(self.past, self.setting.job.materialize)
        found: dict[Endpoint, list[Relation]] = {e: [] for e in outside}
        for t in range(self.first, self.last + 1):
            known = {e: self.stream(e).seen_at(t) for e in self._entering(component)}
            run = Run(self.setting, t, t, overlay, known)
            for part in component.parts:
                run.evaluate(part)
            for e in outside:
                found[e].append(run._materialized(run._added(run.stream(e), self.first)))
            overlay = overlay.after({s: run.kept(s) for s in slots})
        for e, parts in found.items():
            self.streams[e] = parts[0].with_(frame=united([p.frame for p in parts]))
        self.state.update({s.id: overlay.added(s) for s in slots})

    def _added(self, relation: Relation, first: int) -> Relation:
        """What this tick adds to a relation of a range from `first` on."""
        if relation.kind is Kind.H:
            return relation if self.first == first else relation.seen_at(self.first).new(self.first)
        return as_kind(relation.events(self.first, self.first), relation.kind, self.first)

    def _read_outside(self, members: set[NodeId]) -> list[Endpoint]:
        """The members' streams that others read, or that are stored for others."""
        plan = self.setting.plan
        read = [e for n in plan.graph if n.id not in members for e in n.inputs]
        read += [s.stream for s in plan.slots if not members & set(s.readers)]
        found = dict.fromkeys(e for e in read if e.node in members)
        found.update(
            dict.fromkeys(Endpoint(n) for n in members if plan.graph[n].spec.outputs == "none")
        )
        return list(found)

    def _is_read_again(self, node: NodeId, members: Collection[NodeId] = ()) -> bool:
        """Whether several others read a stream or store it; of a cycle's, others than `members`."""
        plan = self.setting.plan
        stored = sum(slot.stream.node == node for slot in plan.slots)
        return stored + sum(r.id not in members for r in plan.graph.readers(node)) > 1

    def _held(self, relation: Relation) -> Relation:
        """The stream for several readers."""
        return _cut(relation, lambda r: r.with_(frame=held(exactly(r.frame, r.item))))

    def _materialized(self, relation: Relation) -> Relation:
        return _cut(relation, lambda r: materialized(r, self.setting.job.materialize)[0])


def _cut(relation: Relation, cut_off: Callable[[Relation], Relation]) -> Relation:
    """The stream, or of one that tells its changes these, cut off from the plan behind it.

    Its other rows may be all there is; who reads it may do without them.
    """
    if relation.changes is None:
        return cut_off(relation)
    return relation.with_(changes=cut_off(relation.changes))


def _is_grouped(cls: OpClass) -> bool:
    """Whether an operator brings rows together, and mostly gives fewer; a running one holds its."""
    match cls:
        case DistinctItems() | ByKey():
            return True
        case OrderedByKey(gives):
            return gives is Places.FIRST
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return False
        case _:
            assert_never(cls)
