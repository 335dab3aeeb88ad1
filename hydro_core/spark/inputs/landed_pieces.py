"""The rows of a range that this process reads, piece by piece.

Each value is read by itself, so text that is no number, say, is told of with its file and row. What
is wrong with the rows of other ticks is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.spark.files.arrived import Arrived, refuse_misfit
from hydro_core.spark.files.axis import NONE, Numbers
from hydro_core.spark.files.rows import (
    CURE,
    FILE,
    MOMENT,
    NAMES,
    NUMBER,
    PLACE,
    PROBLEM,
    ROW,
    STAGE,
    Stage,
    WantedColumns,
    input_error,
    rows_of_file,
)
from hydro_core.spark.frames.arrow import arrow_type
from hydro_core.ticks.batches import refuse_untold, require_columns
from hydro_core.types.item import Row, Tuple


@dataclass(frozen=True, slots=True)
class Here:
    """Rows that this process has read: items, their ticks, and the latest of all rows."""

    items: pa.Array[Any]
    numbers: Numbers
    latest: int | datetime | None


class TicksOfRows(Protocol):
    """Which ticks rows are of, by what their tick column holds; `NONE`: of none that is wanted."""

    def of_moments(self, moments: pa.Array[Any]) -> Numbers:
        """The ticks of moments in UTC."""

    def numbers(self, values: pa.Array[Any]) -> Numbers:
        """The ticks of the values of the column, where it has the number of the tick."""


def read_here(
    arrived: Arrived, made: WantedColumns, axis: TicksOfRows | None, files: Sequence[Path]
) -> Here:
    """The rows of some files that are of the range; without an axis all are of tick 0.

    Args:
        arrived: the input.
        made: the columns of its items that are read, and the tick column.
        axis: the ticks of the range, or others.
        files: those that may have rows of it.

    Raises:
        DataError: a file cannot be read, or a row of the range does not fit (code `input`).
    """
    reading = _Reading(arrived, made, axis, files)
    for number, file in enumerate(files):
        for batch in rows_of_file(file, number, arrived.found.form, made):
            reading.add(batch)
    return reading.done()


class _Reading:
    """What has been read so far."""

    def __init__(
        self, arrived: Arrived, made: WantedColumns, axis: TicksOfRows | None, files: Sequence[Path]
    ) -> None:
        self._arrived, self._columns, self._axis, self._files = arrived, made.columns, axis, files
        self._kept: list[pa.RecordBatch] = []
        self._numbers: list[Numbers] = [np.array([], np.int64)]
        self._names: dict[str, None] = {}
        self._latest: int | datetime | None = None
        self._misfit: tuple[int, int, int, int, str] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """The rows of a piece."""
        self._refuse_unread(batch)
        for names in batch[NAMES].drop_null().to_pylist():
            self._names |= dict.fromkeys(str(names).split("\n"))
        for column in (NUMBER, MOMENT):
            last = pc.max(batch[column]).as_py()
            if last is not None:
                self._latest = last if self._latest is None else max(self._latest, last)
        numbers = self._ticks(batch)
        there = numbers != NONE
        kept = batch.filter(pa.array(there))
        self._note_misfit(kept, numbers[there])
        self._kept.append(kept.select([f"c{i}" for i in range(len(self._columns))]))
        self._numbers.append(numbers[there])

    def done(self) -> Here:
        """All of it; what is missing or does not fit is refused now."""
        file = self._arrived.file
        if self._arrived.found.form.declared:
            require_columns(file, self._columns, list(self._names))
        if self._misfit is not None:
            tick, place, number, row, problem = self._misfit
            column = list(self._columns)[place]
            refuse_misfit(self._arrived, tick, problem, (self._files[number], row, column))
        types = [pa.field(f"c{i}", arrow_type(t)) for i, t in enumerate(self._columns.values())]
        numbers = np.concatenate(self._numbers)
        table = pa.Table.from_batches(self._kept, pa.schema(types))
        parts: list[Any] = [column.combine_chunks() for column in table.columns]
        item = self._arrived.item
        items: Any = parts[0] if parts else None
        if isinstance(item, Row | Tuple):
            wanted: Any = arrow_type(item)
            fields = [wanted.field(i) for i in range(wanted.num_fields)]
            items = pa.StructArray.from_arrays(parts, fields=fields) if parts else None
        if items is None:
            items = pa.array([{}] * len(numbers), pa.struct([]))
        return Here(items, numbers, self._latest)

    def _refuse_unread(self, batch: pa.RecordBatch) -> None:
        stages = batch[STAGE].drop_null()
        if not len(stages):
            return
        for stage, problem, cure in zip(
            *(batch[column].to_pylist() for column in (STAGE, PROBLEM, CURE)), strict=True
        ):
            if stage == Stage.FILE.value:
                raise input_error(problem, cure)
            if stage == Stage.TICK.value:
                refuse_untold(self._arrived.file, problem)

    def _ticks(self, batch: pa.RecordBatch) -> Numbers:
        rows = batch.num_rows
        if self._axis is None:
            return np.zeros(rows, np.int64)
        if batch[MOMENT].null_count < rows:
            return self._axis.of_moments(batch[MOMENT])
        return self._axis.numbers(batch[NUMBER])

    def _note_misfit(self, batch: pa.RecordBatch, numbers: Numbers) -> None:
        if batch[STAGE].null_count == batch.num_rows:
            return
        columns = [batch[c].to_pylist() for c in (STAGE, PLACE, FILE, ROW, PROBLEM)]
        for tick, (stage, *found) in zip(numbers.tolist(), zip(*columns, strict=True), strict=True):
            if stage == Stage.VALUE.value:
                new = (tick, *found)
                if self._misfit is None or new < self._misfit:
                    self._misfit = new
