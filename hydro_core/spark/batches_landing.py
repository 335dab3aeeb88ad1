"""Batches from landing tables: the rows whose column says that they are of a tick.

A landing is what `hydrotick run --input` reads, read the same way: a Delta table, or files of
Parquet, CSV or JSON lines. Its column tells the ticks; without one it arrives whole at tick 0. Of a
Delta table the version is fixed when a range is first read, and what an input once was it stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hydro_core.errors import DataError, Diagnostic
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.batches import Batch, batch_of
from hydro_core.spark.batches_axis import NONE, Axis, Numbers, Window
from hydro_core.spark.batches_wanted import condition_of, items_by_tick, matching
from hydro_core.spark.delta_actions import data_files
from hydro_core.spark.files.frames import Arrived, is_exact, quoted
from hydro_core.spark.files.places import DELTA, Found, find
from hydro_core.spark.files.workers import Wanted as Made
from hydro_core.spark.landed_pieces import read_by_workers, read_here
from hydro_core.spark.ledger import InputRead
from hydro_core.spark.relation import ITEM, TICK
from hydro_core.spark.store_schema import flattened
from hydro_core.ticks.arrow import plain_table
from hydro_core.ticks.batches import InputFile, moment_of, refuse, require_columns
from hydro_core.ticks.landed import declared_columns, required_columns
from hydro_core.ticks.wanted import TooManyError, Wanted
from hydro_core.types.item import DATE, TIMESTAMP_NTZ, ItemType, is_integer
from hydro_core.types.values import ValueProblem

_HERE = 64 * MEBIBYTE
"""Files of more bytes than this, if Arrow cannot read them whole, are read by Spark's workers."""


@dataclass(frozen=True, slots=True)
class Landing:
    """Where the rows of an input land, and which column tells their tick."""

    path: Path
    column: str | None = None


@dataclass(frozen=True, slots=True)
class _Range:
    """An input at a range of ticks."""

    arrived: Arrived
    columns: Mapping[str, ItemType]
    axis: Axis | None
    read: InputRead

    @property
    def name(self) -> str:
        return self.arrived.file.name

    @property
    def found(self) -> Found:
        return self.arrived.found


