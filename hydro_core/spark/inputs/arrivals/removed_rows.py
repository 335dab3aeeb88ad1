"""What has been read of an input, once rows are as if they had never landed.

Rows that have gone from the landing are noted until they are back. Of those that are to be
forgotten nothing is noted: not that they were there, nor that they are gone. What is late by now
stays late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hydro_core.spark.inputs.arrivals.deviations import (
    NO_DEVIATIONS,
    NONE_OFF,
    Deviations,
    OffFile,
    OffRows,
    saved_deviations,
)
from hydro_core.spark.inputs.arrivals.landings import LandingView
from hydro_core.spark.inputs.arrivals.listing import Hashed
from hydro_core.spark.inputs.arrivals.row_bags import joined, unmatched
from hydro_core.spark.store.ledger.input_reads import ChangedRange, Counts, InputRead
from hydro_core.storage.remote import DataPlace


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
    theirs: Hashed | None,
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
