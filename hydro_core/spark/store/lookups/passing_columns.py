"""Filters that compare columns with constants, asked of a batch by columns.

Which items may pass, not which do: an item that cannot be compared, null among them, may. Of other
filters nothing is told here.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal as Number
from functools import reduce
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.functions.call import call_item
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Const, Expr, Fn, Op, Param, Part, field_in
from hydro_core.spark.store.values import Column
from hydro_core.types.item import Decimal, ItemType, Row, Scalar, is_integer

_ASKED = {
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "==": pc.equal,
    "!=": pc.not_equal,
}


def may_pass(fn: Fn, items: Column, item: ItemType) -> Column | None:
    """Which of the items may pass a filter; None where that is not asked by columns.

    Args:
        fn: a pure function of items.
        items: the items, as a column.
        item: their type.
    """
    if fn.tree is None or len(fn.params) != 1 or not isinstance(item, Row):
        return None
    try:
        found = _RowFilter(fn, items, item).of(fn.tree)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return None if found is None else pc.fill_null(found, pa.scalar(value=True))


class _RowFilter:
    """A filter over rows."""

    def __init__(self, fn: Fn, items: Column, item: Row) -> None:
        self._fn, self._items, self._item = fn, items, item

    def of(self, tree: Expr) -> Column | None:
        """Which rows a part may be true of, null of those that cannot be asked."""
        match tree:
            case Op("and" | "or" as op, values):
                parts = [self.of(value) for value in values]
                known = [part for part in parts if part is not None]
                if op == "or" and len(known) < len(parts):
                    return None
                joined: Any = pc.and_kleene if op == "and" else pc.or_kleene
                return reduce(joined, known) if known else None
            case Op(name, sides, family="comparison"):
                pairs = [
                    self._compared(left, op, right)
                    for op, (left, right) in zip(name.split(","), pairwise(sides), strict=True)
                ]
                known = [pair for pair in pairs if pair is not None]
                return reduce(pc.and_kleene, known) if known else None
            case _:
                return None

    def _compared(self, left: Expr, op: str, right: Expr) -> Column | None:
        if op not in _ASKED:
            return None
        one, other = self._side(left), self._side(right)
        if one is None or other is None or one[1] != other[1]:
            return None
        found: Column = _ASKED[op](one[0], other[0])
        if not isinstance(found, pa.Array):
            return None
        alone = isinstance(one[0], pa.Scalar) or isinstance(other[0], pa.Scalar)
        # Null equals no constant; where it is compared by size, the filter fails.
        return pc.fill_null(found, pa.scalar(op == "!=")) if op in ("==", "!=") and alone else found

    def _side(self, tree: Expr) -> tuple[Any, str] | None:
        """A column or a constant, and what it is: things of one kind are compared alike."""
        match tree:
            case Part(Param()):
                of = field_in(self._item, tree)
                kind = None if of is None else _kind_of(of.type)
                if of is None or kind is None:
                    return None
                return pc.struct_field(self._items, [of.place]), kind
            case Const() | Op("-x", (Const(),)) | Op(family="call"):
                return self._constant(tree)
            case _:
                return None

    def _constant(self, tree: Expr) -> tuple[Any, str] | None:
        if isinstance(tree, Op) and not all(isinstance(a, Const) for a in tree.args):
            return None
        try:
            value = call_item(function_of(tree, self._fn.params, like=self._fn), None)
        except Exception:  # noqa: BLE001 - whatever it raises, Spark's task tells it
            return None
        kinds = {int: "number", Number: "number", str: "text", date: "day"}
        kind = kinds.get(type(value))
        return None if kind is None else (pa.scalar(value), kind)


def _kind_of(item: ItemType) -> str | None:
    if is_integer(item) or isinstance(item, Decimal):
        return "number"
    return {"string": "text", "date": "day"}.get(item.name) if isinstance(item, Scalar) else None
