"""The lock of a pipeline: one writer at a time, and a clean message for the second.

Two writers that get past it (on a file system whose locks do not reach from one machine to another)
still meet at the ledger, whose transaction lets one of them through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydro_core.errors import Diagnostic, TransientError
from hydro_core.processes import FileLock, host_of, number_of

LOCK_FILE = "_lock"
_WORK = "work"


class WriterLock:
    """The right to write to one pipeline directory; re-entrant within one object."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = FileLock(directory / LOCK_FILE)
        self._depth = 0

    def __enter__(self) -> WriterLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._depth > 0

    @contextmanager
    def at_work(self, on: str) -> Iterator[None]:
        """Within it the lock is held for work that takes long, such as "a deployment".

        Raises:
            TransientError: another writer holds it (code `state`).
        """
        self.acquire(on)
        try:
            yield
        finally:
            self.release()

    def acquire(self, on: str = "") -> None:
        """Takes the lock; `on` says for which work, if that takes long: who can waits for it then.

        Raises:
            TransientError: another writer holds it (code `state`).
        """
        if not self.held and not self._lock.take(**({_WORK: on} if on else {})):
            raise _another_writer(self._directory, self._lock.holder())
        self._depth += 1

    def release(self) -> None:
        """Gives the lock back, when it has been released as often as it was acquired."""
        if not self.held:
            return
        self._depth -= 1
        if self._depth == 0:
            self._lock.release()


def long_work(directory: Path) -> str:
    """The work on a pipeline that ticks wait for, and whose it is, in words; "": there is none."""
    lock = FileLock(directory / LOCK_FILE)
    holder = lock.holder()
    if not holder.get(_WORK) or not lock.is_held:
        return ""
    return f"{holder[_WORK]} ({_who(holder)})"


def _who(holder: Mapping[str, Any]) -> str:
    process = holder["process"]
    return f"process {number_of(process)} on {host_of(process)}, since {holder.get('since')}"


def _another_writer(directory: Path, holder: Mapping[str, Any]) -> TransientError:
    who = f": {_who(holder)}" if holder else ""
    return TransientError(
        Diagnostic(
            code="state",
            message=f"another writer is at work on the pipeline in {directory}{who}",
            help="wait until it has ended, or end it; its lock goes with it",
        )
    )
