"""The right to write below a place in a store: one writer at a time, and a number for each.

A store has no locks. What it has are writes that count only if nothing, or what was read before, is
at the place. So the right is a file, the lease: it says whose it is, until when, and by which
number; who takes it writes the next number. It is renewed while its owner works, and taken over
when it has run out.

Clocks and pauses decide only how soon it is taken over. That who has lost it changes nothing any
more is seen to where things are committed, by the number: it never goes back.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from hydro_core.errors import HydroError
from hydro_core.storage.store import FileStore

SECONDS = 60.0
"""How long a lease lasts that is not renewed: so long others wait where its owner is gone."""


@dataclass(frozen=True, slots=True)
class LeaseNote:
    number: int
    """Who takes it has a greater one than all who had it before."""
    owner: str
    """The process that has it; "": nobody has."""
    until: float
    """When it runs out, in seconds since 1970."""
    in_doubt: bool
    """Whether its owner may have asked for something that has not been answered: whoever takes it
    has to see to it that this cannot come late."""
    says: Mapping[str, str]
    """For messages."""
    by: str = ""
    """Which of all takers that ever were: an answer that got lost is known again by it."""

    def encoded(self) -> bytes:
        """The note as it is written."""
        told = {"number": self.number, "owner": self.owner, "until": self.until}
        rest = {"in_doubt": self.in_doubt, "says": dict(self.says), "by": self.by}
        return json.dumps(told | rest).encode()


def _decoded(text: bytes) -> LeaseNote:
    """A note that was written; one that cannot be read counts as one in doubt that ran out."""
    try:
        found: Any = json.loads(text)
        return LeaseNote(**found)
    except (ValueError, TypeError):
        return LeaseNote(0, "", 0.0, True, {})


@dataclass(frozen=True, slots=True)
class HeldLease:
    note: LeaseNote
    etag: str

    @property
    def number(self) -> int:
        return self.note.number


@dataclass(frozen=True, slots=True)
class LeaseFile:
    """The file of a lease.

    Args:
        store: what it is in.
        name: its name there.
        clock: tells the seconds since 1970.
        seconds: how long a lease lasts.
    """

    store: FileStore
    name: str
    clock: Callable[[], float] = time.time
    seconds: float = SECONDS

    def look(self) -> LeaseNote | None:
        """What the lease says; None where nobody ever had it."""
        found = self.store.read_marked(self.name)
        return None if found is None else _decoded(found[0])

    def is_free(self, note: LeaseNote, has_ended: Callable[[str], bool], by: str = "") -> bool:
        """Whether one may take a lease: given back, run out, or of a process that has ended; or
        its own, of which it was not told.
        """
        is_own = bool(by) and note.by == by
        return not note.owner or is_own or note.until < self.clock() or has_ended(note.owner)

    def take(
        self, wanted: LeaseNote, has_ended: Callable[[str], bool]
    ) -> tuple[HeldLease, bool] | None:
        """Takes the lease, and tells whether the one before may still be at work.

        Args:
            wanted: whose it is to be, and what it says; number and end are not looked at.
            has_ended: whether a named process is known to have ended.

        Returns:
            None where another has it.
        """
        found = self.store.read_marked(self.name)
        if found is None:
            note = replace(wanted, number=1, until=self._end())
            etag = self.store.write_if_absent(self.name, note.encoded())
            written = self._known(note) if etag is None else HeldLease(note, etag)
            return None if written is None else (written, False)
        before = _decoded(found[0])
        if not self.is_free(before, has_ended, wanted.by):
            return None
        doubtful = before.in_doubt or bool(before.owner)
        # Who ends before it has seen to what is in doubt leaves that to the next one.
        note = replace(wanted, number=before.number + 1, until=self._end(), in_doubt=doubtful)
        written = self._replaced(note, found[1])
        return None if written is None else (written, doubtful)

    def renew(self, held: HeldLease) -> HeldLease | None:
        """The lease for as long again; None: another has taken it over."""
        return self._changed(held, replace(held.note, until=self._end()))

    def give_back(self, held: HeldLease, *, in_doubt: bool) -> None:
        """Gives the lease back, if it was not taken over.

        Args:
            held: the lease.
            in_doubt: whether something was asked for that has not been answered.
        """
        self._changed(held, replace(held.note, owner="", until=0.0, in_doubt=in_doubt))

    def _end(self) -> float:
        return self.clock() + self.seconds

    def _changed(self, held: HeldLease, note: LeaseNote) -> HeldLease | None:
        written = self._replaced(note, held.etag)
        if written is not None and written.note != note:
            # What is there is older: an earlier answer got lost.
            return self._replaced(note, written.etag)
        return written

    def _replaced(self, note: LeaseNote, etag: str) -> HeldLease | None:
        written = self.store.replace_if(self.name, etag, note.encoded())
        return self._known(note) if written is None else HeldLease(note, written)

    def _known(self, note: LeaseNote) -> HeldLease | None:
        """What is there, if the same taker has left it: what was done may be answered as if it had
        not been, where the answer got lost and the request was made again.
        """
        found = self.store.read_marked(self.name)
        there = None if found is None else _decoded(found[0])
        if found is None or there is None or (there.by, there.number) != (note.by, note.number):
            return None
        return HeldLease(there, found[1])


class Lease:
    """The right to write, as one process has it: renewed by a thread while it is held.

    It answers as the operating system's lock on a file does, a `FileLock` of
    `hydro_core.machine.locks`.
    """

    def __init__(self, file: LeaseFile, owner: str, has_ended: Callable[[str], bool]) -> None:
        """Nothing is asked yet.

        Args:
            file: where it is.
            owner: the name of this process.
            has_ended: whether a named process is known to have ended.
        """
        self._file, self._owner, self._has_ended = file, owner, has_ended
        self._by = uuid.uuid4().hex
        self._held: HeldLease | None = None
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._lost = False
        self.doubtful = False
        """Whether the owner before may still be at work: see to it that it commits nothing."""

    @property
    def number(self) -> int | None:
        return None if self._held is None else self._held.number

    @property
    def is_lost(self) -> bool:
        """Whether another is known to have taken over what this process had."""
        return self._lost

    def is_kept(self) -> bool:
        """Whether this process has the right still: the store is asked, and has it for as long
        again if so. Who stood still for long may have lost it without having noticed.
        """
        with self._guard:
            if self._held is None or self._lost:
                return False
            renewed = self._file.renew(self._held)
            self._lost = renewed is None
            self._held = renewed or self._held
            return not self._lost

    def take(self, **says: str) -> bool:
        """Takes the right, unless another has it; `says` is told to those who ask."""
        since = datetime.now(UTC).isoformat(timespec="seconds")
        wanted = LeaseNote(0, self._owner, 0.0, False, {"since": since, **says}, self._by)
        found = self._file.take(wanted, self._has_ended)
        if found is None:
            return False
        self._held, self.doubtful = found
        self._lost, self._stop = False, threading.Event()
        threading.Thread(
            target=self._keep, args=(self._stop,), name="hydrotick-lease", daemon=True
        ).start()
        return True

    def settled(self) -> None:
        """What the owner before may have asked for can do nothing any more."""
        with self._guard:
            self.doubtful = False
            if self._held is not None:
                note = replace(self._held.note, in_doubt=False)
                self._held = HeldLease(note, self._held.etag)

    def release(self, *, in_doubt: bool = False) -> None:
        """Gives the right back; nothing if it is not held."""
        self._stop.set()
        with self._guard:
            held, self._held = self._held, None
            if held is None or self._lost:
                return
            self._file.give_back(held, in_doubt=in_doubt or self.doubtful)

    @property
    def is_held(self) -> bool:
        """Whether a process has the right now, on whatever host."""
        note = self._file.look()
        return note is not None and not self._file.is_free(note, self._has_ended)

    def holder(self) -> Mapping[str, Any]:
        """What is told of who has the right, "process" first of all; empty if nobody has."""
        note = self._file.look()
        if note is None or self._file.is_free(note, self._has_ended):
            return {}
        return {"process": note.owner, **note.says}

    def _keep(self, stop: threading.Event) -> None:
        while not stop.wait(self._file.seconds / 3):
            with self._guard:
                if self._held is None or stop.is_set():
                    return
                try:
                    renewed = self._file.renew(self._held)
                except HydroError:
                    # The store may answer again before it runs out; if not, others may take it.
                    continue
                if renewed is None:
                    self._lost = True
                    return
                self._held = renewed
