"""What came, went and changed in a landing for ticks that are committed, since it was read last.

Files that were added are read where they may hold rows of such ticks, and no others. Where files
were replaced, rows that are in both are the same rows, whichever file they are in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hydro_core.files.arrived import Arrived
from hydro_core.files.kinds import base_of
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.frames.column_names import TICK
from hydro_core.spark.frames.row_hashes import row_hashes
from hydro_core.spark.inputs.arrivals.delta_log import AddedFile, FileChanges, changes_between
from hydro_core.spark.inputs.arrivals.difference import changes_of, joined, unmatched, within
from hydro_core.spark.inputs.arrivals.listing import NO_ROWS, Entry, Hashed, Listing, saved_listing
from hydro_core.spark.inputs.arrivals.source import LandingSource, Snapshot
from hydro_core.spark.store.input_reads import ChangedRange, InputRead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COMPARED = 128 * MEBIBYTE
"""Files of more bytes than this, on either side, are not compared row by row."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What an input got for committed ticks: rows that are late, and ticks that have changed."""

    late: Mapping[int, int] = field(default_factory=dict)
    """How many rows are late, by their tick."""
    rows: pa.Table | DataFrame | None = None
    """These rows (item, t); None: there are none."""
    changed: tuple[ChangedRange, ...] = ()
    """The ticks that have lost rows, or may have. What came for these is not among the late."""
    files: tuple[str, ...] = ()
    """Where late rows are: a few of the files."""

    @property
    def earliest(self) -> int | None:
        """The first tick that something came for, or was changed in; None: nothing was."""
        return min([*self.late, *(change.first for change in self.changed)], default=None)


NOTHING_NEW = Arrivals()
"""Nothing came for committed ticks."""


class Look:
    """Compares what is in an input's landing with what was read of it.

    Args:
        source: the input.
        now: what is there.
        until: the first tick that is not committed.
    """

    def __init__(self, source: LandingSource, now: tuple[Arrived, Snapshot], until: int) -> None:
        self._source, (self._arrived, self._now), self._until = source, now, until

    def since(self, before: Snapshot) -> Arrivals:
        """What came, went and changed since."""
        if self._now.version is not None:
            return self._of_delta(before, self._now.version)
        return self._of_files(before.listing, self._now.listing)

    def _of_delta(self, before: Snapshot, now: int) -> Arrivals:
        if before.version is None or before.table not in (None, self._now.table):
            return self._unknown()
        changes = changes_between(
            Path(self._source.file.path), before.version, now, self._source.file.column
        )
        if changes is None:
            return self._unknown()
        parts = [self._appended(changes)]
        if changes.written or changes.gone:
            parts.append(self._rewritten(changes, before.version))
        return reduce(_together, parts)

    def _appended(self, changes: FileChanges) -> Arrivals:
        """The late rows of files that were added."""
        found = NOTHING_NEW
        for version, files in self._by_version(changes.appended):
            paths = [self._path(file.path) for file in files]
            if all(path.exists() for path in paths):
                found = _together(found, self._late(self._at(version), paths))
            else:
                found = _together(found, self._unknown(*_span(self._ends(files))))
        return found

    def _rewritten(self, changes: FileChanges, before: int) -> Arrivals:
        """What is new among the rows of files that came where others went."""
        gone = [self._path(path) for path in changes.gone]
        written = [self._path(file.path) for file in changes.written]
        there = all(file.exists() for file in (*gone, *written))
        if not there or _bytes(gone) + _bytes(written) > _COMPARED:
            ends = [*self._ends(changes.written), *self._source.ticks_at(before, changes.gone)]
            return self._unknown(*_span(ends))
        old = self._source.hashed(self._at(before), gone, self._until) if gone else NO_ROWS
        parts = [
            (self._at(version), [self._path(file.path) for file in files])
            for version, files in self._by_version(changes.written)
        ]
        return self._compared(parts, old, ())

    def _by_version(self, added: Sequence[AddedFile]) -> Iterator[tuple[int, list[AddedFile]]]:
        """The files that may hold rows of committed ticks, by the versions that have them."""
        found: dict[int, list[AddedFile]] = {}
        for file in added:
            if self._may_hold(self._source.tick_of(file.lowest)):
                there = self._path(file.path) in self._arrived.found.form.constants
                version = self._now.version if there else file.version
                found.setdefault(version or 0, []).append(file)
        yield from found.items()

    def _ends(self, files: Sequence[AddedFile]) -> list[int | None]:
        return [self._source.tick_of(end) for f in files for end in (f.lowest, f.highest)]

    def _of_files(self, before: Listing | None, now: Listing | None) -> Arrivals:
        if before is None or now is None:
            return self._unknown()
        gone = {
            path: entry
            for path, entry in before.entries.items()
            if not entry.is_like(now.entries.get(path))
        }
        come = [
            path
            for path, entry in now.entries.items()
            if not entry.is_like(before.entries.get(path))
        ]
        files = [now.base / path for path in come]
        files = [f for f in files if self._may_hold(self._source.bounds(self._arrived, f)[0])]
        if not gone:
            return self._late(self._arrived, files)
        kept = before.read_as == now.read_as
        unknown = [
            change
            for entry in gone.values()
            if not kept or entry.rows is None
            for change in self._unknown(entry.first, entry.last).changed
        ]
        old = _hashes(gone.values() if kept else (), self._until)
        return self._compared([(self._arrived, files)], old, joined(unknown))

    def _late(self, arrived: Arrived, files: Sequence[Path]) -> Arrivals:
        """All rows of committed ticks in some files."""
        if not files:
            return NOTHING_NEW
        rows, counts = self._source.many(arrived, files, self._until)
        if not counts.total():
            return NOTHING_NEW
        return Arrivals(dict(sorted(counts.items())), rows, (), tuple(map(str, files[:5])))

    def _compared(
        self,
        parts: Sequence[tuple[Arrived, Sequence[Path]]],
        gone: Hashed,
        unknown: Sequence[ChangedRange],
    ) -> Arrivals:
        """What is new in files that stand in the place of others."""
        read = [self._source.rows(arrived, files, self._until) for arrived, files in parts]
        rows = pa.concat_tables(read or [self._source.rows(self._arrived, [], self._until)])
        hashes, ticks = row_hashes(rows), rows[TICK].to_numpy()
        is_new = unmatched(hashes, gone.hashes)
        is_gone = unmatched(gone.hashes, hashes)
        lost = Hashed(gone.ticks[is_gone], gone.hashes[is_gone])
        changed = [*unknown, *changes_of(lost, ticks[is_new])]
        is_late = is_new & ~within(ticks, changed)
        late = Counter(ticks[is_late].tolist())
        return Arrivals(
            dict(sorted(late.items())),
            rows.filter(pa.array(is_late)) if late else None,
            tuple(joined(changed)),
            tuple(str(file) for _, files in parts for file in files)[:5] if late else (),
        )

    def _unknown(self, first: int | None = None, last: int | None = None) -> Arrivals:
        """Ticks may have changed: as far as is known, these among the committed ones."""
        low = max(0, first or 0)
        high = self._until - 1 if last is None else min(last, self._until - 1)
        return Arrivals(changed=(ChangedRange(low, high),) if low <= high else ())

    def _may_hold(self, lowest: int | None) -> bool:
        return lowest is None or lowest < self._until

    def _at(self, version: int) -> Arrived:
        if version == self._now.version:
            return self._arrived
        return self._source.arrived(Snapshot(self._now.kind, version))

    def _path(self, path: str) -> Path:
        return Path(self._source.file.path, path)


