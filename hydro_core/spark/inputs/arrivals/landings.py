"""The landings of a pipeline's inputs, looked at together: now, again, or as they were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from hydro_core.files.inputs import InputFile
from hydro_core.spark.inputs.arrivals.judged import Arrivals
from hydro_core.spark.inputs.arrivals.landing_diff import KnownLanding, known_of
from hydro_core.spark.inputs.arrivals.landing_view import (
    LandingView,
    again,
    as_read,
    looked_at,
    seen,
)
from hydro_core.spark.inputs.arrivals.source import LandingSource, Snapshot
from hydro_core.spark.inputs.landed_refusals import as_changes, refuse_unfit
from hydro_core.spark.store.ledger.input_reads import InputRead
from hydro_core.storage.remote import DataPlace, Remote
from hydro_core.storage.settings import StorageSettings
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.item import ItemType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    return {name: again(one, first) for name, one in seen.items()}


def _known(source: LandingSource, read: InputRead, directory: DataPlace) -> KnownLanding:
    return known_of(source, read, directory) or KnownLanding(Snapshot(read.kind or ""))


def _storage(place: DataPlace) -> StorageSettings:
    """How the store is reached that a place is in."""
    return place.settings if isinstance(place, Remote) else StorageSettings()


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
    sources = {
        name: LandingSource(
            InputFile(name, str(where.path), where.column, where.optional, _storage(where.path)),
            items[name],
            spark,
            calendar,
            where.numbered,
            where.committed,
        )
        for name, where in landings.items()
    }
    return Landings(sources, directory)
