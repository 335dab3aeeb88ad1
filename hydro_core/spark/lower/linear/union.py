"""The bag sum of streams."""

from __future__ import annotations

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, ORD, Relation
from hydro_core.spark.lower.registry import Step, as_kind, lowers
from hydro_core.spark.lower.relations.rows import united, written_as


@lowers("union")
def union(step: Step) -> Relation:
    """The rows of all inputs."""
    return added_up(step)


def added_up(step: Step) -> Relation:
    """The bag sum of the inputs, in no order."""
    parts = [
        as_kind(written_as(r.unordered(), step.item), step.kind, step.first) for r in step.inputs
    ]
    whole = step.relation(step.kind, united([p.frame for p in parts]))
    places = {p.partitioned_by for p in parts}
    return whole.with_(partitioned_by=places.pop()) if len(places) == 1 else whole


@lowers("chain")
def chain(step: Step) -> Relation:
    """The rows of both inputs, those of the first before those of the second."""
    if not step.ordered:
        return added_up(step)
    parts = []
    for side, relation in enumerate(step.inputs):
        part = as_kind(written_as(relation, step.item), step.kind, step.first)
        frame = part.frame.withColumnRenamed(ORD, f"ord{side}").withColumn("side", F.lit(side))
        parts.append(frame)
    both = parts[0].unionByName(parts[1], allowMissingColumns=True)
    order = F.struct("side", "ord0", "ord1").alias(ORD)
    times = step.input.with_(kind=step.kind).times
    return step.relation(step.kind, both.select(ITEM, *times, order), ordered=True)
