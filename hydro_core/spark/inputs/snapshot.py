"""A landing as one look sees it: a version of a Delta table, or files with their entries.

The list of files is stored next to the ledger under the digest of its content, so equal lists are
stored once. It has hashes of the rows of small files, the latest first, up to a number of rows in
all: a landing that is rewritten as a whole is small, and in a large one files come and stay.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from hydro_core.errors import DataError
from hydro_core.files.inputs import (
    InputFile,
    refuse,
    refuse_mixed,
    refuse_without_tick,
    require_columns,
    require_ticks,
)
from hydro_core.files.kinds import UNREADABLE, base_of, is_empty
from hydro_core.files.parquet import opened_parquet, write_parquet_file
from hydro_core.files.pieces import pieces
from hydro_core.files.places import DELTA, FileSet, find
from hydro_core.files.rows import whole_number
from hydro_core.files.scan import Scan, read
from hydro_core.machine.faults import raise_outage
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.frames.row_hashes import row_hashes
from hydro_core.spark.store.ledger.records import InputRead
from hydro_core.storage.arrow import opened
from hydro_core.storage.delta import delta_table
from hydro_core.storage.places import entries_in
from hydro_core.storage.remote import DataPlace, RemotePath, file_known, name_below
from hydro_core.ticks.calendar import Calendar, zone_of
from hydro_core.ticks.tick_range import (
    NONE,
    Numbers,
    TickRange,
    count_ticks,
    moment_of,
    tick_of_value,
)
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import ItemType, declared_columns, is_integer
from hydro_core.types.values import ValueProblem

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def as_changes(file: InputFile) -> Iterator[None]:
    """Errors of values name their input."""
    try:
        yield
    except ValueProblem as problem:
        refuse(file, str(problem), "give the start and end of each tick")


def refuse_unfit(scan: Scan, before: InputRead | None) -> None:
    """Refuses an input that cannot be what the ticks are read from."""
    _refuse_another_kind(scan.file, scan.fileset, before)
    require_columns(scan.file, scan.columns, scan.fileset.names, scan.fileset.lacking)
    require_ticks(scan.file, scan.fileset.types)


def _refuse_another_kind(file: InputFile, found: FileSet, before: InputRead | None) -> None:
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


def has_rows_without_tick(scan: Scan, rows: ds.Dataset, column: str) -> bool:
    """True if a row would never arrive: it has no tick, or a negative one.

    Arrow asks the statistics of files first: those of a Delta table's log come with its dataset.
    """
    missing = pc.field(column).is_null()
    if is_integer((scan.fileset.types or {})[column]):
        missing |= pc.field(column) < 0
    return bool(rows.count_rows(filter=missing))


def refuse_input(name: str, message: str, cure: str) -> NoReturn:
    """Raises an error of an input (code `input`)."""
    raise DataError.of("input", f"input `{name}`: {message}", help=cure)


LISTINGS = "_landings"
"""The directory, in a pipeline's, that has the lists."""

_MOST_ROWS = 250_000
"""So many rows of a landing have hashes, in all."""
_LARGEST = 8 * MEBIBYTE
"""Rows of files that take more than this have none."""
_KEPT = 256 * MEBIBYTE
"""Lists that no input has read last stay up to this size: earlier ticks may be computed again."""

_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("path", pa.string()),
    ("size", pa.int64()),
    ("written", pa.int64()),
    ("first", pa.int64()),
    ("last", pa.int64()),
    ("ticks", pa.binary()),
    ("hashes", pa.binary()),
]
_SCHEMA = pa.schema(_COLUMNS)
_READ_AS = b"read_as"


@dataclass(frozen=True, slots=True)
class HashedRows:
    """The ticks and the hashes of rows."""

    ticks: Numbers
    hashes: Any

    def __len__(self) -> int:
        return len(self.ticks)


