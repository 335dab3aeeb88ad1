"""Operators that bring streams together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hydro_core.catalog import combine
from hydro_core.lang.methods.base import ColumnNames, Methods

if TYPE_CHECKING:
    from hydro_core.lang.stream import Stream


class CombineMethods(Methods):
    """Methods of the family `combine`."""

    def union(self, *others: Stream) -> Stream:
        """The items of all."""
        return self.apply(combine.UNION, *others)

    def chain(self, right: Stream) -> Stream:
        """The items of this stream, then those of the other."""
        return self.apply(combine.CHAIN, right=right)

    def cross(self, right: Stream) -> Stream:
        """All pairs."""
        return self.apply(combine.CROSS, right=right)

    def cross_singleton(self, single: Stream) -> Stream:
        """Each item with the single item of the other stream; a second one fails the tick."""
        return self.apply(combine.CROSS_SINGLETON, single=single)

    def join(
        self,
        right: Stream,
        *,
        on: ColumnNames | None = None,
        how: str = "inner",
        suffix: str | None = None,
    ) -> Stream:
        """Equi-join on the first field of pairs, or with `on` on columns of rows.

        `how` is inner, left, right, outer, semi or anti; `suffix` renames columns of the right
        that the left has too.
        """
        return self.apply(combine.JOIN, right=right, on=on, how=how, suffix=suffix)

    def zip(self, right: Stream) -> Stream:
        """Pairs of the items at equal positions."""
        return self.apply(combine.ZIP, right=right)

    def zip_longest(self, right: Stream) -> Stream:
        """Pairs of the items at equal positions, null where one side has ended."""
        return self.apply(combine.ZIP_LONGEST, right=right)

    def anti_join(self, neg: Stream) -> Stream:
        """The pairs whose key is not in `neg`; duplicates are kept."""
        return self.apply(combine.ANTI_JOIN, neg=neg)

    def difference(self, neg: Stream) -> Stream:
        """The items that are not in `neg`; duplicates are kept."""
        return self.apply(combine.DIFFERENCE, neg=neg)
