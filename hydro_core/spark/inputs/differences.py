"""Differences between what committed ticks read of an input and what its landing has.

Committed ticks have read what the landing had at the last look, each row at its own tick, but for
the rows and files that are listed here, each with its state. So what was read can be told from the
landing at any time, and be read again as it arrived. Rows are known by their hashes; of files that
are too large for that, the files are known.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from hydro_core.spark.inputs.snapshot import LISTINGS, HashedRows, save
from hydro_core.spark.store.ledger.ledger import RESTORE, state_error
from hydro_core.spark.store.ledger.records import ChangedRange, as_row
from hydro_core.storage.arrow import opened
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.tick_range import Numbers
from hydro_core.types.records import of_record

Mask = npt.NDArray[np.bool_]


def unmatched(rows: Any, others: Any) -> Mask:
    """Which rows, by their hashes, are not among the others: each of these is one row."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    places = np.arange(len(ordered))
    begins = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    rank = places - np.maximum.accumulate(np.where(begins, places, 0))
    keys, counts = np.unique(others, return_counts=True)
    at = np.searchsorted(keys, ordered)
    known = np.append(keys, keys[:1])[at] == ordered if len(keys) else np.zeros(len(rows), np.bool_)
    there = np.where((at < len(keys)) & known, np.append(counts, 0)[at], 0)
    found: Mask = np.empty(len(rows), np.bool_)
    found[order] = rank >= there
    return found


def joined(changes: Iterable[ChangedRange]) -> list[ChangedRange]:
    """The same changes, those of ticks that follow each other as one, and each tick told once."""
    found: list[ChangedRange] = []
    for change in sorted(changes, key=lambda one: (one.first, one.last)):
        last = found[-1] if found else None
        if last is None or change.first > last.last + 1:
            found.append(change)
        elif change != last:
            found[-1] = _both(last, change)
    return found


