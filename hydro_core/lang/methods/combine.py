"""Operators that bring streams together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal

from hydro_core.catalog import combine, nearest
from hydro_core.lang.methods.base import ColumnNames, Methods, StreamT, UserFunction


class CombineMethods(Methods[StreamT]):
    """Methods of the family `combine`."""

    def union(self, *others: StreamT) -> StreamT:
        """The items of all."""
        return self.apply(combine.UNION, *others)

    def chain(self, right: StreamT) -> StreamT:
        """The items of this stream, then those of the other."""
        return self.apply(combine.CHAIN, right=right)

    def cross(self, right: StreamT) -> StreamT:
        """All pairs."""
        return self.apply(combine.CROSS, right=right)

    def cross_singleton(self, single: StreamT) -> StreamT:
        """Each item with the single item of the other stream; a second one fails the tick."""
        return self.apply(combine.CROSS_SINGLETON, single=single)

    def join(
        self,
        right: StreamT,
        *,
        on: ColumnNames | Mapping[str, str] | None = None,
        how: str = "inner",
        suffix: str | None = None,
        where: UserFunction | None = None,
    ) -> StreamT:
        """Equi-join on the first field of pairs, or with `on` on columns of rows.

        `on` is a column of both sides, a list of such, or `{left: right}` where their names
        differ: the left's stay. `how` is inner, left, right, outer, semi or anti; `suffix` renames
        columns of the right that the left has too. A pair of rows matches only where the condition
        `where` over both is true; without `on` it judges all pairs.
        """
        return self.apply(combine.JOIN, right=right, on=on, how=how, suffix=suffix, where=where)

    def join_asof(  # noqa: PLR0913 - as a program writes them
        self,
        right: StreamT,
        *,
        on: ColumnNames | Mapping[str, str] | None = None,
        at: str = "at",
        since: str = "since",
        direction: str = "backward",
        within: timedelta | float | Decimal | None = None,
        how: str = "left",
        suffix: str | None = None,
    ) -> StreamT:
        """Each row with the one right row of its key whose `since` is nearest to its `at`.

        `direction` is backward (the greatest that is not after), forward (the least that is not
        before) or nearest, no farther than `within`; of equal ones the greatest row. With
        `how="inner"` rows that find none are left out.
        """
        return self.apply(
            nearest.JOIN_ASOF,
            right=right,
            on=on,
            at=at,
            since=since,
            direction=direction,
            within=within,
            how=how,
            suffix=suffix,
        )

    def zip(self, right: StreamT) -> StreamT:
        """Pairs of the items at equal positions."""
        return self.apply(combine.ZIP, right=right)

    def zip_longest(self, right: StreamT) -> StreamT:
        """Pairs of the items at equal positions, null where one side has ended."""
        return self.apply(combine.ZIP_LONGEST, right=right)

    def anti_join(self, neg: StreamT) -> StreamT:
        """The pairs whose key is not in `neg`; duplicates are kept."""
        return self.apply(combine.ANTI_JOIN, neg=neg)

    def difference(self, neg: StreamT) -> StreamT:
        """The items that are not in `neg`; duplicates are kept."""
        return self.apply(combine.DIFFERENCE, neg=neg)