class InputBatches:
    """The batches of a pipeline's inputs, range by range.

    Args:
        landings: where each input lands.
        items: the items' types, by the inputs' names.
        spark: gives the session, when rows are too many to be collected.
        small: up to this many rows a batch is read without Spark.
        zone: the time zone of dates, and of times that name none.
    """

    def __init__(
        self,
        landings: Mapping[str, Landing],
        items: Mapping[str, ItemType],
        spark: Callable[[], SparkSession],
        small: int = 100_000,
        zone: str = "UTC",
    ) -> None:
        self._landings, self._items, self._spark, self._small = landings, items, spark, small
        self._zone = zone

    def read(
        self,
        first: int,
        last: int,
        times: Mapping[int, Window] | None = None,
        versions: Mapping[str, int] | None = None,
        before: Sequence[InputRead] = (),
    ) -> Mapping[str, Batch]:
        """The batches of a range.

        Args:
            first: the first tick of the range.
            last: its last tick.
            times: the windows of its ticks.
            versions: those of an earlier reading that is repeated.
            before: what was read of the inputs for the ticks before.

        Raises:
            DataError: an input is not there, is not what it was, or has other columns (`input`).
        """
        known = {read.name: read for read in before}
        found = {}
        for name in self._landings:
            version = (versions or {}).get(name)
            found[name] = self._batch(name, (first, last), times or {}, version, known.get(name))
        return found

    def latest(self, name: str) -> int | datetime | None:
        """The last tick, or the last moment, that a row of an input is of; None: it has no rows.

        Raises:
            DataError: the input cannot be read (code `input`).
        """
        if self._landings[name].column is None or not self._is_there(name):
            return None
        part = self._range(name, (0, 0), {}, None, None)
        axis, found = part.axis, part.found
        if axis is None:
            return None
        if found.dataset is None or not is_exact(part.arrived, {}):
            made = Made({}, axis.column, frozenset(), self._zone)
            return read_here(part.arrived, made, None, found.files).latest
        batches = found.dataset.to_batches(columns=[axis.column])
        extremes = [pc.max(batch[axis.column]).as_py() for batch in batches]
        last = max((value for value in extremes if value is not None), default=None)
        return None if last is None else moment_of(last, self._zone)

    def rows_there(self, name: str, version: int | None = None) -> int | None:
        """How many rows an input has, all ticks together; None where only reading them tells.

        Raises:
            DataError: it is not there, or not at that version any more (code `input`).
        """
        landing = self._landings[name]
        if not self._is_there(name):
            _refuse(name, f"{landing.path} is not there", "land its data first")
        try:
            found = self._range(name, (0, 0), {}, version, None).found
            return None if found.dataset is None else found.dataset.count_rows()
        except FileNotFoundError as gone:
            where = f" at version {version}" if version is not None else ""
            _refuse(name, f"{landing.path} has lost files{where}: {gone}", "restore them")

    def wanted(
        self,
        wanted: Wanted,
        last: int,
        times: Mapping[int, Window],
        most: int,
        version: int | None = None,
    ) -> Mapping[int, list[Any]]:
        """The rows of an input up to a tick that can matter, as items by their ticks.

        Args:
            wanted: which rows, and from which tick on.
            last: the last tick.
            times: the windows of the ticks.
            most: so many rows are read at most.
            version: of a Delta table; None: the latest.

        Raises:
            DataError: the input cannot be read (code `input`).
            TooManyError: it has more such rows.
        """
        name, item = wanted.name, self._items[wanted.name]
        if not self._is_there(name) or (self._landings[name].column is None and wanted.first):
            return {}
        part = self._range(name, (wanted.first, last), times, version, None)
        rows, axis = part.found.dataset, part.axis
        if rows is None or not is_exact(part.arrived, part.columns) or _lacks(part, rows):
            batch = self._by_pieces(part)
        else:
            where = condition_of(wanted, rows.schema, item)
            if axis is not None:
                within = axis.within(rows.schema.field(axis.column).type)
                where = within if where is None else within & where
            columns = dict.fromkeys([*part.columns, *([axis.column] if axis else [])])
            table = plain_table(matching(rows, columns, where, most))
            numbers = _zeros(table) if axis is None else axis.numbers(table[axis.column])
            batch = _small(part, table.filter(pa.array(numbers != NONE)), numbers)
        if not isinstance(batch.rows, pa.Table):
            raise TooManyError(batch.read.rows or 0)
        return wanted.among(items_by_tick(batch.rows, item))

    def _is_there(self, name: str) -> bool:
        path = self._landings[name].path
        return path.exists() or bool(set("*?[") & set(str(path)))

    def _batch(
        self,
        name: str,
        ticks: tuple[int, int],
        times: Mapping[int, Window],
        version: int | None,
        before: InputRead | None,
    ) -> Batch:
        landing, item = self._landings[name], self._items[name]
        if not self._is_there(name):
            _refuse(name, f"{landing.path} is not there", "land its data first")
        if landing.column is None and ticks[0] > 0:
            nothing = pa.table({c: pa.array([], pa.null()) for c, _ in flattened(item)})
            return batch_of(name, nothing, item, 0, InputRead(name, 0, str(landing.path)))
        part = self._range(name, ticks, times, version, before)
        try:
            rows = part.found.dataset
            if rows is None or not is_exact(part.arrived, part.columns) or _lacks(part, rows):
                return self._by_pieces(part)
            return self._whole(part, rows)
        except ValueProblem as problem:
            refuse(part.arrived.file, str(problem), "give the start and end of each tick")

    def _range(
        self,
        name: str,
        ticks: tuple[int, int],
        times: Mapping[int, Window],
        version: int | None,
        before: InputRead | None,
    ) -> _Range:
        landing, item = self._landings[name], self._items[name]
        file = InputFile(name, str(landing.path), landing.column)
        columns = declared_columns(item) or {}
        found = find(file, columns, version=version)
        _refuse_another_kind(file, found, before)
        require_columns(file, columns, found.names)
        arrived = Arrived(file, found, item)
        _refuse_no_ticks(arrived)
        axis = landing.column and Axis.of(landing.column, ticks, times, self._zone)
        read = InputRead(name, None, str(landing.path), found.version, found.kind)
        return _Range(arrived, columns, axis or None, read)

    def _whole(self, part: _Range, rows: ds.Dataset) -> Batch:
        """Arrow or Spark reads the rows by itself."""
        axis, item = part.axis, part.arrived.item
        where = None if axis is None else axis.within(rows.schema.field(axis.column).type)
        if axis is not None:
            _refuse_nulls(part.arrived, rows, axis.column)
        native = part.found.native
        if native is None or rows.count_rows(filter=where) <= self._small:
            columns = [*part.columns, *([axis.column] if axis else [])]
            names = list(dict.fromkeys(columns)) or None
            table = plain_table(rows.to_table(columns=names, filter=where))
            numbers = _zeros(table) if axis is None else axis.numbers(table[axis.column])
            return _small(part, table.filter(pa.array(numbers != NONE)), numbers)
        frame = native(self._spark())
        if axis is None:
            counts = Counter({0: rows.count_rows()})
            return batch_of(part.name, frame, item, 0, _counted(part, counts))
        counts = Counter[int]()
        for batch in rows.to_batches(columns=[axis.column], filter=where):
            counts.update(_count(axis.numbers(batch[axis.column])))
        value = quoted(axis.column)
        of = (part.found.types or {})[axis.column]
        if is_integer(of):
            tick = value.cast("long")
        else:
            moment = axis.moment(value, is_wall=of in (DATE, TIMESTAMP_NTZ))
            tick = axis.number(F.lit(None).cast("long"), moment)
        numbered = frame.withColumn("__tick", tick)
        kept = numbered.where(F.col("__tick").between(axis.first, axis.last))
        return batch_of(part.name, kept, item, "__tick", _counted(part, counts))

    def _by_pieces(self, part: _Range) -> Batch:
        """The rows are read piece by piece, as what they are is told by each of them."""
        files = _of_range(part)
        required = required_columns(part.arrived.item)
        made = Made(part.columns, part.arrived.file.column, required, self._zone)
        if sum(file.stat().st_size for file in files) > _HERE:
            frame, counts = read_by_workers(self._spark(), part.arrived, made, part.axis, files)
            return Batch(frame, part.arrived.item, _counted(part, counts))
        rows = read_here(part.arrived, made, part.axis, files)
        read = _counted(part, _count(rows.numbers))
        table = pa.table({ITEM: rows.items, TICK: pa.array(rows.numbers)})
        return Batch(table, part.arrived.item, read)


