"""Operators that make an order or depend on one."""

from __future__ import annotations

from typing import Any

from hydro_core.catalog import order
from hydro_core.lang.methods.base import ColumnNames, Methods, StreamT, UserFunction


class OrderMethods(Methods[StreamT]):
    """Methods of the family `order`."""

    def sort(self) -> StreamT:
        """The tick's items, ascending."""
        return self.apply(order.SORT)

    def sort_by_key(
        self, f: UserFunction, descending: bool = False, *, returns: str | None = None
    ) -> StreamT:
        """The tick's items by `f(x)`; ties by the item, ascending."""
        return self.apply(order.SORT_BY_KEY, f, descending, returns=returns)

    def limit(self, n: int, *, by: ColumnNames | None = None) -> StreamT:
        """The first n items of the tick, or of each key."""
        return self.apply(order.LIMIT, n, by=by)

    def enumerate(self) -> StreamT:
        """Each item with its position in this tick, from 0."""
        return self.apply(order.ENUMERATE)

    def scan(self, init: Any, f: UserFunction, **promises: Any) -> StreamT:
        """`f(acc, x)` after each item."""
        return self.apply(order.SCAN, init, f, **promises)

    def scan_keyed(
        self, init: Any, f: UserFunction, *, by: ColumnNames | None = None, **promises: Any
    ) -> StreamT:
        """`f(acc, v)` after each item of a key."""
        return self.apply(order.SCAN_KEYED, init, f, by=by, **promises)

    def next_stratum(self) -> StreamT:
        """The items themselves, once the stratum has ended."""
        return self.apply(order.NEXT_STRATUM)
