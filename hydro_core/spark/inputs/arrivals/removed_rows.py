"""What has been read of an input, once rows are as if they had never landed.

Rows that have gone from the landing are noted until they are back. Of those that are to be
forgotten nothing is noted: not that they were there, nor that they are gone. What is late by now
stays late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hydro_core.spark.inputs.arrivals.deviations import (
    NONE_OFF,
    Deviations,
    OffFile,
    OffRows,
    saved_deviations,
)
from hydro_core.spark.inputs.arrivals.landing_view import LandingView
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

    @property
    def is_nothing(self) -> bool:
        return not (len(self.rows) or self.files)

    @property
    def first(self) -> int | None:
        """The first tick that has read some of it."""
        return min([*self.rows.arrived.tolist(), *(f.first for f in self.files)], default=None)

    @property
    def counts(self) -> Mapping[int, int]:
        """How many rows they are, by the ticks with which they arrived."""
        return Counter(self.rows.arrived.tolist())

    @property
    def late(self) -> Mapping[int, int]:
        """How many of them came late, by their own ticks."""
        return Counter(self.rows.ticks[self.rows.ticks != self.rows.arrived].tolist())

    @property
    def changes(self) -> Iterator[ChangedRange]:
        """The ticks that have lost rows, and how many, by the rows' own ticks."""
        for tick, rows in sorted(Counter(self.rows.ticks.tolist()).items()):
            yield ChangedRange(tick, tick, rows, 0)
        yield from joined(ChangedRange(file.first, file.last) for file in self.files)


def gone_since(
    seen: LandingView, read: InputRead, directory: DataPlace, theirs: Hashed | None
) -> RemovedRows:
    """What has gone since an input was read last, or somebody accepted what had.

    Args:
        seen: the input as it is now.
        read: what was read of it.
        directory: the pipeline's.
        theirs: the rows that are to be forgotten, if they are known; else it is all.
    """
    known = saved_deviations(directory, read.accepted_deviations or read.deviations)
    rows = seen.off.gone
    if theirs is None:
        rows = rows.where(unmatched(rows.hashes, known.gone.hashes))
    else:
        rows = rows.where(~unmatched(rows.hashes, theirs.hashes))
    files = (f for f in seen.off.files if f.state != "late" and not f.accepted)
    return RemovedRows(rows, tuple(file for file in files if file not in known.files))


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
    off = _without(seen.off, gone).put_off(seen.until)
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
        accepted_version=None,
        accepted_listing=None,
        accepted_deviations=None,
    )


def seen_without(seen: LandingView, gone: RemovedRows) -> LandingView:
    """An input as it is now, as if the rows that are gone had never been read."""
    arrivals = replace(seen.arrivals, deviations=_without(seen.off, gone))
    return replace(seen, arrivals=arrivals)


def _without(off: Deviations, gone: RemovedRows) -> Deviations:
    """What differs without the rows; what came in the place of files is as if it had been read."""
    files = tuple(file for file in off.files if file not in gone.files)
    return replace(off, gone=off.gone.without(gone.rows.hashes), files=files)
