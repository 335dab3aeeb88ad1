"""Which rows have the fields of rows in another table: by Arrow, before Spark sees any of them.

Fields are compared leaf by leaf, as the language compares keys: a null equals a null, a NaN a NaN,
the two zeros are one, and integers of all sizes are numbers. Of types that Arrow does not compare
like that, arrays above all, nothing is asked, so that more rows are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.plan.found_rows import FoundRows, LookupSource
from hydro_core.plan.lookups import Needed
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.types.item import Decimal, FieldPath, ItemType, Scalar, at, children, is_integer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

Column = Any
"""An array of Arrow's."""

KnownItems = Mapping[LookupSource, tuple[Column, ItemType]]
"""Items and their type: those that arrive, by the inputs' names, and stored ones that were found by
them.
"""


class Agreeing:
    """Finds the items that agree with one of some others in all of some fields."""

    def __init__(
        self,
        item: ItemType,
        others: Column,
        of_others: ItemType,
        fields: Iterable[tuple[FieldPath, FieldPath]],
    ) -> None:
        """Looks at the others.

        Args:
            item: the type of the items that are found.
            others: the others, at least one, as a column.
            of_others: their type.
            fields: leaves of the items, each with the leaf of the others that it is to equal.
        """
        import numpy as np

        self._item = item
        self._steps: list[tuple[FieldPath, Column, Numbers]] = []
        values = {
            mine: comparable(_leaf(others, of_others, theirs))
            for mine, theirs in fields
            if _are_comparable(at(item, mine), at(of_others, theirs))
        }
        distinct = {path: column.unique() for path, column in values.items()}
        ids = np.zeros(len(others), dtype=np.int64)
        # Of many values most items have none, so little is left for the fields after it.
        for path in sorted(values, key=lambda path: -len(distinct[path])):
            codes = _codes(values[path], distinct[path])
            # A number for each combination of the fields so far.
            known, ids = np.unique(ids * len(distinct[path]) + codes, return_inverse=True)
            self._steps.append((path, distinct[path], known))

    def places(self, items: Column) -> Numbers:
        """The places of the items that are found, in their order."""
        import numpy as np

        found = np.arange(len(items))
        ids = np.zeros(len(found), dtype=np.int64)
        for path, distinct, known in self._steps:
            left = items if len(found) == len(items) else items.take(pa.array(found))
            column = comparable(_leaf(left, self._item, path))
            # Most have none of the values: whether is asked of all, and which one of the others.
            hits = np.flatnonzero(pc.is_in(column, value_set=distinct).to_numpy(False))
            codes = _codes(column.take(pa.array(hits)), distinct)
            combined = ids[hits] * len(distinct) + codes
            ids = np.searchsorted(known, combined).clip(max=len(known) - 1)
            agree = known[ids] == combined
            found, ids = found[hits[agree]], ids[agree]
        return found


class Met:
    """The stored rows of a slot that a range can meet."""

    def __init__(
        self, needed: Needed, item: ItemType, known: KnownItems, ticks: tuple[int, int]
    ) -> None:
        """Looks at what arrives, and at what was found before.

        Args:
            needed: which rows these are.
            item: the type of their items.
            known: what arrives at inputs that get something, and all that is found on the way.
            ticks: the first and the last tick whose rows may be met.
        """
        there = (w for w in needed.found if w.by in known or isinstance(w.by, FoundRows))
        asked = [(known[w.by], w.fields) for w in there]
        self._found = [Agreeing(item, *batch, fields) for batch, fields in asked if len(batch[0])]
        self._first, self._last = ticks
        self._whole = needed.last_tick

    @property
    def ticks(self) -> tuple[int, int] | None:
        """The first and the last tick of which rows may be found; None where none are."""
        if self._found:
            return self._first, self._last
        return (self._last, self._last) if self._whole else None

    def of(self, rows: pa.Table) -> pa.Table:
        """Those of the rows (item, t, …) that are met."""
        import numpy as np

        items, ticks = rows[ITEM].combine_chunks(), rows[TICK].to_numpy()
        met = ticks == self._last if self._whole else np.zeros(len(items), dtype=bool)
        for one in self._found:
            met[one.places(items)] = True
        return rows.filter(pa.array(met & (ticks >= self._first) & (ticks <= self._last)))


def _leaf(items: Column, item: ItemType, path: FieldPath) -> Column:
    places = []
    for step in path:
        names = [name for name, _ in children(item)]
        places.append(names.index(step))
        item = [child for _, child in children(item)][places[-1]]
    return pc.struct_field(items, places) if places else items


def _are_comparable(one: ItemType | None, other: ItemType | None) -> bool:
    """Whether what the language takes for equal is equal here."""
    if not isinstance(one, Scalar | Decimal) or other is None:
        return False
    return one == other or (is_integer(one) and is_integer(other))


def comparable(column: Column) -> Column:
    """The column with equal values where the language takes them for equal."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))
        nan = pa.scalar(float("nan"), column.type)
        return pc.if_else(pc.is_nan(column), nan, column)
    return column


def _codes(column: Column, distinct: Column) -> Numbers:
    """Where among distinct values each value of a column is; -1 where it is not."""
    places: Column = pc.index_in(column, value_set=distinct)
    found: Numbers = places.fill_null(-1).to_numpy(zero_copy_only=False).astype("int64")
    return found
