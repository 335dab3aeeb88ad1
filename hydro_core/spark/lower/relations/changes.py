"""Changes of streams: where they are known, they go through the operators beside the rows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, Relation
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


def unmatched_with_changes(step: Step, found: Relation, keys: Keys) -> Relation:
    """The rows of a history without a match in another, with their changes if they are wanted."""
    if not step.in_changes:
        return found
    left, right = step.inputs
    found = as_kind(found, Kind.G, step.first)
    return found.with_(changes=as_changes(step.item, unmatched(left, right, keys, step.first)))


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


def with_changes(step: Step, found: Lowered) -> Lowered:
    """What an operator gives, with its changes: it does the same with those of its inputs."""
    inputs = tuple(changes_of(relation, step.first) for relation in step.inputs)
    changes = lower(step.with_(inputs=inputs, kind=Kind.E))
    if isinstance(found, Relation) and isinstance(changes, Relation):
        return found.with_(changes=changes.with_(carried=(COUNT,)))
    if isinstance(found, Relation) or isinstance(changes, Relation):
        raise TypeError("an operator with one output or several, by what it gets")
    return {port: r.with_(changes=changes[port]) for port, r in found.items()}
