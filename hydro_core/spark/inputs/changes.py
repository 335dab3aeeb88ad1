"""Files that were added to a landing, and files that were removed, between two looks.

The log of a Delta table says of each file whether adding or removing it changes data. Compaction
changes none; a restored table may have what it had. So files are counted in two ways: those that
exist, and those whose rows came or went. What one of the two calls unchanged is unchanged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import numpy as np

from hydro_core.files.scan import Scan
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.inputs.arrivals import (
    Arrivals,
    LandingChanges,
    NewFile,
    compare,
    in_columns_of,
)
from hydro_core.spark.inputs.differences import (
    NO_DIFFERENCES,
    Differences,
    DifferingFile,
    RowState,
    saved_differences,
)
from hydro_core.spark.inputs.snapshot import (
    NO_ROWS,
    Entry,
    HashedRows,
    LandingSource,
    Listing,
    Snapshot,
    saved_listing,
)
from hydro_core.spark.store.ledger.records import InputRead
from hydro_core.storage.remote import DataPlace, file_known
from hydro_core.types.item import TIMESTAMP

_LOG = "_delta_log"


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file whose rows are new: by its path in the table, and a version that has it.

    `lowest` and `highest` bound what the tick column holds, where the log says so.
    """

    path: str
    version: int
    lowest: Any = None
    highest: Any = None


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Files that were `appended`, and files that were `written` while others were `gone`.

    Rows of the latter may be the same.
    """

    appended: tuple[AddedFile, ...] = ()
    written: tuple[AddedFile, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass(slots=True)
class _EntryCounts:
    """Counts of files over the entries read so far."""

    there: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    written: set[str] = field(default_factory=set)
    added: dict[str, AddedFile] = field(default_factory=dict)

    def entry(self, version: int, actions: list[Mapping[str, Any]], column: str | None) -> None:
        removed = [action["remove"] for action in actions if "remove" in action]
        rewrites = any(action.get("dataChange", True) for action in removed)
        for action in removed:
            self._count(action, -1)
        for action in (action["add"] for action in actions if "add" in action):
            path = self._count(action, 1)
            self.added[path] = AddedFile(path, version, *_bounds(action, column))
            if rewrites:
                self.written.add(path)

    def _count(self, action: Mapping[str, Any], by: int) -> str:
        path = unquote(action["path"])
        self.there[path] += by
        if action.get("dataChange", True):
            self.rows[path] += by
        return path


def changes_between(
    path: DataPlace, first: int, last: int, column: str | None
) -> FileChanges | None:
    """The changes of the versions after `first` up to `last`, with bounds of a column.

    None: the log does not reach back so far.
    """
    if first > last:
        return None
    counted = _EntryCounts()
    for version in range(first + 1, last + 1):
        try:
            entry = (path / _LOG / f"{version:020}.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        actions = [json.loads(line) for line in entry.split("\n") if line.strip()]
        counted.entry(version, actions, column)
    return _net(counted)


def _net(counted: _EntryCounts) -> FileChanges:
    come, gone = _signed(counted.rows)
    if not any(counted.there.values()) or not (come or gone):
        return FileChanges()
    if any(path in counted.added for path in gone):
        # Rows went with a file that came since, by a compaction: only files that are there tell.
        come, gone = _signed(counted.there)
        return FileChanges((), tuple(counted.added[path] for path in come), tuple(gone))
    alone = not gone
    appended = [path for path in come if alone or path not in counted.written]
    return FileChanges(
        tuple(counted.added[path] for path in appended),
        tuple(counted.added[path] for path in come if path not in appended),
        tuple(gone),
    )


def _signed(counts: Counter[str]) -> tuple[list[str], list[str]]:
    return [p for p, n in counts.items() if n > 0], [p for p, n in counts.items() if n < 0]


def _bounds(action: Mapping[str, Any], column: str | None) -> tuple[Any, Any]:
    if column is None:
        return None, None
    partition: Mapping[str, Any] = action.get("partitionValues") or {}
    if column in partition:
        return partition[column], partition[column]
    stats = json.loads(action["stats"]) if action.get("stats") else {}
    found: Iterator[Any] = (stats.get(of, {}).get(column) for of in ("minValues", "maxValues"))
    return next(found), next(found)


_COMPARED = 128 * MEBIBYTE
"""Files of a Delta table of more bytes than this, on either side, are not compared by row."""


@dataclass(frozen=True, slots=True)
class KnownLanding:
    """A landing at an earlier look, and its differences from what had been read."""

    snapshot: Snapshot
    differences: Differences = NO_DIFFERENCES


@dataclass(frozen=True, slots=True)
class LandingDiff:
    """Compares what is in an input's landing with what was read of it."""

    source: LandingSource
    scan: Scan
    now: Snapshot
    until: int
    """The first tick that is not committed."""

    def since(self, known: KnownLanding) -> Arrivals:
        """Arrivals since an earlier look."""
        before = known.snapshot
        if self.now.version is not None:
            changes = self._of_delta(before, self.now.version)
        else:
            changes = self._of_files(before.listing, self.now.listing)
        differences = in_columns_of(self.source, self.scan, known.differences)
        return compare(self.source, self.scan, self.until, changes, differences)

    def _of_delta(self, before: Snapshot, now: int) -> LandingChanges:
        if before.version is None or before.table not in (None, self.now.table):
            return self._unknown()
        changes = changes_between(
            self.source.file.place, before.version, now, self.source.file.column
        )
        if changes is None:
            return self._unknown()
        came = self._came(changes.appended, replaces=False)
        lost = (
            self._lost(file)
            for file in changes.appended
            if self._may_hold(file) and not self._path(file.path).exists()
        )
        found = LandingChanges(tuple(came), lost=tuple(lost))
        if not (changes.written or changes.gone):
            return found
        return self._replaced(changes, before.version, found)

    def _replaced(self, changes: FileChanges, before: int, found: LandingChanges) -> LandingChanges:
        """The same with files that went, and those that came in their place."""
        came = (*found.came, *self._came(changes.written, replaces=True))
        gone = [self._path(path) for path in changes.gone]
        written = [self._path(file.path) for file in changes.written]
        there = all(file.exists() for file in (*gone, *written))
        if there and _bytes(gone) + _bytes(written) <= _COMPARED:
            until = self.until - 1
            old = self.source.hashed(self._at(before), gone, (0, until)) if gone else NO_ROWS
            return replace(found, came=came, gone=old)
        lost = [
            self._span(path, *self.source.ticks_at(before, [path])) for path in changes.gone
        ] or [self._lost(file) for file in changes.written]
        return replace(found, came=came, lost=(*found.lost, *filter(None, lost)))

    def _came(self, added: Sequence[AddedFile], *, replaces: bool) -> Iterator[NewFile]:
        """The files that may hold rows of committed ticks."""
        for file in added:
            if not self._may_hold(file) or not self._path(file.path).exists():
                continue
            there = self._path(file.path) in self.scan.fileset.form.constants
            ends = self._tick_of(file.lowest), self._tick_of(file.highest)
            at = self.scan if there else self._at(file.version)
            yield NewFile(at, self._path(file.path), (file.path, 0, 0), ends, replaces)

    def _lost(self, file: AddedFile) -> DifferingFile:
        """A file that came and went before it was looked at: what it had may lie elsewhere now."""
        ends = self._tick_of(file.lowest), self._tick_of(file.highest)
        return self._span("", *ends) or DifferingFile("", 0, self.until - 1, RowState.REMOVED)

    def _of_files(self, before: Listing | None, now: Listing | None) -> LandingChanges:
        if before is None or now is None:
            return self._unknown()
        gone = _unlike(before, now)
        came = {path: now.entries[path] for path in _unlike(now, before)}
        kept = before.read_as == now.read_as
        unreported = [(p, e) for p, e in gone.items() if not kept or e.rows is None]
        lost = [
            replace(span, size=entry.size, written=entry.written)
            for path, entry in unreported
            for span in [self._span(path, entry.first, entry.last)]
            if span is not None
        ]
        files = [
            self._came_file(now, path, entry, replaces=bool(gone)) for path, entry in came.items()
        ]
        return LandingChanges(
            tuple(file for file in files if self._is_committed(file.ends[0])),
            _hashes(gone.values() if kept else (), self.until),
            tuple(lost),
        )

    def _came_file(self, now: Listing, path: str, entry: Entry, *, replaces: bool) -> NewFile:
        file = file_known(now.base, path, entry.size, entry.written)
        identity = (path, entry.size, entry.written)
        return NewFile(self.scan, file, identity, self.source.bounds(self.scan, file), replaces)

    def _unknown(self) -> LandingChanges:
        """Any tick may have changed."""
        span = self._span("", None, None)
        return LandingChanges(lost=() if span is None else (span,))

    def _span(self, path: str, first: int | None, last: int | None) -> DifferingFile | None:
        """A removed file by its committed ticks; None: it had no rows of them."""
        low = max(0, first or 0)
        high = self.until - 1 if last is None else min(last, self.until - 1)
        return DifferingFile(path, low, high, RowState.REMOVED) if low <= high else None

    def _may_hold(self, file: AddedFile) -> bool:
        return self._is_committed(self._tick_of(file.lowest))

    def _tick_of(self, bound: Any) -> int | None:
        """The tick of what a log says: of a folder's moment it leaves out that it is in UTC."""
        column = self.source.file.column or ""
        is_moment = (self.scan.fileset.types or {}).get(column) == TIMESTAMP
        if is_moment and isinstance(bound, str) and not bound.endswith("Z"):
            bound += "Z"
        return self.source.tick_of(bound)

    def _is_committed(self, lowest: int | None) -> bool:
        return lowest is None or lowest < self.until

    def _at(self, version: int) -> Scan:
        return self.source.scan(Snapshot(self.now.kind, version))

    def _path(self, path: str) -> DataPlace:
        return self.source.file.place / path


