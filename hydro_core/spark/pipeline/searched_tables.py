"""The tables of a pipeline's state, as a range looks rows up in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hydro_core.plan.found_rows import ExtremeRows
from hydro_core.plan.tick_plan import StateSlot
from hydro_core.spark.store.agreeing import Met
from hydro_core.spark.store.extremes import Leading
from hydro_core.spark.store.leading_rows import leading_rows
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.store import Store

SEARCHED_ROWS = 10_000_000
"""State of which more rows are gone through is left to Spark: to search them here would take longer
than a job does."""


@dataclass(frozen=True, slots=True)
class SearchedTables:
    """The state of a pipeline for a range that starts at a tick."""

    store: Store
    specs: Mapping[str, TableSpec]
    first: int

    def ticks(self, slot: StateSlot) -> tuple[int, int]:
        """The first and the last tick of a slot that the range reads."""
        return slot.ticks_read(self.first)

    def met(self, slot: StateSlot, met: Met) -> pa.Table | None:
        """The stored rows of a slot that are met; None where too many would be looked at."""
        name = self.specs[slot.id].name
        many = self.store.lookup_files.gone_through(self.store.tables[name])
        return self.store.met(name, met) if many <= SEARCHED_ROWS else None

    def lead(self, slot: StateSlot, rows: ExtremeRows, count: int) -> Leading | None:
        """So many rows of a slot that came, the first by a leaf; None where they cannot be told."""
        table = self.store.tables[self.specs[slot.id].name]
        files = self.store.lookup_files
        return leading_rows(table, files, (rows, slot.item), count, self.first - 1)
