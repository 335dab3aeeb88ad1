"""Looks at landings before a tick: what is read of them, and what came for committed ticks.

A tick reads what the look saw; what lands meanwhile is for the next look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from hydro_core.errors import InfrastructureError
from hydro_core.files.inputs import InputFile
from hydro_core.files.scan import Scan
from hydro_core.spark.inputs.arrivals import NOTHING_NEW, Arrivals, in_columns_of
from hydro_core.spark.inputs.changes import KnownLanding, LandingDiff, accepted_of, known_of
from hydro_core.spark.inputs.differences import Deviations
from hydro_core.spark.inputs.snapshot import LandingSource, Snapshot, as_changes, refuse_unfit
from hydro_core.spark.store.ledger.records import ChangedRange, InputRead
from hydro_core.storage.remote import DataPlace, RemotePath
from hydro_core.storage.settings import StorageSettings
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.item import ItemType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class LandingView:
    """An input as it was seen when `until` was the first tick that was not committed."""

    source: LandingSource
    until: int
    scan: Scan
    now: Snapshot
    arrivals: Arrivals = NOTHING_NEW
    """What came for earlier ticks since the input was read last."""
    undecided: Arrivals = NOTHING_NEW
    """What of it came since somebody accepted what was there; else all of it."""
    gain: int | None = None
    """How many rows more than before its ticks have, where they are computed again; None: that is
    not known, or they are not.
    """

    @property
    def off(self) -> Deviations:
        """Where what is read differs from what lies there."""
        return self.arrivals.deviations

    @property
    def changed(self) -> tuple[ChangedRange, ...]:
        """The ticks whose rows are not what they were when they were read."""
        return self.arrivals.changed

    def recorded(self, read: InputRead, directory: DataPlace | None, *, first: int) -> InputRead:
        """What the ledger is to keep of a reading that begins with the tick `first`."""
        listing = self.now.listing
        return replace(
            read,
            table=self.now.table,
            listing=None if listing is None or directory is None else listing.saved(directory),
            late=self.off.late_at(first),
            changed=self.changed,
            deviations=None if directory is None else self.off.saved(directory),
        )

    def accepted(self, read: InputRead, directory: DataPlace) -> InputRead:
        """What the ledger is to keep where what is there now is accepted."""
        listing = self.now.listing
        return replace(
            read,
            changed=(),
            counts=None,
            accepted_version=self.now.version,
            accepted_listing=None if listing is None else listing.saved(directory),
            accepted_deviations=self.off.accept().saved(directory),
        )

    def refuse_changed(self) -> None:
        """Raises if a file is not what it was when it was seen: rows of it may have been read.

        Raises:
            InfrastructureError: which one; another try finds it as it is by then.
        """
        listing = self.now.listing
        file = None if listing is None else listing.changed(self.scan.fileset.files)
        if file is not None:
            raise InfrastructureError.of(
                "runtime",
                f"input `{self.source.file.name}`: {file} was written or removed while it was read",
                help="write files elsewhere and move them in when they are whole; "
                "then run it again",
            )


def as_read(source: LandingSource, known: KnownLanding, until: int) -> LandingView:
    """An input as its ticks before `until` have read it, as far as that is there: a Delta table at
    the version that was read, files as they are now, without what came since. So is a table whose
    files of then were joined and removed, and one of which rows had gone by that version: they may
    be back.
    """
    scan = None
    with suppress(FileNotFoundError):
        if known.snapshot.version is not None and not known.off.misses:
            scan = source.scan(known.snapshot)
    if scan is not None and all(file.exists() for file in scan.fileset.files):
        now = replace(known.snapshot, table=scan.fileset.table)
        off = in_columns_of(source, scan, known.off)
        found = Arrivals(changed=off.changed, deviations=off)
        return LandingView(source, until, scan, now, found)
    return looked_at(source, known, until)


def looked_at(source: LandingSource, known: KnownLanding | None, until: int) -> LandingView:
    """An input as it is now, with what came for the ticks before `until`."""
    scan = source.scan()
    now = source.described(scan, None if known is None else known.snapshot.listing)
    found = NOTHING_NEW if known is None else LandingDiff(source, scan, now, until).since(known)
    return LandingView(source, until, scan, now, found)


def seen(
    source: LandingSource,
    read: InputRead | None,
    until: int,
    directory: DataPlace | None,
    as_of: Snapshot | None = None,
    *,
    to_tell: bool = False,
) -> LandingView:
    """Looks at an input.

    Args:
        source: the input.
        read: what was read of it for the ticks before; None: nothing is known of that.
        until: the first tick that is not committed.
        directory: the pipeline's, which has the lists of files; None: files are not compared.
        as_of: what was seen before and is looked at again; None: what is there now.
        to_tell: it is only told of, so that files need not be described for the ledger.
    """
    scan = source.scan(as_of)
    known = None if read is None or directory is None else known_of(source, read, directory)
    if as_of is not None:
        now = as_of
    elif to_tell or directory is None:
        now = source.snapshot(scan)
    else:
        now = source.described(scan, None if known is None else known.snapshot.listing)
    if read is None or known is None or directory is None or until == 0:
        return LandingView(source, until, scan, now)
    accepted = accepted_of(source, read, directory)
    undecided = LandingDiff(source, scan, now, until).since(accepted or known)
    found = undecided
    if accepted is not None:
        # What was accepted is late, too; its rows are read when they arrive.
        found = replace(undecided, late=undecided.deviations.late_at(until), rows=None)
    return LandingView(source, until, scan, now, found, undecided)


@dataclass(frozen=True, slots=True)
class LandingTable:
    """Where the rows of an input land, and which column tells their tick."""

    path: DataPlace
    column: str | None = None
    numbered: Calendar | None = None
    """Whose ticks the column has the numbers of; None: those of who reads."""
    optional: frozenset[str] = frozenset()
    """The declared columns that files may lack."""
    committed: int | None = None
    """The version of a Delta table up to which it counts; None: it counts as it lies there."""


@dataclass(frozen=True, slots=True)
class Landings:
    """Where inputs land, by their names, and the pipeline's directory; without one, what has come
    for committed ticks is not known.
    """

    sources: Mapping[str, LandingSource]
    directory: DataPlace | None

    def look(
        self,
        until: int,
        before: Sequence[InputRead] = (),
        as_of: Mapping[str, LandingView] | None = None,
        *,
        to_tell: bool = False,
    ) -> Mapping[str, LandingView]:
        """What lies in the landings, and what of it came for committed ticks; nothing is changed.

        Args:
            until: the first tick that is not committed.
            before: what was read of the inputs for the ticks before.
            as_of: what was seen before and is looked at again; else it is what is there now.
            to_tell: it is only told of, so that files need not be described for the ledger.

        Raises:
            DataError: an input is not there, is not what it was, or has other columns (`input`).
        """
        known = {read.name: read for read in before}
        found = {}
        for name, source in self.sources.items():
            source.refuse_missing()
            at = None if as_of is None else as_of[name].now
            with as_changes(source.file):
                read = known.get(name)
                found[name] = seen(source, read, until, self.directory, at, to_tell=to_tell)
            refuse_unfit(found[name].scan, known.get(name))
        return found

    def as_read(
        self,
        reads: Sequence[InputRead],
        until: int,
        dormant: Mapping[str, tuple[InputRead, int]] = MappingProxyType({}),
    ) -> Mapping[str, LandingView]:
        """The landings as the committed ticks have read them, as far as that is there: every row
        arrives with the tick with which it arrived, and none that came since.

        An input that was not read is as it is now.

        Args:
            reads: what was read of the inputs for the last tick.
            until: the first tick that is not committed.
            dormant: inputs that earlier ticks alone have read, with the first that has not. They
                are as they are now; what came for the earlier ones is late for the next tick.

        Raises:
            DataError: an input is not there, or has other columns (`input`).
        """
        known = {read.name: read for read in reads}
        found = {}
        for name, source in self.sources.items():
            source.refuse_missing()
            read, directory = known.get(name), self.directory
            with as_changes(source.file):
                if read is not None and directory is not None:
                    found[name] = as_read(source, _known(source, read, directory), until)
                elif name in dormant and directory is not None:
                    read, first = dormant[name]
                    one = looked_at(source, _known(source, read, directory), first)
                    off = one.off.put_off(first)
                    found[name] = replace(one, arrivals=Arrivals(deviations=off))
                else:
                    found[name] = looked_at(source, None, 0)
            refuse_unfit(found[name].scan, read)
        return found


def look_again(seen: Mapping[str, LandingView], first: int) -> Mapping[str, LandingView]:
    """The landings as they were seen, before committed ticks are computed again.

    What came for ticks before these arrives with the first of them: what is late by now, and what
    had arrived late with one of these ticks.

    Args:
        seen: what was seen, by all that was read of it.
        first: the first tick that is computed again.
    """
    found = {}
    for name, one in seen.items():
        off, more = one.off.again_from(first), one.off.gain_from(first)
        arrivals = Arrivals(late=off.late_at(first), changed=off.changed, deviations=off)
        gain = None if more is None else more + sum(one.arrivals.late.values())
        found[name] = replace(one, until=first, arrivals=arrivals, undecided=NOTHING_NEW, gain=gain)
    return found


def _known(source: LandingSource, read: InputRead, directory: DataPlace) -> KnownLanding:
    return known_of(source, read, directory) or KnownLanding(Snapshot(read.kind or ""))


def landings_of(
    landings: Mapping[str, LandingTable],
    items: Mapping[str, ItemType],
    spark: Callable[[], SparkSession],
    calendar: Calendar | None = None,
    directory: DataPlace | None = None,
) -> Landings:
    """The landings of a pipeline's inputs.

    Args:
        landings: where each input lands.
        items: the items' types, by the inputs' names.
        spark: gives the session, where files are too large for this process.
        calendar: the windows of the ticks; None: numbers tell them.
        directory: the pipeline's; without it, what came for committed ticks is not looked for.
    """
    sources = {}
    for name, where in landings.items():
        storage = where.path.settings if isinstance(where.path, RemotePath) else StorageSettings()
        file = InputFile(name, str(where.path), where.column, where.optional, storage)
        told = calendar, where.numbered, where.committed
        sources[name] = LandingSource(file, items[name], spark, *told)
    return Landings(sources, directory)
