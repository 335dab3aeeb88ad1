"""Reads of an input without rows that are to be forgotten, as if they had never landed.

Nothing is recorded of such rows: neither that they landed nor that they were removed. What is late
stays late. A Delta table whose history is erased leaves nothing to compare with, so each reader
records first what is late, removed or pending as of the version that stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.exceptions import DeltaError

from hydro_core.errors import DataError
from hydro_core.files.scan import Scan, read
from hydro_core.machine.faults import fault_of
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.frames.row_hashes import row_hashes
from hydro_core.spark.inputs.arrivals import LandingChanges, judged
from hydro_core.spark.inputs.changes import KnownLanding, LandingDiff
from hydro_core.spark.inputs.differences import (
    NO_DEVIATIONS,
    NONE_OFF,
    Deviations,
    OffFile,
    OffRows,
    joined,
    saved_deviations,
    unmatched,
)
from hydro_core.spark.inputs.looks import LandingView, seen
from hydro_core.spark.inputs.snapshot import HashedRows, LandingSource, Snapshot
from hydro_core.spark.store.delta.erased import erase_log
from hydro_core.spark.store.ledger.input_reads import ChangedRange, Counts, InputRead
from hydro_core.storage.remote import DataPlace
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import Field, ItemType, Row


@dataclass(frozen=True, slots=True)
class RowsOfValue:
    """The rows of an input that have a value in a column of its own."""

    source: LandingSource
    column: str
    value: Any

    @property
    def type(self) -> ItemType:
        """The column's."""
        return self.source.columns[self.column]

    def files(self, scan: Scan | None = None) -> Mapping[DataPlace, int]:
        """How many rows each file has, of whatever ticks; those without any are not named.

        Raises:
            DataError: a file cannot be read (code `input`).
        """
        at = scan or self.source.scan()
        item = Row((Field(self.column, self.type),))
        column = replace(at, item=item, file=replace(at.file, column=None))
        found = {}
        for file in at.fileset.files:
            items = read(column, [file]).items
            rows = int(np.count_nonzero(self._mask(items)))
            if rows:
                found[file] = rows
        return found

    def read_by(self, seen: LandingView) -> list[int]:
        """The committed ticks that have read the rows that are there now."""
        hashed = self.hashed(seen.now.version or 0, seen.until)
        late = seen.off.late.where(~unmatched(seen.off.late.hashes, hashed.hashes))
        own = unmatched(hashed.hashes, seen.off.elsewhere.hashes)
        ticks = [*hashed.ticks[own].tolist(), *late.arrived.tolist()]
        return [tick for tick in dict.fromkeys(ticks) if tick < seen.until]

    def hashed(self, version: int | None, until: int) -> HashedRows:
        """The rows of the ticks before one, as a version of the Delta table has them; None: as they
        are there now.
        """
        at = self.source.scan(None if version is None else Snapshot("", version))
        files = list(self.files(at))
        rows = self.source.rows(at, files, (0, until - 1))
        rows = rows.filter(pa.array(self._mask(rows[ITEM].combine_chunks())))
        return HashedRows(rows[TICK].to_numpy(), row_hashes(rows))

    def delete(self) -> int:
        """Takes the rows out of the Delta table by one commit, and gives its version after it.

        Raises:
            DataError: the table cannot be written (code `input`).
        """
        path = self.source.file.path
        try:
            table = DeltaTable(path)
            table.delete(f'"{self.column}" = {_literal(self.value)}')
            table.update_incremental()
            # The entry of the log says which rows went, so it is not to be the last one.
            nothing = PostCommitHookProperties()
            table.create_write_transaction(
                [], "append", table.schema(), post_commithook_properties=nothing
            )
            table.update_incremental()
            return table.version()
        except DeltaError as error:
            first_line = str(error).strip().partition("\n")[0]
            raise fault_of(error, path) or DataError.of(
                "input",
                f"input `{self.source.file.name}`: the rows cannot be deleted from the Delta table "
                f"{path}: {first_line}",
                help="delete them with what writes the table, then run this again",
            ) from error

    def erase_history(self, version: int) -> None:
        """Removes what the Delta table held before a version: its files, and its log."""
        path = Path(self.source.file.path)
        erase_log(path, version)
        DeltaTable(path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    def _mask(self, items: Any) -> npt.NDArray[np.bool_]:
        names = list(self.source.columns)
        struct = pa.types.is_struct(items.type)
        place = 0 if struct and items.type.num_fields == 1 else names.index(self.column)
        column = pc.struct_field(items, [place]) if struct else items
        wanted = pa.scalar(self.value, arrow_type(self.type))
        equal: Any = pc.equal(column, wanted)
        mask: npt.NDArray[np.bool_] = equal.fill_null(False).to_numpy(zero_copy_only=False)
        return mask


def _literal(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """What has gone from a landing since it was read last."""

    rows: OffRows
    files: tuple[OffFile, ...] = ()
    """Files of which nobody knows what has gone with them, and what came in their place."""
    came: OffRows = NONE_OFF
    """Rows that stand there in their place, as those that had been read: with their own ticks."""

    @property
    def is_nothing(self) -> bool:
        return not (len(self.rows) or len(self.came) or self.files)

    @property
    def first(self) -> int | None:
        """The first tick that has read some of it, or is to."""
        ticks = [*self.rows.arrived.tolist(), *self.came.ticks.tolist()]
        return min([*ticks, *(f.first for f in self.files)], default=None)

    @property
    def counts(self) -> Mapping[int, int]:
        """How many rows fewer there are, by the ticks with which they arrived."""
        found = Counter(self._read.arrived.tolist())
        found.subtract(self.came.ticks.tolist())
        return found

    @property
    def late(self) -> Mapping[int, int]:
        """How many of them came late, by their own ticks."""
        read = self._read
        return Counter(read.ticks[read.ticks != read.arrived].tolist())

    @property
    def _read(self) -> OffRows:
        """The rows that ticks have read, also of those that came and arrived late."""
        return self.rows.plus(self.came.where(self.came.arrived >= 0))

    @property
    def changes(self) -> Iterator[ChangedRange]:
        """The ticks that have lost rows, and how many, by the rows' own ticks."""
        for tick, rows in sorted(Counter(self.rows.ticks.tolist()).items()):
            yield ChangedRange(tick, tick, rows, 0)
        yield from joined(ChangedRange(file.first, file.last) for file in self.files)


def gone_since(
    seen: LandingView,
    read: InputRead,
    directory: DataPlace,
    theirs: HashedRows | None,
    before: Deviations = NO_DEVIATIONS,
) -> RemovedRows:
    """What has gone since an input was read last, or somebody accepted what had.

    Args:
        seen: the input as it is now.
        read: what was read of it.
        directory: the pipeline's.
        theirs: the rows that are to be forgotten, if they are known; else it is all.
        before: what differed when nothing of theirs had gone, if that is known.
    """
    known = saved_deviations(directory, read.accepted_deviations or read.deviations)
    listed = saved_deviations(directory, read.forgotten)
    rows, there = seen.off.gone, seen.off.elsewhere
    open_files = (f for f in seen.off.files if f.state != "late" and not f.accepted)
    files = [file for file in open_files if file not in (*known.files, *before.files)]
    if theirs is not None:
        hashes = np.concatenate([theirs.hashes, listed.gone.hashes])
        rows = rows.where(~unmatched(rows.hashes, hashes))
    elif read.forgotten is not None:
        rows = rows.where(~unmatched(rows.hashes, listed.gone.hashes))
        files = []
    else:
        rows = rows.where(unmatched(rows.hashes, known.gone.hashes))
    files += (file for file in seen.off.files if file in listed.files)
    came = there.where(~unmatched(there.hashes, listed.waiting.hashes))
    return RemovedRows(rows, tuple(files), came)


def unread(
    seen: LandingView,
    read: InputRead,
    directory: DataPlace,
    gone: RemovedRows | None,
    counts: Counts,
) -> InputRead:
    """What the ledger is to keep of an input that has been read without the rows that are gone.

    Args:
        seen: the input as it is now.
        read: what was read of it.
        directory: the pipeline's, where lists are put.
        gone: the rows; None: none of the input are to be forgotten.
        counts: how many rows arrived with each tick, with them.
    """
    gone = gone or RemovedRows(NONE_OFF)
    left_off = _without(seen.off, gone)
    off = left_off.put_off(seen.until)
    left = dict(counts)
    for tick, rows in gone.counts.items():
        known = left.get(tick)
        left[tick] = None if known is None else known - rows
    told = {tick: rows for tick, rows in left.items() if rows is not None}
    whole = len(told) == len(left) and not gone.files
    listing = seen.now.listing
    return replace(
        read,
        rows=sum(told.values()) if whole else None,
        version=seen.now.version,
        table=seen.now.table,
        listing=None if listing is None else listing.saved(directory),
        empty=tuple(tick for tick, rows in told.items() if not rows),
        late={},
        changed=off.changed,
        counts=told if whole else None,
        deviations=off.saved(directory),
        forgotten=None,
        is_forgotten_anew=False,
        **still_accepted(seen, read, directory, left_off),
    )


def still_accepted(
    seen: LandingView, read: InputRead, directory: DataPlace, off: Deviations
) -> Mapping[str, Any]:
    """What the ledger is to keep of what somebody has accepted, where what had been read is another
    now: whoever has let rows arrive, or go, is not asked again.

    Args:
        seen: the input as it is now.
        read: what was read of it before.
        directory: the pipeline's, where lists are put.
        off: where what is read differs from what lies there.
    """
    if read.accepted_version is None and read.accepted_listing is None:
        return {}
    listing = seen.now.listing
    known = saved_deviations(directory, read.accepted_deviations)
    return {
        "accepted_version": seen.now.version,
        "accepted_listing": None if listing is None else listing.saved(directory),
        "accepted_deviations": off.put_off(seen.until, known).saved(directory),
    }


def seen_without(seen: LandingView, gone: RemovedRows) -> LandingView:
    """An input as it is now, as if the rows that are gone had never been read."""
    arrivals = replace(seen.arrivals, deviations=_without(seen.off, gone))
    return replace(seen, arrivals=arrivals)


def _without(off: Deviations, gone: RemovedRows) -> Deviations:
    """What differs without the rows; what came in the place of files is as if it had been read."""
    files = tuple(file for file in off.files if file not in gone.files)
    came = gone.came.hashes
    is_late = ~unmatched(came, off.late.hashes)
    return replace(
        off,
        late=off.late.without(came[is_late]),
        gone=off.gone.without(gone.rows.hashes),
        waiting=off.waiting.without(came[~is_late]),
        files=files,
    )


@dataclass(frozen=True, slots=True)
class Deletion:
    """The version of a table before somebody was taken out of it, and the one after it."""

    before: int
    after: int
    is_anew: bool = False
    """Whether it was computed again without them, so that others may have changed, too."""


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Rows of committed ticks that were deleted: the version before it, and the one after it; None:
    there may be more between the two.
    """

    before: int
    after: int | None
    rows: HashedRows


def handed_over(
    source: LandingSource,
    read: InputRead,
    until: int,
    directory: DataPlace,
    deletions: Sequence[Deletion],
) -> InputRead | None:
    """What the ledger of a reader is to keep of a table, once that has no history before now; None:
    what it keeps holds as it is.

    Args:
        source: the table, as the reader reads it.
        read: what it has read of it.
        until: its first tick that is not committed.
        directory: that of its pipeline, where lists are put.
        deletions: those since, in order.
    """
    now = source.snapshot(source.scan())
    if read.version is None or now.version is None or now.version <= read.version:
        return None
    later = [one for one in deletions if one.before >= read.version]
    first = later[0].before if later else now.version
    accepted = saved_deviations(directory, read.accepted_deviations)
    view = seen(source, read, until, directory, _at(source, first), to_tell=True)
    listed = saved_deviations(directory, read.forgotten)
    for one in later:
        view = _moved(view, one.before, accepted)
        after = _moved(view, one.after, accepted)
        listed = _listed(listed, view.off, after.off, is_anew=one.is_anew)
        view = after
    view = _moved(view, now.version, accepted)
    off = view.off.put_off(until)
    return replace(
        read,
        version=now.version,
        table=now.table,
        changed=off.changed,
        counts=None,
        deviations=off.saved(directory),
        forgotten=listed.saved(directory),
        is_forgotten_anew=read.is_forgotten_anew or any(one.is_anew for one in later),
        **still_accepted(view, read, directory, view.off),
    )


def seen_by_way_of(
    source: LandingSource, read: InputRead, until: int, directory: DataPlace, deleted: DeletedRows
) -> tuple[LandingView, LandingView]:
    """A Delta table as it was before rows were deleted, and as it is now: what was late or gone by
    then is told apart from what went so.

    Args:
        source: the table.
        read: what was read of it.
        until: the first tick that is not committed.
        directory: the pipeline's.
        deleted: the rows.
    """
    accepted = saved_deviations(directory, read.accepted_deviations)
    before = seen(source, read, until, directory, _at(source, deleted.before))
    by_then = before
    if deleted.after is not None:
        scan = source.scan(Snapshot("", deleted.after))
        off = before.off.put_off(until, accepted)
        found = judged(source, scan, until, LandingChanges(gone=deleted.rows), off)
        by_then = replace(before, scan=scan, now=source.snapshot(scan), arrivals=found)
    now = source.snapshot(source.scan()).version
    return before, by_then if now is None else _moved(by_then, now, accepted)


def _at(source: LandingSource, version: int) -> Snapshot:
    return source.snapshot(source.scan(Snapshot("", version)))


def _moved(view: LandingView, version: int, accepted: Deviations) -> LandingView:
    """The same at a later version."""
    if view.now.version == version:
        return view
    source, until = view.source, view.until
    scan = source.scan(Snapshot("", version))
    known = KnownLanding(view.now, view.off.put_off(until, accepted))
    now = source.snapshot(scan)
    found = LandingDiff(source, scan, now, until).since(known)
    return replace(view, scan=scan, now=now, arrivals=found)


def _listed(
    listed: Deviations, before: Deviations, after: Deviations, *, is_anew: bool
) -> Deviations:
    """What went by a deletion, and what came in its place, beside what is listed."""
    gone = after.gone.without(before.gone.hashes)
    came = after.elsewhere.without(before.elsewhere.hashes) if is_anew else NONE_OFF
    known = {file.identity for file in before.files}
    files = (file for file in after.files if file.identity not in known)
    return replace(
        listed,
        gone=listed.gone.plus(gone),
        waiting=listed.waiting.plus(came),
        files=(*listed.files, *files),
        read_as=after.read_as,
        item=after.item,
    )
