"""Wrong rows among those that are read: they say what is wrong with them, and are of some tick.

A row whose tick column tells nothing is of the tick of the row before it in its file that does;
where there is none, of that after it; in a file of which no row tells a tick, of the first one. So
it depends on nothing but the file which tick a wrong row is of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.files.row_batch import MOMENT, NUMBER, RowBatch
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.tick_range import Numbers, TickRange
from hydro_core.types.item import PLACE, REASON, ROW


@dataclass(frozen=True, slots=True)
class TolerantRows:
    """The rows of a piece of a file, where they begin in it, and what is wrong with some."""

    file: DataPlace
    begin: int
    piece: RowBatch
    reasons: Mapping[int, tuple[str | None, str]]
    """By the row: the column, None where the row as a whole is none, and what is wrong."""

    def columns(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Array[Any]]]:
        """The columns that say what is wrong, as far as they are among some, with their places."""
        texts: Mapping[str, Callable[[int], str]] = {
            REASON: self._reason,
            PLACE: self._place,
            ROW: self._text,
        }
        for place, name in enumerate(names):
            if name in texts:
                told = texts[name]
                rows = range(len(self.piece))
                values = [told(row) if row in self.reasons else None for row in rows]
                yield place, pa.array(values, pa.string())

    def _reason(self, row: int) -> str:
        column, problem = self.reasons[row]
        reason = problem if column is None else f"column `{column}`: {problem}"
        # A key in JSON may hold half a surrogate pair, which is no text.
        return reason.encode("utf-8", "backslashreplace").decode()

    def _place(self, row: int) -> str:
        lines = self.piece.lines
        at = f"row {self.begin + row}" if lines is None else f"line {lines[row].number}"
        return f"{self.file.name}, {at}"

    def _text(self, row: int) -> str:
        if self.piece.lines is None:
            return self.piece.text(row)
        return self.piece.lines[row].text


def whole_number(value: Any) -> Any:
    """The number that a text of a CSV file is, if it is a whole one; else the value itself."""
    is_number = isinstance(value, str) and value.strip().lstrip("-").isdecimal()
    return int(value) if is_number else value


def first_if_without_tick(batch: pa.RecordBatch, ticks: Numbers, axis: TickRange) -> Numbers:
    """The ticks of rows, of which those of files that tell none are of the first."""
    if axis.first > 0:
        return ticks
    first: Numbers = np.where(_tells_tick(batch), ticks, 0)
    return first


def of_some_tick(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a file, with the tick of others where they tell none, if any row tells one."""
    last: TickOrMoment | None = None
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        told = np.flatnonzero(_tells_tick(batch))
        if len(told):
            first, final = (
                (batch[NUMBER][row], batch[MOMENT][row]) for row in told[[0, -1]].tolist()
            )
            yield from (_all_of(before, first) for before in waiting)
            waiting.clear()
            yield _filled(batch, told, last)
            last = final
        elif last is None:
            waiting.append(batch)
        else:
            yield _all_of(batch, last)
    yield from waiting


TickOrMoment = tuple[Any, Any]
"""The number and the moment that a row tells."""


def _tells_tick(batch: pa.RecordBatch) -> Any:
    there: Any = pc.or_(batch[NUMBER].is_valid(), batch[MOMENT].is_valid())
    return there.to_numpy(zero_copy_only=False)


def _filled(batch: pa.RecordBatch, tellers: Any, last: TickOrMoment | None) -> pa.RecordBatch:
    if len(tellers) == batch.num_rows:
        return batch
    # Of each row the last before it that tells a tick; -1: there is none in the piece.
    before = np.searchsorted(tellers, np.arange(batch.num_rows), side="right") - 1
    head = pa.array(before < 0)
    source = pa.array(tellers[np.maximum(before, 0)])
    values: list[Any] = [batch[column].take(source) for column in (NUMBER, MOMENT)]
    if last is not None:
        values = [pc.if_else(head, *both) for both in zip(last, values, strict=True)]
    return _with_ticks(batch, values)


def _all_of(batch: pa.RecordBatch, tick: TickOrMoment) -> pa.RecordBatch:
    return _with_ticks(batch, [pa.repeat(value, batch.num_rows) for value in tick])


def _with_ticks(batch: pa.RecordBatch, values: Sequence[Any]) -> pa.RecordBatch:
    for column, value in zip((NUMBER, MOMENT), values, strict=True):
        batch = batch.set_column(batch.schema.get_field_index(column), column, value)
    return batch
