"""Which rows stand between places that others with their key have, in the language's order.

Rows at such a place count as between, so that some more are found. Of types that Arrow does not
order as the language does, nothing is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.plan.stored_rows import FieldPairs, LookupBounds
from hydro_core.spark.store.values import (
    Bools,
    Column,
    Int64s,
    Leaves,
    are_comparable,
    in_order,
    leaf_of,
    type_of,
)
from hydro_core.types.item import FieldPath, ItemType

PlacedRows = tuple[Column, ItemType]
"""The rows that have the places, and their type."""


@dataclass(frozen=True, slots=True)
class _Side:
    """The first place of each key, or the last one."""

    orders: tuple[FieldPath, ...]
    """What stands at the place in the rows that are compared."""
    places: Sequence[Column]
    """The parts of it, a value for each key's number."""
    rising: bool
    """Whether rows with greater parts are within."""

    @staticmethod
    def of(
        orders: FieldPairs, item: ItemType, others: PlacedRows, keys: Int64s, *, rising: bool
    ) -> _Side | None:
        """The least parts of each key where greater ones are within, else the greatest.

        Returns:
            None where nothing is asked.
        """
        rows, of_rows = others
        known = all(are_comparable(type_of(item, a), type_of(of_rows, b)) for a, b in orders)
        if not orders or not known:
            return None
        parts = [part for _, path in orders for part in _parts(leaf_of(rows, of_rows, path))]
        names = [f"p{i}" for i in range(len(parts))]
        way = "ascending" if rising else "descending"
        by: Any = [("key", "ascending"), *((name, way) for name in names)]
        table = pa.table([pa.array(keys, pa.int64()), *parts], names=["key", *names])
        order: Any = pc.sort_indices(table, sort_keys=by)
        _, firsts = np.unique(keys[order.to_numpy()], return_index=True)
        first = order.take(pa.array(firsts, pa.int64()))
        return _Side(tuple(own for own, _ in orders), [p.take(first) for p in parts], rising)

    def keep(self, leaves: Leaves, keys: Int64s) -> Bools:
        """Which rows are within."""
        beyond, equal = np.zeros(len(keys), bool), np.ones(len(keys), bool)
        parts = [part for path in self.orders for part in _parts(leaves(path))]
        of_keys = pa.array(keys, pa.int64())
        compare: Any = pc.greater if self.rising else pc.less
        for part, place in zip(parts, self.places, strict=True):
            other = place.take(of_keys).cast(part.type)
            beyond |= equal & _mask(compare(part, other))
            # Of two nulls the part before says that both are.
            equal &= _mask(pc.equal(part, other)) | _mask(pc.is_null(part))
        return beyond | equal


class KeyBounds:
    """The first and the last place of each key."""

    def __init__(
        self, bounds: LookupBounds, item: ItemType, others: PlacedRows, keys: Int64s
    ) -> None:
        """Looks at the others.

        Args:
            bounds: what says where a row stands, and where the others' places stand.
            item: the type of the rows that are compared.
            others: those with the places.
            keys: the number of each one's key, from 0 on.
        """
        sides = ((bounds.first, not bounds.descending), (bounds.last, bounds.descending))
        found = (_Side.of(orders, item, others, keys, rising=up) for orders, up in sides)
        self._sides = [side for side in found if side is not None]

    def within(self, leaves: Leaves, keys: Int64s) -> Bools:
        """Which of some rows stand between the places of their keys.

        Args:
            leaves: gives of these rows what stands at a path.
            keys: the numbers of their keys.
        """
        found = np.ones(len(keys), bool)
        for side in self._sides:
            found &= side.keep(leaves, keys)
        return found


def _parts(column: Column) -> list[Column]:
    """Columns by which values go, one after the other: nulls are before all others."""
    return [column.is_valid().cast(pa.int8()), in_order(column)]


def _mask(column: Any) -> Bools:
    found: Bools = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return found