def _small(part: _Range, table: pa.Table, numbers: Numbers) -> Batch:
    kept = numbers[numbers != NONE]
    read = _counted(part, _count(kept))
    return batch_of(part.name, table, part.arrived.item, pa.array(kept), read)


def _lacks(part: _Range, rows: ds.Dataset) -> bool:
    """Whether there are nulls that may not be, of which the rows tell piece by piece."""
    required = [ds.field(name).is_null() for name in required_columns(part.arrived.item)]
    if not required:
        return False
    some = reduce(or_, required)
    axis = part.axis
    if axis is not None:
        some &= axis.within(rows.schema.field(axis.column).type)
    return bool(rows.count_rows(filter=some))


def _zeros(table: pa.Table) -> Numbers:
    return np.zeros(table.num_rows, np.int64)


def _count(numbers: Numbers) -> Counter[int]:
    found, counts = np.unique(numbers[numbers != NONE], return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))


def _counted(part: _Range, counts: Counter[int]) -> InputRead:
    """What the ledger is to keep: how many rows there were, and the ticks that had none."""
    axis = part.axis
    ticks = range(0) if axis is None else range(axis.first, axis.last + 1)
    empty = tuple(tick for tick in ticks if not counts[tick])
    return replace(part.read, rows=counts.total(), empty=empty)


def _of_range(part: _Range) -> Sequence[Path]:
    """The files without those whose folder says that they are of other ticks."""
    if part.axis is None or part.found.kind != "Parquet":
        return part.found.files
    return [file for file in part.found.files if _may_hold(file, part)]


def _may_hold(file: Path, part: _Range) -> bool:
    axis = part.axis
    if axis is None:
        return True
    for folder in file.parent.parts:
        column, equals, value = folder.partition("=")
        if not equals or column != axis.column:
            continue
        try:
            moment = moment_of(unquote(value), axis.zone)
        except ValueProblem:
            return True
        if not isinstance(moment, datetime):
            return True
        found = axis.of_moments(pa.array([moment.astimezone(UTC)], pa.timestamp("us", "UTC")))
        return bool(found[0] != NONE)
    return True


def _refuse_another_kind(file: InputFile, found: Found, before: InputRead | None) -> None:
    """Refuses an input that was something else when the ticks before were read, in that place."""
    if before is None or before.location != file.path:
        return
    was = before.kind or (DELTA if before.version is not None else found.kind)
    if was != found.kind:
        lost = " (its `_delta_log` is gone)" if was == DELTA else ""
        refuse(
            file,
            f"it was a {was} when the last ticks were read, and is {found.kind} now{lost}",
            "restore it as it was, or let it land in another place and change its `path`",
        )


def _refuse_no_ticks(arrived: Arrived) -> None:
    """Refuses a tick column that tells no ticks, as far as its type says so."""
    column, types = arrived.file.column, arrived.found.types
    if column is None or types is None or column not in types:
        return
    if str(types[column]) in ("boolean", "float", "double", "binary"):
        refuse(
            arrived.file,
            f"the tick column `{column}` is {types[column]}, which tells no tick",
            "use a column with the tick's number, a date or a timestamp",
        )


def _refuse_nulls(arrived: Arrived, rows: ds.Dataset, column: str) -> None:
    """Rows without a tick would never arrive; the files' statistics tell of them."""
    if arrived.found.version is None:
        nulls = rows.count_rows(filter=ds.field(column).is_null())
    else:
        table = DeltaTable(arrived.file.path, version=arrived.found.version)
        nulls = sum(n or 0 for f in data_files(table, f"null_count.{column}") for n in f.values())
    if nulls:
        refuse(
            arrived.file,
            f"{nulls:,} of its rows have a null in `{column}`",
            "give every row its tick when it lands",
        )


def _refuse(name: str, message: str, cure: str) -> NoReturn:
    raise DataError(Diagnostic("input", f"input `{name}`: {message}", help=cure))
