"""Inputs as DataFrames of items with their ticks, read by Spark itself or by its workers.

Workers read CSV, JSON lines, and Parquet of types that Spark lacks, by `rows_of_file`: a file a
task, and a batch of it at a time.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, chdir, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from itertools import pairwise
from operator import or_
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from hydro_core.errors import DataError
from hydro_core.files.inputs import (
    FileRow,
    InputFile,
    demands,
    refuse_before_start,
)
from hydro_core.files.kinds import refuse
from hydro_core.files.places import FileSet
from hydro_core.files.row_batch import MOMENT, NUMBER, FileForm
from hydro_core.files.rows import (
    BESIDE,
    CURE,
    FILE,
    PLACE,
    PROBLEM,
    ROW,
    STAGE,
    Stage,
    WantedColumns,
    rows_of_file,
)
from hydro_core.files.scan import Findings, Misfit, Scan, TickCut, scans_of
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.parquet import spark_name, unpatterned, uri_of
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.frames.types import spark_type
from hydro_core.storage.remote import DataPlace, RemotePath
from hydro_core.ticks.tick_range import TickRange, micros
from hydro_core.types.item import (
    DATE,
    TIMESTAMP_NTZ,
    Array,
    Field,
    ItemType,
    Row,
    Tuple,
    is_integer,
)


def rows_in_workers(
    session: SparkSession, files: Sequence[DataPlace], form: FileForm, wanted: WantedColumns
) -> DataFrame:
    """The rows of the files: `c0 …` and what stands beside them."""
    here = Path.cwd()

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _where_asked(here, files):
            for number in _numbers(batches):
                yield from rows_of_file(files[number], number, form, wanted)

    return _tasks(session, len(files)).mapInArrow(rows, _schema(wanted))


def survey(
    session: SparkSession, found: Callable[[DataPlace], Any], files: Sequence[DataPlace]
) -> Iterator[Any]:
    """What `found` says of each file; the error of the first that raises one is raised."""
    here = Path.cwd()

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in _numbers(batches):
            said, problem, cure = None, None, None
            try:
                with _where_asked(here, files):
                    said = pickle.dumps(found(files[number]))
            except DataError as error:
                problem, cure = error.diagnostics[0].message, error.diagnostics[0].help
            columns: list[Any] = [pa.array([number]), pa.array([said], pa.binary())]
            columns += [pa.array([text], pa.string()) for text in (problem, cure)]
            yield pa.RecordBatch.from_arrays(columns, ["n", "said", PROBLEM, CURE])

    schema = f"n long, said binary, {PROBLEM} string, {CURE} string"
    for answer in _tasks(session, len(files)).mapInArrow(rows, schema).orderBy("n").collect():
        if answer[PROBLEM] is not None:
            refuse(answer[PROBLEM], answer[CURE])
        yield pickle.loads(bytes(answer["said"]))  # noqa: S301 - our own


def _where_asked(here: Path, files: Sequence[DataPlace]) -> AbstractContextManager[None]:
    """Within it a worker finds files by paths that are relative to where the command runs: it may
    have started elsewhere. On another machine, which reads a store, there is no such place.
    """
    return nullcontext() if all(isinstance(file, RemotePath) for file in files) else chdir(here)


def _schema(wanted: WantedColumns) -> spark.StructType:
    return spark.StructType([spark.StructField(name, spark_type(of)) for name, of in wanted.made])


_MOST_TASKS = 256


def _tasks(session: SparkSession, files: int) -> DataFrame:
    """The numbers of the files, a task each, or as few as keeps tasks from being many."""
    return session.range(0, files, 1, max(1, min(files, _MOST_TASKS)))


def _numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from (int(n or 0) for n in batch.column(0).to_pylist())


def tick_of(ticks: TickRange, number: Column, moment: Column) -> Column:
    """The tick of a row, by the number or the moment that its tick column holds."""
    feed = ticks.feed
    if feed is not None:
        known = feed.needed(ticks.ticks[0], ticks.ticks[-1])
        pairs = [(F.lit(other), F.lit(feed.arrives(other))) for other in known]
        own = F.create_map(*(one for pair in pairs for one in pair))[number]
        return own.cast("long")
    if ticks.calendar is None:
        return number
    return F.coalesce(number, _window_of(moment, ticks.starts) + F.lit(ticks.first))


def _window_of(moment: Column, starts: Sequence[datetime]) -> Column:
    """The number of the window that holds a moment, by where windows begin.

    It is negative or too large where none does.
    """
    begin = [micros(start) for start in starts]
    steps = {later - start for start, later in pairwise(begin)}
    if len(steps) == 1:
        return _step_of(moment, begin[0], steps.pop())
    passed = F.filter(F.array(*map(F.lit, begin)), lambda start: start <= F.unix_micros(moment))
    return (F.size(passed) - 1).cast("long")


def _step_of(moment: Column, start: int, step: int) -> Column:
    """The number of the window that holds a moment, where all are of one length in microseconds.

    It is exact, as a division would not be, which is one of doubles.
    """
    since = F.unix_micros(moment) - F.lit(start)
    return F.call_function("div", since - F.pmod(since, F.lit(step)), F.lit(step))


def scans_on(
    session: SparkSession, files: Sequence[InputFile], declared: Mapping[str, ItemType]
) -> list[Scan]:
    """The inputs; Spark's workers look through files where only all of their rows tell types."""
    return scans_of(files, declared, partial(survey, session))


