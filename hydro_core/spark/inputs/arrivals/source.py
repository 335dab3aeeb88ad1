"""An input where it lands, as it is now or was: what lies there, and the rows of some files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from hydro_core.errors import DataError
from hydro_core.files.inputs import InputFile, refuse_mixed, refuse_without_tick
from hydro_core.files.kinds import base_of, is_empty
from hydro_core.files.parquet import opened_parquet
from hydro_core.files.pieces import pieces
from hydro_core.files.places import find
from hydro_core.files.reading import read
from hydro_core.files.scan import Scan
from hydro_core.files.tolerant import whole_number
from hydro_core.files.unreadable import UNREADABLE
from hydro_core.machine.faults import raise_outage
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.frames.row_hashes import row_hashes
from hydro_core.spark.inputs.arrivals.listing import Hashed, Listing, listing_of
from hydro_core.spark.inputs.landed_refusals import refuse_input, refuse_unfit
from hydro_core.storage.delta import delta_table
from hydro_core.storage.remote import DataPlace, Remote
from hydro_core.ticks.calendar import Calendar, zone_of
from hydro_core.ticks.tick_range import NONE, TickRange, count_ticks, moment_of, tick_of_value
from hydro_core.types.arrow import arrow_type
from hydro_core.types.columns import declared_columns
from hydro_core.types.item import ItemType
from hydro_core.types.values import ValueProblem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


TickBounds = tuple[int, int] | None
"""The first and the last of some ticks; None: all of them."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What lay in a landing: a version of a Delta table, or files as they were."""

    kind: str
    version: int | None = None
    table: str | None = None
    listing: Listing | None = None