def known_of(source: LandingSource, read: InputRead, directory: DataPlace) -> KnownLanding | None:
    """The landing when an input was read; None: nothing is known of it."""
    snapshot = _snapshot(source, read, read.version, read.listing, directory)
    if snapshot is None:
        return None
    differences = saved_differences(directory, read.differences)
    return KnownLanding(snapshot, differences)


def accepted_of(
    source: LandingSource, read: InputRead, directory: DataPlace
) -> KnownLanding | None:
    """The landing when somebody accepted it, if that was after it had been read."""
    if read.acknowledged_version is None and read.acknowledged_listing is None:
        return None
    at = read.acknowledged_version, read.acknowledged_listing
    snapshot = _snapshot(source, read, *at, directory)
    differences = saved_differences(directory, read.acknowledged_differences)
    return None if snapshot is None else KnownLanding(snapshot, differences)


def _snapshot(
    source: LandingSource,
    read: InputRead,
    version: int | None,
    listing: str | None,
    directory: DataPlace,
) -> Snapshot | None:
    if version is not None:
        return Snapshot(read.kind or "", version, read.table)
    if listing is None:
        return None
    found = saved_listing(directory, listing, source.base)
    return Snapshot(read.kind or "", listing=found)


def _unlike(some: Listing, others: Listing) -> dict[str, Entry]:
    """The files of a list that are not in another one as they are in it."""
    known = others.entries
    return {p: entry for p, entry in some.entries.items() if not entry.is_like(known.get(p))}


def _hashes(entries: Collection[Entry], until: int) -> HashedRows:
    kept = [entry.rows for entry in entries if entry.rows is not None] or [NO_ROWS]
    ticks = np.concatenate([rows.ticks for rows in kept])
    hashes = np.concatenate([rows.hashes for rows in kept])
    is_committed = ticks < until
    return HashedRows(ticks[is_committed], hashes[is_committed])


def _bytes(files: Sequence[DataPlace]) -> int:
    return sum(file.stat().st_size for file in files)
