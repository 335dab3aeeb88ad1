"""Changes of streams: where they are known, they go through the operators beside the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, UNTIL, Relation
from hydro_core.spark.lower.registry import Lowered, Step, as_kind, lower
from hydro_core.spark.lower.relations.conditions import Keys, all_of
from hydro_core.spark.lower.relations.narrowing import keys_alone, with_keys_of, without_keys_of
from hydro_core.types.item import ItemType


def changes_of(relation: Relation, first: int) -> Relation:
    """By how much the multiplicity of each item differs from that of the tick before: (item, t, n).

    An item may have several rows in a tick.
    """
    if relation.changes is not None:
        return relation.changes
    if relation.kind is not Kind.H:
        raise TypeError(f"rows of kind {relation.kind.name} do not tell their changes")
    return as_changes(relation.item, weighed(relation.unordered().new(first).frame, 1))


def weighed(rows: DataFrame, n: int, at: str = TICK) -> DataFrame:
    """The rows as changes (item, t, n), n of each, at the tick in the column `at`."""
    return rows.select(ITEM, F.col(at).alias(TICK), F.lit(n).cast("long").alias(COUNT))


def unmatched(
    left: Relation,
    right: Relation,
    keys: Keys,
    first: int,
) -> DataFrame:
    """How a history's rows whose key is not in another history change: (item, t, n).

    A row comes if it has no match then, and goes with its first match: of rows from before the
    range only those are looked at that have it now.
    """
    new, mine, theirs = left.new(first), keys[0], keys[1]
    of_new = with_keys_of(keys_alone(new.frame, mine), theirs)(right.frame)
    met = _with_first(new.frame, mine, _firsts(of_new, theirs), "left")
    stays = F.col(FIRST).isNull() | (F.col(FIRST) > F.col(TICK))
    comes = met.where(stays)
    later = comes.where(F.col(FIRST).isNotNull())
    added = right.new(first).frame
    before = with_keys_of(keys_alone(added, theirs), theirs)(right.past(first).frame)
    firsts = _firsts(without_keys_of(keys_alone(before, theirs), theirs)(added), theirs)
    earlier = _with_first(left.past(first).frame, mine, firsts, "inner")
    return (
        weighed(comes, 1).union(weighed(later, -1, at=FIRST)).union(weighed(earlier, -1, at=FIRST))
    )


def unmatched_by(step: Step, keys: Keys, rows: Callable[[], Relation]) -> Relation:
    """What is wanted of the rows of a history without a match in another."""
    left, right = step.inputs
    return told(step, rows, lambda: unmatched(left, right, keys, step.first))


def told(step: Step, rows: Callable[[], Relation], changes: Callable[[], DataFrame]) -> Relation:
    """What is wanted of a stream that knows its changes: its rows, its changes, or both.

    Args:
        step: who gives the stream.
        rows: makes it.
        changes: makes its changes (item, t, n).
    """
    if not step.in_changes:
        return rows()
    made = as_changes(step.item, changes())
    return _telling(step, made if step.changes_alone else rows(), made)


def _telling(step: Step, rows: Relation, changes: Relation) -> Relation:
    """The rows with their changes; none of them where nobody looks at more than these."""
    if step.changes_alone:
        frame = changes.frame.select(ITEM, TICK, F.col(TICK).alias(UNTIL)).where(F.lit(False))
        rows = Relation(Kind.G, frame, step.item)
    return as_kind(rows, Kind.G, step.first).with_(changes=changes.with_(carried=(COUNT,)))


FIRST = "met"
"""The tick of the first match."""


def _firsts(frame: DataFrame, keys: Sequence[Column]) -> DataFrame:
    """The tick at which each key is first there."""
    named = [k.alias(f"k{i}") for i, k in enumerate(keys)]
    return frame.groupBy(*named).agg(F.min(TICK).alias(FIRST))


def _with_first(frame: DataFrame, keys: Sequence[Column], firsts: DataFrame, how: str) -> DataFrame:
    """The rows, each with the tick `first` of its key."""
    same = [k.eqNullSafe(F.col(f"k{i}")) for i, k in enumerate(keys)]
    return frame.join(firsts, all_of(same), how)


def as_changes(item: ItemType, frame: DataFrame) -> Relation:
    """The rows (item, t, n) as a relation."""
    return Relation(Kind.E, frame, item, carried=(COUNT,))


def handed_on(step: Step) -> Lowered:
    """What an operator gives that does the same with the changes of its inputs as with them."""
    inputs = tuple(changes_of(relation, step.first) for relation in step.inputs)
    changes = lower(step.with_(inputs=inputs, kind=Kind.E))
    rows = changes if step.changes_alone else lower(step)
    if isinstance(rows, Relation) and isinstance(changes, Relation):
        return _telling(step, rows, changes)
    if isinstance(rows, Relation) or isinstance(changes, Relation):
        raise TypeError("an operator with one output or several, by what it gets")
    return {port: _telling(step, rows[port], one) for port, one in changes.items()}
