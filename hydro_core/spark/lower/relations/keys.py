"""Keys by which rows meet: as columns of both sides, as conditions, and to leave rows out early."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, Narrow, Relation
from hydro_core.spark.lower.items.columns import common, convert, key_fields, key_of
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import ItemType

Keys = tuple[Sequence[Column], Sequence[Column]]
"""The parts of a key, as columns of the left and as columns of the right."""


def join_keys(step: Step) -> Keys:
    """The key `on` of the items of both sides, each part in its common type."""
    on, types = step.arg("on"), key_types(step)
    left, right = (
        [
            convert(part, field.type, to)
            for part, field, to in zip(
                key_of(F.col(ITEM), side.item, on), key_fields(side.item, on), types, strict=True
            )
        ]
        for side in step.inputs
    )
    return left, right


def key_types(step: Step) -> list[ItemType]:
    """The types in which the parts of the key are compared."""
    left, right = (key_fields(side.item, step.arg("on")) for side in step.inputs)
    return [common(a.type, b.type) for a, b in zip(left, right, strict=True)]


def key_struct(keys: Sequence[Column]) -> Column:
    """The parts of a key as one column."""
    return F.struct(*(k.alias(f"k{i}") for i, k in enumerate(keys)))


def key_parts(count: int) -> list[Column]:
    """The parts of a key that is the item."""
    return [F.col(ITEM).getField(f"k{i}") for i in range(count)]


def guarded(condition: Column) -> Column:
    """A condition that Spark evaluates where it stands.

    Spark would move a filter below a join that comes before it, and then call its function on
    items that never reach the filter; on those it may fail. A condition that seems to depend on
    the partition is not moved.
    """
    return F.when(F.spark_partition_id() >= 0, condition).otherwise(F.lit(False))


def equal_keys(count: int) -> list[Column]:
    """Null-safe equality of the key columns of two renamed frames."""
    return [F.col(f"l_k{i}").eqNullSafe(F.col(f"r_k{i}")) for i in range(count)]


def all_of(conditions: Sequence[Column]) -> Column:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = whole & condition
    return whole


def narrowly(relation: Relation, narrow: Narrow) -> DataFrame:
    """The rows that matter, as early as the relation can tell."""
    return narrow(relation.frame) if relation.narrowed is None else relation.narrowed(narrow)


def keys_alone(frame: DataFrame, keys: Sequence[Column]) -> DataFrame:
    """The keys of the rows, and nothing else."""
    return frame.select(*(k.alias(f"k{i}") for i, k in enumerate(keys)))


FEW_KEYS = 200_000
"""Up to so many rows of new keys are sent to where what is stored is, which then is not sorted."""


def few_keys(keys: DataFrame, count: int | None) -> DataFrame:
    """The keys, as they look for their rows among what is stored; None: they are not counted."""
    return F.broadcast(keys) if count is not None and count <= FEW_KEYS else keys


def with_keys_of(others: DataFrame, mine: Sequence[Column]) -> Narrow:
    """Leaves the rows whose keys `mine` are in a row of `others`, which has nothing but keys."""
    return _by_keys_of(others, mine, "left_semi")


def without_keys_of(others: DataFrame, mine: Sequence[Column]) -> Narrow:
    """Leaves the rows whose keys `mine` are in no row of `others`, which has nothing but keys."""
    return _by_keys_of(others, mine, "left_anti")


def _by_keys_of(others: DataFrame, mine: Sequence[Column], how: str) -> Narrow:
    names = [f"of{i}" for i in range(len(mine))]
    keys = others.toDF(*names)
    conditions = [k.eqNullSafe(F.col(n)) for k, n in zip(mine, names, strict=True)]
    return lambda frame: frame.join(keys, all_of(conditions), how)


def meeting(relation: Relation, other: Relation, keys: Sequence[Sequence[Column]]) -> Relation:
    """Without what meets nothing on the other side, where finding that out early saves work."""
    mine, theirs = keys
    if relation.narrowed is None or other.narrowed is not None or not mine:
        return relation
    narrow = with_keys_of(keys_alone(other.frame, theirs), mine)
    return relation.with_(frame=relation.narrowed(narrow))