@dataclass(frozen=True, slots=True)
class InputRows:
    """The rows of an input: columns `c0 …` of the items, `number` and `moment` of the ticks."""

    scan: Scan
    frame: DataFrame
    summary: Findings
    checked: bool
    """Whether problems stand beside the rows."""

    def items(self, cut: TickCut) -> DataFrame:
        """The items with their ticks: (item, t)."""
        item = item_of(self.scan.item, self.scan.columns)
        return self.frame.select(item, self._tick(cut).cast("long").alias(TICK))

    def misfit(self, cut: TickCut) -> Misfit | None:
        """The first value that is no item."""
        return first_misfit(self.frame, self._tick(cut)) if self.checked else None

    def refuse_before_start(self, start: datetime | None) -> NoReturn:
        """Names the first row that is of no tick, as the files have them."""
        value = F.col(NUMBER) if start is None else F.unix_micros(F.col(MOMENT))
        frame = self.frame if self.checked else _placed(self.frame.sparkSession, self.scan)
        bound = 0 if start is None else micros(start)
        too_early = frame.where(value < bound).orderBy(FILE, ROW).select(FILE, ROW, value).first()
        if too_early is None:
            raise ValueError("there is an early row")
        place = FileRow(self.scan.fileset.files[too_early[0]], too_early[1])
        told = too_early[2] if start is None else _moment(too_early[2])
        refuse_before_start(self.scan.file, place, told, start)

    def _tick(self, cut: TickCut) -> Column:
        if self.scan.file.column is None:
            return F.lit(0)
        return tick_of(cut.ticks, F.col(NUMBER), F.col(MOMENT))

    def release(self) -> None:
        """Forgets what was kept of them."""
        if self.checked:
            self.frame.unpersist()


def rows_of(session: SparkSession, scan: Scan) -> InputRows:
    """Sees all rows once: counts them, and refuses what is wrong with them."""
    if scan.fileset.is_plain and scan.is_exact:
        frame = native_rows(session, scan)
        # Where there are nulls that may not be, the workers tell their rows.
        if not lacks(frame, scan.item):
            return InputRows(scan, frame, _summary(scan, frame), checked=False)
    frame = rows_in_workers(session, scan.fileset.files, scan.fileset.form, scan.wanted)
    # Parsed once, and then as often read as there are jobs.
    frame = frame.persist(StorageLevel.DISK_ONLY)
    try:
        findings = findings_of(frame)
        findings.refuse(scan, scan.fileset.files)
        return InputRows(scan, frame, findings, checked=True)
    except BaseException:
        frame.unpersist()
        raise


