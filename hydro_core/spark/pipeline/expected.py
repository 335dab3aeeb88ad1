"""How many rows a range has to do with, as far as that is known before it runs."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hydro_core.settings import MEBIBYTE
from hydro_core.spark.inputs.batches import Batch
from hydro_core.spark.pipeline.prepared import RangeRequest
from hydro_core.spark.store.ledger.commit import Commit

_COMPILED_ROWS = 60_000
"""So many may arrive where the plan is kept, and what it is compiled to with it."""

_COMPILED_BYTES = 64 * MEBIBYTE
"""And rows of so many bytes: the heap of the driver has them all."""


def rows_at_hand(inputs: Mapping[str, Batch]) -> float:
    """How many rows arrive; infinitely many where that is not known."""
    counts = [batch.rows_at_hand for batch in inputs.values()]
    return float("inf") if None in counts else sum(n or 0 for n in counts)


def is_compiled(inputs: Mapping[str, Batch]) -> bool:
    """Whether what arrives is little enough for one task, if the plan is kept and compiled."""
    tables = [batch.rows for batch in inputs.values() if isinstance(batch.rows, pa.Table)]
    few = rows_at_hand(inputs) <= _COMPILED_ROWS
    return few and sum(rows.nbytes for rows in tables) <= _COMPILED_BYTES


def expected_rows(before: Commit | None, table: str, run: RangeRequest) -> float:
    """How many rows a table is to get if the range is as the one before."""
    if before is None or not before.ticks:
        return 0
    return before.rows.get(table, 0) / len(before.ticks) * (run.last - run.first + 1)
