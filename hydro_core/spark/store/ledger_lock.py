"""The lock of a pipeline: one writer at a time, and a clean message for the second.

Two writers that get past it (on a file system whose locks do not reach from one machine to another)
still meet at the ledger, whose transaction lets one of them through.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydro_core.errors import Diagnostic, TransientError
from hydro_core.processes import FileLock, host_of, number_of

LOCK_FILE = "_lock"


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

    def acquire(self) -> None:
        """Takes the lock.

        Raises:
            TransientError: another writer holds it (code `state`).
        """
        if not self.held and not self._lock.take():
            raise _another_writer(self._directory, self._lock.holder())
        self._depth += 1

    def release(self) -> None:
        """Gives the lock back, when it has been released as often as it was acquired."""
        if not self.held:
            return
        self._depth -= 1
        if self._depth == 0:
            self._lock.release()


def _another_writer(directory: Path, holder: Mapping[str, Any]) -> TransientError:
    who = ""
    if holder:
        process = holder["process"]
        who = f": process {number_of(process)} on {host_of(process)}, since {holder.get('since')}"
    return TransientError(
        Diagnostic(
            code="state",
            message=f"another writer is at work on the pipeline in {directory}{who}",
            help="wait until it has ended, or end it; its lock goes with it",
        )
    )