def _both(one: ChangedRange, other: ChangedRange) -> ChangedRange:
    def total(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a + b

    return ChangedRange(
        one.first,
        max(one.last, other.last),
        total(one.removed, other.removed),
        total(one.added, other.added),
    )


RowIndices = npt.NDArray[np.signedinteger[Any]]
"""Places of rows."""

_NEVER = -1
"""Arrived with no tick."""


@dataclass(frozen=True, slots=True, eq=False)
class OffRows:
    """Rows by their own ticks and hashes, the ticks with which they arrived (-1: none), and whether
    somebody has accepted that they differ.
    """

    ticks: Numbers
    hashes: Any
    arrived: Numbers
    accepted: Mask

    def __len__(self) -> int:
        return len(self.ticks)

    def where(self, mask: Mask | RowIndices) -> OffRows:
        """Some of the rows, by whether each is one of them, or by their places."""
        return OffRows(self.ticks[mask], self.hashes[mask], self.arrived[mask], self.accepted[mask])

    def plus(self, *others: OffRows) -> OffRows:
        """These rows and others."""
        several = [self, *(other for other in others if len(other))]
        parts = [(rows.ticks, rows.hashes, rows.arrived, rows.accepted) for rows in several]
        return OffRows(*map(np.concatenate, zip(*parts, strict=True)))

    def arriving(self, arrived: int | Numbers) -> OffRows:
        """The rows as if they had arrived with another tick, or each with one."""
        came = np.broadcast_to(np.asarray(arrived, np.int64), self.ticks.shape)
        return replace(self, arrived=came.copy())

    def as_accepted(self) -> OffRows:
        return replace(self, accepted=np.ones(len(self), np.bool_))

    def without(self, hashes: Any) -> OffRows:
        """The rows without some, each as often as it is named."""
        return self.where(unmatched(self.hashes, hashes)) if len(self) and len(hashes) else self

    def between(self, first: int, last: int) -> OffRows:
        """Those whose own ticks are within some."""
        return self.where((self.ticks >= first) & (self.ticks <= last))

    def at(self, ticks: Numbers) -> Mask:
        """Which rows are of some ticks of their own."""
        return np.isin(self.ticks, ticks)


def off_rows(rows: HashedRows, arrived: int | Numbers | None = None) -> OffRows:
    """Rows that arrived with a tick, or each with one; None: each with its own."""
    ticks, hashes = np.asarray(rows.ticks, np.int64), np.asarray(rows.hashes, np.uint64)
    found = OffRows(ticks, hashes, ticks, np.zeros(len(ticks), np.bool_))
    return found if arrived is None else found.arriving(arrived)


NONE_OFF = off_rows(HashedRows(np.array([], np.int64), np.array([], np.uint64)))


@dataclass(frozen=True, slots=True)
class OffFile:
    """A file of which the rows of committed ticks, `first` to `last`, are late, gone or waiting."""

    path: str
    """Below the landing; empty: which file it is, is not known."""
    first: int
    last: int
    state: Literal["late", "gone", "waiting"]
    size: int = 0
    written: int = 0
    arrived: int = _NEVER
    """The tick with which its rows arrived, if they were late."""
    rows: Mapping[int, int] = field(default_factory=dict)
    """How many late rows each tick has; of files that came together, the first has those of all."""
    accepted: bool = False

    @property
    def identity(self) -> tuple[str, int, int]:
        """What tells it from others, as far as the file system tells."""
        return self.path, self.size, self.written

    @property
    def is_missed(self) -> bool:
        """Whether it is gone, and nobody has accepted that."""
        return self.state == "gone" and not self.accepted

    def holds(self, first: int, last: int) -> bool:
        """Whether it has rows of some of the ticks that differ."""
        return self.first <= last and first <= self.last


@dataclass(frozen=True, slots=True, eq=False)
class Deviations:
    """What differs of an input; `read_as` names the columns that the hashes are of."""

    late: OffRows = NONE_OFF
    gone: OffRows = NONE_OFF
    waiting: OffRows = NONE_OFF
    files: tuple[OffFile, ...] = ()
    read_as: str = ""
    item: str = ""
    """The type of the items that are hashed, as DDL."""

    @property
    def is_nothing(self) -> bool:
        """Whether all is read as it lies there."""
        return not (len(self.late) or len(self.gone) or len(self.waiting) or self.files)

    @property
    def misses(self) -> bool:
        """Whether something is gone that ticks have read."""
        return bool(len(self.gone)) or any(file.state == "gone" for file in self.files)

    @property
    def waits(self) -> bool:
        """Whether something waits, and nobody has accepted it."""
        waiting = bool((~self.waiting.accepted).any())
        return waiting or any(f.state == "waiting" and not f.accepted for f in self.files)

    @property
    def changed(self) -> tuple[ChangedRange, ...]:
        """The ticks that have lost rows, or may have, as far as nobody has accepted it."""
        gone = Counter(self.gone.ticks[~self.gone.accepted].tolist())
        waits = Counter(self.waiting.ticks[~self.waiting.accepted].tolist())
        rows = [ChangedRange(tick, tick, gone[tick], waits[tick]) for tick in gone]
        open_files = (f for f in self.files if f.state != "late" and not f.accepted)
        return tuple(joined([*rows, *(ChangedRange(f.first, f.last) for f in open_files)]))

    def late_at(self, tick: int) -> Mapping[int, int]:
        """How many rows arrived late with a tick, by their own ticks."""
        found = Counter(self.late.ticks[self.late.arrived == tick].tolist())
        for file in self.files:
            if file.state == "late" and file.arrived == tick:
                found.update(file.rows)
        return dict(sorted(found.items()))

    def touch(self, first: int, last: int) -> bool:
        """Whether not all rows of some ticks are read with these."""
        return bool(len(self.elsewhere.between(first, last))) or any(
            file.state == "late" and file.holds(first, last) for file in self.files
        )

    @property
    def elsewhere(self) -> OffRows:
        """The landed rows that are not read with their own tick."""
        return self.late.plus(self.waiting)

    def accept(self) -> Deviations:
        """The same, accepted: nobody is told of it any more."""
        return replace(
            self,
            gone=self.gone.as_accepted(),
            waiting=self.waiting.as_accepted(),
            files=tuple(f if f.state == "late" else replace(f, accepted=True) for f in self.files),
        )

    def put_off(self, tick: int, but: Deviations | None = None) -> Deviations:
        """The same, where rows that would arrive with a tick do not: what looks next finds them
        late. Of rows that are late in `but`, too, that is known.
        """
        known = NO_DEVIATIONS if but is None else but
        is_late = self.late.arrived == tick
        of_known = known.late.hashes[known.late.arrived == tick]
        is_late[is_late] = unmatched(self.late.hashes[is_late], of_known)
        waiting = self.late.where(is_late).arriving(_NEVER)
        files = (
            replace(f, state="waiting", arrived=_NEVER)
            if f.state == "late" and f.arrived == tick and f not in known.files
            else f
            for f in self.files
        )
        return replace(
            self,
            late=self.late.where(~is_late),
            waiting=self.waiting.plus(waiting),
            files=tuple(files),
        )

    def again_from(self, first: int) -> Deviations:
        """What differs once the ticks from `first` on are computed again from what is landed: what
        is late for earlier ticks, and has not arrived before, arrives with it.
        """
        late = self.late.where(self.late.ticks < first)
        gone = self.gone.where(self.gone.arrived < first)
        waiting = self.waiting.where(self.waiting.ticks < first)
        settled = is_settled(waiting, gone, [f for f in self.files if f.state == "gone"])
        came = waiting.where(settled).arriving(first)
        found = replace(
            self,
            late=late.arriving(np.minimum(late.arrived, first)).plus(came),
            gone=gone,
            waiting=waiting.where(~settled),
            files=tuple(
                _again(file, first)
                for file in self.files
                # What is gone and had arrived since is not read any more.
                if file.first < first and (file.state != "gone" or file.arrived < first)
            ),
        )
        return NO_DEVIATIONS if found.is_nothing else found

    def gain_from(self, first: int) -> int | None:
        """How many rows more than before that reads, without what is late by now; None: files that
        changed do not tell.
        """
        if any(file.state != "late" for file in self.files):
            return None
        waited = len(self.waiting) - len(self.again_from(first).waiting)
        return waited - int((self.gone.arrived >= first).sum())

    def saved(self, directory: DataPlace) -> str | None:
        """Puts the list below a pipeline's directory, and gives its name; None: nothing differs."""
        if self.is_nothing:
            return None
        parts = [getattr(self, kind) for kind in _KINDS]
        whole = NONE_OFF.plus(*parts)
        kinds = np.repeat(np.arange(len(_KINDS), dtype=np.int8), [len(part) for part in parts])
        # The same list has the same name, in whatever order its rows were found.
        order = np.lexsort((whole.arrived, whole.hashes, whole.ticks, kinds))
        table = pa.table(
            {
                "kind": pa.array(kinds[order]),
                "tick": pa.array(whole.ticks[order]),
                "hash": pa.array(whole.hashes[order]),
                "arrived": pa.array(whole.arrived[order]),
                "accepted": pa.array(whole.accepted[order]),
            }
        )
        files = list(map(as_row, self.files))
        known = {"files": files, "read_as": self.read_as, "item": self.item}
        table = table.replace_schema_metadata({_KNOWN: json.dumps(known).encode()})
        return save(table, directory)


NO_DEVIATIONS = Deviations()
"""What has been read is what lies there."""
_KINDS = ("late", "gone", "waiting")
_KNOWN = b"deviations"


def saved_deviations(directory: DataPlace, name: str | None) -> Deviations:
    """A list that was saved below a pipeline's directory.

    Raises:
        DataError: it is not there any more (code `state`).
    """
    if name is None:
        return NO_DEVIATIONS
    place = directory / LISTINGS / f"{name}.parquet"
    try:
        table = pq.ParquetFile(opened(place)).read()
    except FileNotFoundError:
        raise state_error(
            f"{place} is gone, which tells what ticks have read otherwise than it is landed",
            RESTORE,
        ) from None
    known = json.loads((table.schema.metadata or {})[_KNOWN])
    columns = [table[n].to_numpy() for n in ("tick", "hash", "arrived", "accepted")]
    whole, kinds = OffRows(*columns), table["kind"].to_numpy()
    parts = [whole.where(kinds == number) for number in range(len(_KINDS))]
    files = of_record(tuple[OffFile, ...], known["files"])
    late, gone, waiting = parts
    return Deviations(late, gone, waiting, files, known["read_as"], known["item"])


def is_settled(waiting: OffRows, gone: OffRows, files: Sequence[OffFile]) -> Mask:
    """Which rows wait no longer: where nothing is missing, nothing waits for it.

    What was accepted goes on waiting as long as what it stands for is away, accepted or not. Of
    `files` that are gone nobody knows what they had.
    """
    missed = waiting.at(gone.ticks[~gone.accepted])
    missed |= within(waiting.ticks, [file for file in files if file.is_missed])
    away = waiting.at(gone.ticks) | within(waiting.ticks, files)
    settled: Mask = ~np.where(waiting.accepted, away, missed)
    return settled


def within(ticks: Numbers, files: Sequence[OffFile]) -> Mask:
    """Which ticks are some that files differ at."""
    found: Mask = np.zeros(len(ticks), np.bool_)
    for file in files:
        found |= (ticks >= file.first) & (ticks <= file.last)
    return found


def _again(file: OffFile, first: int) -> OffFile:
    if file.state == "late":
        rows = {tick: n for tick, n in file.rows.items() if tick < first}
        cut = replace(file, arrived=min(file.arrived, first), rows=rows)
        return replace(cut, last=min(file.last, first - 1))
    if file.last < first:
        return file
    # A part of it is not what it was as a whole: it is not known when it comes back.
    whole = file.state == "waiting"
    return replace(file, path=file.path if whole else "", last=first - 1)
