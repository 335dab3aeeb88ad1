"""Which rows stand at or after the first one of others with their key, in the language's order.

Rows that are equal to it in what they are ordered by count as behind it, so that some more are
found. Of types that Arrow does not order as the language does, nothing is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.plan.found_rows import NotBefore
from hydro_core.spark.store.values import Column, Leaves, are_comparable, comparable, leaf_of
from hydro_core.types.item import FieldPath, ItemType, at

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first of some rows of each key."""

    orders: tuple[FieldPath, ...]
    """What rows are ordered by, as they are compared with them."""
    least: Sequence[Column]
    """The parts of that, a value for each key's number."""
    descending: bool

    def keep(self, leaves: Leaves, keys: Numbers) -> Mask:
        """Which of some rows do not come before the first one of their key.

        Args:
            leaves: gives of these rows what stands at a path.
            keys: the numbers of their keys.
        """
        import numpy as np

        behind, equal = np.zeros(len(keys), bool), np.ones(len(keys), bool)
        parts = [part for path in self.orders for part in _in_order(leaves(path))]
        of_keys = pa.array(keys, pa.int64())
        for part, least in zip(parts, self.least, strict=True):
            other = least.take(of_keys).cast(part.type)
            is_behind = pc.less(part, other) if self.descending else pc.greater(part, other)
            behind |= equal & _mask(is_behind)
            # Of two nulls the part before says that both are.
            equal &= _mask(pc.equal(part, other)) | _mask(pc.is_null(part))
        return behind | equal


def first_rows_of_keys(
    since: NotBefore, keys: Numbers, known: tuple[ItemType, Column, ItemType]
) -> FirstRows | None:
    """The first of some rows of each key; None where the order of what is compared is not known.

    Args:
        since: what rows are ordered by.
        keys: the number of each row's key, from 0 on.
        known: the type of the items that are compared with them, the rows, and their type.
    """
    import numpy as np

    item, rows, of_rows = known
    if not all(are_comparable(at(item, own), at(of_rows, other)) for own, other in since.orders):
        return None
    parts = [p for _, other in since.orders for p in _in_order(leaf_of(rows, of_rows, other))]
    names = [f"p{i}" for i in range(len(parts))]
    table = pa.table([pa.array(keys, pa.int64()), *parts], names=["key", *names])
    way = "descending" if since.descending else "ascending"
    by: Any = [("key", "ascending"), *((name, way) for name in names)]
    order: Any = pc.sort_indices(table, sort_keys=by)
    _, firsts = np.unique(keys[order.to_numpy()], return_index=True)
    first = order.take(pa.array(firsts, pa.int64()))
    least = [part.take(first) for part in parts]
    return FirstRows(tuple(own for own, _ in since.orders), least, since.descending)


def _in_order(column: Column) -> list[Column]:
    """Columns by which values go, one after the other: nulls are before all others."""
    return [column.is_valid().cast(pa.int8()), _numbered(comparable(column))]


def _numbered(column: Column) -> Column:
    """Floating point numbers as integers in the same order, NaN behind all; others as they are."""
    import numpy as np

    if not pa.types.is_floating(column.type):
        return column
    filled: Any = pc.fill_null(column.cast(pa.float64()), 0.0)
    bits = filled.to_numpy(zero_copy_only=False).view(np.int64)
    return pa.array(np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits), pa.int64())


def _mask(column: Any) -> Mask:
    found: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return found