NO_ROWS = HashedRows(np.array([], np.int64), np.array([], np.uint64))


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: its size, when it was written (ns), its first and last tick as far as that is known
    without reading it, and its rows, if they are kept.
    """

    size: int
    written: int
    first: int | None = None
    last: int | None = None
    rows: HashedRows | None = None

    def without_rows(self) -> Entry:
        """The same, of which only the first and the last tick are known."""
        if self.rows is None:
            return self
        if not len(self.rows):
            return replace(self, rows=None)
        first, last = int(self.rows.ticks.min()), int(self.rows.ticks.max())
        return replace(self, first=first, last=last, rows=None)

    def is_like(self, other: Entry | None) -> bool:
        """True if both are of the same file, as far as the file system tells."""
        return other is not None and (self.size, self.written) == (other.size, other.written)


@dataclass(frozen=True, slots=True)
class Listing:
    """Files by their paths below a folder; `read_as` names the columns that hashes are of."""

    base: DataPlace
    entries: Mapping[str, Entry] = field(default_factory=dict)
    read_as: str = ""

    @property
    def files(self) -> list[DataPlace]:
        return [self.base / path for path in self.entries]

    def changed(self, files: Iterable[DataPlace]) -> DataPlace | None:
        """The first of some of its files that is not what it was; None: all are."""
        for file, now in entries_now(files, self.base):
            if not self.entries[name_below(file, self.base)].is_like(now):
                return file
        return None

    def described(
        self,
        before: Listing | None,
        bounds: Callable[[DataPlace], tuple[int | None, int | None]],
        hashed: Callable[[DataPlace], HashedRows | None],
    ) -> Listing:
        """The same with what is kept of each file; what is known is taken from a list of before.

        `bounds` tells the first and the last tick of a file, where that is to be had; `hashed`
        gives none of rows that cannot be read.
        """
        known = {} if before is None or before.read_as != self.read_as else before.entries
        latest = sorted(self.entries.items(), key=lambda one: one[1].written, reverse=True)
        left = _MOST_ROWS
        found: dict[str, Entry] = {}
        for path, entry in latest:
            old = known.get(path)
            file = file_known(self.base, path, entry.size, entry.written)
            one = entry if old is None or not entry.is_like(old) else old
            if left <= 0 or entry.size > _LARGEST:
                one = one.without_rows()
            elif one.rows is None:
                one = replace(one, rows=hashed(file))
            if one.rows is None and one.first is None and one is not old:
                first, last = bounds(file)
                one = replace(one, first=first, last=last)
            left -= 0 if one.rows is None else len(one.rows)
            found[path] = one
        return replace(self, entries=found)

    def saved(self, directory: DataPlace) -> str:
        """Puts the list below a pipeline's directory, if it is not there; gives its name."""
        return save(self._table(), directory)

    def rows_at(self, ticks: range) -> Counter[int] | None:
        """How many rows the files have of some ticks; None: not the rows of all are kept."""
        found = Counter[int]()
        for entry in self.entries.values():
            if entry.rows is None:
                return None
            own = entry.rows.ticks
            found.update(count_ticks(own[(own >= ticks.start) & (own < ticks.stop)]))
        return found

    def _table(self) -> pa.Table:
        rows = [
            {
                "path": path,
                "size": entry.size,
                "written": entry.written,
                "first": entry.first,
                "last": entry.last,
                "ticks": None if entry.rows is None else entry.rows.ticks.tobytes(),
                "hashes": None if entry.rows is None else entry.rows.hashes.tobytes(),
            }
            for path, entry in sorted(self.entries.items())
        ]
        table = pa.Table.from_pylist(rows, schema=_SCHEMA)
        return table.replace_schema_metadata({_READ_AS: self.read_as.encode()})


def save(table: pa.Table, directory: DataPlace) -> str:
    """Puts a list below a pipeline's directory, if it is not there; gives its name."""
    name = _digest(table)
    place = directory / LISTINGS / f"{name}.parquet"
    if place.is_file():
        return name
    if isinstance(place, Path):
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = place.with_suffix(f".{os.getpid()}.tmp")
        pq.write_table(table, scratch)
        scratch.replace(place)
    else:
        write_parquet_file(table, place)
    return name


def listing_of(files: Sequence[DataPlace], base: DataPlace, read_as: str) -> Listing:
    """The files as they are now; what went away meanwhile is not among them."""
    found = ((name_below(file, base), _entry(file)) for file in files)
    return Listing(base, {name: entry for name, entry in found if entry}, read_as)


def saved_listing(directory: DataPlace, name: str, base: DataPlace) -> Listing | None:
    """A list that was saved below a pipeline's directory; None: it is not there any more."""
    found = _saved(directory / LISTINGS / f"{name}.parquet")
    return None if found is None else replace(found, base=base)


