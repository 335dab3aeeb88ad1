"""Which of the rows that came are late, and which of those that went are missed.

Rows that return are no new ones: they cancel what was noted as gone, whatever file they are in,
and only what is left is late. The new form of a row that was rewritten waits: of a tick that lost
rows, what came in the place of others is for a correction to read. Once nothing of the tick is
missing any more it is late like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hydro_core.files.scan import Scan
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.frames.column_names import TICK
from hydro_core.spark.frames.from_arrow import table_frame
from hydro_core.spark.frames.row_hashes import row_hashes
from hydro_core.spark.inputs.arrivals.deviations import (
    NO_DEVIATIONS,
    Deviations,
    OffFile,
    OffRows,
    is_settled,
    off_rows,
    within,
)
from hydro_core.spark.inputs.arrivals.late_rows import present, rows_of
from hydro_core.spark.inputs.arrivals.listing import NO_ROWS, Hashed
from hydro_core.spark.inputs.arrivals.row_bags import Mask, unmatched
from hydro_core.spark.inputs.arrivals.source import LandingSource
from hydro_core.spark.store.ledger.input_reads import ChangedRange
from hydro_core.storage.remote import DataPlace
from hydro_core.types.ddl import to_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hydro_core.ticks.tick_range import Numbers

_COMPARED = 128 * MEBIBYTE
"""Files of more bytes than this are not looked through for rows that return."""
_HASHED = 250_000
"""Of more late rows than this that came at once, the files are known, and not each row."""
_NAMED = 5


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that came, with what tells it from others, and the first and last tick that it may
    hold; with `replaces` it came in the place of others.
    """

    at: Scan
    path: DataPlace
    identity: tuple[str, int, int]
    ends: tuple[int | None, int | None]
    replaces: bool


