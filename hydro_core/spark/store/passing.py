"""What passes of a batch: asked here, so that fewer stored rows are looked up by it.

The program's filters are asked again by Spark, which decides. So it does no harm where one is not
asked, or fails: then more rows are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hydro_core.functions.evaluate import call_item
from hydro_core.functions.fn import Fn
from hydro_core.spark.store.passing_columns import may_pass
from hydro_core.types.arrow import from_arrow
from hydro_core.types.item import ItemType

if TYPE_CHECKING:
    from hydro_core.spark.store.values import Column

ASKED = 20_000
"""Of more rows all are taken where they are asked one by one: it takes some microseconds each."""


def passing_items(filters: Iterable[Fn], items: Column, item: ItemType) -> tuple[Column, ItemType]:
    """The items that may pass all filters, and their type.

    Args:
        filters: pure functions of items.
        items: the items, as a column; one without items may have any type.
        item: their type.
    """
    asked: list[Fn] = []
    for fn in filters if len(items) else ():
        passing = may_pass(fn, items, item)
        if passing is None:
            asked.append(fn)
        else:
            items = items.filter(passing)
    if not len(items) or len(items) > ASKED or not asked:
        return items, item
    places = [i for i, x in enumerate(from_arrow(items, item)) if _may_pass(asked, x)]
    return items.take(pa.array(places, pa.int64())), item


def _may_pass(filters: Sequence[Fn], item: Any) -> bool:
    for fn in filters:
        try:
            if not call_item(fn, item):
                return False
        except Exception:  # noqa: BLE001 - whatever the function raises, Spark's task tells it
            return True
    return True
