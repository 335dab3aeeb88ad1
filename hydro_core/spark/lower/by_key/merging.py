"""Results along the ticks, merged from partial results: one pass, whatever the range.

The rows of a key and tick become partial results, which a window over the ticks of a key merges.
What is stored of a key stands before its first tick as a partial result of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Window

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import FOREVER, TICK, UNTIL
from hydro_core.spark.lower.aggregates.partial import MergedResult, Partial, counted
from hydro_core.spark.lower.items.grouping import GroupKeys

ROWS = "rows"
STATE = "state"
"""The column of the stored item, the only field `x` of a struct; null where nothing is stored."""


@dataclass(frozen=True, slots=True)
class Merging:
    """Results that are merged, by their names."""

    results: Mapping[str, MergedResult]
    resumes: bool = False
    """Whether there may be stored results, in the column `state`."""
    stored: Sequence[Column] = ()
    """The stored `item` as the partial results of all results; none if they go on from `state`."""
    are_aggregates: bool = False
    """Whether these are aggregates, as the partial results of rows are."""
    rows: str = ROWS
    """The result that is the number of the key's rows, if there is one."""
    vanishes: bool = False
    """Whether rows go again, so that a key may have none."""

    def of_changes(self) -> Merging | None:
        """The same of rows of which `n` copies come or go; None where what goes is not known."""
        number = MergedResult((counted(F.lit(True)),), lambda parts: parts[0])
        results = {**self.results, self.rows: self.results.get(self.rows, number)}
        found = {name: merged.of_changes() for name, merged in results.items()}
        known = {name: merged for name, merged in found.items() if merged is not None}
        if len(known) < len(found):
            return None
        return replace(self, results=known, vanishes=True)

    @property
    def one_by_one(self) -> bool:
        """Whether of rows that come and go each copy must be a row of its own."""
        return self.vanishes and not all(partial.is_weighted for _, partial in self._partials())

    def _partials(self) -> Iterator[tuple[str, Partial]]:
        found = (p for merged in self.results.values() for p in merged.partials)
        return ((f"p{i}", partial) for i, partial in enumerate(found))

    def _of_rows(self) -> list[Column]:
        return [partial.of_rows.alias(name) for name, partial in self._partials()]

    def partial(self, keys: GroupKeys, rows: DataFrame) -> DataFrame:
        """(the key, t, p0 …): the partial results of the rows of each key and tick."""
        return rows.groupBy(TICK, *keys.columns).agg(*self._of_rows())

    def of_no_rows(self, rows: DataFrame) -> DataFrame:
        """(p0 …): those of no rows."""
        return rows.where(F.lit(False)).agg(*self._of_rows())

    def of_stored(self, keys: GroupKeys, stored: DataFrame, state: Column) -> DataFrame:
        """(the key, state, p0 …): those of stored items."""
        parts = [column.alias(f"p{i}") for i, column in enumerate(self.stored)]
        if not self.are_aggregates:
            return stored.select(*keys.columns, state, *parts)
        grouped = stored.groupBy(*keys.columns).agg(F.first(state).alias(STATE), *parts)
        return grouped.where(F.col(STATE).isNotNull())

    def along(self, keys: GroupKeys, parts: DataFrame) -> DataFrame:
        """(the key, t, until, state, p0 …): what a key has up to each tick."""
        in_time = Window.partitionBy(*keys.by).orderBy(TICK)
        so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        state = [F.first(STATE, ignorenulls=True).over(so_far).alias(STATE)] if self.resumes else []
        merged = [p.merged(F.col(name), so_far).alias(name) for name, p in self._partials()]
        until = F.coalesce(F.lead(TICK).over(in_time), F.lit(FOREVER)).alias(UNTIL)
        return parts.select(*keys.by, TICK, until, *state, *merged)

    def made(self) -> Mapping[str, Column]:
        """The results of what is merged."""
        columns, position = {}, 0
        for name, merged in self.results.items():
            own = [F.col(f"p{i}") for i in range(position, position + len(merged.partials))]
            columns[name] = merged.result(own)
            position += len(own)
        return columns