def snapshot_read(source: LandingSource, read: InputRead, directory: Path) -> Snapshot | None:
    """What was there when an input was read; None: nothing is known of it."""
    if read.version is not None:
        return Snapshot(read.kind or "", read.version, read.table)
    if read.listing is None:
        return None
    found = saved_listing(directory, read.listing, base_of(source.file.path))
    return Snapshot(read.kind or "", listing=found)


def snapshot_accepted(source: LandingSource, read: InputRead, directory: Path) -> Snapshot | None:
    """What was there when somebody accepted it, if that was after it had been read."""
    if read.accepted_version is None and read.accepted_listing is None:
        return None
    accepted = replace(read, version=read.accepted_version, listing=read.accepted_listing)
    return snapshot_read(source, accepted, directory)


def _together(one: Arrivals, other: Arrivals) -> Arrivals:
    late = Counter(one.late) + Counter(other.late)
    changed = tuple(joined((*one.changed, *other.changed)))
    rows = one.rows if other.rows is None else other.rows
    if one.rows is not None and other.rows is not None:
        rows = _both(one.rows, other.rows)
    return Arrivals(dict(sorted(late.items())), rows, changed, (*one.files, *other.files)[:5])


def _both(one: pa.Table | DataFrame, other: pa.Table | DataFrame) -> pa.Table | DataFrame:
    if isinstance(one, pa.Table) and isinstance(other, pa.Table):
        return pa.concat_tables([one, other])
    session = next(rows.sparkSession for rows in (one, other) if not isinstance(rows, pa.Table))
    frames = [
        session.createDataFrame(rows) if isinstance(rows, pa.Table) else rows
        for rows in (one, other)
    ]
    return frames[0].unionByName(frames[1])


def _hashes(entries: Collection[Entry], until: int) -> Hashed:
    kept = [entry.rows for entry in entries if entry.rows is not None] or [NO_ROWS]
    ticks = np.concatenate([rows.ticks for rows in kept])
    hashes = np.concatenate([rows.hashes for rows in kept])
    is_committed = ticks < until
    return Hashed(ticks[is_committed], hashes[is_committed])


def _span(ends: Sequence[int | None]) -> tuple[int | None, int | None]:
    known = [end for end in ends if end is not None]
    return (min(known), max(known)) if len(known) == len(ends) > 0 else (None, None)


def _bytes(files: Sequence[Path]) -> int:
    return sum(file.stat().st_size for file in files)
