"""Locks and processes: one holder at a time, and whether it has ended."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from hydro_core.errors import InfrastructureError, TransientError
from hydro_core.storage.lease import Lease, LeaseFile
from hydro_core.storage.remote import DataPlace, RemotePath

# Which process does what: how a run, a lock or a message names one, and whether it has ended.
#
# A process is named by its host, its number, its start and the start of its machine, since
# numbers are used again. What a process on another host does cannot be told from here.


def this_process() -> str:
    return process_named(os.getpid())


def process_named(number: int) -> str:
    return f"{socket.gethostname()}:{_number_and_start(number)}"


def host_of(process: str) -> str:
    """The host of a named process; this one where the name says none."""
    return process.rpartition(":")[0] or socket.gethostname()


def number_of(process: str) -> int | None:
    """The number of a named process on its host; None for what names no process."""
    number = process.rpartition(":")[2].partition("@")[0]
    return int(number) if number.isdigit() else None


def has_ended(process: str) -> bool:
    """Whether a named process is known to have ended; one of another host is not."""
    if host_of(process) != socket.gethostname():
        return False
    number = number_of(process)
    return number is None or _number_and_start(number) != process.rpartition(":")[2]


def _number_and_start(number: int) -> str:
    try:
        stat = Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    # The name stands in parentheses and may hold anything; the start is the 20th field after it.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else f"{number}@{fields[19]}.{_machine_start()}"


@cache
def _machine_start() -> str:
    """Names what the machine has done since it was started: starts of processes count from then."""
    try:
        name = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8")
    except OSError:
        return ""
    return name.strip()[:8]


# What one process at a time may hold: a lock on a file of this machine, or a lease in a store.
#
# Whoever locks anything between processes does it by `lock_at`, or by a `FileLock` where the
# place is always a directory.


_SECONDS_TO_LOOK = 0.05
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
"""What the operating system says where a file system has no locks."""


def lock_at(
    place: DataPlace, committed: Callable[[], int | None] = lambda: None
) -> FileLock | Lease:
    """What one process at a time may hold, by its file; in a store the number of who holds it is
    greater than `committed`, as `LeaseFile.take` has it.
    """
    if isinstance(place, RemotePath):
        return Lease(LeaseFile(place.store, place.key), this_process(), has_ended, committed)
    return FileLock(place)


class FileLock:
    """What one process at a time may hold: the operating system's lock on a file.

    It ends with its process, however that ends, and nothing else decides who holds it. The file is
    never removed, since who waits for one file and who waits for its successor do not know of each
    other. What is written in it is for messages, and for those who want to know when the holder has
    ended.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.file: int | None = None
        """The open file, while this process holds the lock."""

    def take(self, **says: str) -> bool:
        """Takes the lock, unless another holds it; `says` is written beside the process's name.

        Raises:
            InfrastructureError: the file system has no locks (code `config`).
        """
        while True:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with _opening:
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
                _open_here.add(file)
            if not self._is_locked(file):
                _close(file)
                return False
            if _is_at(self._path, file):
                break
            # Its directory was taken away, or given another name, after the file was opened.
            _close(file)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        text = json.dumps({"process": this_process(), "since": since, **says})
        os.ftruncate(file, 0)
        os.pwrite(file, text.encode(), 0)
        self.file = file
        return True

    @contextmanager
    def waited_for(self, seconds: float) -> Iterator[None]:
        """Within it this process holds the lock, for which it waits until others give it back.

        Raises:
            TransientError: another holds it for longer (code `state`).
        """
        end = time.monotonic() + seconds
        while not self.take():
            if time.monotonic() > end:
                raise _held_for_long(self._path, self.holder(), seconds)
            time.sleep(_SECONDS_TO_LOOK)
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        """Gives the lock back; nothing if it is not held."""
        if self.file is not None:
            os.ftruncate(self.file, 0)
            _close(self.file)
            self.file = None

    @property
    def is_held(self) -> bool:
        """Whether a process holds the lock now, on whatever host; nothing is written."""
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def holder(self) -> Mapping[str, Any]:
        """What the process that holds the lock wrote, "process" first of all; empty if none does,
        or has not written yet.
        """
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        process = found.get("process") if isinstance(found, dict) else None
        return {} if not isinstance(process, str) or has_ended(process) else found

    def _is_locked(self, file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            _close(file)
            if error.errno in _NO_LOCKS:
                raise _without_locks(self._path) from error
            raise
        return True


_opening = threading.Lock()
_open_here: set[int] = set()
"""The files that locks of this process have open."""


def _close(file: int) -> None:
    with _opening:
        _open_here.discard(file)
        os.close(file)


def _forget_in_child() -> None:
    """A child that is forked has the files of its parent open, and would keep its locks."""
    for file in _open_here:
        os.close(file)
    _open_here.clear()
    _opening.release()


os.register_at_fork(
    before=_opening.acquire,
    after_in_parent=_opening.release,
    after_in_child=_forget_in_child,
)


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _held_for_long(path: Path, holder: Mapping[str, Any], seconds: float) -> TransientError:
    who = f": {holder['process']}" if holder else ""
    return TransientError.of(
        "state",
        f"another process has been at work in {path.parent} for {seconds:.0f} s{who}",
        help="wait until it has ended, or end it",
    )


def _without_locks(path: Path) -> InfrastructureError:
    return InfrastructureError.of(
        "config",
        f"the file system of {path.parent} has no locks, by which one process at a time writes",
        help="mount it with locks, or put the project's data on one that has them (HYDROTICK_HOME)",
    )