def native_rows(session: SparkSession, scan: Scan) -> DataFrame:
    """The rows of plain files of exact types as Spark reads them by itself: `c0 …` and ticks."""
    return _native(_stored(session, scan.fileset), scan, scan.columns)


def _stored(session: SparkSession, found: FileSet) -> DataFrame:
    """The columns as they are stored."""
    if found.version is not None:
        reader = session.read.format("delta").option("versionAsOf", found.version)
        return reader.load(unpatterned(session, found.form.base))
    fields = [spark.StructField(n, spark_type(t)) for n, t in (found.types or {}).items()]
    reader = session.read.schema(spark.StructType(fields))
    return reader.parquet(*(spark_name(session, file) for file in found.files))


def lacks(frame: DataFrame, item: ItemType) -> bool:
    """Whether there is a null in `c0 c1 …` where the item's type has a field that is `not null`."""
    match item:
        case Row(fields):
            parts = list(fields)
        case Tuple(types):
            parts = [Field("", of) for of in types]
        case _:
            parts = [Field("", item)]
    tests = [test for i, part in enumerate(parts) for test in _nulls(F.col(f"c{i}"), part)]
    return bool(tests) and not frame.filter(reduce(or_, tests)).isEmpty()


def _nulls(column: Column, field: Field) -> Iterator[Column]:
    """Tests of nulls that may not be, in columns within columns too."""
    if not field.nullable:
        yield column.isNull()
    match field.type:
        case Row(fields):
            inner = [(column.getField(one.name), one) for one in fields]
        case Tuple(parts):
            inner = [(column.getField(f"_{i + 1}"), Field("", of)) for i, of in enumerate(parts)]
        case Array(element):
            yield from _nulls_among(column, element)
            return
        case _:
            return
    for part, of in inner:
        yield from (column.isNotNull() & test for test in _nulls(part, of))


def _nulls_among(column: Column, element: ItemType) -> Iterator[Column]:
    """The same of the elements of an array."""

    def lack(value: Column) -> Column:
        return reduce(or_, _nulls(value, Field("", element)), F.lit(False))

    if demands(element):
        yield column.isNotNull() & F.exists(column, lack)


def _native(
    stored: DataFrame, scan: Scan, columns: Mapping[str, ItemType], *beside: Column
) -> DataFrame:
    items = [
        F.col(quoted(name)).cast(spark_type(to)).alias(f"c{i}")
        for i, (name, to) in enumerate(columns.items())
    ]
    number, moment = _tick_columns(scan)
    return stored.select(*items, number.alias(NUMBER), moment.alias(MOMENT), *beside)


def _tick_columns(scan: Scan) -> tuple[Column, Column]:
    """The number of a row's tick and the moment in UTC that its tick column holds, one of them."""
    nothing, column = F.lit(None), scan.file.column
    if column is None:
        return nothing.cast("long"), nothing.cast("timestamp")
    value, of = F.col(quoted(column)), (scan.fileset.types or {})[column]
    if is_integer(of):
        return value.cast("long"), nothing.cast("timestamp")
    moment = value.cast("timestamp")
    is_wall = scan.zone != "UTC" and of in (DATE, TIMESTAMP_NTZ)
    return nothing.cast("long"), F.to_utc_timestamp(moment, scan.zone) if is_wall else moment


def within(rows: DataFrame, ticks: TickRange | None, *, without_tick: bool = False) -> DataFrame:
    """The rows that are of the ticks of a range, with their ticks; without one, all of tick 0.

    Where rows may be `without_tick`, those that tell no tick are of the first one.
    """
    if ticks is None:
        return rows.withColumn(TICK, F.lit(0).cast("long"))
    tick = tick_of(ticks, F.col(NUMBER), F.col(MOMENT))
    if without_tick:
        none = F.col(NUMBER).isNull() & F.col(MOMENT).isNull()
        tick = F.when(none, F.lit(0).cast("long")).otherwise(tick)
    numbered = rows.withColumn(TICK, tick)
    return numbered.where(F.col(TICK).between(ticks.ticks[0], ticks.ticks[-1]))


