"""Changes of streams: where they are known, they go through the operators beside the rows."""

from __future__ import annotations

from pyspark.sql import DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, Relation
from hydro_core.spark.lower.registry import Lowered, Step, lower
from hydro_core.types.item import ItemType


def changes_of(relation: Relation, first: int) -> Relation:
    """By how much the copies of the items differ from those of the tick before: (item, t, n).

    An item may have several rows in a tick.
    """
    if relation.changes is not None:
        return relation.changes
    if relation.kind is not Kind.H:
        raise TypeError(f"rows of kind {relation.kind.name} do not tell their changes")
    one = F.lit(1).cast("long").alias(COUNT)
    frame = relation.unordered().new(first).frame.select(ITEM, TICK, one)
    return told(relation.item, frame)


def told(item: ItemType, frame: DataFrame) -> Relation:
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
