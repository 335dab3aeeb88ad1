"""Arrivals: rows that came for committed ticks, and rows of theirs that were removed.

Rows that return are no new ones: they cancel what was recorded as removed, whatever file they are
in, and only a surplus is late. The new version of a row that was rewritten is pending: it came in
the place of another, and a correction reads it. Once no row of its tick is missing it is late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hydro_core.errors import DataError
from hydro_core.files.scan import Scan
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.frames.row_hashes import row_hashes
from hydro_core.spark.inputs.differences import (
    NO_DEVIATIONS,
    NONE_OFF,
    Deviations,
    Mask,
    OffFile,
    OffRows,
    RowIndices,
    is_settled,
    off_rows,
    unmatched,
    within,
)
from hydro_core.spark.inputs.snapshot import NO_ROWS, HashedRows, LandingSource
from hydro_core.spark.store.ledger.records import ChangedRange
from hydro_core.storage.remote import DataPlace, name_below
from hydro_core.ticks.tick_range import Numbers, count_ticks
from hydro_core.types.ddl import parse_ddl, to_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Rows = pa.Table | DataFrame


def rows_of(source: LandingSource, scan: Scan, wanted: OffRows) -> tuple[pa.Table, Numbers]:
    """Rows (item, t) of their own ticks, and the ticks with which they arrived; only those that are
    there.
    """
    parts: list[pa.Table] = []
    came: list[Numbers] = []
    for first, last in runs(wanted.ticks):
        table = source.rows(scan, files_of(source, scan, first, last), (first, last))
        here, places = _matched(wanted.between(first, last), row_hashes(table))
        parts.append(table.take(places))
        came.append(here.arrived)
    if not parts:
        return source.rows(scan, [], None), np.array([], np.int64)
    return pa.concat_tables(parts), np.concatenate(came)


def _matched(rows: OffRows, hashes: Any) -> tuple[OffRows, RowIndices]:
    """Those of some rows that are among others, and their places there, both by their hashes.

    Equal rows are one to the program, so which of them arrived when is open.
    """
    here = rows.where(~unmatched(rows.hashes, hashes))
    places = np.flatnonzero(~unmatched(hashes, here.hashes))
    by_hash = places[np.argsort(hashes[places], kind="stable")]
    return here.where(np.argsort(here.hashes, kind="stable")), by_hash


def arriving(
    source: LandingSource, scan: Scan, off: Deviations, ticks: tuple[int, int]
) -> Iterator[tuple[Rows, Counter[int]]]:
    """The rows that arrived late with some ticks, as of those, and how many each of them has."""
    first, last = ticks
    late = off.late.where((off.late.arrived >= first) & (off.late.arrived <= last))
    # Which of equal rows is which is told by all that are not where they belong.
    same = off.elsewhere.where(off.elsewhere.at(late.ticks))
    table, came = rows_of(source, scan, same) if len(late) else (None, np.array([], np.int64))
    if table is not None:
        kept = (came >= first) & (came <= last)
        table = table.filter(pa.array(kept)).set_column(1, TICK, pa.array(came[kept]))
        yield table, Counter(came[kept].tolist())
    for tick in sorted({f.arrived for f in off.files if f.state == "late"}):
        if not first <= tick <= last:
            continue
        together: dict[tuple[int, int], list[str]] = {}
        for file in off.files:
            if file.state == "late" and file.arrived == tick:
                together.setdefault((file.first, file.last), []).append(file.path)
        for ends, names in together.items():
            paths = present(source, scan, names)
            if paths:
                rows, counts = source.many(scan, paths, ends)
                yield as_of(rows, tick), Counter({tick: counts.total()})


def in_columns_of(source: LandingSource, scan: Scan, off: Deviations) -> Deviations:
    """What differs of an input, by the columns that are read now: another program may read others.

    What is not there is known by its ticks alone then, and so is what cannot be read as before.
    """
    if off.read_as in ("", source.read_as):
        return off
    before = replace(source, item=parse_ddl(off.item))
    late, waiting = (_hashed_again(source, scan, before, rows) for rows in (off.late, off.waiting))
    lost = Counter(zip(off.late.ticks.tolist(), off.late.arrived.tolist(), strict=True))
    lost -= Counter(zip(late.ticks.tolist(), late.arrived.tolist(), strict=True))
    files = [
        *(OffFile("", t, t, "late", arrived=came, rows={t: n}) for (t, came), n in lost.items()),
        *(
            OffFile("", tick, tick, "gone", accepted=accepted)
            for tick, accepted in set(
                zip(off.gone.ticks.tolist(), off.gone.accepted.tolist(), strict=True)
            )
        ),
    ]
    return Deviations(
        late,
        waiting=waiting,
        files=(*off.files, *files),
        read_as=source.read_as,
        item=to_ddl(source.item),
    )


def _hashed_again(
    source: LandingSource, scan: Scan, before: LandingSource, rows: OffRows
) -> OffRows:
    """Rows by other columns, as far as they are there."""
    parts: list[OffRows] = []
    for first, last in runs(rows.ticks):
        files = files_of(source, scan, first, last)
        try:
            then = before.rows(replace(scan, item=before.item), files, (first, last))
            now = source.rows(scan, files, (first, last))
        except DataError:
            continue
        here, places = _matched(rows.between(first, last), row_hashes(then))
        parts.append(replace(here, hashes=row_hashes(now)[places]))
    return NONE_OFF.plus(*parts)


def as_of(rows: Rows, tick: int) -> Rows:
    if isinstance(rows, pa.Table):
        return rows.set_column(1, TICK, pa.repeat(pa.scalar(tick, pa.int64()), rows.num_rows))
    from pyspark.sql import functions as F

    return rows.select(ITEM, F.lit(tick).cast("long").alias(TICK))


def own_rows(
    source: LandingSource, scan: Scan, off: Deviations, ticks: tuple[int, int]
) -> Iterator[tuple[Rows, Counter[int]]]:
    """The rows of some ticks that are read with these: without what is late or waits."""
    there = off.elsewhere.between(*ticks)
    late = {file.path: file.last for file in off.files if file.state == "late"}
    for first, last in _cut(ticks, list(runs(there.ticks))):
        files = files_of(source, scan, first, last)
        files = [file for file in files if _name(source, file) not in late]
        part = there.between(first, last)
        if not len(part):
            yield source.many(scan, files, (first, last))
            continue
        table = source.rows(scan, files, (first, last))
        kept = table.filter(pa.array(unmatched(row_hashes(table), part.hashes)))
        yield kept, count_ticks(kept[TICK].to_numpy())
    for path, late_to in late.items():
        begin = max(ticks[0], late_to + 1)
        if begin <= ticks[1]:
            # Its rows of later ticks came in time.
            yield source.many(scan, present(source, scan, [path]), (begin, ticks[1]))


def present(source: LandingSource, scan: Scan, names: Sequence[str]) -> list[DataPlace]:
    """Files by their names, as far as they are there."""
    wanted = set(names)
    return [file for file in scan.fileset.files if _name(source, file) in wanted]


def unreported(source: LandingSource, scan: Scan, off: Deviations) -> Counter[int]:
    """How many rows came late of which nobody can tell any more which they are, by their ticks."""
    there = {_name(source, file) for file in scan.fileset.files}
    lost = [f for f in off.files if f.state == "late" and f.path not in there]
    found: Counter[int] = Counter()
    for file in lost:
        found.update(file.rows)
    return found


def files_of(source: LandingSource, scan: Scan, first: int, last: int) -> list[DataPlace]:
    """The files that may have rows of some ticks."""

    def may_hold(file: DataPlace) -> bool:
        low, high = source.bounds(scan, file)
        return (low is None or low <= last) and (high is None or high >= first)

    return list(filter(may_hold, scan.fileset.files))


def runs(ticks: Numbers) -> Iterator[tuple[int, int]]:
    """Ticks that follow each other, by the first and the last of them."""
    known = np.unique(ticks)
    if not len(known):
        return
    for part in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
        yield int(part[0]), int(part[-1])


def _cut(ticks: tuple[int, int], parts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """A range, cut where each of some parts begins and ends."""
    begin = ticks[0]
    for first, last in parts:
        if begin < first:
            yield begin, first - 1
        yield first, last
        begin = last + 1
    if begin <= ticks[1]:
        yield begin, ticks[1]


def _name(source: LandingSource, file: DataPlace) -> str:
    return name_below(file, source.base)


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
    gone: HashedRows = NO_ROWS
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


def judged(
    source: LandingSource, scan: Scan, until: int, changes: LandingChanges, known: Deviations
) -> Arrivals:
    """What is late, and what is missed by now, after what was known before; `until` is the first
    tick that is not committed.
    """
    if changes.is_nothing and not known.waits:
        if known.is_nothing:
            return NOTHING_NEW
        return Arrivals(changed=known.changed, deviations=known)
    off = known.late, known.gone, known.waiting, list(known.files)
    return _Classification(source, scan, until, *off).arrivals(changes)


@dataclass(slots=True)
class _Classification:
    """What has been found so far; it begins with what was known."""

    source: LandingSource
    scan: Scan
    until: int
    late: OffRows
    gone: OffRows
    waiting: OffRows
    files: list[OffFile]
    rows: list[pa.Table | DataFrame] = field(default_factory=list)
    """Rows that are late now."""
    counts: Counter[int] = field(default_factory=Counter)
    names: list[str] = field(default_factory=list)

    def arrivals(self, changes: LandingChanges) -> Arrivals:
        self._note_lost(changes.lost)
        compared, plain = list[NewFile](), list[NewFile]()
        for file in [file for file in changes.came if not self._returns(file)]:
            (compared if self._is_compared(changes, file) else plain).append(file)
        self._compare(compared, changes.gone)
        self._take(plain)
        self._settle()
        columns = self.source.read_as, to_ddl(self.source.item)
        off = Deviations(self.late, self.gone, self.waiting, tuple(self.files), *columns)
        off = NO_DEVIATIONS if off.is_nothing else off
        late = dict(sorted(self.counts.items()))
        names = tuple(self.names[:_NAMED]) if late else ()
        return Arrivals(late, _together(self.rows), off.changed, names, off)

    @property
    def _unreported(self) -> list[OffFile]:
        """Files that are missed, and nobody knows what they had."""
        return [file for file in self.files if file.is_missed]

    def _note_lost(self, lost: Sequence[OffFile]) -> None:
        """Files that are gone: those that waited are missed by nobody."""
        for file in lost:
            same = next(
                (f for f in self.files if f.state != "gone" and f.identity == file.identity), None
            )
            if same is not None and file.path:
                self.files.remove(same)
                if same.state == "late":
                    self.files.append(replace(same, state="gone"))
                if same.last < file.last:
                    self.files.append(replace(file, path="", first=same.last + 1))
                continue
            self.files.append(file)

    def _returns(self, file: NewFile) -> bool:
        """Whether a file is one that was gone; then it is not, any more."""
        for one in self.files:
            if one.state == "gone" and one.path and one.identity == file.identity:
                self.files.remove(one)
                if one.arrived >= 0:
                    self.files.append(replace(one, state="late", accepted=False))
                return True
        return False

    def _is_compared(self, changes: LandingChanges, file: NewFile) -> bool:
        """Whether rows of a file may be some that were there before."""
        first, last = file.ends[0] or 0, self.until - 1 if file.ends[1] is None else file.ends[1]
        return (
            file.replaces
            or any(one.holds(first, last) for one in self._unreported)
            or any(
                ((t >= first) & (t <= last)).any() for t in (self.gone.ticks, changes.gone.ticks)
            )
        )

    def _compare(self, came: Sequence[NewFile], gone: HashedRows) -> None:
        """Rows of files that came against those that went, now or before."""
        size = sum(file.path.stat().st_size for file in came)
        if size > _COMPARED and not (len(gone) and all(file.replaces for file in came)):
            self.files += [f for file in came for f in self._waits(file)]
            came = []
        ends = (0, self.until - 1)
        tables = [self.source.rows(file.at, [file.path], ends) for file in came]
        rows = pa.concat_tables(tables or [self.source.rows(self.scan, [], ends)])
        sizes = [table.num_rows for table in tables]
        of = np.repeat(np.arange(len(came)), sizes)
        replaces = np.repeat([file.replaces for file in came], sizes).astype(np.bool_)
        hashes, ticks = row_hashes(rows), rows[TICK].to_numpy()
        lost = unmatched(gone.hashes, hashes)
        self._miss(HashedRows(gone.ticks[lost], gone.hashes[lost]))
        is_new = unmatched(hashes, gone.hashes)
        is_new &= ~self._cancelled(hashes, is_new)
        is_unreported = is_new & within(ticks, self._unreported)
        for number in np.unique(of[is_unreported]).tolist():
            own = ticks[is_unreported & (of == number)]
            self.files += self._waits(came[number], int(own.min()), int(own.max()))
        missed = self.gone.ticks[~self.gone.accepted]
        waits = is_new & ~is_unreported & replaces
        waits &= np.isin(ticks, gone.ticks[lost]) & np.isin(ticks, missed)
        self.waiting = self.waiting.plus(off_rows(HashedRows(ticks[waits], hashes[waits]), -1))
        is_late = is_new & ~is_unreported & ~waits
        self._note_late(rows.filter(pa.array(is_late)), ticks[is_late], hashes[is_late])
        self.names += [str(file.path) for file in came]

    def _miss(self, lost: HashedRows) -> None:
        """Rows that are there no more: those that waited are missed by nobody."""
        left = off_rows(lost)
        waited = ~unmatched(left.hashes, self.waiting.hashes)
        self.waiting = self.waiting.without(left.hashes[waited])
        left = left.where(~waited)
        was_late = ~unmatched(left.hashes, self.late.hashes)
        # Of equal rows, those that arrived last are missed first.
        known = self.late.where(np.argsort(-self.late.arrived, kind="stable"))
        picked = ~unmatched(known.hashes, left.hashes[was_late])
        late, self.late = known.where(picked), known.where(~picked)
        # What was to arrive with the next tick has been read by none.
        self.gone = self.gone.plus(left.where(~was_late), late.where(late.arrived < self.until))

    def _cancelled(self, hashes: Any, is_new: Mask) -> Mask:
        """Which of the new rows were gone; these are it no more."""
        new = np.flatnonzero(is_new)
        back = new[~unmatched(hashes[new], self.gone.hashes)]
        picked = ~unmatched(self.gone.hashes, hashes[back])
        returned, self.gone = self.gone.where(picked), self.gone.where(~picked)
        self.late = self.late.plus(returned.where(returned.arrived != returned.ticks))
        mask: Mask = np.zeros(len(hashes), np.bool_)
        mask[back] = True
        return mask

    def _take(self, came: Sequence[NewFile]) -> None:
        """All rows of committed ticks of files that hold nothing that was there before."""
        by_place: dict[int, list[NewFile]] = {}
        for file in came:
            by_place.setdefault(id(file.at), []).append(file)
        for files in by_place.values():
            paths = [file.path for file in files]
            rows, counts = self.source.many(files[0].at, paths, (0, self.until - 1))
            if not counts.total():
                continue
            self.names += map(str, paths)
            if isinstance(rows, pa.Table) and rows.num_rows <= _HASHED:
                self._note_late(rows, rows[TICK].to_numpy(), row_hashes(rows))
                continue
            self.rows.append(rows)
            self.counts.update(counts)
            for number, file in enumerate(files):
                name, size, written = file.identity
                ends = name, min(counts), max(counts)
                of = dict(sorted(counts.items())) if number == 0 else {}
                self.files.append(OffFile(*ends, "late", size, written, self.until, of))

    def _note_late(self, rows: pa.Table, ticks: Any, hashes: Any) -> None:
        if rows.num_rows:
            self.rows.append(rows)
            self.counts.update(ticks.tolist())
            self.late = self.late.plus(off_rows(HashedRows(ticks, hashes), self.until))

    def _waits(
        self, file: NewFile, first: int | None = None, last: int | None = None
    ) -> Iterator[OffFile]:
        """A file of which nobody knows which rows were there before."""
        low = first if first is not None else max(0, file.ends[0] or 0)
        high = last if last is not None else file.ends[1]
        high = self.until - 1 if high is None else min(high, self.until - 1)
        if low <= high:
            name, size, written = file.identity
            yield OffFile(name, low, high, "waiting", size, written)

    def _settle(self) -> None:
        """What waited for ticks of which nothing is missing any more is late."""
        away = [file for file in self.files if file.state == "gone"]
        settled = is_settled(self.waiting, self.gone, away)
        if settled.any():
            rows, _ = rows_of(self.source, self.scan, self.waiting.where(settled))
            self.waiting = self.waiting.where(~settled)
            self._note_late(rows, rows[TICK].to_numpy(), row_hashes(rows))
        for file in [f for f in self.files if f.state == "waiting"]:
            if self._is_awaited(file):
                continue
            self.files.remove(file)
            paths = present(self.source, self.scan, [file.path])
            waited, counts = self.source.many(self.scan, paths, (file.first, file.last))
            if counts.total():
                self.rows.append(waited)
                self.counts.update(counts)
                of = dict(sorted(counts.items()))
                late = replace(file, state="late", arrived=self.until, rows=of, accepted=False)
                self.files.append(late)

    def _is_awaited(self, file: OffFile) -> bool:
        """Whether something of a file's ticks is missed; if it was accepted, whether it is away."""
        away = (one for one in self.files if one.state == "gone")
        ticks = self.gone.ticks if file.accepted else self.gone.ticks[~self.gone.accepted]
        return any(
            one.holds(file.first, file.last)
            for one in (away if file.accepted else self._unreported)
        ) or bool(((ticks >= file.first) & (ticks <= file.last)).any())


def _together(parts: Sequence[pa.Table | DataFrame]) -> pa.Table | DataFrame | None:
    """Rows of several tables as one."""
    tables = [rows for rows in parts if isinstance(rows, pa.Table)]
    frames = [rows for rows in parts if not isinstance(rows, pa.Table)]
    if not frames:
        return pa.concat_tables(tables) if tables else None
    # Imported here: `status` looks at landings without PySpark.
    from hydro_core.spark.frames.leaf import table_frame

    session = frames[0].sparkSession
    frames += [table_frame(session, table) for table in tables]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole
