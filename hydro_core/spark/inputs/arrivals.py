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
    NO_DIFFERENCES,
    NO_DIFFERING,
    PENDING,
    REMOVED,
    Differences,
    DifferingFile,
    DifferingRows,
    LandingEvent,
    Mask,
    RowIndices,
    RowState,
    differing_rows,
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


def rows_of(source: LandingSource, scan: Scan, wanted: DifferingRows) -> tuple[pa.Table, Numbers]:
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


def _matched(rows: DifferingRows, hashes: Any) -> tuple[DifferingRows, RowIndices]:
    """Those of some rows that are among others, and their places there, both by their hashes.

    Equal rows are one to the program, so which of them arrived when is open.
    """
    here = rows.where(~unmatched(rows.hashes, hashes))
    places = np.flatnonzero(~unmatched(hashes, here.hashes))
    by_hash = places[np.argsort(hashes[places], kind="stable")]
    return here.where(np.argsort(here.hashes, kind="stable")), by_hash


def arriving(
    source: LandingSource, scan: Scan, differences: Differences, ticks: tuple[int, int]
) -> Iterator[tuple[Rows, Counter[int]]]:
    """The rows that arrived late with some ticks, as of those, and how many each of them has."""
    first, last = ticks
    late = differences.late.where(
        (differences.late.arrived >= first) & (differences.late.arrived <= last)
    )
    # Which of equal rows is which is told by all that are not where they belong.
    same = differences.elsewhere.where(np.isin(differences.elsewhere.ticks, late.ticks))
    table, came = rows_of(source, scan, same) if len(late) else (None, np.array([], np.int64))
    if table is not None:
        kept = (came >= first) & (came <= last)
        table = table.filter(pa.array(kept)).set_column(1, TICK, pa.array(came[kept]))
        yield table, Counter(came[kept].tolist())
    for tick in sorted({f.arrived for f in differences.files if f.is_late}):
        if not first <= tick <= last:
            continue
        together: dict[tuple[int, int], list[str]] = {}
        for file in differences.files:
            if file.is_late and file.arrived == tick:
                together.setdefault((file.first, file.last), []).append(file.path)
        for ends, names in together.items():
            paths = present(source, scan, names)
            if paths:
                rows, counts = source.many(scan, paths, ends)
                yield as_of(rows, tick), Counter({tick: counts.total()})


def in_columns_of(source: LandingSource, scan: Scan, differences: Differences) -> Differences:
    """The differences of an input, hashed by the columns that are read now.

    Another program may read others. Rows that are not landed, or that cannot be read as before, are
    known by their ticks alone then.
    """
    if differences.read_as in ("", source.read_as):
        return differences
    before = replace(source, item=parse_ddl(differences.item))
    rows = _hashed_again(source, scan, before, differences.elsewhere)
    lost = _by_ticks(differences.late)
    lost -= _by_ticks(rows.of(RowState.LATE))
    removed = {
        (tick, state) for state in REMOVED for tick in differences.rows.of(state).ticks.tolist()
    }
    files = [
        *(
            DifferingFile("", tick, tick, RowState.LATE, arrived=came, rows={tick: n})
            for (tick, came), n in lost.items()
        ),
        *(DifferingFile("", tick, tick, state) for tick, state in sorted(removed)),
    ]
    return Differences(rows, (*differences.files, *files), source.read_as, to_ddl(source.item))


def _by_ticks(late: DifferingRows) -> Counter[tuple[int, int]]:
    """How many rows there are of each tick that arrived with each tick."""
    return Counter(zip(late.ticks.tolist(), late.arrived.tolist(), strict=True))


def _hashed_again(
    source: LandingSource, scan: Scan, before: LandingSource, rows: DifferingRows
) -> DifferingRows:
    """Rows by other columns, as far as they are there."""
    parts: list[DifferingRows] = []
    for first, last in runs(rows.ticks):
        files = files_of(source, scan, first, last)
        try:
            then = before.rows(replace(scan, item=before.item), files, (first, last))
            now = source.rows(scan, files, (first, last))
        except DataError:
            continue
        here, places = _matched(rows.between(first, last), row_hashes(then))
        parts.append(replace(here, hashes=row_hashes(now)[places]))
    return NO_DIFFERING.plus(*parts)


def as_of(rows: Rows, tick: int) -> Rows:
    if isinstance(rows, pa.Table):
        return rows.set_column(1, TICK, pa.repeat(pa.scalar(tick, pa.int64()), rows.num_rows))
    from pyspark.sql import functions as F

    return rows.select(ITEM, F.lit(tick).cast("long").alias(TICK))


def own_rows(
    source: LandingSource, scan: Scan, differences: Differences, ticks: tuple[int, int]
) -> Iterator[tuple[Rows, Counter[int]]]:
    """The rows of some ticks that are read with these: without what is late or pending."""
    there = differences.elsewhere.between(*ticks)
    late = {file.path: file.last for file in differences.files if file.is_late}
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


def unreported(source: LandingSource, scan: Scan, differences: Differences) -> Counter[int]:
    """How many rows came late of which nobody can tell any more which they are, by their ticks."""
    there = {_name(source, file) for file in scan.fileset.files}
    lost = [f for f in differences.files if f.is_late and f.path not in there]
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
"""Up to so many late rows that came at once are known by hashes; of more, the files are known."""
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
    """Files and rows of committed ticks that came to a landing, or left it."""

    came: tuple[NewFile, ...] = ()
    gone: HashedRows = NO_ROWS
    """Rows of files that are there no more."""
    lost: tuple[DifferingFile, ...] = ()
    """Such files of which it is not known what they had."""

    @property
    def is_nothing(self) -> bool:
        return not (self.came or len(self.gone) or self.lost)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Late rows of committed ticks, and committed ticks that have changed."""

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
    differences: Differences = field(default=NO_DIFFERENCES, compare=False)
    """Where what is read differs from what lies there, once the late rows have arrived."""

    @property
    def earliest(self) -> int | None:
        """The first tick that something came for, or was changed in; None: nothing was."""
        return min([*self.late, *(change.first for change in self.changed)], default=None)


NOTHING_NEW = Arrivals()
"""Nothing came for committed ticks."""


def compare(
    source: LandingSource, scan: Scan, until: int, changes: LandingChanges, known: Differences
) -> Arrivals:
    """Arrivals by what changed in a landing, after what was known to differ before; `until` is the
    first tick that is not committed.
    """
    if changes.is_nothing and not known.has_pending:
        if known.is_nothing:
            return NOTHING_NEW
        return Arrivals(changed=known.changed, differences=known)
    return _Comparison(source, scan, until, known.rows, list(known.files)).arrivals(changes)


@dataclass(slots=True)
class _Comparison:
    """Compares a landing with what was read of it; it begins with what was known to differ."""

    source: LandingSource
    scan: Scan
    until: int
    differing: DifferingRows
    files: list[DifferingFile]
    rows: list[pa.Table | DataFrame] = field(default_factory=list)
    """Rows that are late now."""
    counts: Counter[int] = field(default_factory=Counter)
    names: list[str] = field(default_factory=list)

    def arrivals(self, changes: LandingChanges) -> Arrivals:
        self._remove_files(changes.lost)
        came = [file for file in changes.came if not self._returns(file)]
        compared, plain = list[NewFile](), list[NewFile]()
        for file in came:
            (compared if self._is_compared(changes, file) else plain).append(file)
        self._compare(compared, changes.gone)
        self._take(plain)
        self._settle()
        differences = self._differences
        differences = NO_DIFFERENCES if differences.is_nothing else differences
        late = dict(sorted(self.counts.items()))
        names = tuple(self.names[:_NAMED]) if late else ()
        return Arrivals(late, _together(self.rows), differences.changed, names, differences)

    @property
    def _differences(self) -> Differences:
        files, item = tuple(self.files), to_ddl(self.source.item)
        return Differences(self.differing, files, self.source.read_as, item)

    @property
    def _missing(self) -> list[DifferingFile]:
        """Files that are missing, of which nobody knows the rows."""
        return [file for file in self.files if file.state is RowState.REMOVED]

    def _remove_files(self, lost: Sequence[DifferingFile]) -> None:
        for file in lost:
            same = next(
                (f for f in self.files if not f.is_removed and f.identity == file.identity), None
            )
            if same is None or not file.path:
                self.files.append(file)
                continue
            self.files.remove(same)
            self.files += same.after(LandingEvent.LEAVES, self.until)
            if same.last < file.last:
                self.files.append(replace(file, path="", first=same.last + 1))

    def _returns(self, file: NewFile) -> bool:
        """Takes a file as one that was removed, if it is; then it is not, any more."""
        for one in self.files:
            if one.is_removed and one.path and one.identity == file.identity:
                self.files.remove(one)
                self.files += one.after(LandingEvent.LANDS, self.until)
                return True
        return False

    def _is_compared(self, changes: LandingChanges, file: NewFile) -> bool:
        """True if rows of a file may be some that were landed before."""
        first, last = file.ends[0] or 0, self.until - 1 if file.ends[1] is None else file.ends[1]
        removed = self.differing.of(*REMOVED).ticks, changes.gone.ticks
        return (
            file.replaces
            or any(one.holds(first, last) for one in self._missing)
            or any(((t >= first) & (t <= last)).any() for t in removed)
        )

    def _compare(self, came: Sequence[NewFile], gone: HashedRows) -> None:
        """Rows of files that came against those that went, now or before."""
        size = sum(file.path.stat().st_size for file in came)
        if size > _COMPARED and not (len(gone) and all(file.replaces for file in came)):
            self.files += [f for file in came for f in self._pending_file(file)]
            came = []
        ends = (0, self.until - 1)
        tables = [self.source.rows(file.at, [file.path], ends) for file in came]
        rows = pa.concat_tables(tables or [self.source.rows(self.scan, [], ends)])
        sizes = [table.num_rows for table in tables]
        of = np.repeat(np.arange(len(came)), sizes)
        replaces = np.repeat([file.replaces for file in came], sizes).astype(np.bool_)
        hashes, ticks = row_hashes(rows), rows[TICK].to_numpy()
        lost = unmatched(gone.hashes, hashes)
        self._remove(HashedRows(gone.ticks[lost], gone.hashes[lost]))
        is_new = unmatched(hashes, gone.hashes)
        is_new &= ~self._returned(hashes, is_new)
        is_unknown = is_new & within(ticks, self._missing)
        for number in np.unique(of[is_unknown]).tolist():
            own = ticks[is_unknown & (of == number)]
            self.files += self._pending_file(came[number], int(own.min()), int(own.max()))
        missing = self.differing.of(RowState.REMOVED).ticks
        is_pending = is_new & ~is_unknown & replaces
        is_pending &= np.isin(ticks, gone.ticks[lost]) & np.isin(ticks, missing)
        pending = HashedRows(ticks[is_pending], hashes[is_pending])
        new = differing_rows(pending, RowState.UNREAD).after(LandingEvent.REPLACES)
        self.differing = self.differing.plus(new)
        is_late = is_new & ~is_unknown & ~is_pending
        self._add_late(rows.filter(pa.array(is_late)))
        self.names += [str(file.path) for file in came]

    def _remove(self, lost: HashedRows) -> None:
        """Rows that left the landing. Of equal rows the pending are missed first, then those that
        arrived last: what no tick has read is missed by none.
        """
        arrived = np.where(self.differing.arrived < 0, self.until + 1, self.differing.arrived)
        self.differing = self.differing.where(np.argsort(-arrived, kind="stable"))
        listed = RowState.LATE, *PENDING
        is_in_time = unmatched(lost.hashes, self.differing.of(*listed).hashes)
        own = HashedRows(lost.ticks[is_in_time], lost.hashes[is_in_time])
        left = self.differing.matched(listed, lost.hashes)
        self.differing = self.differing.changed(left, LandingEvent.LEAVES, self.until).plus(
            differing_rows(own, RowState.IN_TIME).after(LandingEvent.LEAVES)
        )

    def _returned(self, hashes: Any, is_new: Mask) -> Mask:
        """Takes new rows as removed ones that return, and gives which they are."""
        new = np.flatnonzero(is_new)
        back = new[~unmatched(hashes[new], self.differing.of(*REMOVED).hashes)]
        returned = self.differing.matched(REMOVED, hashes[back])
        self.differing = self.differing.changed(returned, LandingEvent.LANDS, self.until)
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
                self._add_late(rows)
                continue
            self.rows.append(rows)
            self.counts.update(counts)
            for number, file in enumerate(files):
                name, size, written = file.identity
                ends = name, min(counts), max(counts)
                of = dict(sorted(counts.items())) if number == 0 else {}
                new = DifferingFile(*ends, RowState.UNREAD, size, written, rows=of)
                self.files += new.after(LandingEvent.LANDS, self.until)

    def _add_late(
        self,
        rows: pa.Table,
        before: RowState = RowState.UNREAD,
        event: LandingEvent = LandingEvent.LANDS,
    ) -> None:
        if rows.num_rows:
            ticks = rows[TICK].to_numpy()
            self.rows.append(rows)
            self.counts.update(ticks.tolist())
            new = differing_rows(HashedRows(ticks, row_hashes(rows)), before)
            self.differing = self.differing.plus(new.after(event, self.until))

    def _pending_file(
        self, file: NewFile, first: int | None = None, last: int | None = None
    ) -> list[DifferingFile]:
        """A file of which nobody knows which rows were there before."""
        low = first if first is not None else max(0, file.ends[0] or 0)
        high = last if last is not None else file.ends[1]
        high = self.until - 1 if high is None else min(high, self.until - 1)
        name, size, written = file.identity
        new = DifferingFile(name, low, high, RowState.UNREAD, size, written)
        return new.after(LandingEvent.REPLACES) if low <= high else []

    def _settle(self) -> None:
        """Pending rows are late once nothing of their tick is missing any more."""
        settled = self._differences.settled
        if settled.any():
            rows, _ = rows_of(self.source, self.scan, self.differing.where(settled))
            self.differing = self.differing.where(~settled)
            self._add_late(rows, RowState.PENDING, LandingEvent.SETTLES)
        for file in [f for f in self.files if f.state in PENDING and self._is_settled(f)]:
            self.files.remove(file)
            paths = present(self.source, self.scan, [file.path])
            settled_rows, counts = self.source.many(self.scan, paths, (file.first, file.last))
            if counts.total():
                self.rows.append(settled_rows)
                self.counts.update(counts)
                late = replace(file, rows=dict(sorted(counts.items())))
                self.files += late.after(LandingEvent.SETTLES, self.until)

    def _is_settled(self, file: DifferingFile) -> bool:
        """True if nothing of a file's ticks is missing, or away where the file is acknowledged."""
        states = REMOVED if file.state is RowState.PENDING_ACKNOWLEDGED else (RowState.REMOVED,)
        missing = self.differing.of(*states).between(file.first, file.last)
        files = (one for one in self.files if one.state in states)
        return not (len(missing) or any(one.holds(file.first, file.last) for one in files))


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
