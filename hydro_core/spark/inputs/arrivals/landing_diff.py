"""What came to a landing and what went since it was read last, by its files.

Files that were added are read where they may hold rows of committed ticks, and no others. Where
files were replaced, rows that are in both are the same rows, whichever file they are in: that is
judged row by row (`judged`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hydro_core.files.scan import Scan
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.inputs.arrivals.delta_log import AddedFile, FileChanges, changes_between
from hydro_core.spark.inputs.arrivals.deviations import (
    NO_DEVIATIONS,
    Deviations,
    OffFile,
    saved_deviations,
)
from hydro_core.spark.inputs.arrivals.judged import Arrivals, LandingChanges, NewFile, judged
from hydro_core.spark.inputs.arrivals.late_rows import in_columns_of
from hydro_core.spark.inputs.arrivals.listing import NO_ROWS, Entry, Hashed, Listing, saved_listing
from hydro_core.spark.inputs.arrivals.source import LandingSource, Snapshot
from hydro_core.spark.store.ledger.input_reads import InputRead
from hydro_core.storage.remote import DataPlace, file_known
from hydro_core.types.item import TIMESTAMP

_COMPARED = 128 * MEBIBYTE
"""Files of a Delta table of more bytes than this, on either side, are not compared by row."""


@dataclass(frozen=True, slots=True)
class KnownLanding:
    """What was there, and where what had been read differed from it."""

    snapshot: Snapshot
    off: Deviations = NO_DEVIATIONS


@dataclass(frozen=True, slots=True)
class LandingDiff:
    """Compares what is in an input's landing with what was read of it."""

    source: LandingSource
    scan: Scan
    now: Snapshot
    until: int
    """The first tick that is not committed."""

    def since(self, known: KnownLanding) -> Arrivals:
        """What came, went and changed since."""
        before = known.snapshot
        if self.now.version is not None:
            changes = self._of_delta(before, self.now.version)
        else:
            changes = self._of_files(before.listing, self.now.listing)
        off = in_columns_of(self.source, self.scan, known.off)
        return judged(self.source, self.scan, self.until, changes, off)

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

    def _lost(self, file: AddedFile) -> OffFile:
        """A file that came and went before it was looked at: what it had may lie elsewhere now."""
        ends = self._tick_of(file.lowest), self._tick_of(file.highest)
        return self._span("", *ends) or OffFile("", 0, self.until - 1, "gone")

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

    def _span(self, path: str, first: int | None, last: int | None) -> OffFile | None:
        """What is gone of a file; None: it had no rows of committed ticks."""
        low = max(0, first or 0)
        high = self.until - 1 if last is None else min(last, self.until - 1)
        return OffFile(path, low, high, "gone") if low <= high else None

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
    """What was there when an input was read; None: nothing is known of it."""
    snapshot = _snapshot(source, read, read.version, read.listing, directory)
    if snapshot is None:
        return None
    off = saved_deviations(directory, read.deviations)
    if off.is_nothing and read.changed:
        # An earlier version has kept the ticks alone.
        files = (OffFile("", one.first, one.last, "gone") for one in read.changed)
        off = Deviations(files=tuple(files))
    return KnownLanding(snapshot, off)


def accepted_of(
    source: LandingSource, read: InputRead, directory: DataPlace
) -> KnownLanding | None:
    """What was there when somebody accepted it, if that was after it had been read."""
    if read.accepted_version is None and read.accepted_listing is None:
        return None
    at = read.accepted_version, read.accepted_listing
    snapshot = _snapshot(source, read, *at, directory)
    off = saved_deviations(directory, read.accepted_deviations)
    return None if snapshot is None else KnownLanding(snapshot, off)


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


def _hashes(entries: Collection[Entry], until: int) -> Hashed:
    kept = [entry.rows for entry in entries if entry.rows is not None] or [NO_ROWS]
    ticks = np.concatenate([rows.ticks for rows in kept])
    hashes = np.concatenate([rows.hashes for rows in kept])
    is_committed = ticks < until
    return Hashed(ticks[is_committed], hashes[is_committed])


def _bytes(files: Sequence[DataPlace]) -> int:
    return sum(file.stat().st_size for file in files)