def item_of(item: ItemType, columns: Iterable[str]) -> Column:
    """The item that the columns `c0 c1 …` make, by the names of its own columns."""
    made = [F.col(f"c{i}").alias(name) for i, name in enumerate(columns)]
    whole = F.struct(*made) if isinstance(item, Row | Tuple) else F.col("c0")
    return whole.cast(spark_type(item)).alias(ITEM)


def first_misfit(rows: DataFrame, tick: Column) -> Misfit | None:
    """Of the values that are no items the first by tick, column, file and row; None: all fit."""
    told = F.struct(tick.cast("long"), PLACE, FILE, ROW, PROBLEM)
    wrong = rows.where(F.col(STAGE) == Stage.VALUE.value)
    found = wrong.agg(F.min(told)).collect()[0][0]
    return None if found is None else Misfit(*found)


def findings_of(frame: DataFrame) -> Findings:
    """What the rows that workers read say together."""

    def noted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = Findings()
        for batch in batches:
            found.note(batch)
        yield pa.RecordBatch.from_pydict({"found": [pickle.dumps(found)]})

    found = Findings()
    beside = frame.select(*(name for name, _ in BESIDE))
    for answer in beside.mapInArrow(noted, "found binary").collect():
        found.add(pickle.loads(bytes(answer["found"])))  # noqa: S301 - our own
    return found


def read_in_workers(
    session: SparkSession, scan: Scan, files: Sequence[DataPlace]
) -> tuple[DataFrame, Counter[int]]:
    """The rows (item, t) of some files that are of the ticks of a scan, and how many each has.

    Raises:
        DataError: a file cannot be read, or a row of the ticks does not fit (code `input`).
    """
    frame = rows_in_workers(session, files, scan.fileset.form, scan.wanted)
    findings_of(frame).refuse(scan, files)
    rows = within(frame, scan.ticks, without_tick=scan.fileset.form.tolerant)
    misfit = first_misfit(rows, F.col(TICK))
    if misfit is not None:
        scan.refuse_misfit(misfit, files)
    counts = Counter(dict(map(tuple, rows.groupBy(TICK).count().collect())))
    return rows.select(item_of(scan.item, scan.columns), TICK), counts


def _summary(scan: Scan, frame: DataFrame) -> Findings:
    numbers = [F.min(NUMBER), F.max(NUMBER)]
    moments = [F.unix_micros(F.min(MOMENT)), F.unix_micros(F.max(MOMENT))]
    without_tick = F.count_if(F.col(NUMBER).isNull() & F.col(MOMENT).isNull())
    found = frame.agg(F.count(F.lit(1)), without_tick, *numbers, *moments).collect()[0]
    rows, nulls, low, high, first, last = found
    ends = None if first is None else (_moment(first), _moment(last))
    summary = Findings(rows, None if low is None else (low, high), ends, lacks_tick=bool(nulls))
    summary.refuse(scan, scan.fileset.files)
    return summary


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _placed(session: SparkSession, scan: Scan) -> DataFrame:
    """The ticks of rows with their places in files, which only the files of a Delta table tell."""
    names = [uri_of(path) for path in scan.fileset.files]
    numbers = F.create_map(*(F.lit(x) for n, name in enumerate(names) for x in (name, n)))
    place = F.coalesce(numbers[F.col("_metadata.file_path")], F.lit(0)).alias(FILE)
    row = F.col("_metadata.row_index").alias(ROW)
    files = [spark_name(session, file) for file in scan.fileset.files]
    base = unpatterned(session, scan.fileset.form.base)
    stored = session.read.option("basePath", base).parquet(*files)
    return _native(stored, scan, {}, place, row)
