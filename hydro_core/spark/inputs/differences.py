"""Differences between what committed ticks read of an input and what its landing has.

Committed ticks have read what the landing had at the last look, each row at its own tick, but for
the rows and files that are listed here, each with its state. So what was read can be told from the
landing at any time, and be read again as it arrived. Rows are known by their hashes; of files that
are too large for that, the files are known.

`TRANSITIONS` says how an event changes the state of a row or file; docs/late-rows.md shows it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

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
RowIndices = npt.NDArray[np.signedinteger[Any]]
"""Places of rows."""

_NEVER = -1
"""Arrived with no tick."""


class RowState(StrEnum):
    """The state of a row of a committed tick, or of all such rows of a file."""

    UNREAD = "unread"
    """No tick has read it, and it is not landed."""
    IN_TIME = "in time"
    """It is landed, and its own tick has read it."""
    LATE = "late"
    """It is landed, and a later tick reads it: it arrives with that one."""
    REMOVED = "removed"
    """A tick has read it, and it is not landed any more."""
    PENDING = "pending"
    """It is landed in the place of removed rows of its tick, and no tick reads it."""
    REMOVED_ACKNOWLEDGED = "removed, acknowledged"
    """Somebody has said that the tick stays as it was read."""
    PENDING_ACKNOWLEDGED = "pending, acknowledged"
    """The same of what stands in the place of removed rows."""


class LandingEvent(StrEnum):
    """Something that changes the state of rows."""

    LANDS = "lands"
    REPLACES = "lands in the place of others"
    LEAVES = "is removed"
    SETTLES = "nothing of its tick is missing any more"
    ACKNOWLEDGE = "`accept`"
    RECOMPUTE = "its tick is recomputed"
    DEFER = "the tick with which it would arrive is not run"


class TransitionCondition(StrEnum):
    """A condition of a transition, by the tick with which a row arrived and the first open one."""

    ALWAYS = ""
    READ = "a tick has read it"
    NOT_READ = "no tick has read it"
    OWN_TICK = "its own tick had read it"
    LATER_TICK = "a later tick had read it"


class Transition(NamedTuple):
    """From one state to another, by an event."""

    before: RowState
    event: LandingEvent
    after: RowState
    condition: TransitionCondition = TransitionCondition.ALWAYS


_S, _E, _C = RowState, LandingEvent, TransitionCondition
TRANSITIONS: tuple[Transition, ...] = (
    Transition(_S.UNREAD, _E.LANDS, _S.LATE),
    Transition(_S.UNREAD, _E.REPLACES, _S.PENDING),
    Transition(_S.IN_TIME, _E.LEAVES, _S.REMOVED),
    Transition(_S.LATE, _E.LEAVES, _S.REMOVED, _C.READ),
    Transition(_S.LATE, _E.LEAVES, _S.UNREAD, _C.NOT_READ),
    Transition(_S.LATE, _E.DEFER, _S.PENDING),
    Transition(_S.LATE, _E.RECOMPUTE, _S.IN_TIME),
    Transition(_S.REMOVED, _E.LANDS, _S.IN_TIME, _C.OWN_TICK),
    Transition(_S.REMOVED, _E.LANDS, _S.LATE, _C.LATER_TICK),
    Transition(_S.REMOVED, _E.ACKNOWLEDGE, _S.REMOVED_ACKNOWLEDGED),
    Transition(_S.REMOVED, _E.RECOMPUTE, _S.UNREAD),
    Transition(_S.PENDING, _E.LEAVES, _S.UNREAD),
    Transition(_S.PENDING, _E.SETTLES, _S.LATE),
    Transition(_S.PENDING, _E.ACKNOWLEDGE, _S.PENDING_ACKNOWLEDGED),
    Transition(_S.PENDING, _E.RECOMPUTE, _S.IN_TIME),
    Transition(_S.REMOVED_ACKNOWLEDGED, _E.LANDS, _S.IN_TIME, _C.OWN_TICK),
    Transition(_S.REMOVED_ACKNOWLEDGED, _E.LANDS, _S.LATE, _C.LATER_TICK),
    Transition(_S.REMOVED_ACKNOWLEDGED, _E.RECOMPUTE, _S.UNREAD),
    Transition(_S.PENDING_ACKNOWLEDGED, _E.LEAVES, _S.UNREAD),
    Transition(_S.PENDING_ACKNOWLEDGED, _E.SETTLES, _S.LATE),
    Transition(_S.PENDING_ACKNOWLEDGED, _E.RECOMPUTE, _S.IN_TIME),
)
"""An event that is not listed for a state leaves it as it is."""

REMOVED = (RowState.REMOVED, RowState.REMOVED_ACKNOWLEDGED)
PENDING = (RowState.PENDING, RowState.PENDING_ACKNOWLEDGED)
_LISTED = (RowState.LATE, *REMOVED, *PENDING)
_CODE = {state: number for number, state in enumerate(RowState)}
_EITHER = (False, True)


def state_after(state: RowState, event: LandingEvent, is_read: bool, in_own_tick: bool) -> RowState:
    """The state after an event."""
    holds = {
        TransitionCondition.ALWAYS: True,
        TransitionCondition.READ: is_read,
        TransitionCondition.NOT_READ: not is_read,
        TransitionCondition.OWN_TICK: in_own_tick,
        TransitionCondition.LATER_TICK: not in_own_tick,
    }
    for one in TRANSITIONS:
        if (one.before, one.event) == (state, event) and holds[one.condition]:
            return one.after
    return state


@dataclass(frozen=True, slots=True, eq=False)
class DifferingRows:
    """Rows by their own ticks and hashes, the ticks with which they arrived (-1: none), and the
    codes of their states.
    """

    ticks: Numbers
    hashes: Any
    arrived: Numbers
    states: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.ticks)

    def where(self, mask: Mask | RowIndices) -> DifferingRows:
        """Some of the rows, by whether each is one of them, or by their places."""
        own = self.ticks[mask], self.hashes[mask], self.arrived[mask], self.states[mask]
        return DifferingRows(*own)

    def plus(self, *others: DifferingRows) -> DifferingRows:
        """These rows and others."""
        parts = [
            (rows.ticks, rows.hashes, rows.arrived, rows.states)
            for rows in (self, *(other for other in others if len(other)))
        ]
        return DifferingRows(*map(np.concatenate, zip(*parts, strict=True)))

    def are(self, states: Iterable[RowState]) -> Mask:
        """A mask of the rows in some states."""
        return np.isin(self.states, [_CODE[state] for state in states])

    def of(self, *states: RowState) -> DifferingRows:
        """The rows in some states."""
        return self.where(self.are(states))

    def arriving(self, tick: int) -> DifferingRows:
        """The rows as if they had arrived with another tick."""
        return replace(self, arrived=np.full(len(self), tick, np.int64))

    def after(self, event: LandingEvent, until: int = 0) -> DifferingRows:
        """The rows after an event, without those that do not differ any more.

        Args:
            event: it happens to all of them.
            until: the first tick that is not committed: rows that become late arrive with it.
        """
        after = [
            [[_CODE[state_after(one, event, read, own)] for own in _EITHER] for read in _EITHER]
            for one in RowState
        ]
        is_read, in_own_tick = self.arrived < until, self.arrived == self.ticks
        states = np.array(after, np.int8)[self.states, is_read.astype(int), in_own_tick.astype(int)]
        arrived = np.where(states == _CODE[RowState.PENDING], _NEVER, self.arrived)
        becomes_late = (states == _CODE[RowState.LATE]) & (arrived == _NEVER)
        changed = replace(self, states=states, arrived=np.where(becomes_late, until, arrived))
        return changed.of(*_LISTED)

    def changed(self, mask: Mask, event: LandingEvent, until: int = 0) -> DifferingRows:
        """The rows after an event that happens to some of them."""
        return self.where(~mask).plus(self.where(mask).after(event, until))

    def matched(self, states: Iterable[RowState], hashes: Any) -> Mask:
        """The rows in some states that are among others, by their hashes: as many as those."""
        found = self.are(states)
        found[found] = ~unmatched(self.hashes[found], hashes)
        return found

    def without(self, hashes: Any) -> DifferingRows:
        """The rows without some, each as often as it is named."""
        return self.where(unmatched(self.hashes, hashes)) if len(self) and len(hashes) else self

    def between(self, first: int, last: int) -> DifferingRows:
        """Those whose own ticks are within some."""
        return self.where((self.ticks >= first) & (self.ticks <= last))


def differing_rows(rows: HashedRows, state: RowState) -> DifferingRows:
    """Rows in a state; those that were read arrived with their own ticks."""
    ticks, hashes = np.asarray(rows.ticks, np.int64), np.asarray(rows.hashes, np.uint64)
    is_read = state in (RowState.IN_TIME, *REMOVED)
    arrived = ticks if is_read else np.full(len(ticks), _NEVER, np.int64)
    return DifferingRows(ticks, hashes, arrived, np.full(len(ticks), _CODE[state], np.int8))


NO_DIFFERING = differing_rows(
    HashedRows(np.array([], np.int64), np.array([], np.uint64)), RowState.UNREAD
)


@dataclass(frozen=True, slots=True)
class DifferingFile:
    """A file of which the rows of committed ticks, `first` to `last`, are in a state."""

    path: str
    """Below the landing; empty: which file it is, is not known."""
    first: int
    last: int
    state: RowState
    size: int = 0
    written: int = 0
    arrived: int = _NEVER
    """The tick with which its rows arrived, if they were late."""
    rows: Mapping[int, int] = field(default_factory=dict)
    """How many late rows each tick has; of files that came together, the first has those of all."""

    @property
    def identity(self) -> tuple[str, int, int]:
        """Path, size and time of writing: what the file system tells files apart by."""
        return self.path, self.size, self.written

    @property
    def is_late(self) -> bool:
        return self.state is RowState.LATE

    @property
    def is_removed(self) -> bool:
        return self.state in REMOVED

    def holds(self, first: int, last: int) -> bool:
        """True if it has rows of some of the ticks."""
        return self.first <= last and first <= self.last

    def after(self, event: LandingEvent, until: int = 0) -> list[DifferingFile]:
        """The file after an event; none where it does not differ any more."""
        is_read, in_own_tick = self.arrived < until, self.arrived == _NEVER
        state = state_after(self.state, event, is_read, in_own_tick)
        arrived = _NEVER if state is RowState.PENDING else self.arrived
        arrived = until if state is RowState.LATE and arrived == _NEVER else arrived
        return [replace(self, state=state, arrived=arrived)] if state in _LISTED else []


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """All rows and files of an input that differ; `read_as` names the columns that are hashed."""

    rows: DifferingRows = NO_DIFFERING
    files: tuple[DifferingFile, ...] = ()
    read_as: str = ""
    item: str = ""
    """The type of the items that are hashed, as DDL."""

    @property
    def is_nothing(self) -> bool:
        """True if all is read as it is landed."""
        return not (len(self.rows) or self.files)

    @property
    def late(self) -> DifferingRows:
        return self.rows.of(RowState.LATE)

    @property
    def removed(self) -> DifferingRows:
        """The removed rows, acknowledged or not."""
        return self.rows.of(*REMOVED)

    @property
    def elsewhere(self) -> DifferingRows:
        """The landed rows that are not read with their own tick."""
        return self.rows.of(RowState.LATE, *PENDING)

    @property
    def has_removed(self) -> bool:
        return bool(len(self.removed)) or any(file.is_removed for file in self.files)

    @property
    def has_pending(self) -> bool:
        """True if something is pending that nobody has acknowledged."""
        pending = len(self.rows.of(RowState.PENDING))
        return bool(pending) or any(f.state is RowState.PENDING for f in self.files)

    @property
    def changed(self) -> tuple[ChangedRange, ...]:
        """The ticks that have lost rows, or may have, as far as nobody has acknowledged it."""
        removed = Counter(self.rows.of(RowState.REMOVED).ticks.tolist())
        pending = Counter(self.rows.of(RowState.PENDING).ticks.tolist())
        rows = [ChangedRange(tick, tick, removed[tick], pending[tick]) for tick in removed]
        open_files = (f for f in self.files if f.state in (RowState.REMOVED, RowState.PENDING))
        return tuple(joined([*rows, *(ChangedRange(f.first, f.last) for f in open_files)]))

    @property
    def settled(self) -> Mask:
        """A mask of the pending rows of ticks of which nothing is missing any more.

        Acknowledged ones go on as long as something of the tick is away, acknowledged or not. Of
        removed files nobody knows which rows they had.
        """
        removed, ticks = self.rows.of(RowState.REMOVED).ticks, self.rows.ticks
        missing = np.isin(ticks, removed)
        missing |= within(ticks, [f for f in self.files if f.state is RowState.REMOVED])
        away = np.isin(ticks, self.removed.ticks)
        away |= within(ticks, [f for f in self.files if f.is_removed])
        is_acknowledged = self.rows.are([RowState.PENDING_ACKNOWLEDGED])
        return self.rows.are(PENDING) & ~np.where(is_acknowledged, away, missing)

    def late_at(self, tick: int) -> Mapping[int, int]:
        """How many rows arrived late with a tick, by their own ticks."""
        late = self.late
        found = Counter(late.ticks[late.arrived == tick].tolist())
        for file in self.files:
            if file.is_late and file.arrived == tick:
                found.update(file.rows)
        return dict(sorted(found.items()))

    def touch(self, first: int, last: int) -> bool:
        """True if not all rows of some ticks are read with these."""
        return bool(len(self.elsewhere.between(first, last))) or any(
            file.is_late and file.holds(first, last) for file in self.files
        )

    def after(self, event: LandingEvent) -> Differences:
        """The same after an event that happens to all of it."""
        files = tuple(after for file in self.files for after in file.after(event))
        return replace(self, rows=self.rows.after(event), files=files)

    def deferred(self, tick: int) -> Differences:
        """The same, where rows do not arrive with a tick: the next look finds them late."""
        is_late = self.rows.are([RowState.LATE]) & (self.rows.arrived == tick)
        files = [
            after
            for file in self.files
            for after in (file.after(LandingEvent.DEFER) if file.arrived == tick else [file])
        ]
        rows = self.rows.changed(is_late, LandingEvent.DEFER)
        return replace(self, rows=rows, files=tuple(files))

    def recomputed(self, first: int) -> Differences:
        """The differences once the ticks from `first` on are recomputed from what is landed.

        Rows that are late for earlier ticks, and have not arrived before, arrive with it.
        """
        rows = self.rows
        read_at = np.where(rows.are(REMOVED), rows.arrived, rows.ticks)
        left = replace(self, rows=rows.changed(read_at >= first, LandingEvent.RECOMPUTE))
        rows = left.rows.changed(left.settled, LandingEvent.SETTLES, first)
        is_late = rows.are([RowState.LATE])
        arrived = np.where(is_late, np.minimum(rows.arrived, first), rows.arrived)
        files = (
            _recomputed_file(file, first)
            for file in self.files
            # What is removed and had arrived since is not read any more.
            if file.first < first and not (file.is_removed and file.arrived >= first)
        )
        found = replace(self, rows=replace(rows, arrived=arrived), files=tuple(files))
        return NO_DIFFERENCES if found.is_nothing else found

    def gain_from(self, first: int) -> int | None:
        """How many rows more than before that reads, without what is late by now; None: files that
        changed do not tell.
        """
        if not all(file.is_late for file in self.files):
            return None
        pending = len(self.rows.of(*PENDING)) - len(self.recomputed(first).rows.of(*PENDING))
        return pending - int((self.removed.arrived >= first).sum())

    def saved(self, directory: DataPlace) -> str | None:
        """Puts the list below a pipeline's directory, and gives its name; None: nothing differs."""
        if self.is_nothing:
            return None
        rows = self.rows
        # The same list has the same name, in whatever order its rows were found.
        rows = rows.where(np.lexsort((rows.arrived, rows.hashes, rows.ticks, rows.states)))
        columns = rows.ticks, rows.hashes, rows.arrived, rows.states
        table = pa.table({n: pa.array(c) for n, c in zip(_COLUMNS, columns, strict=True)})
        files = list(map(as_row, self.files))
        known = {"files": files, "read_as": self.read_as, "item": self.item}
        return save(table.replace_schema_metadata({_KNOWN: json.dumps(known).encode()}), directory)


