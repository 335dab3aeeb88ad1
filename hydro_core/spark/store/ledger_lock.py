"""The lock of a pipeline: one writer at a time, and a clean message for the second.

It is the operating system's lock on a file, so it ends with its process, however that ends. What
stands in the file is for the message only. Two writers that get past it (on a file system without
locks) still meet at the ledger, whose transaction lets one of them through.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hydro_core.errors import Diagnostic, TransientError

LOCK_FILE = "_lock"
_ATTEMPTS = 5


class WriterLock:
    """The right to write to one pipeline directory; re-entrant within one object."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK_FILE
        self._file: int | None = None
        self._depth = 0

    def __enter__(self) -> WriterLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._file is not None

    def acquire(self) -> None:
        """Takes the lock.

        Raises:
            TransientError: another writer holds it (code `state`).
        """
        if self._file is None:
            self._file = self._take()
        self._depth += 1

    def release(self) -> None:
        """Gives the lock back, when it has been released as often as it was acquired."""
        if self._file is None:
            return
        self._depth -= 1
        if self._depth == 0:
            os.close(self._file)
            self._file = None

    def _take(self) -> int:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(_ATTEMPTS):
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if _locks(file):
                if _is_at(self._path, file):
                    _sign(file)
                    return file
            elif _is_left_over(_holder(file)):
                # The writer is gone, but a child that it forked still has the file open.
                self._path.unlink(missing_ok=True)
            else:
                holder = _holder(file)
                os.close(file)
                raise _another_writer(self._path.parent, holder)
            os.close(file)
        raise _another_writer(self._path.parent, {})


def _locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, file: int) -> bool:
    """Whether the open file is still the one at the path: it may have been taken over."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _sign(file: int) -> None:
    text = json.dumps(
        {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
    )
    os.ftruncate(file, 0)
    os.pwrite(file, text.encode(), 0)


def _holder(file: int) -> Mapping[str, Any]:
    """Who signed the file; empty while it is being written, or where it is no signature."""
    try:
        found = json.loads(os.pread(file, 4096, 0))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_left_over(holder: Mapping[str, Any]) -> bool:
    pid = holder.get("pid")
    if not isinstance(pid, int) or holder.get("host") != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _another_writer(directory: Path, holder: Mapping[str, Any]) -> TransientError:
    who = ""
    if "pid" in holder:
        who = f": process {holder['pid']} on {holder.get('host')}, since {holder.get('since')}"
    return TransientError(
        Diagnostic(
            code="state",
            message=f"another writer is at work on the pipeline in {directory}{who}",
            help="wait until it has ended, or end it; its lock goes with it",
        )
    )
