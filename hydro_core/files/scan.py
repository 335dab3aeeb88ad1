"""Scans: the files, ticks and columns of an input that are read, and their rows in this process.

Two execute a scan: this process by Arrow, and Spark (`hydro_core.spark.files.frames`). Both read
files by `rows_of_file`, and what only all rows tell is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.errors import DataError
from hydro_core.files.inputs import (
    NO_TICK,
    FileRow,
    InputFile,
    first_lacking,
    fits_whole,
    item_type_of,
    numbers_ticks,
    refuse,
    refuse_before_start,
    refuse_mixed,
    refuse_without_tick,
    require_columns,
    require_ticks,
)
from hydro_core.files.kinds import JSON_LINES
from hydro_core.files.places import FileSet, Survey, find
from hydro_core.files.row_batch import MOMENT, NUMBER, misfit
from hydro_core.files.rows import (
    CURE,
    FILE,
    NAMES,
    PLACE,
    PROBLEM,
    ROW,
    STAGE,
    Stage,
    WantedColumns,
    first_if_without_tick,
    rows_of_file,
)
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.every import TickLength
from hydro_core.ticks.tick import TickInput
from hydro_core.ticks.tick_range import NONE, Numbers, TickRange, micros
from hydro_core.types.arrow import arrow_type, from_arrow
from hydro_core.types.item import UNKNOWN, ItemType, Row, Tuple, declared_columns, required_columns
from hydro_core.types.values import UNFIT, print_moment

if TYPE_CHECKING:
    import pyarrow.dataset as ds


class Misfit(NamedTuple):
    """A value that is no item: its tick, its column and file by their numbers, its row there."""

    tick: int
    place: int
    file: int
    row: int
    problem: str


@dataclass(frozen=True, slots=True)
class Scan:
    """An input: what lies at its path, the type of its items, and the ticks that are read."""

    file: InputFile
    fileset: FileSet
    item: ItemType
    zone: str = "UTC"
    """That of dates, and of times that name none, in the tick column."""
    ticks: TickRange | None = None
    """Those whose rows are read; None: all rows, as of tick 0."""

    @property
    def columns(self) -> Mapping[str, ItemType]:
        """The columns that the items are made of."""
        return declared_columns(self.item) or {}

    @property
    def wanted(self) -> WantedColumns:
        """What is made of each row."""
        required = required_columns(self.item)
        return WantedColumns(self.columns, self.file.column, required, self.zone)

    @property
    def names(self) -> list[str]:
        """The columns that are read: those of its items, and the one that tells the ticks."""
        column = self.file.column
        return list(dict.fromkeys([*self.columns, *([column] if column else [])]))

    @property
    def tells_ticks(self) -> bool:
        column = self.file.column
        return column is None or numbers_ticks((self.fileset.types or {})[column])

    @property
    def is_exact(self) -> bool:
        """Whether casts make the items, and tell the ticks."""
        types = self.fileset.types or {}
        fit = (n in types and fits_whole(types[n], to) for n, to in self.columns.items())
        return all(fit) and self.tells_ticks

    def where(self, rows: ds.Dataset) -> ds.Expression | None:
        """What surely holds of the rows of the ticks; None: of all of them."""
        if self.ticks is None or self.file.column is None:
            return None
        return self.ticks.within(self.file.column, rows.schema.field(self.file.column).type)

    def numbers(self, rows: pa.Table | pa.RecordBatch) -> Numbers:
        """The ticks of rows."""
        if self.ticks is None or self.file.column is None:
            return np.zeros(rows.num_rows, np.int64)
        return self.ticks.numbers(rows[self.file.column])

    def refuse_misfit(self, found: Misfit, files: Sequence[DataPlace]) -> NoReturn:
        """Refuses a value that is no item; it is told by its file, its row there and its column."""
        told = misfit(found.problem, found.row, list(self.columns)[found.place])
        refuse(self.file, f"in tick {found.tick}, `{files[found.file].name}`: {told}", UNFIT)


def scans_of(
    files: Sequence[InputFile], declared: Mapping[str, ItemType], survey: Survey = map
) -> list[Scan]:
    """The inputs; what a program declares of them must be there. No row is made yet.

    Args:
        files: the inputs.
        declared: the types of their items, where a program declares them.
        survey: asks files for what only all of their rows tell.

    Raises:
        DataError: one is not there, cannot be read, or lacks a column (code `input`).
    """
    scans = []
    for file in files:
        of = declared.get(file.name, UNKNOWN)
        columns = declared_columns(of) or {}
        found = find(file, columns, survey)
        require_columns(file, columns, found.names, found.lacking)
        require_ticks(file, found.types)
        item = of if columns else item_type_of(found.types or {}, file.column)
        scans.append(Scan(file, found, item))
    return scans


LeastAndGreatest = tuple[Any, Any] | None
"""The least and the greatest of some values; None: there are none."""


@dataclass(slots=True)
class Findings:
    """What rows of a scan say together, besides their items, in whichever process they are read."""

    rows: int = 0
    numbers: LeastAndGreatest = None
    """The numbers of ticks that rows have."""
    moments: LeastAndGreatest = None
    """The times that rows have."""
    lacks_tick: bool = False
    """Whether a row has neither."""
    names: dict[int, dict[str, None]] = field(default_factory=dict)
    """By the number of a file that has rows, the columns of these."""
    unread: tuple[int, int, str, str] | None = None
    """Of the first file that cannot be read: its number, the row, the problem, and the help."""
    without_tick: tuple[int, int, str] | None = None
    """The first row whose tick column holds no tick: its file, its row there, and the problem."""
    too_early: tuple[int, int, int] | None = None
    """The first row with a negative number: its file, its row there, and the number."""

    def note(self, batch: pa.RecordBatch) -> None:
        """Adds rows, as `rows_of_file` gives them."""
        where = [batch[FILE], batch[ROW]]
        if batch[STAGE].null_count < batch.num_rows:
            columns = (*where, batch[PROBLEM], batch[CURE])
            each = zip(batch[STAGE].to_pylist(), *(c.to_pylist() for c in columns), strict=True)
            for stage, file, row, problem, help_ in each:
                if stage == Stage.FILE.value:
                    self.add(Findings(unread=(file, row, problem, help_)))
                elif stage == Stage.TICK.value:
                    self.add(Findings(without_tick=(file, row, problem)))
        of_ticks = sum(batch.num_rows - batch[column].null_count for column in (NUMBER, MOMENT))
        found = Findings(batch.num_rows, lacks_tick=of_ticks < batch.num_rows)
        found.numbers, found.moments = (_ends(batch[column]) for column in (NUMBER, MOMENT))
        if found.numbers is not None and found.numbers[0] < 0:
            at = int(np.flatnonzero(batch[NUMBER].fill_null(0).to_numpy() < 0)[0])
            file, row, number = (column[at].as_py() for column in (*where, batch[NUMBER]))
            found.too_early = file, row, number
        columns_of: Any = pa.table([batch[FILE], batch[NAMES]], ["file", "names"])
        for each in columns_of.drop_null().to_pylist():
            names = dict.fromkeys(each["names"].split("\n"))
            found.names.setdefault(each["file"], {}).update(names)
        self.add(found)

    def add(self, other: Findings) -> None:
        """Adds what other rows say."""
        self.rows += other.rows
        self.lacks_tick |= other.lacks_tick
        for file, names in other.names.items():
            self.names.setdefault(file, {}).update(names)
        self.numbers, self.moments = (
            (min(a[0], b[0]), max(a[1], b[1])) if a and b else a or b
            for a, b in ((self.numbers, other.numbers), (self.moments, other.moments))
        )
        self.unread = _first_of(self.unread, other.unread)
        self.without_tick = _first_of(self.without_tick, other.without_tick)
        self.too_early = _first_of(self.too_early, other.too_early)

    def refuse(self, scan: Scan, files: Sequence[DataPlace]) -> None:
        """Refuses files that cannot be read, missing columns, and rows that are of no tick.

        Args:
            scan: what was read.
            files: those that were read of it.

        Raises:
            DataError: what is wrong first (code `input`).
        """
        if self.unread is not None:
            raise DataError.of("input", self.unread[2], help=self.unread[3])
        if scan.fileset.form.declared and scan.fileset.kind == JSON_LINES:
            # Only the rows tell that a file lacks a column: none has the key.
            of_files = [(files[number], names) for number, names in sorted(self.names.items())]
            there = dict.fromkeys(name for _, names in of_files for name in names if name)
            lacking = first_lacking(scan.columns, of_files)
            require_columns(scan.file, scan.columns, list(there), lacking)
        if scan.file.column is None:
            return
        if self.without_tick is not None:
            refuse_without_tick(scan.file, self.without_tick[2])
        if self.lacks_tick and not scan.fileset.form.tolerant:
            refuse_without_tick(scan.file, NO_TICK)
        if self.numbers and self.moments:
            refuse_mixed(scan.file, scan.file)
        if self.too_early is not None:
            number, row, tick = self.too_early
            refuse_before_start(scan.file, FileRow(files[number], row), tick, None)


def _first_of(one: Any, other: Any) -> Any:
    return min(filter(None, (one, other)), default=None)


# Inputs cut into ticks: a column holds the tick's number, or a time that a length cuts into
# ticks.
#
# An input without such a column arrives whole at tick 0. Ticks without rows are ticks, too.


MAX_TICKS = 1_000_000
"""Ticks without rows run, too: one row of the year 9999 would make millions of them."""


@dataclass(frozen=True, slots=True)
class TickCut:
    """How many ticks there are, and their windows if a time tells them."""

    count: int
    calendar: Calendar | None

    @property
    def ticks(self) -> TickRange:
        return TickRange(0, self.count - 1, self.calendar)


class UncutRows(Protocol):
    """The rows of an input, wherever they are."""

    @property
    def scan(self) -> Scan:
        """The input."""

    @property
    def summary(self) -> Findings:
        """What its rows say together."""

    def misfit(self, cut: TickCut) -> Misfit | None:
        """The first value that is no item: of the earliest tick, column, file and row."""

    def refuse_before_start(self, start: datetime | None) -> NoReturn:
        """Names the first row that is before `start`, or has a negative number."""


def cut(inputs: Sequence[UncutRows], every: TickLength, start: datetime | None) -> TickCut:
    """Cuts the inputs into ticks.

    Raises:
        DataError: a row is of no tick or of one too far away, or a value is no item of its type
            (code `input`).
    """
    start = _start_of(inputs, every, start)
    calendar = None if start is None else Calendar(start, str(every))
    count = 1 + max((_last_tick(rows, calendar) for rows in inputs), default=-1)
    found = TickCut(count, calendar)
    misfits = [(rows.misfit(found), rows.scan) for rows in inputs]
    there = [(misfit, of) for misfit, of in misfits if misfit is not None]
    if there:
        # The first by tick, input, column and row.
        misfit, of = min(there, key=lambda each: each[0].tick)
        of.refuse_misfit(misfit, of.fileset.files)
    return found


def _start_of(
    inputs: Sequence[UncutRows], every: TickLength, start: datetime | None
) -> datetime | None:
    """When tick 0 begins, None where ticks are numbered; numbers and times do not go together."""
    times = {x.scan.file.name: x.scan.file for x in inputs if x.summary.moments}
    numbers = {x.scan.file.name: x.scan.file for x in inputs if x.summary.numbers}
    if times and numbers:
        refuse_mixed(_first(numbers), _first(times))
    if numbers and start is not None:
        message = "`--start` is a time, but the tick column holds numbers"
        refuse(_first(numbers), message, "leave `--start` out: ticks are numbered from 0")
    if times and start is None:
        return every.floor(min(x.summary.moments[0] for x in inputs if x.summary.moments))
    return start


def _first(files: Mapping[str, InputFile]) -> InputFile:
    return files[min(files)]


def _last_tick(rows: UncutRows, calendar: Calendar | None) -> int:
    """The number of the last tick of an input."""
    summary = rows.summary
    if rows.scan.file.column is None or not summary.rows:
        return 0 if summary.rows else -1
    if calendar is None:
        low, high = summary.numbers or (0, -1)
    else:
        ends = summary.moments or (calendar.origin, calendar.origin)
        low, high = map(calendar.tick_of, ends)
    if low < 0:
        rows.refuse_before_start(None if calendar is None else calendar.origin)
    if high >= MAX_TICKS:
        _refuse_far(rows.scan.file, high, calendar, summary.moments)
    return high


def _refuse_far(
    file: InputFile,
    tick: int,
    calendar: Calendar | None,
    moments: tuple[datetime, datetime] | None,
) -> NoReturn:
    """Refuses an input whose last row would make too many ticks."""
    most = f"more than {MAX_TICKS:,} ticks, as those without rows run, too"
    if calendar is None or moments is None:
        refuse(file, f"a row is of tick {tick}, which makes {most}", "mend the row")
    refuse(
        file,
        f"a row is of {print_moment(moments[1])}, which makes {most}: they begin at "
        f"{print_moment(calendar.origin)}, and each is {calendar.every} long",
        "mend the row, or let `--every` be longer",
    )


# The rows of an input that this process reads, piece by piece: those of some ticks, or all.
#
# Each value is read by itself, so text that is no number, say, is told of with its file and row.
# What is wrong with the rows of ticks that are not wanted is not looked at.


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
    table, numbers, _ = _read(scan, files)
    misfit = _first_misfit(table, numbers)
    if misfit is not None:
        scan.refuse_misfit(misfit, files)
    return ScannedRows(_items(scan, table), numbers)


@dataclass(frozen=True, slots=True)
class AllRows:
    """All rows of an input, before it is known how they are cut into ticks."""

    scan: Scan
    table: pa.Table
    summary: Findings

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
    table, _, findings = _read(scan, scan.fileset.files)
    return AllRows(scan, table, findings)


def tick_inputs(inputs: Sequence[AllRows], cut: TickCut) -> Iterator[TickInput]:
    """The ticks one after the other."""
    batches = {rows.scan.file.name: rows.batches(cut) for rows in inputs}
    for tick in range(cut.count):
        start, end = cut.calendar.times(tick, tick)[tick] if cut.calendar else (None, None)
        yield TickInput({name: batch(tick) for name, batch in batches.items()}, start, end)


def _read(scan: Scan, files: Sequence[DataPlace]) -> tuple[pa.Table, Numbers, Findings]:
    """The rows with what stands beside them, and their ticks; what is missing is refused."""
    findings, kept, numbers = Findings(), list[pa.RecordBatch](), [np.array([], np.int64)]
    ticks, form = scan.ticks, scan.fileset.form
    for number, file in enumerate(files):
        for batch in rows_of_file(file, number, form, scan.wanted):
            findings.note(batch)
            own = np.zeros(batch.num_rows, np.int64) if ticks is None else _ticks_of(batch, ticks)
            if ticks is not None and form.tolerant:
                own = first_if_without_tick(batch, own, ticks)
            there = own != NONE
            kept.append(batch.filter(pa.array(there)))
            numbers.append(own[there])
        if findings.unread is not None:
            break
    findings.refuse(scan, files)
    schema = pa.schema([(name, arrow_type(of)) for name, of in scan.wanted.made])
    return pa.Table.from_batches(kept, schema), np.concatenate(numbers), findings


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


def _ends(column: pa.Array[Any]) -> LeastAndGreatest:
    low, high = pc.min_max(column).values()
    return (low.as_py(), high.as_py()) if low.is_valid else None


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