@dataclass(frozen=True, slots=True)
class LandingChanges:
    """What came to a landing and what went, of committed ticks."""

    came: tuple[NewFile, ...] = ()
    gone: Hashed = NO_ROWS
    """Rows of files that are there no more."""
    lost: tuple[OffFile, ...] = ()
    """Such files of which it is not known what they had."""

    @property
    def is_nothing(self) -> bool:
        """Whether nothing came or went."""
        return not (self.came or len(self.gone) or self.lost)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What an input got for committed ticks: rows that are late, and ticks that have changed."""

    late: Mapping[int, int] = field(default_factory=dict)
    """How many rows are late, by their tick."""
    rows: pa.Table | DataFrame | None = None
    """These rows (item, t); None: there are none, or they are still to be read."""
    changed: tuple[ChangedRange, ...] = ()
    """The ticks that have lost rows, or may have, and that nobody has accepted. What came in their
    place is not among the late.
    """
    files: tuple[str, ...] = ()
    """Where late rows are: a few of the files."""
    deviations: Deviations = field(default=NO_DEVIATIONS, compare=False)
    """Where what is read differs from what lies there, once the late rows have arrived."""

    @property
    def earliest(self) -> int | None:
        """The first tick that something came for, or was changed in; None: nothing was."""
        return min([*self.late, *(change.first for change in self.changed)], default=None)


NOTHING_NEW = Arrivals()
"""Nothing came for committed ticks."""


@dataclass(slots=True)
class _Found:
    """What has been found so far; it begins with what was known."""

    late: OffRows
    gone: OffRows
    waiting: OffRows
    files: list[OffFile]
    missed: Numbers = field(default_factory=lambda: NO_ROWS.ticks)
    """The ticks that have lost rows just now."""
    rows: list[pa.Table | DataFrame] = field(default_factory=list)
    """Rows that are late now."""
    counts: Counter[int] = field(default_factory=Counter)
    names: list[str] = field(default_factory=list)

    @property
    def unreported(self) -> list[OffFile]:
        """Files that are missed, and nobody knows what they had."""
        return [file for file in self.files if file.is_missed]


class Judge:
    """Judges what came and went.

    Args:
        source: the input.
        scan: what is there.
        until: the first tick that is not committed.
    """

    def __init__(self, source: LandingSource, scan: Scan, until: int) -> None:
        self._source, self._scan, self._until = source, scan, until

    def judged(self, changes: LandingChanges, known: Deviations) -> Arrivals:
        """What is late, and what is missed by now, after what was known before."""
        if changes.is_nothing and not known.waits:
            if known.is_nothing:
                return NOTHING_NEW
            return Arrivals(changed=known.changed, deviations=known)
        found = _Found(known.late, known.gone, known.waiting, list(known.files))
        self._note_lost(found, changes.lost)
        came = [file for file in changes.came if not _returns(found, file)]
        plain = [file for file in came if not self._is_compared(found, changes, file)]
        self._compare(found, [file for file in came if file not in plain], changes.gone)
        self._take(found, plain)
        self._settle(found)
        return self._arrivals(found)

    def _note_lost(self, found: _Found, lost: Sequence[OffFile]) -> None:
        """Files that are gone: those that waited are missed by nobody."""
        for file in lost:
            same = next(
                (f for f in found.files if f.state != "gone" and f.identity == file.identity), None
            )
            if same is not None and file.path:
                found.files.remove(same)
                if same.state == "late":
                    found.files.append(replace(same, state="gone"))
                if same.last < file.last:
                    found.files.append(replace(file, path="", first=same.last + 1))
                continue
            found.files.append(file)

    def _is_compared(self, found: _Found, changes: LandingChanges, file: NewFile) -> bool:
        """Whether rows of a file may be some that were there before."""
        if file.replaces:
            return True
        first, last = file.ends[0] or 0, self._until - 1 if file.ends[1] is None else file.ends[1]
        if any(one.holds(first, last) for one in found.unreported):
            return True
        ticks = (found.gone.ticks, changes.gone.ticks)
        return any(bool(((t >= first) & (t <= last)).any()) for t in ticks)

    def _compare(self, found: _Found, came: Sequence[NewFile], gone: Hashed) -> None:
        """Rows of files that came against those that went, now or before."""
        size = sum(file.path.stat().st_size for file in came)
        if size > _COMPARED and not (len(gone) and all(file.replaces for file in came)):
            found.files += [f for file in came for f in self._waits(file)]
            came = []
        ends = (0, self._until - 1)
        tables = [self._source.rows(file.at, [file.path], ends) for file in came]
        rows = pa.concat_tables(tables or [self._source.rows(self._scan, [], ends)])
        sizes = [table.num_rows for table in tables]
        of = np.repeat(np.arange(len(came)), sizes)
        replaces = np.repeat([file.replaces for file in came], sizes).astype(np.bool_)
        hashes, ticks = row_hashes(rows), rows[TICK].to_numpy()
        lost = unmatched(gone.hashes, hashes)
        self._miss(found, Hashed(gone.ticks[lost], gone.hashes[lost]))
        is_new = unmatched(hashes, gone.hashes)
        is_new &= ~_cancelled(found, hashes, is_new)
        is_unreported = is_new & within(ticks, found.unreported)
        for number in np.unique(of[is_unreported]).tolist():
            own = ticks[is_unreported & (of == number)]
            found.files += self._waits(came[number], int(own.min()), int(own.max()))
        missed = found.gone.ticks[~found.gone.accepted]
        waits = is_new & ~is_unreported & replaces
        waits &= np.isin(ticks, found.missed) & np.isin(ticks, missed)
        found.waiting = found.waiting.plus(off_rows(Hashed(ticks[waits], hashes[waits]), -1))
        self._note_late(found, rows, is_new & ~is_unreported & ~waits, (ticks, hashes))
        found.names += [str(file.path) for file in came]

    def _miss(self, found: _Found, lost: Hashed) -> None:
        """Rows that are there no more: those that waited are missed by nobody."""
        found.missed = lost.ticks
        left = off_rows(lost)
        waited = ~unmatched(left.hashes, found.waiting.hashes)
        found.waiting = found.waiting.without(left.hashes[waited])
        left = left.where(~waited)
        was_late = ~unmatched(left.hashes, found.late.hashes)
        # Of equal rows, those that arrived last are missed first.
        known = found.late.where(np.argsort(-found.late.arrived, kind="stable"))
        picked = ~unmatched(known.hashes, left.hashes[was_late])
        late, found.late = known.where(picked), known.where(~picked)
        # What was to arrive with the next tick has been read by none.
        found.gone = found.gone.plus(left.where(~was_late), late.where(late.arrived < self._until))

    def _take(self, found: _Found, came: Sequence[NewFile]) -> None:
        """All rows of committed ticks of files that hold nothing that was there before."""
        by_place: dict[int, list[NewFile]] = {}
        for file in came:
            by_place.setdefault(id(file.at), []).append(file)
        for files in by_place.values():
            paths = [file.path for file in files]
            rows, counts = self._source.many(files[0].at, paths, (0, self._until - 1))
            if not counts.total():
                continue
            found.names += map(str, paths)
            if isinstance(rows, pa.Table) and rows.num_rows <= _HASHED:
                ticks = rows[TICK].to_numpy()
                everything = np.ones(len(ticks), np.bool_)
                self._note_late(found, rows, everything, (ticks, row_hashes(rows)))
                continue
            found.rows.append(rows)
            found.counts.update(counts)
            for number, file in enumerate(files):
                of = counts if number == 0 else {}
                found.files.append(self._late_file(file, min(counts), max(counts), of))

    def _late_file(self, file: NewFile, first: int, last: int, rows: Mapping[int, int]) -> OffFile:
        name, size, written = file.identity
        of = dict(sorted(rows.items()))
        return OffFile(name, first, last, "late", size, written, self._until, of)

    def _note_late(self, found: _Found, rows: pa.Table, late: Mask, of: tuple[Any, Any]) -> None:
        if not late.any():
            return
        ticks, hashes = of
        found.rows.append(rows.filter(pa.array(late)))
        found.counts.update(ticks[late].tolist())
        found.late = found.late.plus(off_rows(Hashed(ticks[late], hashes[late]), self._until))

    def _waits(
        self, file: NewFile, first: int | None = None, last: int | None = None
    ) -> Iterator[OffFile]:
        """A file of which nobody knows which rows were there before."""
        low = first if first is not None else max(0, file.ends[0] or 0)
        high = last if last is not None else file.ends[1]
        high = self._until - 1 if high is None else min(high, self._until - 1)
        if low <= high:
            name, size, written = file.identity
            yield OffFile(name, low, high, "waiting", size, written)

    def _settle(self, found: _Found) -> None:
        """What waited for ticks of which nothing is missing any more is late."""
        away = [file for file in found.files if file.state == "gone"]
        settled = is_settled(found.waiting, found.gone, away)
        if settled.any():
            rows, _ = rows_of(self._source, self._scan, found.waiting.where(settled))
            found.waiting = found.waiting.where(~settled)
            ticks = rows[TICK].to_numpy()
            everything = np.ones(len(ticks), np.bool_)
            self._note_late(found, rows, everything, (ticks, row_hashes(rows)))
        for file in [f for f in found.files if f.state == "waiting"]:
            if _waits_for(found, file):
                continue
            found.files.remove(file)
            paths = present(self._source, self._scan, [file.path])
            waited, counts = self._source.many(self._scan, paths, (file.first, file.last))
            if counts.total():
                found.rows.append(waited)
                found.counts.update(counts)
                of = dict(sorted(counts.items()))
                late = replace(file, state="late", arrived=self._until, rows=of, accepted=False)
                found.files.append(late)

    def _arrivals(self, found: _Found) -> Arrivals:
        files = tuple(found.files)
        columns = self._source.read_as, to_ddl(self._source.item)
        off = Deviations(found.late, found.gone, found.waiting, files, *columns)
        off = NO_DEVIATIONS if off.is_nothing else off
        late = dict(sorted(found.counts.items()))
        names = tuple(found.names[:_NAMED]) if late else ()
        return Arrivals(late, _together(found.rows), off.changed, names, off)


def _returns(found: _Found, file: NewFile) -> bool:
    """Whether a file is one that was gone; then it is not, any more."""
    for one in found.files:
        if one.state == "gone" and one.path and one.identity == file.identity:
            found.files.remove(one)
            if one.arrived >= 0:
                found.files.append(replace(one, state="late", accepted=False))
            return True
    return False


def _cancelled(found: _Found, hashes: Any, is_new: Mask) -> Mask:
    """Which of the new rows were gone; these are it no more."""
    new = np.flatnonzero(is_new)
    back = new[~unmatched(hashes[new], found.gone.hashes)]
    picked = ~unmatched(found.gone.hashes, hashes[back])
    returned = found.gone.where(picked)
    found.gone = found.gone.where(~picked)
    late = returned.where(returned.arrived != returned.ticks)
    found.late = found.late.plus(late)
    mask: Mask = np.zeros(len(hashes), np.bool_)
    mask[back] = True
    return mask


def _waits_for(found: _Found, file: OffFile) -> bool:
    """Whether something of a file's ticks is missed; if it was accepted, whether it is away."""
    gone = (
        [one for one in found.files if one.state == "gone"] if file.accepted else found.unreported
    )
    ticks = found.gone.ticks if file.accepted else found.gone.ticks[~found.gone.accepted]
    return any(one.holds(file.first, file.last) for one in gone) or bool(
        ((ticks >= file.first) & (ticks <= file.last)).any()
    )


def _together(parts: Sequence[pa.Table | DataFrame]) -> pa.Table | DataFrame | None:
    """Rows of several tables as one."""
    tables = [rows for rows in parts if isinstance(rows, pa.Table)]
    frames = [rows for rows in parts if not isinstance(rows, pa.Table)]
    if not frames:
        return pa.concat_tables(tables) if tables else None
    session = frames[0].sparkSession
    frames += [table_frame(session, table) for table in tables]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole
