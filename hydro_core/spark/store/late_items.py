"""Which rows of a tick come late: not after all that is stored of their keys.

Spark decides; here fewer rows are looked up. So a row that is equal to the last one in its order
counts as late, and where nobody tells what comes first all rows do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from hydro_core.plan.found_rows import Lookup, NotBefore, RowsSinceLate
from hydro_core.spark.store.agreeing import Agreeing
from hydro_core.spark.store.values import leaf_of
from hydro_core.types.item import FieldPath, ItemType

if TYPE_CHECKING:
    from hydro_core.spark.store.values import Column


def late_items(
    late: RowsSinceLate, items: Column, item: ItemType, tails: Column, of_tails: ItemType
) -> tuple[Column, ItemType]:
    """Those of some items that come late, and their type.

    Args:
        late: what they are compared by.
        items: the items, as a column.
        item: their type.
        tails: the last stored rows of keys.
        of_tails: their type.
    """
    if not len(tails) or not len(items):
        return items.slice(0, 0), item
    # At or before the last one is: the other way round, not before it.
    since = NotBefore(_turned(late.orders), not late.descending)
    of_their_keys = Agreeing(item, tails, of_tails, Lookup("tails", _turned(late.keys), since))
    places = of_their_keys.places(lambda path: leaf_of(items, item, path), len(items))
    return items.take(pa.array(places, pa.int64())), item


def _turned(
    pairs: Iterable[tuple[FieldPath, FieldPath]],
) -> tuple[tuple[FieldPath, FieldPath], ...]:
    return tuple((theirs, own) for own, theirs in pairs)
