"""The rows of an input that this process reads, piece by piece: those of some ticks, or all.

Each value is read by itself, so text that is no number, say, is told of with its file and row. What
is wrong with the rows of ticks that are not wanted is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.files.arrived import Arrived, require_read
from hydro_core.files.cut import Cut, InputSummary, Misfit
from hydro_core.files.inputs import (
    NO_TICK,
    FileRow,
    refuse_early,
    refuse_misfit,
    refuse_mixed,
    refuse_without_tick,
)
from hydro_core.files.rows import (
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
from hydro_core.files.tolerant import first_if_without_tick
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.tick import TickInput
from hydro_core.ticks.tick_range import NONE, Numbers, TickRange, micros
from hydro_core.types.arrow import arrow_type, from_arrow
from hydro_core.types.columns import required_columns
from hydro_core.types.item import Row, Tuple


@dataclass(frozen=True, slots=True)
class Here:
    """Rows that this process has read: items and their ticks."""

    items: pa.Array[Any]
    numbers: Numbers


def read_here(
    arrived: Arrived, made: WantedColumns, axis: TickRange | None, files: Sequence[DataPlace]
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
    table, numbers = _read(arrived, made, axis, files)
    misfit = _first_misfit(table, numbers)
    if misfit is not None:
        place = FileRow(files[misfit.file], misfit.row)
        column = list(made.columns)[misfit.place]
        refuse_misfit(arrived.file, misfit.tick, misfit.problem, place, column)
    return Here(_items(arrived, table), numbers)


@dataclass(frozen=True, slots=True)
class AllRows:
    """All rows of an input, before it is known how they are cut into ticks."""

    arrived: Arrived
    table: pa.Table

    @property
    def summary(self) -> InputSummary:
        """What is known of them."""
        numbers, moments = (_extremes(self.table[column]) for column in (NUMBER, MOMENT))
        return InputSummary(self.table.num_rows, numbers, moments)

    def misfit(self, cut: Cut) -> Misfit | None:
        """The first value that is no item."""
        return _first_misfit(self.table, self._ticks(cut))

    def refuse_early(self, start: datetime | None) -> NoReturn:
        """Names the first row that is of no tick, as the files have them."""
        column, bound = (NUMBER, 0) if start is None else (MOMENT, micros(start))
        values = self.table[column].cast(pa.int64()).to_numpy()
        row = self.table.slice(int(np.flatnonzero(values < bound)[0]), 1).to_pylist()[0]
        place = FileRow(self.arrived.found.files[row[FILE]], row[ROW])
        refuse_early(self.arrived.file, place, row[column], start)

    def batches(self, cut: Cut) -> Callable[[int], list[Any]]:
        """Gives the items of a tick, in the order of the files; they are made when asked for."""
        items, numbers = _items(self.arrived, self.table), self._ticks(cut)
        order = np.argsort(numbers, kind="stable")
        begins = np.searchsorted(numbers[order], np.arange(cut.count + 1))

        def batch(tick: int) -> list[Any]:
            places = order[begins[tick] : begins[tick + 1]]
            return from_arrow(items.take(places), self.arrived.item)

        return batch

    def _ticks(self, cut: Cut) -> Numbers:
        if self.arrived.file.column is None:
            return np.zeros(self.table.num_rows, np.int64)
        return _ticks_of(self.table, cut.ticks)


def read_all(arrived: Arrived) -> AllRows:
    """All rows of an input.

    Raises:
        DataError: a file cannot be read, or a row tells no tick (code `input`).
    """
    made = WantedColumns(arrived.columns, arrived.file.column, required_columns(arrived.item))
    table, _ = _read(arrived, made, None, arrived.found.files)
    return AllRows(arrived, table)


def tick_inputs(inputs: Sequence[AllRows], cut: Cut) -> Iterator[TickInput]:
    """The ticks one after the other."""
    batches = {rows.arrived.file.name: rows.batches(cut) for rows in inputs}
    for tick in range(cut.count):
        start, end = cut.calendar.times(tick, tick)[tick] if cut.calendar else (None, None)
        yield TickInput({name: batch(tick) for name, batch in batches.items()}, start, end)


def _read(
    arrived: Arrived, made: WantedColumns, axis: TickRange | None, files: Sequence[DataPlace]
) -> tuple[pa.Table, Numbers]:
    """The rows with what stands beside them, and their ticks."""
    reading = _Reading(arrived, made, axis, files)
    for number, file in enumerate(files):
        for batch in rows_of_file(file, number, arrived.found.form, made):
            reading.add(batch)
    return reading.done()


class _Reading:
    """What has been read so far."""

    def __init__(
        self,
        arrived: Arrived,
        made: WantedColumns,
        axis: TickRange | None,
        files: Sequence[DataPlace],
    ) -> None:
        self._arrived, self._made, self._axis = arrived, made, axis
        self._kept: list[pa.RecordBatch] = []
        self._numbers: list[Numbers] = [np.array([], np.int64)]
        self._names: dict[DataPlace, dict[str, None]] = {}
        self._told: set[str] = set()
        self._without_tick: str | None = None
        self._too_early: tuple[int, int, int] | None = None
        self._files = files

    def add(self, batch: pa.RecordBatch) -> None:
        """The rows of a piece."""
        self._note_unread(batch)
        for names in batch[NAMES].drop_null().to_pylist():
            of_file = self._names.setdefault(self._files[batch[FILE][0].as_py()], {})
            of_file |= dict.fromkeys(str(names).split("\n"))
        if self._axis is None:
            numbers = np.zeros(batch.num_rows, np.int64)
        else:
            numbers = _ticks_of(batch, self._axis)
            if self._arrived.found.form.tolerant:
                numbers = first_if_without_tick(batch, numbers, self._axis, (NUMBER, MOMENT))
        there = numbers != NONE
        self._kept.append(batch.filter(pa.array(there)))
        self._numbers.append(numbers[there])

    def done(self) -> tuple[pa.Table, Numbers]:
        """All of it with the ticks of the rows; what is missing is refused now."""
        file = self._arrived.file
        if self._arrived.found.form.declared:
            require_read(self._arrived, self._made.columns, self._names)
        if self._without_tick is not None:
            refuse_without_tick(file, self._without_tick)
        if len(self._told) > 1:
            refuse_mixed(file, file)
        if self._too_early is not None:
            number, row, tick = self._too_early
            refuse_early(file, FileRow(self._files[number], row), tick, None)
        schema = pa.schema([(name, arrow_type(of)) for name, of in self._made.made])
        return pa.Table.from_batches(self._kept, schema), np.concatenate(self._numbers)

    def _note_unread(self, batch: pa.RecordBatch) -> None:
        stages = batch[STAGE].drop_null()
        if len(stages):
            for stage, problem, cure in zip(
                *(batch[column].to_pylist() for column in (STAGE, PROBLEM, CURE)), strict=True
            ):
                if stage == Stage.FILE.value:
                    raise input_error(problem, cure)
                if stage == Stage.TICK.value:
                    self._without_tick = self._without_tick or problem
        if self._made.tick is not None:
            there = {c: batch.num_rows - batch[c].null_count for c in (NUMBER, MOMENT)}
            self._told |= {column for column, count in there.items() if count}
            if sum(there.values()) < batch.num_rows and not self._arrived.found.form.tolerant:
                self._without_tick = self._without_tick or NO_TICK
            numbers = batch[NUMBER].fill_null(0).to_numpy()
            for place in np.flatnonzero(numbers < 0)[:1]:
                row = [batch[column][int(place)].as_py() for column in (FILE, ROW, NUMBER)]
                self._too_early = self._too_early or (row[0], row[1], row[2])


def _ticks_of(rows: pa.RecordBatch | pa.Table, ticks: TickRange) -> Numbers:
    numbers: Any = rows[NUMBER]
    moments: Any = rows[MOMENT]
    if isinstance(rows, pa.Table):
        numbers, moments = numbers.combine_chunks(), moments.combine_chunks()
    if moments.null_count < rows.num_rows:
        return ticks.of_moments(moments)
    return ticks.numbers(numbers)


def _first_misfit(rows: pa.Table, ticks: Numbers) -> Misfit | None:
    """Of the values that are no items the first by tick, column, file and row."""
    column: Any = rows[STAGE]
    stages: Any = column.fill_null(NONE)
    places = np.flatnonzero(stages.to_numpy() == Stage.VALUE.value)
    part = rows.select([PLACE, FILE, ROW, PROBLEM]).take(places)
    found = zip(ticks[places].tolist(), *(c.to_pylist() for c in part.columns), strict=True)
    return min((Misfit(*each) for each in found), default=None)


def _extremes(column: pa.ChunkedArray[Any]) -> tuple[Any, Any] | None:
    low, high = pc.min_max(column).values()
    return None if not low.is_valid else (low.as_py(), high.as_py())


def _items(arrived: Arrived, rows: pa.Table) -> pa.Array[Any]:
    """The items that the columns `c0 c1 …` make."""
    item = arrived.item
    parts: list[Any] = [rows[f"c{i}"].combine_chunks() for i in range(len(arrived.columns))]
    wanted: Any = arrow_type(item)
    items: Any = parts[0] if parts else pa.array([{}] * rows.num_rows, wanted)
    if parts and isinstance(item, Row | Tuple):
        fields = [wanted.field(i) for i in range(wanted.num_fields)]
        items = pa.StructArray.from_arrays(parts, fields=fields)
    return items  # type: ignore[no-any-return]
