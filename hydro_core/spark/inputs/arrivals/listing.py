"""The files of a landing as they were at a time: what they were, and hashes of the rows of a few.

A list stands beside the ledger in a file that is named by what it holds, so one that stays the same
is kept once. Hashes tell which rows of a file are new when it is written anew. They are kept of
small files, the latest ones first, up to a number of rows in all: a landing that is written as a
whole is small, and in a large one files come and stay.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hydro_core.files.parquet import write_parquet_file
from hydro_core.settings import MEBIBYTE
from hydro_core.storage.arrow import opened
from hydro_core.storage.places import entries_in
from hydro_core.storage.remote import DataPlace, Remote, file_known, name_below
from hydro_core.ticks.tick_range import Numbers, count_ticks

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
class Hashed:
    """The ticks and the hashes of rows."""

    ticks: Numbers
    hashes: Any

    def __len__(self) -> int:
        return len(self.ticks)


NO_ROWS = Hashed(np.array([], np.int64), np.array([], np.uint64))


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: its size, when it was written (ns), its first and last tick as far as that is known
    without reading it, and its rows, if they are kept.
    """

    size: int
    written: int
    first: int | None = None
    last: int | None = None
    rows: Hashed | None = None

    def without_rows(self) -> Entry:
        """The same, of which only the first and the last tick are known."""
        if self.rows is None:
            return self
        if not len(self.rows):
            return replace(self, rows=None)
        first, last = int(self.rows.ticks.min()), int(self.rows.ticks.max())
        return replace(self, first=first, last=last, rows=None)

    def is_like(self, other: Entry | None) -> bool:
        """Whether both are of the same file, as far as the file system tells."""
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
        hashed: Callable[[DataPlace], Hashed | None],
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
        row["path"]: Entry(row["size"], row["written"], row["first"], row["last"], _rows(row))
        for row in table.to_pylist()
    }
    metadata = table.schema.metadata or {}
    return Listing(Path(), entries, metadata.get(_READ_AS, b"").decode())


def _rows(row: Mapping[str, Any]) -> Hashed | None:
    if row["ticks"] is None:
        return None
    return Hashed(np.frombuffer(row["ticks"], np.int64), np.frombuffer(row["hashes"], np.uint64))


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
    if not isinstance(base, Remote) or len(wanted) == 1:
        anew = (replace(f, listed=None) if isinstance(f, Remote) else f for f in wanted)
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
