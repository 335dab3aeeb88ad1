"""Inputs as DataFrames of items with their ticks, and how many ticks there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.spark.files.arrived import Arrived, is_exact
from hydro_core.spark.files.axis import micros, step_of, window_of
from hydro_core.spark.files.places import FoundFiles, find
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
    input_error,
)
from hydro_core.spark.files.rows import WantedColumns as Made
from hydro_core.spark.files.workers import read_in_workers, survey
from hydro_core.spark.frames.paths import literal, quoted
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.frames.types import spark_type
from hydro_core.ticks.batches import (
    InputFile,
    TickColumn,
    item_type_of,
    refuse,
    refuse_early,
    refuse_untold,
    refuse_untyped,
    require_columns,
    start_of,
)
from hydro_core.ticks.every import Every
from hydro_core.ticks.landed import misfit
from hydro_core.types.columns import declared_columns, required_columns
from hydro_core.types.item import (
    DATE,
    TIMESTAMP_NTZ,
    UNKNOWN,
    Field,
    ItemType,
    Row,
    Tuple,
    is_integer,
)
from hydro_core.types.values import UNFIT, ValueProblem


def arrive(
    session: SparkSession, files: Sequence[InputFile], declared: Mapping[str, ItemType]
) -> list[Arrived]:
    """The inputs; what a program declares of them must be there. No row is made yet."""
    arrived = []
    for file in files:
        of = declared.get(file.name, UNKNOWN)
        columns = declared_columns(of) or {}
        found = find(file, columns, partial(survey, session))
        require_columns(file, columns, found.names)
        arrived.append(Arrived(file, found, of if columns else _item_type(file, found)))
    return arrived


def _item_type(file: InputFile, found: FoundFiles) -> ItemType:
    try:
        return item_type_of(found.types or {}, file.column)
    except ValueProblem as problem:
        refuse_untyped(file, str(problem))


@dataclass(frozen=True, slots=True)
class InputSummary:
    """What is known of the rows of an input when all of them have been seen once."""

    rows: int
    numbers: tuple[int, int] | None
    moments: tuple[datetime, datetime] | None


@dataclass(frozen=True, slots=True)
class InputRows:
    """The rows of an input: columns `c0 …` of the items, `number` and `moment` of the ticks."""

    arrived: Arrived
    frame: DataFrame
    summary: InputSummary
    checked: bool
    """Whether problems stand beside the rows."""

    def items(self, cut: FrameCut) -> DataFrame:
        """The items with their ticks: (item, t)."""
        columns = declared_columns(self.arrived.item) or {}
        item = item_of(self.arrived.item, columns)
        tick = cut.tick() if self.arrived.file.column else F.lit(0)
        return self.frame.select(item, tick.cast("long").alias(TICK))

    def release(self) -> None:
        """Forgets what was kept of them."""
        if self.checked:
            self.frame.unpersist()


def rows_of(session: SparkSession, arrived: Arrived) -> InputRows:
    """Sees all rows once: counts them, and refuses what is wrong with them."""
    columns = declared_columns(arrived.item) or {}
    native = arrived.found.native
    if native is not None and is_exact(arrived, columns):
        frame = _native(native(session), arrived, columns)
        # Where there are nulls that may not be, the workers tell their rows.
        if not _has_nulls(arrived, frame):
            return InputRows(arrived, frame, _summary(arrived, frame), checked=False)
    made = Made(columns, arrived.file.column, required_columns(arrived.item))
    frame = read_in_workers(session, arrived.found.files, arrived.found.form, made)
    # Parsed once, and then as often read as there are jobs.
    frame = frame.persist(StorageLevel.DISK_ONLY)
    try:
        refuse_unread(arrived, frame, columns)
        return InputRows(arrived, frame, _summary(arrived, frame), checked=True)
    except BaseException:
        frame.unpersist()
        raise


def _has_nulls(arrived: Arrived, frame: DataFrame) -> bool:
    """Whether there is a null in a column that the program declares `not null`."""
    fields = arrived.item.fields if isinstance(arrived.item, Row) else ()
    tests = [test for i, field in enumerate(fields) for test in _nulls(F.col(f"c{i}"), field)]
    return bool(tests) and not frame.filter(reduce(lambda a, b: a | b, tests)).isEmpty()


def _nulls(column: Column, field: Field) -> Iterator[Column]:
    """Tests of nulls that may not be, in columns within columns too."""
    if not field.nullable:
        yield column.isNull()
    if isinstance(field.type, Row):
        for inner in field.type.fields:
            tests = _nulls(column.getField(inner.name), inner)
            yield from (column.isNotNull() & test for test in tests)


def _native(
    native: DataFrame, arrived: Arrived, columns: Mapping[str, ItemType], *beside: Column
) -> DataFrame:
    items = [
        F.col(quoted(name)).cast(spark_type(to)).alias(f"c{i}")
        for i, (name, to) in enumerate(columns.items())
    ]
    number, moment = tick_columns(arrived)
    return native.select(*items, number.alias(NUMBER), moment.alias(MOMENT), *beside)


def tick_columns(arrived: Arrived, zone: str = "UTC") -> tuple[Column, Column]:
    """The number of a row's tick and the moment in UTC that its tick column holds, one of them.

    Args:
        arrived: the input, whose tick column is exact.
        zone: that of dates, and of times that name none.
    """
    nothing, column = F.lit(None), arrived.file.column
    if column is None:
        return nothing.cast("long"), nothing.cast("timestamp")
    value, of = F.col(quoted(column)), (arrived.found.types or {})[column]
    if is_integer(of):
        return value.cast("long"), nothing.cast("timestamp")
    moment = value.cast("timestamp")
    is_wall = zone != "UTC" and of in (DATE, TIMESTAMP_NTZ)
    return nothing.cast("long"), F.to_utc_timestamp(moment, zone) if is_wall else moment


def item_of(item: ItemType, columns: Iterable[str]) -> Column:
    """The item that the columns `c0 c1 …` make, by the names of its own columns."""
    made = [F.col(f"c{i}").alias(name) for i, name in enumerate(columns)]
    whole = F.struct(*made) if isinstance(item, Row | Tuple) else F.col("c0")
    return whole.cast(spark_type(item)).alias(ITEM)


def first_misfit(rows: DataFrame, tick: Column) -> Any:
    """Of the values that are no items the first by tick, column, file and row; None: all fit.

    It is a row `at`, with these four, and the problem.
    """
    order = F.struct(tick.cast("long").alias(TICK), PLACE, FILE, ROW)
    wrong = rows.where(F.col(STAGE) == Stage.VALUE.value)
    return wrong.agg(F.min_by(F.struct(order.alias("at"), PROBLEM), order)).collect()[0][0]


def refuse_unread(arrived: Arrived, frame: DataFrame, columns: Mapping[str, ItemType]) -> None:
    """Refuses files that cannot be read, columns that are missing, rows that are of no tick."""
    place = F.struct(FILE, ROW)
    said = F.struct(PROBLEM, CURE)
    stages = [
        F.min_by(F.when(F.col(STAGE) == stage, said), F.when(F.col(STAGE) == stage, place))
        for stage in (Stage.FILE.value, Stage.TICK.value)
    ]
    named = F.sort_array(
        F.collect_list(F.when(F.col(NAMES).isNotNull(), F.struct(FILE, ROW, NAMES)))
    )
    unread, untold, names = frame.agg(*stages, named).collect()[0]
    if unread is not None:
        raise input_error(unread[PROBLEM], unread[CURE])
    there = dict.fromkeys(name for each in names for name in each[NAMES].split("\n"))
    require_columns(arrived.file, columns if arrived.found.form.declared else (), list(there))
    if untold is not None:
        refuse_untold(arrived.file, untold[PROBLEM])


def _summary(arrived: Arrived, frame: DataFrame) -> InputSummary:
    extremes = [f(c) for c in (NUMBER, MOMENT) for f in (F.min, F.max)]
    untold = F.count_if(F.col(NUMBER).isNull() & F.col(MOMENT).isNull())
    found = frame.agg(F.count(F.lit(1)), untold, *_as_longs(extremes)).collect()[0]
    rows, nulls, low, high, first, last = found
    if nulls and arrived.file.column is not None:
        refuse_untold(arrived.file, "a row has no tick: it is null")
    numbers = None if low is None else (low, high)
    moments = None if first is None else (_moment(first), _moment(last))
    return InputSummary(rows, numbers, moments)


def _as_longs(extremes: Sequence[Column]) -> list[Column]:
    low, high, first, last = extremes
    return [low, high, F.unix_micros(first), F.unix_micros(last)]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


@dataclass(frozen=True, slots=True)
class FrameCut:
    """How many ticks there are, and which one a row is of."""

    count: int
    every: Every
    start: datetime | None

    def tick(self) -> Column:
        """The tick of a row, of its `number` or `moment`."""
        if self.start is None:
            return F.col(NUMBER)
        if self.every.unit != "mo":
            length = micros(self.every.start_of(1, _EPOCH))
            return step_of(F.col(MOMENT), micros(self.start), length)
        starts = [self.every.start_of(t, self.start) for t in range(self.count + 1)]
        return window_of(F.col(MOMENT), starts)

    def times(self, first: int, last: int) -> dict[int, tuple[datetime, datetime]]:
        """Start and end of ticks, where they have any."""
        if self.start is None:
            return {}
        begin = self.every.start_of
        ticks = range(first, last + 1)
        return {t: (begin(t, self.start), begin(t + 1, self.start)) for t in ticks}


def cut(inputs: Sequence[InputRows], every: Every, start: datetime | None) -> FrameCut:
    """Cuts the inputs into ticks; refuses rows that are of none, and values that are no items."""
    columns = [
        TickColumn(
            rows.arrived.file,
            rows.summary.numbers is not None,
            rows.summary.moments[0] if rows.summary.moments else None,
        )
        for rows in inputs
    ]
    start = start_of(columns, every, start)
    last = -1
    for rows in inputs:
        last = max(last, _last_tick(rows, every, start))
    found = FrameCut(last + 1, every, start)
    _refuse_misfits([rows for rows in inputs if rows.checked], found)
    return found


def _last_tick(rows: InputRows, every: Every, start: datetime | None) -> int:
    """The number of the last tick of an input."""
    summary = rows.summary
    if rows.arrived.file.column is None or not summary.rows:
        return 0 if summary.rows else -1
    if start is None:
        low, high = summary.numbers or (0, -1)
    else:
        first, latest = summary.moments or (start, start)
        low, high = every.tick_of(first, start), every.tick_of(latest, start)
    if low < 0:
        _refuse_first_early(rows, start)
    return high


def _refuse_first_early(rows: InputRows, start: datetime | None) -> None:
    """Names the first row that is of no tick, as the files have them."""
    value = F.col(NUMBER) if start is None else F.unix_micros(F.col(MOMENT))
    frame, arrived = rows.frame, rows.arrived
    if not rows.checked and arrived.found.native is not None:
        numbers = F.create_map(*(F.lit(x) for pair in _file_numbers(arrived).items() for x in pair))
        place = F.coalesce(numbers[F.col("_metadata.file_path")], F.lit(0)).alias(FILE)
        row = F.col("_metadata.row_index").alias(ROW)
        files = [literal(file) for file in arrived.found.files]
        base = str(Path(arrived.found.form.base).absolute())
        # Also of a Delta table: which row of which file it is, only the files tell.
        whole = frame.sparkSession.read.option("basePath", base).parquet(*files)
        frame = _native(whole, arrived, {}, place, row)
    counts = dict(map(tuple, frame.groupBy(FILE).count().collect()))
    bound = 0 if start is None else micros(start)
    earliest = frame.where(value < bound).orderBy(FILE, ROW).select(FILE, ROW, value).first()
    if earliest is None:
        raise ValueError("there is an early row")
    at = sum(c for n, c in counts.items() if n < earliest[0]) + earliest[1]
    refuse_early(arrived.file, at, earliest[2] if start is None else _moment(earliest[2]), start)


def _file_numbers(arrived: Arrived) -> dict[str, int]:
    """The numbers of files by the names that Spark gives them."""
    uris = (path.absolute().as_uri() for path in arrived.found.files)
    return {uri.replace("file://", "file:", 1): n for n, uri in enumerate(uris)}


def _refuse_misfits(inputs: Sequence[InputRows], found: FrameCut) -> None:
    """Refuses the first value that is no item: of the earliest tick, input, column and row."""
    first: tuple[int, int, Any] | None = None
    for position, rows in enumerate(inputs):
        tick = found.tick() if rows.arrived.file.column else F.lit(0)
        told = first_misfit(rows.frame, tick)
        if told is not None and (first is None or (told["at"][TICK], position) < first[:2]):
            first = (told["at"][TICK], position, told)
    if first is None:
        return
    tick_number, position, told = first
    rows, at = inputs[position], told["at"]
    before = rows.frame.where(F.col(FILE) < at[FILE]).count()
    column = list(declared_columns(rows.arrived.item) or {})[at[PLACE]]
    problem = misfit(told[PROBLEM], before + at[ROW], column)
    refuse(rows.arrived.file, f"in tick {tick_number}, {problem}", UNFIT)
