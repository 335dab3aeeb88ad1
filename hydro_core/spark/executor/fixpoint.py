"""Cycles within a tick: the least fixpoint of all ticks of a range in lockstep, and their past."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hydro_core.catalog.forms import Form
from hydro_core.catalog.spec import endless_cycle
from hydro_core.errors import DataError
from hydro_core.ir.graph import Endpoint, Node
from hydro_core.plan.cycles import CycleShape
from hydro_core.plan.tick_plan import Kind, StateSlot
from hydro_core.settings import Settings
from hydro_core.spark.frames.materialize import Materialize, materialized
from hydro_core.spark.frames.relation import FOREVER, ITEM, TICK, UNTIL, Relation

# What earlier ticks left, as a range of ticks sees it.


class PastState(Protocol):
    """What earlier ranges left."""

    def rows(self, slot: StateSlot) -> DataFrame | None:
        """The committed rows `item, t[, ord]` of the slot as its form says; of a log `item, t, n`.

        None where there are none.
        """


class NoPast:
    """Before the first tick there is nothing."""

    def rows(self, slot: StateSlot) -> DataFrame | None:
        """Nothing."""
        return None


@dataclass(frozen=True, slots=True)
class Overlay:
    """The past of a tick within a range: what was there before it, and what its ticks so far have
    left.
    """

    before: PastState
    materialize: Materialize
    found: Mapping[str, DataFrame] = field(default_factory=dict)

    def rows(self, slot: StateSlot) -> DataFrame | None:
        """The rows of the slot, earlier ones of the range among them."""
        earlier, new = self.before.rows(slot), self.found.get(slot.id)
        if new is None or earlier is None:
            return new if earlier is None else earlier
        return new if slot.form is Form.VALUES else earlier.unionByName(new)

    def after(self, kept: Mapping[StateSlot, DataFrame]) -> Overlay:
        """The past of the next tick."""
        found = dict(self.found)
        for slot, frame in kept.items():
            adds = slot.form is not Form.VALUES and slot.id in found
            rows = found[slot.id].unionByName(frame) if adds else frame
            found[slot.id], _ = self.materialize(rows)
        return Overlay(self.before, self.materialize, found)

    def added(self, slot: StateSlot) -> DataFrame:
        """What the range adds to the slot, or leaves in it."""
        return self.found[slot.id]


# Cycles within a tick: the least fixpoint, of all ticks of a range in lockstep.
#
# Round i over a range is round i of each of its ticks, since operators act tick by tick. In each
# round an operator gets what is new at its inputs only (semi-naive), and what is new at the
# streams that close the cycles is computed and cut off from the plan that led to it, so plans do
# not grow with the rounds. An operator that is not linear in the cycle, or a kind of stream whose
# news is not a set of rows, makes the rounds start anew from all that is known (naive): the same
# result, for more work. Both are right because nothing in a cycle within a tick ever takes an
# item away.


Relations = Mapping[Endpoint, Relation]

MANY_PIECES = 16
"""What is known of a stream comes in a piece each round; so many become one, lest plans grow."""

ANCHORS, PERIOD = (8, 64, 512), 32
"""From these rounds on, for so many rounds, it is looked whether a cycle repeats itself."""


class NodeEvaluation(Protocol):
    """What a node gives for these inputs, by its output ports."""

    def __call__(
        self, node: Node, inputs: Iterable[Relation], *, with_past: bool = True
    ) -> Relations:
        """The relations by the endpoints; without the past, what is stored counts as nothing."""


@dataclass(frozen=True)
class Cycle(CycleShape):
    """The operators of a recursive component, and how they run."""

    apply: NodeEvaluation
    empty: Callable[[Endpoint], Relation]
    """The stream without rows."""
    materialize: Materialize


def endless(what: str, name: str, limit: int, cycle: CycleShape) -> DataError:
    """There is no end after `limit` rounds or items: `what`; the setting is called `name`."""
    first = cycle.nodes[0]
    reason, cure = endless_cycle(cycle.path, f"{limit:,} {what}", name)
    return DataError.of(
        "runtime", f"`{first.op.called}`: {reason}", first.span, first.op.called, help=cure
    )


def fixpoint(cycle: Cycle, known: Relations, settings: Settings) -> Relations:
    """The streams of the cycle; `known` are those that enter it."""
    totals = (_semi_naive if cycle.is_semi_naive else _naive)(cycle, known, settings)
    streams: dict[Endpoint, Relation] = {**known, **totals}
    for node in cycle.nodes:
        found = cycle.apply(node, [_of(streams, e) for e in node.inputs])
        streams.update({e: r for e, r in found.items() if e not in totals})
    return {e: r for e, r in streams.items() if cycle.is_inside(e)}


def _of(streams: Relations, stream: Endpoint) -> Relation:
    return streams[stream] if stream in streams else streams[Endpoint(stream.node)]


@dataclass
class _News:
    """What is known of a stream of the cycle, in pieces that add up.

    `new` is the last one, if the last round added it.
    """

    empty: Relation
    pieces: list[tuple[Relation, int]] = field(default_factory=list)
    new: Relation | None = None

    @property
    def rows(self) -> int:
        """How many rows are known."""
        return sum(rows for _, rows in self.pieces)

    @property
    def total(self) -> Relation:
        """All that is known."""
        return summed([piece for piece, _ in self.pieces] or [self.empty])

    @property
    def before(self) -> Relation:
        """What was known before `new` came."""
        known = self.pieces if self.new is None else self.pieces[:-1]
        return summed([piece for piece, _ in known] or [self.empty])

    def add(self, new: Relation, rows: int, materialize: Materialize) -> None:
        """Adds a piece; many pieces become one."""
        if len(self.pieces) >= MANY_PIECES:
            self.pieces = [materialized(self.total, materialize)]
        self.pieces.append((new, rows))
        self.new = new


@dataclass
class _Rounds:
    """The state between rounds of a semi-naive evaluation."""

    cycle: Cycle
    known: Relations
    kept: dict[Endpoint, _News]
    now: dict[Endpoint, Relation | None] = field(default_factory=dict)
    """What is new in this round, where it is known not to be nothing."""
    anchor: object = None
    """The different items that were new in an earlier round."""


def _semi_naive(cycle: Cycle, known: Relations, settings: Settings) -> Relations:
    rounds = _Rounds(cycle, known, {e: _News(cycle.empty(e)) for e in cycle.kept})
    for number in range(settings.max_iterations):
        rounds.now = {}
        for node in cycle.nodes:
            _advance(rounds, node, is_first=number == 0)
        _limit([(n.total, n.rows) for n in rounds.kept.values()], cycle, settings)
        if all(rounds.kept[e].new is None for e in cycle.closing):
            return {e: _final(cycle, e, news) for e, news in rounds.kept.items()}
        if _is_endless(rounds, number):
            break
    raise endless("rounds", "max_iterations", settings.max_iterations, cycle)


def _final(cycle: Cycle, stream: Endpoint, news: _News) -> Relation:
    """The stream when the rounds are over; of a set in a history, each item from the earliest tick
    on.
    """
    total = news.total
    if total.kind is Kind.H and cycle.is_set(stream):
        return total.with_(frame=total.frame.groupBy(ITEM).agg(F.min(TICK).alias(TICK)))
    return total


def _is_endless(rounds: _Rounds, number: int) -> bool:
    """Whether the rounds repeat themselves.

    Then the limit will be reached, and there is no need to go there.

    In a linear cycle, which items are new depends on which items were new in the round before,
    and on nothing else. So when the same items are new again, they will be for ever.
    """
    if not rounds.cycle.is_memoryless or not any(a <= number <= a + PERIOD for a in ANCHORS):
        return False
    support = tuple(_support(rounds.kept[e].new) for e in rounds.cycle.closing)
    if number in ANCHORS:
        rounds.anchor = support
        return False
    return support == rounds.anchor


def _support(relation: Relation | None) -> tuple[int, int]:
    """A number for the set of the items and their ticks."""
    if relation is None:
        return 0, 0
    rows = relation.frame.select(F.xxhash64(ITEM, TICK).alias("h")).distinct()
    row = rows.agg(F.count("h"), F.sum(F.col("h").cast("decimal(20,0)"))).collect()[0]
    return int(row[0]), int(row[1])


def _advance(rounds: _Rounds, node: Node, *, is_first: bool) -> None:
    """What is new at the outputs of a node."""
    gain = _gain_at_first(rounds, node) if is_first else _gain(rounds, node)
    kept = {e: None for e in rounds.cycle.kept if e.node == node.id}
    for stream, relation in {Endpoint(node.id): None, **kept, **gain}.items():
        is_kept = stream in rounds.cycle.kept
        rounds.now[stream] = _keep(rounds, stream, relation) if is_kept else relation


def _gain_at_first(rounds: _Rounds, node: Node) -> Relations:
    """From nothing at the streams that close the cycle."""
    cycle = rounds.cycle
    inputs = []
    for stream in node.inputs:
        relation = _latest(rounds, stream) if cycle.is_inside(stream) else _of(rounds.known, stream)
        inputs.append(cycle.empty(stream) if relation is None else relation)
    return cycle.apply(node, inputs)


def _latest(rounds: _Rounds, stream: Endpoint) -> Relation | None:
    """What is new at an input of a node in this round, or, where it closes the cycle, in the one
    before.
    """
    for e in (stream, Endpoint(stream.node)):
        if e in rounds.now:
            return rounds.now[e]
    news = rounds.kept.get(stream)
    return None if news is None else news.new


def _gain(rounds: _Rounds, node: Node) -> Relations:
    """From what is new at the inputs; what comes from outside is read already."""
    cycle, apply = rounds.cycle, rounds.cycle.apply
    news = {i: _latest(rounds, e) for i, e in enumerate(node.inputs) if cycle.is_inside(e)}
    changed = {i: r for i, r in news.items() if r is not None}
    if not changed:
        return {}
    if cycle.is_additive(node) or len(node.inputs) == 1:
        return apply(node, changed.values(), with_past=False)
    terms = [apply(node, _term(rounds, node, i)) for i in changed]
    return {e: summed([term[e] for term in terms]) for e in terms[0]}


def _term(rounds: _Rounds, node: Node, position: int) -> list[Relation]:
    """The inputs of the term that has news at `position`: of what is new in `op(x + dx, y + dy) =
    op(x, y) + op(dx, y) + op(x + dx, dy)`.
    """
    inputs = []
    for i, stream in enumerate(node.inputs):
        if not rounds.cycle.is_inside(stream):
            inputs.append(_of(rounds.known, stream))
            continue
        new, news = _latest(rounds, stream), rounds.kept.get(stream)
        if i == position and new is not None:
            inputs.append(new)
        elif news is not None:
            inputs.append(news.total if i < position else news.before)
    return inputs


def summed(relations: Sequence[Relation]) -> Relation:
    """The items of all of them."""
    whole = relations[0]
    for more in relations[1:]:
        whole = whole.with_(frame=whole.frame.unionByName(more.frame))
    return whole


def _keep(rounds: _Rounds, stream: Endpoint, relation: Relation | None) -> Relation | None:
    """Adds what is new to what is known of a stream, cut off from its plan.

    None if nothing is new.
    """
    news = rounds.kept[stream]
    news.new = None
    if relation is None:
        return None
    if rounds.cycle.is_set(stream) and news.pieces:
        relation = unknown(relation, news.total)
    new, rows = materialized(relation, rounds.cycle.materialize)
    if rows:
        news.add(new, rows, rounds.cycle.materialize)
    return news.new


def unknown(relation: Relation, total: Relation) -> Relation:
    """The rows of a set that are not known yet; of a history also those that are known from a later
    tick on.
    """
    known = total.frame.select(F.col(ITEM).alias("known"), F.col(TICK).alias("since"))
    same_time = (
        F.col("since") == F.col(TICK) if relation.kind is Kind.E else F.col("since") <= F.col(TICK)
    )
    condition = F.col(ITEM).eqNullSafe(F.col("known")) & same_time
    return relation.with_(frame=relation.frame.join(known, condition, "left_anti"))


def _naive(cycle: Cycle, known: Relations, settings: Settings) -> Relations:
    """From all that is known, until no stream that closes the cycle grows any more."""
    totals: dict[Endpoint, Relation] = {e: cycle.empty(e) for e in cycle.closing}
    sizes = dict.fromkeys(totals, 0)
    for _ in range(settings.max_iterations):
        streams: dict[Endpoint, Relation] = {**known, **totals}
        for node in cycle.nodes:
            streams.update(cycle.apply(node, [_of(streams, e) for e in node.inputs]))
        before, counts = dict(sizes), dict[Endpoint, int]()
        for stream in cycle.closing:
            relation = _of(streams, stream)
            totals[stream], counts[stream] = materialized(relation, cycle.materialize)
            sizes[stream] = _size(totals[stream], counts[stream])
        _limit([(totals[e], n) for e, n in counts.items()], cycle, settings)
        if sizes == before:
            return totals
    raise endless("rounds", "max_iterations", settings.max_iterations, cycle)


def _size(relation: Relation, rows: int) -> int:
    """A number that grows whenever the relation does: at how many ticks its items are there, up to
    the far future.
    """
    if relation.kind is Kind.E or not rows:
        return rows
    until = F.col(UNTIL) if relation.kind is Kind.G else F.lit(FOREVER)
    lengths = F.sum((until - F.col(TICK)).cast("decimal(38,0)"))
    return int(relation.frame.agg(lengths).collect()[0][0])


def _limit(known: Sequence[tuple[Relation, int]], cycle: Cycle, settings: Settings) -> None:
    """Fails if too many items circulate in some tick."""
    limit = settings.max_cycle_items
    if sum(rows for _, rows in known) <= limit:
        return
    if sum(_most_at_once(relation, rows) for relation, rows in known) > limit:
        raise endless("items", "max_cycle_items", limit, cycle)


def _most_at_once(relation: Relation, rows: int) -> int:
    """At most so many items are there in one tick."""
    if relation.kind is not Kind.E or not rows:
        return rows
    counts = relation.frame.groupBy(TICK).count()
    return int(counts.agg(F.max("count")).collect()[0][0])
