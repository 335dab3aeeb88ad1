"""The lease of a location in a store: the right to write, for one writer at a time, with a number
for each.

A store has no locks. It has conditional writes, which succeed only if nothing, or a known version,
is at the location. So the right is a file, the lease: it has its owner, its end, and its number;
the next owner writes the next number. The owner renews it while it works; another process may take
it after its end.

Clocks and pauses decide only how soon it changes hands. The commit checks the number, which never
decreases, so a former owner cannot commit. If the file is lost or cannot be read, the number
continues from the one that was last written by a commit.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from hydro_core.errors import HydroError
from hydro_core.storage.store import FileStore

_NANOSECONDS = 1_000_000_000
SECONDS = 60.0
"""The seconds until a lease without renewal ends: the time that others wait after a crash of its
owner.
"""
_UNREADABLE = "unreadable:"
"""The owner in a note that cannot be read: nobody knows if its process has ended."""
_UNKNOWN_TAKES = 1 << 20
"""More than the times that a lease is taken between two commits: its number is so much greater than
that of the last commit, if the number between them is lost.
"""


@dataclass(frozen=True, slots=True)
class LeaseNote:
    number: int
    """A new owner's number is greater than those of all before it."""
    owner: str
    """The process that has it; "": no process has it."""
    until: float
    """The time of its end, in seconds since 1970."""
    in_doubt: bool
    """True if its owner may have an unanswered request; the next owner must make sure that it
    cannot succeed late.
    """
    says: Mapping[str, str]
    """For messages."""
    by: str = ""
    """A unique id of the attempt to take it: it identifies the own lease after a lost answer."""

    def encoded(self) -> bytes:
        """The note as it is written."""
        told = {"number": self.number, "owner": self.owner, "until": self.until}
        rest = {"in_doubt": self.in_doubt, "says": dict(self.says), "by": self.by}
        return json.dumps(told | rest).encode()

    @property
    def is_readable(self) -> bool:
        return self.owner != _UNREADABLE


