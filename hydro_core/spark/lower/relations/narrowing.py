"""Relations without the rows that do not matter, as early as they can tell."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import Narrow, Relation
from hydro_core.spark.lower.relations.conditions import all_of


def narrowly(relation: Relation, narrow: Narrow) -> DataFrame:
    """The rows that matter, as early as the relation can tell."""
    return narrow(relation.frame) if relation.narrowed is None else relation.narrowed(narrow)


def keys_alone(frame: DataFrame, keys: Sequence[Column]) -> DataFrame:
    """The keys of the rows, and nothing else."""
    return frame.select(*(k.alias(f"k{i}") for i, k in enumerate(keys)))


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
