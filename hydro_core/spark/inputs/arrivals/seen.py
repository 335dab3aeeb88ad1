"""An input as it was looked at before a tick: what is read of it, and what came for earlier ticks.

What is read is what was seen, whatever lands meanwhile: that is for the next look.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hydro_core.errors import Diagnostic, InfrastructureError
from hydro_core.files.arrived import Arrived
from hydro_core.spark.inputs.arrivals.difference import before, joined
from hydro_core.spark.inputs.arrivals.look import (
    NOTHING_NEW,
    Arrivals,
    Look,
    snapshot_accepted,
    snapshot_read,
)
from hydro_core.spark.inputs.arrivals.source import LandingSource, Snapshot
from hydro_core.spark.store.input_reads import ChangedRange, InputRead


@dataclass(frozen=True, slots=True)
class Seen:
    """An input as it was seen when `until` was the first tick that was not committed."""

    source: LandingSource
    until: int
    arrived: Arrived
    now: Snapshot
    arrivals: Arrivals = NOTHING_NEW
    """What came for earlier ticks since the input was read last."""
    undecided: Arrivals = NOTHING_NEW
    """What of it came since somebody accepted what was there; else all of it."""
    pending: tuple[ChangedRange, ...] = ()
    """What had been found changed before, and was not computed again since."""

    @property
    def changed(self) -> tuple[ChangedRange, ...]:
        """The ticks whose rows are not what they were when they were read."""
        return tuple(joined((*self.pending, *self.undecided.changed)))

    def noted(self, read: InputRead, directory: Path | None, *, first: int) -> InputRead:
        """What the ledger is to keep of a reading that begins with the tick `first`."""
        listing = self.now.listing
        name = None if listing is None or directory is None else listing.saved(directory)
        late = self.arrivals.late if first == self.until else {}
        rows = None if read.rows is None else read.rows + sum(late.values())
        return replace(
            read, rows=rows, table=self.now.table, listing=name, late=late, changed=self.changed
        )

    def accepted(self, read: InputRead, directory: Path) -> InputRead:
        """What the ledger is to keep where what is there now is accepted."""
        listing = self.now.listing
        return replace(
            read,
            changed=(),
            accepted_version=self.now.version,
            accepted_listing=None if listing is None else listing.saved(directory),
        )

    def refuse_changed(self) -> None:
        """Raises if a file is not what it was when it was seen: rows of it may have been read.

        Raises:
            InfrastructureError: which one; another try finds it as it is by then.
        """
        listing = self.now.listing
        file = None if listing is None else listing.changed(self.arrived.found.files)
        if file is not None:
            raise InfrastructureError(
                Diagnostic(
                    "runtime",
                    f"input `{self.source.file.name}`: {file} was written or removed while "
                    "it was read",
                    help="write files elsewhere and move them in when they are whole; "
                    "then run it again",
                )
            )


def again(one: Seen, last: Seen) -> Seen:
    """What is seen before committed ticks are computed again, and what is changed in those before.

    Args:
        one: the input by what had been read of it before the first of these ticks.
        last: the input by what was read of it last.
    """
    # Ticks of which rows were added, too, have these withheld, whatever has been accepted.
    withheld = [change for change in one.arrivals.changed if change.added != 0]
    changed = tuple(joined((*last.undecided.changed, *withheld)))
    return replace(one, undecided=Arrivals(changed=changed), pending=last.pending)


def seen(
    source: LandingSource,
    read: InputRead | None,
    until: int,
    directory: Path | None,
    as_of: Snapshot | None = None,
    *,
    to_tell: bool = False,
) -> Seen:
    """Looks at an input.

    Args:
        source: the input.
        read: what was read of it for the ticks before; None: nothing is known of that.
        until: the first tick that is not committed.
        directory: the pipeline's, which has the lists of files; None: files are not compared.
        as_of: what was seen before and is looked at again; None: what is there now.
        to_tell: it is only told of, so that files need not be described for the ledger.
    """
    arrived = source.arrived(as_of)
    now = as_of or source.snapshot(arrived)
    last = None if read is None or directory is None else snapshot_read(source, read, directory)
    if not to_tell and as_of is None and now.listing is not None and directory is not None:
        old = None if last is None else last.listing
        now = replace(now, listing=source.described(arrived, now.listing, old))
    if read is None or last is None or directory is None or until == 0:
        return Seen(source, until, arrived, now)
    look = Look(source, (arrived, now), until)
    arrivals = look.since(last)
    accepted = snapshot_accepted(source, read, directory)
    undecided = arrivals if accepted is None else look.since(accepted)
    return Seen(source, until, arrived, now, arrivals, undecided, before(read.changed, until))