def _decoded(text: bytes) -> LeaseNote | None:
    """A decoded note, without fields of later releases; None if it cannot be read."""
    try:
        found: Any = json.loads(text)
        note = LeaseNote(**{f.name: found[f.name] for f in fields(LeaseNote)})
    except (ValueError, TypeError, KeyError):
        return None
    types = (
        (note.number, int),
        (note.owner, str),
        (note.until, int | float),
        (note.in_doubt, bool),
        (note.says, dict),
        (note.by, str),
    )
    return note if all(isinstance(value, type_) for value, type_ in types) else None


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
        store: the store of the file.
        name: its name there.
        clock: gives the seconds since 1970.
        seconds: the duration of a lease.
    """

    store: FileStore
    name: str
    clock: Callable[[], float] = time.time
    seconds: float = SECONDS

    def look(self) -> LeaseNote | None:
        """The content of the lease; None if the file does not exist."""
        found = self.store.read_marked(self.name)
        return None if found is None else self._note(found[0])

    def _note(self, text: bytes) -> LeaseNote:
        """A decoded note; one that cannot be read lasts for the time of a lease after it was
        written.
        """
        note = _decoded(text)
        if note is not None:
            return note
        file = self.store.look(self.name)
        written = 0.0 if file is None else file.written / _NANOSECONDS
        return LeaseNote(0, _UNREADABLE, written + self.seconds, True, {})

    def is_free(self, note: LeaseNote, has_ended: Callable[[str], bool], by: str = "") -> bool:
        """True if the lease may be taken: it was given back, has ended, its process has ended, or
        it is the own lease after a lost answer.
        """
        is_own = bool(by) and note.by == by
        if not note.owner or is_own or note.until < self.clock():
            return True
        return note.is_readable and has_ended(note.owner)

    def take(
        self,
        wanted: LeaseNote,
        has_ended: Callable[[str], bool],
        committed: Callable[[], int | None] = lambda: None,
    ) -> tuple[HeldLease, bool] | None:
        """Takes the lease, and reports if the owner before may still be at work.

        Args:
            wanted: the owner and the content; number and end are ignored.
            has_ended: True for a process that is known to have ended.
            committed: the greatest number that was written by a commit, 0 if there is none; None if
                nothing can have been committed.

        Returns:
            None if another process has it.
        """
        found = self.store.read_marked(self.name)
        if found is None:
            last = committed()
            doubtful, number = last is not None, 1 if last is None else last + _UNKNOWN_TAKES
        else:
            before = self._note(found[0])
            if not self.is_free(before, has_ended, wanted.by):
                return None
            doubtful, number = before.in_doubt or bool(before.owner), before.number + 1
            if doubtful:
                takes = 1 if before.is_readable else _UNKNOWN_TAKES
                number = max(before.number, committed() or 0) + takes
        # An owner that ends before it has resolved the doubt leaves it to the next one.
        note = replace(wanted, number=number, until=self._end(), in_doubt=doubtful)
        written = self._replaced(note, None if found is None else found[1])
        return None if written is None else (written, doubtful)

    def renew(self, held: HeldLease) -> HeldLease | None:
        """The lease with a new end; None: another process has taken it."""
        return self._changed(held, replace(held.note, until=self._end()))

    def give_back(self, held: HeldLease, *, in_doubt: bool) -> None:
        """Gives the lease back, unless another process has taken it.

        Args:
            held: the lease.
            in_doubt: True if a request has not been answered.
        """
        self._changed(held, replace(held.note, owner="", until=0.0, in_doubt=in_doubt))

    def _end(self) -> float:
        return self.clock() + self.seconds

    def _changed(self, held: HeldLease, note: LeaseNote) -> HeldLease | None:
        written = self._replaced(note, held.etag)
        if written is not None and written.note != note:
            # The stored note is older: an earlier answer was lost.
            return self._replaced(note, written.etag)
        return written

    def _replaced(self, note: LeaseNote, etag: str | None) -> HeldLease | None:
        if etag is None:
            written = self.store.write_if_absent(self.name, note.encoded())
        else:
            written = self.store.replace_if(self.name, etag, note.encoded())
        return self._known(note) if written is None else HeldLease(note, written)

    def _known(self, note: LeaseNote) -> HeldLease | None:
        """The stored lease, if this process wrote it: a write that succeeded may be answered as
        refused, if its first answer was lost and the request was repeated.
        """
        found = self.store.read_marked(self.name)
        there = None if found is None else _decoded(found[0])
        if found is None or there is None or (there.by, there.number) != (note.by, note.number):
            return None
        return HeldLease(there, found[1])


class Lease:
    """The right to write of one process: a thread renews it while it is held.

    It answers as the operating system's lock on a file does, a `FileLock` of
    `hydro_core.machine.locks`.
    """

    def __init__(
        self,
        file: LeaseFile,
        owner: str,
        has_ended: Callable[[str], bool],
        committed: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Sends no request yet.

        Args:
            file: the file of the lease.
            owner: the name of this process.
            has_ended: True for a process that is known to have ended.
            committed: as for `LeaseFile.take`.
        """
        self._file, self._owner, self._has_ended = file, owner, has_ended
        self._committed = committed
        self._by = uuid.uuid4().hex
        self._held: HeldLease | None = None
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._lost = False
        self.doubtful = False
        """True if the owner before may still be at work; its commits must be prevented."""

    @property
    def number(self) -> int | None:
        return None if self._held is None else self._held.number

    @property
    def is_lost(self) -> bool:
        """True if another process is known to have taken the lease."""
        return self._lost

    def is_kept(self) -> bool:
        """Renews the lease, and gives True if this process still has it. After a long pause it may
        have lost it unnoticed.
        """
        with self._guard:
            if self._held is None or self._lost:
                return False
            renewed = self._file.renew(self._held)
            self._lost = renewed is None
            self._held = renewed or self._held
            return not self._lost

    def take(self, **says: str) -> bool:
        """Takes the right, unless another process has it; `says` is content for messages."""
        since = datetime.now(UTC).isoformat(timespec="seconds")
        wanted = LeaseNote(0, self._owner, 0.0, False, {"since": since, **says}, self._by)
        found = self._file.take(wanted, self._has_ended, self._committed)
        if found is None:
            return False
        self._held, self.doubtful = found
        self._lost, self._stop = False, threading.Event()
        threading.Thread(
            target=self._keep, args=(self._stop,), name="hydrotick-lease", daemon=True
        ).start()
        return True

    def settled(self) -> None:
        """Records that no request of the owner before can succeed any more."""
        with self._guard:
            self.doubtful = False
            if self._held is not None:
                note = replace(self._held.note, in_doubt=False)
                self._held = HeldLease(note, self._held.etag)

    def release(self, *, in_doubt: bool = False) -> None:
        """Gives the right back; does nothing if it is not held."""
        self._stop.set()
        with self._guard:
            held, self._held = self._held, None
            if held is None or self._lost:
                return
            self._file.give_back(held, in_doubt=in_doubt or self.doubtful)

    @property
    def is_held(self) -> bool:
        """True if a process has the right now, on any host."""
        note = self._file.look()
        return note is not None and not self._file.is_free(note, self._has_ended)

    def holder(self) -> Mapping[str, Any]:
        """The content for messages of the current owner, "process" first; empty if there is
        none.
        """
        note = self._file.look()
        if note is None or self._file.is_free(note, self._has_ended):
            return {}
        return {"process": note.owner, **note.says} if note.is_readable else {}

    def _keep(self, stop: threading.Event) -> None:
        while not stop.wait(self._file.seconds / 3):
            with self._guard:
                if self._held is None or stop.is_set():
                    return
                try:
                    renewed = self._file.renew(self._held)
                except HydroError:
                    # The store may answer again before the end; if not, others may take the lease.
                    continue
                if renewed is None:
                    self._lost = True
                    return
                self._held = renewed