@dataclass(frozen=True, slots=True)
class LandingSource:
    """Where an input lands, what its items are, and how its rows tell their ticks."""

    file: InputFile
    item: ItemType
    spark: Callable[[], SparkSession]
    calendar: Calendar | None = None
    numbered: Calendar | None = None
    committed: int | None = None
    """The version of a Delta table up to which it counts; None: it counts as it lies there."""

    @property
    def zone(self) -> str:
        """That of dates, and of times that name none."""
        return zone_of(self.calendar)

    @property
    def columns(self) -> Mapping[str, ItemType]:
        return declared_columns(self.item) or {}

    @property
    def read_as(self) -> str:
        """The columns that rows, and so their hashes, are of."""
        return f"{self.file.column}: {self.item}"

    @property
    def is_there(self) -> bool:
        """Whether something is there, or may be: a pattern of names."""
        return bool(set("*?[") & set(self.file.path)) or self.file.place.exists()

    @property
    def base(self) -> DataPlace:
        """The folder that names of its files are below."""
        return base_of(self.file.place)

    def refuse_missing(self) -> None:
        """Raises where nothing is there.

        Raises:
            DataError: says so (code `input`).
        """
        if not self.is_there:
            refuse_input(self.file.name, f"{self.file.path} is not there", "land its data first")

    def scan(self, of: Snapshot | None = None) -> Scan:
        """What lies there, now or as it was seen."""
        files = None if of is None or of.listing is None else set(of.listing.files)
        version = self.committed if of is None else of.version
        found = find(self.file, self.columns, version=version, only=files)
        return Scan(self.file, found, self.item, self.zone)

    def latest(self) -> int | datetime | None:
        """The last tick, or the last moment, that a row is of; None: there are no rows.

        Raises:
            DataError: the input cannot be read (code `input`).
        """
        column = self.file.column
        if column is None or not self.is_there or is_empty(self.file.place):
            return None
        scan = self.scan()
        refuse_unfit(scan, None)
        values = _tick_values(scan, column)
        if scan.fileset.form.tolerant:
            # What tells no tick is a wrong row, which says nothing of what has landed.
            values = [v for v in map(whole_number, values) if self.tick_of(v) is not None]
        try:
            moments = [moment_of(value, self.zone) for value in values]
        except ValueProblem as problem:
            refuse_without_tick(self.file, str(problem))
        if scan.fileset.form.tolerant and not all(isinstance(m, int) for m in moments):
            moments = [moment for moment in moments if not isinstance(moment, int)]
        if len({isinstance(moment, int) for moment in moments}) > 1:
            refuse_mixed(self.file, self.file)
        return max(moments, default=None)

    def too_early(self, scan: Scan) -> int:
        """How many rows are of no tick, since they are from before the first one."""
        column = self.file.column
        if column is None or self.numbered is not None:
            return 0
        ticks, rows = self.ticks(0, None), scan.fileset.dataset
        if rows is None or not scan.tells_ticks:
            found = sum((Counter(values) for values in _pieces_of(scan, column)), Counter())
            told = ((self.tick_of(value), count) for value, count in found.items())
            return sum(count for tick, count in told if tick is not None and tick < 0)
        where = ticks.before(column, rows.schema.field(column).type)
        batches = rows.to_batches(columns=[column], filter=where)
        return sum(int((ticks.numbers(batch[column]) == NONE).sum()) for batch in batches)

    def snapshot(self, scan: Scan) -> Snapshot:
        """What is there now; of files without what is kept of each."""
        found = scan.fileset
        if found.version is not None:
            return Snapshot(found.kind, found.version, found.table)
        return Snapshot(found.kind, listing=listing_of(found.files, self.base, self.read_as))

    def ticks(self, first: int, last: int | None) -> TickRange:
        """Some ticks, as the tick column tells them."""
        return TickRange(first, last, self.calendar, self.numbered)

    def rows(self, scan: Scan, files: Sequence[DataPlace], ticks: TickBounds) -> pa.Table:
        """The rows (item, t) of some files that are of some ticks, or of all."""
        if not self._has(files, ticks):
            nothing: Any = pa.array([], arrow_type(self.item))
            return pa.table({ITEM: nothing, TICK: pa.array([], pa.int64())})
        found = read(self.at(scan, ticks), files)
        return pa.table({ITEM: found.items, TICK: pa.array(found.numbers)})

    def many(
        self, scan: Scan, files: Sequence[DataPlace], ticks: TickBounds
    ) -> tuple[pa.Table | DataFrame, Counter[int]]:
        """The same, by Spark's workers if they are many; and how many each tick has."""
        if not self._has(files, ticks):
            return self.rows(scan, [], ticks), Counter()
        return read_by_pieces(self.spark, self.at(scan, ticks), files)

    def hashed(self, scan: Scan, files: Sequence[DataPlace], ticks: TickBounds) -> Hashed:
        """The hashes of the same rows."""
        table = self.rows(scan, files, ticks)
        return Hashed(table[TICK].to_numpy(), row_hashes(table))

    def described(self, scan: Scan, before: Listing | None) -> Snapshot:
        """What is there now; of files with what is kept of each."""
        now = self.snapshot(scan)
        if now.listing is None:
            return now

        def hashed(file: DataPlace) -> Hashed | None:
            try:
                return self.hashed(scan, [file], None)
            except DataError:
                # What is wrong with the rows of later ticks is told when these run.
                return None

        listing = now.listing.described(before, lambda file: self.bounds(scan, file), hashed)
        return replace(now, listing=listing)

    def bounds(self, scan: Scan, file: DataPlace) -> tuple[int | None, int | None]:
        """The first and the last tick that a file may hold, as far as that is told outside of its
        rows: by the log, the names of folders, or Parquet's statistics.
        """
        column = self.file.column
        if column is None:
            return 0, 0
        constant = scan.fileset.form.constants.get(file, {}).get(column)
        if constant is not None:
            return self._ticks(constant.as_py(), constant.as_py())
        if scan.fileset.form.kind != "Parquet":
            return None, None
        return self._ticks(*_statistics(file, column))

    def ticks_at(self, version: int, paths: Sequence[str]) -> tuple[int | None, int | None]:
        """The first and the last tick of some files of a Delta table at a version, by its log."""
        column = self.file.column
        if column is None:
            return 0, 0
        try:
            table = delta_table(self.file.place, version)
            found = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        except DeltaError as error:
            raise_outage(error, str(self.file.place))
            return None, None
        actions = [action for action in found if unquote(action["path"]) in paths]
        if len(actions) < len(paths):
            return None, None
        constant = f"partition.{column}"
        ends = [
            self._ticks(action.get(f"min.{column}", one), action.get(f"max.{column}", one))
            for action, one in ((action, action.get(constant)) for action in actions)
        ]
        lows, highs = [low for low, _ in ends], [high for _, high in ends]
        return (
            None if None in lows else min(low for low in lows if low is not None),
            None if None in highs else max(high for high in highs if high is not None),
        )

    def tick_of(self, value: Any) -> int | None:
        """The tick of what the tick column holds."""
        return None if value is None else tick_of_value(value, self.calendar, self.numbered)

    def _has(self, files: Sequence[DataPlace], ticks: TickBounds) -> bool:
        """Whether some of the files may have rows of the ticks: without a column, all is of 0."""
        return bool(files) and (self.file.column is not None or ticks is None or ticks[0] == 0)

    def at(self, scan: Scan, ticks: TickBounds) -> Scan:
        """A scan of the rows of some ticks, or of all; without a column they are of tick 0."""
        if self.file.column is None:
            return replace(scan, ticks=None)
        return replace(scan, ticks=self.ticks(*((0, None) if ticks is None else ticks)))

    def _ticks(self, low: Any, high: Any) -> tuple[int | None, int | None]:
        return self.tick_of(low), self.tick_of(high)


