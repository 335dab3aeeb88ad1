"""What has been read of a Delta table whose history is about to go, by all who read it.

A deletion that leaves no history leaves nothing to compare with, either. So before it goes, what
each reader has read is told anew, of the version that stays: what is late, gone or waiting by now
is so afterwards, by the hashes of its rows. What went by the deletion itself is listed apart: it is
missed like anything else that goes, until the reader forgets it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hydro_core.spark.inputs.arrivals.deviations import (
    NONE_OFF,
    Deviations,
    saved_deviations,
)
from hydro_core.spark.inputs.arrivals.judged import LandingChanges, judged
from hydro_core.spark.inputs.arrivals.landing_diff import KnownLanding, LandingDiff
from hydro_core.spark.inputs.arrivals.landings import LandingView, seen
from hydro_core.spark.inputs.arrivals.listing import Hashed
from hydro_core.spark.inputs.arrivals.removed_rows import still_accepted
from hydro_core.spark.inputs.arrivals.source import LandingSource, Snapshot
from hydro_core.spark.store.ledger.input_reads import InputRead
from hydro_core.storage.remote import DataPlace


@dataclass(frozen=True, slots=True)
class Deletion:
    """The version of a table before somebody was taken out of it, and the one after it."""

    before: int
    after: int
    is_anew: bool = False
    """Whether it was computed again without them, so that others may have changed, too."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """Rows of committed ticks that were deleted: the version before it, and the one after it; None:
    there may be more between the two.
    """

    before: int
    after: int | None
    rows: Hashed


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
    source: LandingSource, read: InputRead, until: int, directory: DataPlace, deleted: Deleted
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
