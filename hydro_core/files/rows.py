"""Rows of a file as items in Arrow, with the contents of their tick column, batch by batch.

A problem of a row does not end the reading but stands beside the row, so that the error that is
reported is that of the earliest row, however the work is shared out. Neither this process nor a
worker of Spark needs a session for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.errors import DataError
from hydro_core.files.inputs import demands, fits_whole
from hydro_core.files.pieces import pieces
from hydro_core.files.row_batch import MOMENT, NUMBER, ArrowRows, FileForm, RowBatch, item_type
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.tick_range import Numbers, TickRange, moment_of
from hydro_core.types.arrow import arrow_type, to_arrow
from hydro_core.types.item import (
    FLOATS,
    LONG,
    STRING,
    TIMESTAMP,
    WRONG,
    Array,
    Decimal,
    ItemType,
    Required,
    Row,
    Tuple,
    is_integer,
)
from hydro_core.types.values import LONG_MAX, LONG_MIN, NOT_NULL, ValueProblem

# Wrong rows among those that are read: they say what is wrong with them, and are of some tick.
#
# A row whose tick column tells nothing is of the tick of the row before it in its file that does;
# where there is none, of that after it; in a file of which no row tells a tick, of the first one.
# So it depends on nothing but the file which tick a wrong row is of.


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
        texts = dict(zip(WRONG, (self._reason, self._place, self._text), strict=True))
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


FILE, ROW = "file", "row"
STAGE, PLACE, PROBLEM, CURE, NAMES = "stage", "place", "problem", "cure", "names"

BESIDE: tuple[tuple[str, ItemType], ...] = (
    (NUMBER, LONG),
    (MOMENT, TIMESTAMP),
    (FILE, LONG),
    (ROW, LONG),
    (STAGE, LONG),
    (PLACE, LONG),
    (PROBLEM, STRING),
    (CURE, STRING),
    (NAMES, STRING),
)
"""What stands beside the columns `c0 c1 …` of the items, none of which must hold anything."""


class Stage(IntEnum):
    """When a problem is found by who reads all files first, then cuts ticks, then makes items."""

    FILE = 0
    TICK = 1
    VALUE = 2


@dataclass(frozen=True, slots=True)
class WantedColumns:
    """What is made of each row: the columns of an item, and what the tick column holds."""

    columns: Mapping[str, ItemType]
    tick: str | None
    required: Required
    zone: str = "UTC"
    """That of dates, and of times that name none, in the tick column."""

    @property
    def made(self) -> tuple[tuple[str, ItemType], ...]:
        """The columns of what is made, with their types."""
        items = ((f"c{i}", t) for i, t in enumerate(self.columns.values()))
        return (*items, *BESIDE)


def _nulls(rows: int, of: pa.DataType) -> pa.Array[Any]:
    found: Any = pa.array([None] * rows, of)
    return found  # type: ignore[no-any-return]


def rows_of_file(
    path: DataPlace, number: int, form: FileForm, wanted: WantedColumns
) -> Iterator[pa.RecordBatch]:
    """The rows of a file, which is the one with this number: `c0 …` and what stands beside them.

    Where wrong rows are read, too, they say so in columns of theirs, and nothing stands beside.
    """
    found = _FileRows(path, number, form, wanted).batches()
    yield from of_some_tick(found) if form.tolerant and wanted.tick else found


_Problems = dict[int, tuple[Stage, int, str]]
"""What is wrong, by the rows: when and in which column it is found, and what; of each row what is
found first.
"""
_WHOLE = -1
"""The place of what is wrong with a row as a whole."""


@dataclass(frozen=True, slots=True)
class _FileRows:
    """The rows of one file, as they are made."""

    path: DataPlace
    number: int
    form: FileForm
    wanted: WantedColumns

    def batches(self) -> Iterator[pa.RecordBatch]:
        seen = dict[str, None]()
        at = 0
        try:
            # Of a file without rows, it is known before what columns it has.
            for piece in filter(len, pieces(self.path, self.form)):
                new = [name for name in piece.names if name not in seen]
                seen.update(dict.fromkeys(new))
                # Also of a file whose rows have no columns: what it lacks is told.
                is_read = len(piece.wrong) < len(piece)
                names = "\n".join(new) if new or (is_read and not at) else None
                yield self._made(piece, at, names)
                at += len(piece)
        except DataError as error:
            told = error.diagnostics[0]
            # A row that is none says why the file cannot be read.
            problem = {0: (Stage.FILE, 0, told.message)}
            nothing = [_nulls(1, arrow_type(of)) for of in self.wanted.columns.values()]
            yield self._batch(nothing, at, problem, {CURE: [told.help]})

    def _made(self, piece: RowBatch, begin: int, names: str | None) -> pa.RecordBatch:
        wanted = self.wanted
        problems = {row: (Stage.VALUE, _WHOLE, why) for row, why in piece.wrong.items()}
        ticks = self._ticks(piece, problems)

        def note(place: int, row: int, problem: str) -> None:
            problems.setdefault(row, (Stage.VALUE, place, problem))

        items = [
            column_of(piece, name, to, partial(note, place), required=name in wanted.required)
            for place, (name, to) in enumerate(wanted.columns.items())
        ]
        if self.form.tolerant:
            reasons = {
                r: (self._column(stage, at), why) for r, (stage, at, why) in problems.items()
            }
            found = TolerantRows(self.path, begin, piece, reasons)
            for place, column in found.columns(list(wanted.columns)):
                items[place] = column
            problems = {}
        beside = {**ticks, NAMES: [names, *[None] * (len(piece) - 1)]}
        return self._batch(items, begin, problems, beside)

    def _batch(
        self,
        items: Sequence[pa.Array[Any]],
        begin: int,
        problems: _Problems,
        beside: Mapping[str, Sequence[Any]],
    ) -> pa.RecordBatch:
        """Items, and what stands beside them: where they are, and what is wrong with them."""
        rows = len(next(iter(beside.values())))
        said: dict[str, Any] = {
            FILE: np.full(rows, self.number),
            ROW: range(begin, begin + rows),
            **beside,
        }
        if problems:
            each = [problems.get(row, (None, None, None)) for row in range(rows)]
            said |= zip((STAGE, PLACE, PROBLEM), zip(*each, strict=True), strict=True)
        nothing = [None] * rows
        columns = [pa.array(said.get(name, nothing), arrow_type(of)) for name, of in BESIDE]
        return pa.RecordBatch.from_arrays([*items, *columns], [n for n, _ in self.wanted.made])

    def _column(self, stage: Stage, place: int) -> str | None:
        """The column in which a problem was found."""
        if stage is Stage.TICK:
            return self.wanted.tick
        return None if place == _WHOLE else list(self.wanted.columns)[place]

    def _ticks(self, piece: RowBatch, problems: _Problems) -> Mapping[str, Sequence[Any]]:
        """The numbers and the times that the tick column holds; none of a piece without it."""
        column, tolerant = self.wanted.tick, self.form.tolerant
        if column is None or column not in piece.names:
            return {}
        values = piece.values(column)
        if tolerant and self.form.kind == "CSV":
            values = [whole_number(value) for value in values]
        found = [
            _moment(value, self.wanted.zone, row, problems) for row, value in enumerate(values)
        ]
        if tolerant:
            _refuse_odd(found, problems)
        numbers = [value if isinstance(value, int) else None for value in found]
        times = [None if isinstance(value, int) else value for value in found]
        return {NUMBER: numbers, MOMENT: times}


def _refuse_odd(found: list[Any], problems: _Problems) -> None:
    """Takes numbers away that tell no tick: those below 0, and those among moments."""
    moments = any(isinstance(value, datetime) for value in found)
    for row, value in enumerate(found):
        if isinstance(value, int) and (moments or value < 0):
            why = "is no time, as that of other rows is" if moments else "is before the first tick"
            problems.setdefault(row, (Stage.TICK, 0, f"{value} {why}"))
            found[row] = None


def _moment(value: Any, zone: str, row: int, problems: _Problems) -> Any:
    try:
        found = moment_of(value, zone)
        if isinstance(found, int) and not LONG_MIN <= found <= LONG_MAX:
            raise ValueProblem(f"{found} is beyond 64 bits")
    except ValueProblem as problem:
        problems.setdefault(row, (Stage.TICK, 0, str(problem)))
        return None
    return found


def column_of(
    piece: RowBatch,
    name: str,
    to: ItemType,
    problem: Callable[[int, str], object],
    *,
    required: bool,
) -> pa.Array[Any]:
    """A column of the items; `problem` is told of each value that does not fit, with its row."""
    if name not in piece.names:
        for row in range(len(piece) if required else 0):
            problem(row, NOT_NULL)
        return _nulls(len(piece), arrow_type(to))
    if isinstance(piece, ArrowRows):
        for row, why in piece.inexact.get(name, {}).items():
            problem(row, why)
        column = piece.table.column(name).combine_chunks()
        found = _cast(column, item_type(column.type), to)
        if found is not None and not (required and column.null_count) and not _lacks(column, to):
            return found
    read, items = piece.reading(name, to), []
    for row, value in enumerate(piece.values(name)):
        try:
            items.append(read(value))
            if required and items[-1] is None:
                problem(row, NOT_NULL)
        except ValueProblem as found:
            problem(row, str(found))
            items.append(None)
    return _text_checked(items, to, problem)


def _cast(column: pa.Array[Any], of: ItemType, to: ItemType) -> pa.Array[Any] | None:
    """The items that a cast makes of values; None: it does not, or not of each of them."""
    if fits_whole(of, to):
        return column.cast(arrow_type(to), safe=False)
    whole = is_integer(of) and (is_integer(to) or str(to) in FLOATS)
    if not whole and not (isinstance(of, Decimal) and isinstance(to, Decimal)):
        return None
    try:
        # Arrow loses no digit of a whole number, nor of a decimal that stays one.
        return column.cast(arrow_type(to))
    except pa.ArrowInvalid:
        return None


def _text_checked(
    items: list[Any], to: ItemType, problem: Callable[[int, str], object]
) -> pa.Array[Any]:
    """The items in Arrow, whose texts are UTF-8: JSON may hold a half of a surrogate pair."""
    try:
        return to_arrow(items, to)
    except UnicodeEncodeError:
        for row, item in enumerate(items):
            try:
                to_arrow([item], to)
            except UnicodeEncodeError:
                problem(row, f"{item!r} holds half a surrogate pair, which is no text")
                items[row] = None
        return to_arrow(items, to)


def _lacks(column: Any, of: ItemType) -> bool:
    """Whether there is a null in a column where its type has a field that is `not null`."""
    match of:
        case _ if not demands(of):
            return False
        case Row(fields):
            there = column.drop_null()
            return any(
                (not field.nullable and part.null_count) or _lacks(part, field.type)
                for field, part in zip(fields, there.flatten(), strict=True)
            )
        case Tuple(parts):
            return any(map(_lacks, column.drop_null().flatten(), parts))
        case Array(element):
            return _lacks(column.drop_null().flatten(), element)
        case _:
            return False
