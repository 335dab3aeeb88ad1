"""The landings of a pipeline's inputs, looked at together: now, again, or as they were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hydro_core.files.inputs import InputFile
from hydro_core.spark.inputs.arrivals.look import snapshot_read
from hydro_core.spark.inputs.arrivals.seen import Seen, again, seen
from hydro_core.spark.inputs.arrivals.source import LandingSource
from hydro_core.spark.inputs.landed_refusals import as_changes, refuse_unfit
from hydro_core.spark.store.input_reads import InputRead
from hydro_core.spark.store.ledger import Ledger
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.item import ItemType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class LandingTable:
    """Where the rows of an input land, and which column tells their tick."""

    path: Path
    column: str | None = None
    numbered: Calendar | None = None
    """Whose ticks the column has the numbers of; None: those of who reads."""
    optional: frozenset[str] = frozenset()
    """The declared columns that files may lack."""


@dataclass(frozen=True, slots=True)
class Landings:
    """Where inputs land, by their names, and the pipeline's directory; without one, what has come
    for committed ticks is not known.
    """

    sources: Mapping[str, LandingSource]
    directory: Path | None

    def look(
        self,
        until: int,
        before: Sequence[InputRead] = (),
        as_of: Mapping[str, Seen] | None = None,
        *,
        to_tell: bool = False,
    ) -> Mapping[str, Seen]:
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
            refuse_unfit(found[name].arrived, known.get(name))
        return found

    def look_again(
        self, first: int, ledger: Ledger, as_of: Mapping[str, Seen]
    ) -> Mapping[str, Seen]:
        """The landings as they were seen, before committed ticks are computed again.

        What came for ticks before these arrives with the first of them: what is late by now, and
        what had arrived late with one of these ticks.

        Args:
            first: the first tick that is computed again.
            ledger: what has been committed.
            as_of: what was seen.
        """
        last, then = ledger.last_reads(), {read.name: read for read in ledger.reads_at(first - 1)}
        late = {
            read.name
            for commit in ledger.commits(since=first)
            for read in commit.inputs
            if any(tick < first for tick in read.late)
        }
        before = [then.get(r.name, r) if r.name in late else r for r in last]
        found, now = (self.look(first, reads, as_of) for reads in (before, last))
        return {name: again(one, now[name]) for name, one in found.items()}

    def as_read(self, reads: Sequence[InputRead]) -> Mapping[str, Seen]:
        """The landings as they were read last, as far as that is there: nothing of it is late.

        An input that was not read is as it is now.

        Raises:
            DataError: an input is not there, or has other columns (`input`).
        """
        known = {read.name: read for read in reads}
        found = {}
        for name, source in self.sources.items():
            source.refuse_missing()
            read, directory = known.get(name), self.directory
            if read is None or directory is None:
                found[name] = seen(source, None, 0, directory)
                continue
            was = snapshot_read(source, read, directory)
            is_known = was is not None and (was.version is not None or was.listing is not None)
            arrived = source.arrived(was if is_known else None)
            refuse_unfit(arrived, read)
            now = source.snapshot(arrived)
            if now.listing is not None:
                # A file that was written anew since is read as it is: it is all that there is.
                before = None if was is None else was.listing
                now = replace(now, listing=source.described(arrived, now.listing, before))
            found[name] = Seen(source, -1, arrived, now)
        return found


def landings_of(
    landings: Mapping[str, LandingTable],
    items: Mapping[str, ItemType],
    spark: Callable[[], SparkSession],
    calendar: Calendar | None = None,
    directory: Path | None = None,
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
            InputFile(name, str(where.path), where.column, where.optional),
            items[name],
            spark,
            calendar,
            where.numbered,
        )
        for name, where in landings.items()
    }
    return Landings(sources, directory)