def clear_listings(directory: DataPlace, needed: Collection[str | None]) -> None:
    """Removes the oldest lists where they take much, but for those that are needed."""
    lists = [
        (found.st_mtime_ns, found.st_size, file)
        for file in entries_in(directory / LISTINGS)
        if file.suffix == ".parquet" and file.stem not in needed
        for found in [file.stat()]
    ]
    taken = 0
    for _, size, file in sorted(lists, key=lambda one: (*one[:2], str(one[2])), reverse=True):
        taken += size
        if taken > _KEPT:
            file.unlink(missing_ok=True)


@lru_cache(maxsize=16)
def _saved(place: DataPlace) -> Listing | None:
    try:
        table = pq.ParquetFile(opened(place)).read()
    except FileNotFoundError:
        return None
    entries = {
        row["path"]: Entry(row["size"], row["written"], row["first"], row["last"], _rows_in(row))
        for row in table.to_pylist()
    }
    metadata = table.schema.metadata or {}
    return Listing(Path(), entries, metadata.get(_READ_AS, b"").decode())


def _rows_in(row: Mapping[str, Any]) -> HashedRows | None:
    if row["ticks"] is None:
        return None
    return HashedRows(
        np.frombuffer(row["ticks"], np.int64), np.frombuffer(row["hashes"], np.uint64)
    )


def _digest(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return hashlib.blake2b(sink.getvalue(), digest_size=16).hexdigest()


def entries_now(
    files: Iterable[DataPlace], base: DataPlace
) -> Iterator[tuple[DataPlace, Entry | None]]:
    """Files with what they are by now; those of a store by one listing, however many there are, but
    for a file that is alone: it may lie beside a million others.
    """
    wanted = list(files)
    if not isinstance(base, RemotePath) or len(wanted) == 1:
        anew = (replace(f, listed=None) if isinstance(f, RemotePath) else f for f in wanted)
        yield from zip(wanted, map(_entry, anew), strict=True)
        return
    there: dict[DataPlace, Entry | None] = {}
    if wanted:
        there = {file: _entry(file) for file in base.files()}
    yield from ((file, there.get(file)) for file in wanted)


def _entry(file: DataPlace) -> Entry | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return Entry(found.st_size, found.st_mtime_ns)


TickBounds = tuple[int, int] | None
"""The first and the last of some ticks; None: all of them."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of a landing at a look: a version of a Delta table, or a list of files."""

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

    def reads_as(self, other: LandingSource) -> bool:
        """True if both read the same columns of the same landing."""
        return (self.file, self.item) == (other.file, other.item)

    @property
    def is_there(self) -> bool:
        """True if something is there, or may be: a pattern of names."""
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
        """A scan of the landing, as it is now or was seen."""
        files = None if of is None or of.listing is None else set(of.listing.files)
        version = self.committed if of is None else of.version
        found = find(self.file, self.columns, version=version, only=files)
        return Scan(self.file, found, self.item, self.zone)

    @property
    def is_empty(self) -> bool:
        """True if nothing is there, or a folder without files."""
        return not self.is_there or is_empty(self.file.place)

    def latest(self, scan: Scan) -> int | datetime | None:
        """The last tick, or the last moment, that a row is of; None: there are no rows.

        Raises:
            DataError: the input cannot be read (code `input`).
        """
        column = self.file.column
        if column is None:
            return None
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
        """The content at a scan; of files without bounds and hashes."""
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

    def hashed(self, scan: Scan, files: Sequence[DataPlace], ticks: TickBounds) -> HashedRows:
        """The hashes of the same rows."""
        table = self.rows(scan, files, ticks)
        return HashedRows(table[TICK].to_numpy(), row_hashes(table))

    def described(self, scan: Scan, before: Listing | None) -> Snapshot:
        """The content at a scan, of files with bounds and hashes."""
        now = self.snapshot(scan)
        if now.listing is None:
            return now

        def hashed(file: DataPlace) -> HashedRows | None:
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
        """True if some files may have rows of the ticks; without a column all are of tick 0."""
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
        if not isinstance(file, RemotePath) or scan.fileset.form.kind != "Parquet":
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
