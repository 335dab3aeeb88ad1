"""The streams at which a cycle is cut: their rows pass through the driver in each round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.leaf import PlanLeaf, item_leaf
from hydro_core.spark.frames.relation import ITEM, Relation
from hydro_core.spark.store.values import Column
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import ItemType


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
    def all(self) -> tuple[CutRows, ...]:
        """Whatever a plan may read of it."""
        return self.now, self.last, self.known, self.known_last, self.total

    def begin(self) -> None:
        """A round begins."""
        self.known_last.give(self.known.table)
        self.last.give(self.now.table)
        self.known.give(whole(self.pieces))
        self.now.give(None)

    def take(self, rows: pa.Table) -> None:
        """What is new in this round."""
        self.now.give(rows)
        if rows.num_rows:
            self.pieces.append(rows)

    def forget(self) -> None:
        """Gives up all rows."""
        self.pieces = []
        for rows in self.all:
            rows.give(None)


def whole(pieces: Sequence[pa.Table]) -> pa.Table | None:
    """All rows of some pieces; None where there are none."""
    return pa.concat_tables(pieces) if pieces else None