def _tick_values(scan: Scan, column: str) -> list[Any]:
    """Values of the tick column, with the last one among them."""
    rows = scan.fileset.dataset
    if rows is not None and scan.tells_ticks:
        told = _ticks_by_statistics(scan, column)
        if told is not None:
            return told
        try:
            latest = [pc.max(batch[column]).as_py() for batch in rows.to_batches(columns=[column])]
            return [value for value in latest if value is not None]
        except FileNotFoundError:
            raise
        except UNREADABLE:
            # Which file cannot be read, and why, its pieces tell.
            pass
    return [value for values in _pieces_of(scan, column) for value in _distinct(values)]


def _ticks_by_statistics(scan: Scan, column: str) -> list[Any] | None:
    """The greatest value of each file in a store, by its footer, which is held: to look whether
    rows of a tick have landed is not to read them all. None: a footer does not tell.
    """
    found = []
    for file in scan.fileset.files:
        if not isinstance(file, Remote) or scan.fileset.form.kind != "Parquet":
            return None
        constant = scan.fileset.form.constants.get(file, {}).get(column)
        greatest = _statistics(file, column)[1] if constant is None else constant.as_py()
        # Of texts, a footer may have the beginning alone.
        if greatest is None or isinstance(greatest, str | bytes):
            return None
        found.append(greatest)
    return found


def _pieces_of(scan: Scan, column: str) -> Iterator[Sequence[Any]]:
    """The values of a column, piece by piece of the files."""
    for file in scan.fileset.files:
        for piece in pieces(file, scan.fileset.form):
            if column in piece.names:
                yield piece.values(column)


def _distinct(values: Sequence[Any]) -> Sequence[Any]:
    with suppress(TypeError):  # a list in a file of JSON lines, which tells no tick
        return list(dict.fromkeys(values))
    return values


def _statistics(file: DataPlace, column: str) -> tuple[Any, Any]:
    """The least and the greatest value of a column, by a Parquet file's footer."""
    metadata = opened_parquet(file).metadata
    names = [metadata.schema.column(i).path for i in range(len(metadata.schema))]
    if column not in names:
        return None, None
    place = names.index(column)
    groups = [metadata.row_group(n).column(place) for n in range(metadata.num_row_groups)]
    found: list[Any] = [group.statistics for group in groups]
    if not found or not all(one is not None and one.has_min_max for one in found):
        return None, None
    return min(one.min for one in found), max(one.max for one in found)


_HERE = 64 * MEBIBYTE
"""Files of more bytes than this are read by Spark's workers."""


def read_by_pieces(
    spark: Callable[[], SparkSession], scan: Scan, files: Sequence[DataPlace]
) -> tuple[pa.Table | DataFrame, Counter[int]]:
    """The rows (item, t) of some files that are of the ticks of a scan, and how many each has; by
    Spark's workers where there is much to read.

    Raises:
        DataError: a file cannot be read, or a row of the ticks does not fit (code `input`).
    """
    if sum(file.stat().st_size for file in files) > _HERE:
        # Whoever only looks at what has landed does without Spark.
        from hydro_core.spark.files.frames import read_in_workers

        return read_in_workers(spark(), scan, files)
    rows = read(scan, files)
    return pa.table({ITEM: rows.items, TICK: pa.array(rows.numbers)}), count_ticks(rows.numbers)