NO_DIFFERENCES = Differences()
"""All has been read as it is landed."""
_COLUMNS = ["tick", "hash", "arrived", "state"]
_KNOWN = b"differences"


def saved_differences(directory: DataPlace, name: str | None) -> Differences:
    """A list that was saved below a pipeline's directory.

    Raises:
        DataError: it is not there any more (code `state`).
    """
    if name is None:
        return NO_DIFFERENCES
    place = directory / LISTINGS / f"{name}.parquet"
    try:
        table = pq.ParquetFile(opened(place)).read()
    except FileNotFoundError:
        raise state_error(
            f"{place} is gone, which tells what ticks have read otherwise than it is landed",
            RESTORE,
        ) from None
    known = json.loads((table.schema.metadata or {})[_KNOWN])
    rows = DifferingRows(*(table[column].to_numpy() for column in _COLUMNS))
    files = of_record(tuple[DifferingFile, ...], known["files"])
    return Differences(rows, files, known["read_as"], known["item"])


def unmatched(rows: Any, others: Any) -> Mask:
    """A mask of the rows that are not among others, by their hashes; equal hashes count each."""
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
            removed = _total(last.removed, change.removed)
            added = _total(last.added, change.added)
            found[-1] = ChangedRange(last.first, max(last.last, change.last), removed, added)
    return found


def _total(count: int | None, other: int | None) -> int | None:
    return None if count is None or other is None else count + other


def within(ticks: Numbers, files: Iterable[DifferingFile]) -> Mask:
    """A mask of the ticks at which some files differ."""
    found: Mask = np.zeros(len(ticks), np.bool_)
    for file in files:
        found |= (ticks >= file.first) & (ticks <= file.last)
    return found


def _recomputed_file(file: DifferingFile, first: int) -> DifferingFile:
    if file.is_late:
        rows = {tick: n for tick, n in file.rows.items() if tick < first}
        cut = replace(file, arrived=min(file.arrived, first), rows=rows)
        return replace(cut, last=min(file.last, first - 1))
    if file.last < first:
        return file
    # A part of it is not what it was as a whole: it is not known when it comes back.
    path = "" if file.is_removed else file.path
    return replace(file, path=path, last=first - 1)
