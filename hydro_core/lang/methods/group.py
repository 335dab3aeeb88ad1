"""Operators that make few items of many, over all or key by key."""

from __future__ import annotations

from typing import Any

from hydro_core.catalog import group, ordered
from hydro_core.catalog.spec import Aggregate, OverFunction
from hydro_core.lang.methods.base import ColumnNames, Methods, StreamT, UserFunction


class GroupMethods(Methods[StreamT]):
    """Methods of the family `group`.

    `commutative=True`, `associative=True`, `idempotent=True`, `neutral=True` and `returns="long"`
    may be said of a function (`promises`); they are believed.
    """

    def unique(self) -> StreamT:
        """Each distinct item once."""
        return self.apply(group.UNIQUE)

    def unique_keyed(self, *, by: ColumnNames | None = None) -> StreamT:
        """The first value of each key."""
        return self.apply(group.UNIQUE_KEYED, by=by)

    def fold(self, init: Any, f: UserFunction, **promises: Any) -> StreamT:
        """Exactly one item each tick: `f(acc, x)` over all items, `init` on no input."""
        return self.apply(group.FOLD, init, f, **promises)

    def reduce(self, f: UserFunction, **promises: Any) -> StreamT:
        """One item, `f(x, y)` over all items; none on no input."""
        return self.apply(group.REDUCE, f, **promises)

    def fold_keyed(
        self, init: Any, f: UserFunction, *, by: ColumnNames | None = None, **promises: Any
    ) -> StreamT:
        """`fold` of the values of each key that is there."""
        return self.apply(group.FOLD_KEYED, init, f, by=by, **promises)

    def reduce_keyed(
        self, f: UserFunction, *, by: ColumnNames | None = None, **promises: Any
    ) -> StreamT:
        """`reduce` of the values of each key."""
        return self.apply(group.REDUCE_KEYED, f, by=by, **promises)

    def latest(self, *, by: ColumnNames, order: ColumnNames | UserFunction) -> StreamT:
        """Of each key the row with the greatest `order`: columns, or a function of the row."""
        return self.apply(group.LATEST, by=by, order=order)

    def aggregate(self, *, by: ColumnNames | None = None, **aggregates: Aggregate) -> StreamT:
        """Spark's aggregates, of each key or of all rows: `aggregate(by="k", n=agg.count())`."""
        return self.apply(group.AGGREGATE, by=by, **aggregates)

    def over(
        self,
        *,
        by: ColumnNames | UserFunction | None = None,
        order: ColumnNames | UserFunction | None = None,
        descending: bool = False,
        **functions: OverFunction,
    ) -> StreamT:
        """Each row with columns of its key's rows in their order: `over(by="k", order="at",
        n=over.row_number())`.
        """
        return self.apply(ordered.OVER, by=by, order=order, descending=descending, **functions)

    def top(
        self,
        n: int,
        *,
        by: ColumnNames | UserFunction | None = None,
        order: ColumnNames | UserFunction,
        descending: bool = False,
        ties: bool = False,
    ) -> StreamT:
        """The first n rows of each key, or of all; with `ties` those equal to the n-th, too."""
        given = {"by": by, "order": order, "descending": descending, "ties": ties}
        return self.apply(ordered.TOP, n, **given)
