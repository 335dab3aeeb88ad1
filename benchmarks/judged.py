"""Benchmarks whose answers are judged: rows as ticks, pipelines that run them, and whether what
they store is what another engine says of all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from hydro_core.spark.inputs.batches import Batch, batch_of
from hydro_core.spark.pipeline.pipeline import Pipeline

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Ticks:
    """All rows by table, each with the column `tick`, in its order."""

    tables: Mapping[str, pa.Table]
    count: int

    def batch(self, tick: int, names: Iterable[str]) -> dict[str, pa.Table]:
        """What comes in a tick, of these tables."""
        return {name: self.rows(name, tick, tick) for name in names}

    def rows(self, name: str, first: int, last: int) -> pa.Table:
        """What comes of a table in some ticks."""
        ticks = self.tables[name]["tick"].to_numpy()
        start, end = np.searchsorted(ticks, [first, last + 1])
        return self.tables[name].slice(start, end - start)


def as_range(pipeline: Pipeline, ticks: Ticks, first: int, last: int) -> None:
    """Runs some ticks as one range."""
    batches: dict[str, Batch] = {}
    for name in pipeline.plan.graph.sources:
        rows = ticks.rows(name, first, last)
        of = rows["tick"].combine_chunks()
        item = pipeline.plan.typed.inputs[name].item
        batches[name] = batch_of(name, rows.drop_columns(["tick"]), item, of)
    pipeline.run_range(first, last, batches)


def answer(pipeline: Pipeline, tick: int) -> list[Row]:
    """The rows of a pipeline's one output as of a tick."""
    [(name, spec)] = pipeline.output_tables.items()
    found = pipeline.output(name, tick).select([column for column, _ in spec.items])
    return [tuple(row.values()) for row in found.to_pylist()]


def differences(ours: Sequence[Row], judged: Sequence[Row]) -> str | None:
    """Where two bags of rows differ, None where they do not: decimals and all else are equal.

    Where DuckDB has a double, of a mean or a quotient, it is ours to the last digit.
    """
    if len(ours) != len(judged):
        return f"{len(ours)} rows, and DuckDB has {len(judged)}"
    rough = {i for row in judged for i, value in enumerate(row) if isinstance(value, float)}

    def ordered(rows: Sequence[Row]) -> list[Row]:
        exact = [i for i in range(len(rows[0])) if i not in rough] if rows else []
        return sorted(rows, key=lambda row: [_text(row[i]) for i in exact])

    for own, other in zip(ordered(ours), ordered(judged), strict=True):
        if len(own) != len(other) or not all(map(_equal, own, other)):
            return f"{own}, and DuckDB has {other}"
    return None


def _text(value: Any) -> str:
    return f"{value:f}".rstrip("0") if isinstance(value, Decimal) and value % 1 else f"{value}"


def _equal(own: Any, other: Any) -> bool:
    if isinstance(other, float) and isinstance(own, Decimal):
        half = Decimal(10) ** int(own.as_tuple().exponent) / 2
        return abs(own - Decimal(other)) <= half * Decimal("1.0001")
    return bool(own == other)
