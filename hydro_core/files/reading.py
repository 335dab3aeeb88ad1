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

from hydro_core.files.cut import InputSummary, TickCut
from hydro_core.files.inputs import NO_TICK, FileRow, refuse_before_start
from hydro_core.files.row_batch import MOMENT, NUMBER
from hydro_core.files.rows import (
    CURE,
    FILE,
    NAMES,
    PLACE,
    PROBLEM,
    ROW,
    STAGE,
    Stage,
    rows_of_file,
)
from hydro_core.files.scan import Findings, Misfit, Scan
from hydro_core.files.tolerant import first_if_without_tick
from hydro_core.files.unreadable import refuse
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.tick import TickInput
from hydro_core.ticks.tick_range import NONE, Numbers, TickRange, micros
from hydro_core.types.arrow import arrow_type, from_arrow
from hydro_core.types.item import Row, Tuple


@dataclass(frozen=True, slots=True)
class ScannedRows:
    """Rows that this process has read: items and their ticks."""

    items: pa.Array[Any]
    numbers: Numbers


def read(scan: Scan, files: Sequence[DataPlace]) -> ScannedRows:
    """The rows of some files of a scan that are of its ticks.

    Raises:
        DataError: a file cannot be read, or a row of the ticks does not fit (code `input`).
    """
    table, numbers = _read(scan, files)
    misfit = _first_misfit(table, numbers)
    if misfit is not None:
        scan.refuse_misfit(misfit, files)
    return ScannedRows(_items(scan, table), numbers)


@dataclass(frozen=True, slots=True)
class AllRows:
    """All rows of an input, before it is known how they are cut into ticks."""

    scan: Scan
    table: pa.Table

    @property
    def summary(self) -> InputSummary:
        """What is known of them."""
        numbers, moments = (_extremes(self.table[column]) for column in (NUMBER, MOMENT))
        return InputSummary(self.table.num_rows, numbers, moments)

    def misfit(self, cut: TickCut) -> Misfit | None:
        """The first value that is no item."""
        return _first_misfit(self.table, self._ticks(cut))

    def refuse_before_start(self, start: datetime | None) -> NoReturn:
        """Names the first row that is of no tick, as the files have them."""
        column, bound = (NUMBER, 0) if start is None else (MOMENT, micros(start))
        values = self.table[column].cast(pa.int64()).to_numpy()
        row = self.table.slice(int(np.flatnonzero(values < bound)[0]), 1).to_pylist()[0]
        place = FileRow(self.scan.fileset.files[row[FILE]], row[ROW])
        refuse_before_start(self.scan.file, place, row[column], start)

    def batches(self, cut: TickCut) -> Callable[[int], list[Any]]:
        """Gives the items of a tick, in the order of the files; they are made when asked for."""
        items, numbers = _items(self.scan, self.table), self._ticks(cut)
        order = np.argsort(numbers, kind="stable")
        begins = np.searchsorted(numbers[order], np.arange(cut.count + 1))

        def batch(tick: int) -> list[Any]:
            places = order[begins[tick] : begins[tick + 1]]
            return from_arrow(items.take(places), self.scan.item)

        return batch

    def _ticks(self, cut: TickCut) -> Numbers:
        if self.scan.file.column is None:
            return np.zeros(self.table.num_rows, np.int64)
        return _ticks_of(self.table, cut.ticks)


def read_all(scan: Scan) -> AllRows:
    """All rows of an input.

    Raises:
        DataError: a file cannot be read, or a row tells no tick (code `input`).
    """
    table, _ = _read(scan, scan.fileset.files)
    return AllRows(scan, table)


def tick_inputs(inputs: Sequence[AllRows], cut: TickCut) -> Iterator[TickInput]:
    """The ticks one after the other."""
    batches = {rows.scan.file.name: rows.batches(cut) for rows in inputs}
    for tick in range(cut.count):
        start, end = cut.calendar.times(tick, tick)[tick] if cut.calendar else (None, None)
        yield TickInput({name: batch(tick) for name, batch in batches.items()}, start, end)


def _read(scan: Scan, files: Sequence[DataPlace]) -> tuple[pa.Table, Numbers]:
    """The rows with what stands beside them, and their ticks; what is missing is refused."""
    findings, kept, numbers = Findings(), list[pa.RecordBatch](), [np.array([], np.int64)]
    ticks, form = scan.ticks, scan.fileset.form
    for number, file in enumerate(files):
        for batch in rows_of_file(file, number, form, scan.wanted):
            _note(findings, batch, tolerant=form.tolerant)
            for names in batch[NAMES].drop_null().to_pylist():
                findings.note(file, str(names).split("\n"))
            own = np.zeros(batch.num_rows, np.int64) if ticks is None else _ticks_of(batch, ticks)
            if ticks is not None and form.tolerant:
                own = first_if_without_tick(batch, own, ticks)
            there = own != NONE
            kept.append(batch.filter(pa.array(there)))
            numbers.append(own[there])
    findings.refuse(scan, files)
    schema = pa.schema([(name, arrow_type(of)) for name, of in scan.wanted.made])
    return pa.Table.from_batches(kept, schema), np.concatenate(numbers)


def _note(found: Findings, batch: pa.RecordBatch, *, tolerant: bool) -> None:
    """Adds what the rows of a piece tell; raises at one of a file that cannot be read."""
    if batch[STAGE].null_count < batch.num_rows:
        for stage, problem, cure in zip(
            *(batch[column].to_pylist() for column in (STAGE, PROBLEM, CURE)), strict=True
        ):
            if stage == Stage.FILE.value:
                refuse(problem, cure)
            if stage == Stage.TICK.value:
                found.without_tick = found.without_tick or problem
    numbers, moments = (batch.num_rows - batch[c].null_count for c in (NUMBER, MOMENT))
    found.numbers |= bool(numbers)
    found.moments |= bool(moments)
    if numbers + moments < batch.num_rows and not tolerant:
        found.without_tick = found.without_tick or NO_TICK
    for place in np.flatnonzero(batch[NUMBER].fill_null(0).to_numpy() < 0)[:1]:
        row = [batch[column][int(place)].as_py() for column in (FILE, ROW, NUMBER)]
        found.too_early = found.too_early or (row[0], row[1], row[2])


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


def _items(scan: Scan, rows: pa.Table) -> pa.Array[Any]:
    """The items that the columns `c0 c1 …` make."""
    item = scan.item
    parts: list[Any] = [rows[f"c{i}"].combine_chunks() for i in range(len(scan.columns))]
    wanted: Any = arrow_type(item)
    items: Any = parts[0] if parts else pa.array([{}] * rows.num_rows, wanted)
    if parts and isinstance(item, Row | Tuple):
        fields = [wanted.field(i) for i in range(wanted.num_fields)]
        items = pa.StructArray.from_arrays(parts, fields=fields)
    return items  # type: ignore[no-any-return]
