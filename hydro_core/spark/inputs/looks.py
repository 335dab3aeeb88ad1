"""Looks at landings before a tick: what is read of them, and what came for committed ticks.

A tick reads what the look saw; what lands meanwhile is for the next look.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from hydro_core.errors import InfrastructureError
from hydro_core.files.inputs import InputFile
from hydro_core.files.scan import Scan
from hydro_core.spark.inputs.arrivals import NOTHING_NEW, Arrivals, in_columns_of
from hydro_core.spark.inputs.changes import KnownLanding, LandingDiff, accepted_of, known_of
from hydro_core.spark.inputs.differences import Differences, LandingEvent
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
    """Rows of earlier ticks that came, or left, since the input was read last."""
    undecided: Arrivals = NOTHING_NEW
    """Those since somebody accepted the landing as it was; else all of them."""
    gain: int | None = None
    """How many rows more than before its ticks have, where they are computed again; None: that is
    not known, or they are not.
    """

    @property
    def differences(self) -> Differences:
        """Where what is read differs from what lies there."""
        return self.arrivals.differences

    @property
    def changed(self) -> tuple[ChangedRange, ...]:
        """The ticks whose rows are not what they were when they were read."""
        return self.arrivals.changed

    def recorded(self, read: InputRead, directory: DataPlace | None, *, first: int) -> InputRead:
        """The ledger's record of a read that begins with the tick `first`."""
        listing = self.now.listing
        return replace(
            read,
            table=self.now.table,
            listing=None if listing is None or directory is None else listing.saved(directory),
            late=self.differences.late_at(first),
            changed=self.changed,
            differences=None if directory is None else self.differences.saved(directory),
        )

    def accepted(self, read: InputRead, directory: DataPlace) -> InputRead:
        """The ledger's record where the landing is accepted as it is now."""
        listing = self.now.listing
        return replace(
            read,
            changed=(),
            counts=None,
            acknowledged_version=self.now.version,
            acknowledged_listing=None if listing is None else listing.saved(directory),
            acknowledged_differences=self.differences.after(LandingEvent.ACKNOWLEDGE).saved(
                directory
            ),
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


def as_read(source: LandingSource, known: KnownLanding, until: int) -> LandingView | None:
    """A Delta table as its ticks before `until` have read it, at the version that was read.

    None: its files of then were joined and removed, or rows had gone by that version, and may be
    back. Then, and of files, what is there now is read without what came since.
    """
    scan = None
    with suppress(FileNotFoundError):
        if known.snapshot.version is not None and not known.differences.has_removed:
            scan = source.scan(known.snapshot)
    if scan is not None and all(file.exists() for file in scan.fileset.files):
        now = replace(known.snapshot, table=scan.fileset.table)
        differences = in_columns_of(source, scan, known.differences)
        found = Arrivals(changed=differences.changed, differences=differences)
        return LandingView(source, until, scan, now, found)
    return None


def looked_at(
    source: LandingSource, scan: Scan, known: KnownLanding | None, until: int
) -> LandingView:
    """An input as it is now, with what came for the ticks before `until`."""
    now = source.described(scan, None if known is None else known.snapshot.listing)
    found = NOTHING_NEW if known is None else LandingDiff(source, scan, now, until).since(known)
    return LandingView(source, until, scan, now, found)


def compared(
    seen: LandingView, read: InputRead | None, known: KnownLanding | None, directory: DataPlace
) -> LandingView:
    """An input as it was seen, with what came since it was read.

    Args:
        seen: the input, when `until` was the first tick that is not committed.
        read: what was read of it for the ticks before; None: nothing is known of that.
        known: what was there then, and what differed from it.
        directory: the pipeline's, which has the lists.
    """
    if read is None or known is None or seen.until == 0:
        return seen
    accepted = accepted_of(seen.source, read, directory)
    diff = LandingDiff(seen.source, seen.scan, seen.now, seen.until)
    undecided = diff.since(accepted or known)
    found = undecided
    if accepted is not None:
        # What was accepted is late, too; its rows are read when they arrive.
        found = replace(undecided, late=undecided.differences.late_at(seen.until), rows=None)
    return replace(seen, arrivals=found, undecided=undecided)


@dataclass(frozen=True, slots=True)
class LandingTable:
    """Where the rows of an input land, and which column tells their tick."""

    path: DataPlace
    column: str | None = None
    numbered: Calendar | None = None
    """The calendar whose ticks the column numbers; None: that of the reader."""
    optional: frozenset[str] = frozenset()
    """The declared columns that files may lack."""
    committed: int | None = None
    """The version of a Delta table up to which it counts; None: it counts as it lies there."""


@dataclass(frozen=True, slots=True)
class Landings:
    """One look at the landings of inputs, by their names, and the pipeline's directory.

    Each landing is listed when it is first asked for, and what it has is the same for all who ask
    this object. Without a directory, what has come for committed ticks is not known.
    """

    sources: Mapping[str, LandingSource]
    directory: DataPlace | None
    to_tell: bool = False
    """It is only told of, so that files need not be described for the ledger."""
    _scans: dict[str, Scan] = field(default_factory=dict, compare=False)
    _views: dict[str, tuple[int, InputRead | None, LandingView]] = field(
        default_factory=dict, compare=False
    )

    def scan(self, name: str) -> Scan:
        if name not in self._scans:
            self._scans[name] = self.sources[name].scan()
        return self._scans[name]

    def latest(self, name: str) -> int | datetime | None:
        """The last tick, or the last moment, that a row is of; None: there are no rows.

        Raises:
            DataError: the input cannot be read (code `input`).
        """
        source = self.sources[name]
        if source.file.column is None or source.is_empty:
            return None
        return source.latest(self.scan(name))

    def look(
        self,
        until: int,
        before: Sequence[InputRead] = (),
        names: Collection[str] | None = None,
    ) -> Mapping[str, LandingView]:
        """The landings as they are, and what came for committed ticks; nothing is changed.

        Args:
            until: the first tick that is not committed.
            before: what was read of the inputs for the ticks before.
            names: the inputs that are looked at; None: all of them.

        Raises:
            DataError: an input is not there, is not what it was, or has other columns (`input`).
        """
        known = {read.name: read for read in before}
        wanted = (name for name in self.sources if names is None or name in names)
        return {name: self._view(name, known.get(name), until) for name in wanted}

    def _view(self, name: str, read: InputRead | None, until: int) -> LandingView:
        # Another process may have committed, or accepted, since it was asked for last.
        if name not in self._views or self._views[name][:2] != (until, read):
            source = self.sources[name]
            source.refuse_missing()
            with as_changes(source.file):
                view = self._compared(name, read, until)
            refuse_unfit(view.scan, read)
            self._views[name] = until, read, view
        return self._views[name][2]

    def _compared(self, name: str, read: InputRead | None, until: int) -> LandingView:
        source, scan, directory = self.sources[name], self.scan(name), self.directory
        if directory is None:
            return LandingView(source, until, scan, source.snapshot(scan))
        known = None if read is None else known_of(source, read, directory)
        before = None if known is None else known.snapshot.listing
        now = source.snapshot(scan) if self.to_tell else source.described(scan, before)
        return compared(LandingView(source, until, scan, now), read, known, directory)

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
                    at = _known(source, read, directory)
                    found[name] = as_read(source, at, until) or looked_at(
                        source, self.scan(name), at, until
                    )
                elif name in dormant and directory is not None:
                    read, first = dormant[name]
                    at = _known(source, read, directory)
                    one = looked_at(source, self.scan(name), at, first)
                    differences = one.differences.deferred(first)
                    found[name] = replace(one, arrivals=Arrivals(differences=differences))
                else:
                    found[name] = looked_at(source, self.scan(name), None, 0)
            refuse_unfit(found[name].scan, read)
        return found


def seen_after(
    seen: Mapping[str, LandingView],
    until: int,
    before: Sequence[InputRead],
    directory: DataPlace,
) -> Mapping[str, LandingView]:
    """The landings as they were seen, after committed ticks were computed again with them.

    Args:
        seen: what was seen.
        until: the first tick that is not committed.
        before: what was read of the inputs for the ticks before.
        directory: the pipeline's.
    """
    reads, found = {read.name: read for read in before}, {}
    for name, one in seen.items():
        view = LandingView(one.source, until, one.scan, one.now)
        read = reads.get(name)
        known = None if read is None else known_of(one.source, read, directory)
        with as_changes(one.source.file):
            found[name] = compared(view, read, known, directory)
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
        differences, more = one.differences.recomputed(first), one.differences.gain_from(first)
        arrivals = Arrivals(
            late=differences.late_at(first), changed=differences.changed, differences=differences
        )
        gain = None if more is None else more + sum(one.arrivals.late.values())
        found[name] = replace(one, until=first, arrivals=arrivals, undecided=NOTHING_NEW, gain=gain)
    return found


def _known(source: LandingSource, read: InputRead, directory: DataPlace) -> KnownLanding:
    return known_of(source, read, directory) or KnownLanding(Snapshot(read.kind or ""))


def landing_sources(
    landings: Mapping[str, LandingTable],
    items: Mapping[str, ItemType],
    spark: Callable[[], SparkSession],
    calendar: Calendar | None = None,
) -> Mapping[str, LandingSource]:
    """The inputs of a pipeline where they land.

    Args:
        landings: where each input lands.
        items: the items' types, by the inputs' names.
        spark: gives the session, where files are too large for this process.
        calendar: the windows of the ticks; None: numbers tell them.
    """
    sources = {}
    for name, where in landings.items():
        storage = where.path.settings if isinstance(where.path, RemotePath) else StorageSettings()
        file = InputFile(name, str(where.path), where.column, where.optional, storage)
        told = calendar, where.numbered, where.committed
        sources[name] = LandingSource(file, items[name], spark, *told)
    return sources
