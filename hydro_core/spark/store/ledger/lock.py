"""The lock of a pipeline: one writer at a time, and a clean message for the second.

In a directory it is the operating system's, in a store a lease. Two writers that get past it (on a
file system whose locks do not reach from one machine to another; where a lease ran out while its
owner stood still) still meet at the ledger, whose transaction lets one of them through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from hydro_core.errors import HydroError, TransientError
from hydro_core.machine.locks import host_of, lock_at, number_of
from hydro_core.storage.lease import Lease
from hydro_core.storage.remote import DataPlace

LOCK_FILE = "_lock"
_WORK = "work"


class WriterLock:
    """The right to write to one pipeline directory; re-entrant within one object."""

    def __init__(
        self,
        directory: DataPlace,
        fence: Callable[[int], None] | None = None,
        committed: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`fence` sees to it that who had a lesser number commits nothing any more; without it that
        is left to the next owner. `committed` gives the greatest number by which anybody committed.
        """
        self._directory = directory
        self._lock = lock_at(directory / LOCK_FILE, committed)
        self._fence = fence
        self._depth = 0
        self._in_doubt = False

    def __enter__(self) -> WriterLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._depth > 0

    @property
    def number(self) -> int | None:
        """The number by which this writer commits in a store; None in a directory."""
        return self._lock.number if isinstance(self._lock, Lease) else None

    def doubts(self) -> None:
        """Something was asked of a store that has not been answered: it may be done yet."""
        self._in_doubt = True

    def refuse_lost(self) -> None:
        """Raises where another has taken over, before something is done that cannot be undone.

        Raises:
            TransientError: it is so (code `state`).
        """
        if isinstance(self._lock, Lease) and not self._lock.is_kept():
            raise _taken_over(self._directory)

    @property
    def is_kept(self) -> bool:
        """Whether nobody has taken over; of a store that does not say, somebody may have."""
        if not isinstance(self._lock, Lease):
            return True
        with suppress(HydroError):
            return self._lock.is_kept()
        return False

    def kept_after(self, step: Callable[[str], None]) -> Callable[[str], None]:
        """The same step; where another has taken over by then, it raises as `refuse_lost` does."""

        def kept(name: str) -> None:
            step(name)
            self.refuse_lost()

        return kept

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
        if self._depth == 1 and isinstance(self._lock, Lease):
            self._settle(self._lock)

    def release(self) -> None:
        """Gives the lock back, when it has been released as often as it was acquired."""
        if not self.held:
            return
        self._depth -= 1
        if self._depth:
            return
        if isinstance(self._lock, Lease):
            self._lock.release(in_doubt=self._in_doubt)
        else:
            self._lock.release()
        self._in_doubt = False

    def _settle(self, lease: Lease) -> None:
        if self._fence is None or not lease.doubtful or lease.number is None:
            return
        try:
            self._fence(lease.number)
        except BaseException:
            self.release()
            raise
        lease.settled()


def long_work(directory: DataPlace) -> str:
    """The work on a pipeline that ticks wait for, and whose it is, in words; "": there is none."""
    lock = lock_at(directory / LOCK_FILE)
    holder = lock.holder()
    if not holder.get(_WORK) or not lock.is_held:
        return ""
    return f"{holder[_WORK]} ({_who(holder)})"


def _who(holder: Mapping[str, Any]) -> str:
    process = holder["process"]
    return f"process {number_of(process)} on {host_of(process)}, since {holder.get('since')}"


def _taken_over(directory: DataPlace) -> TransientError:
    return TransientError.of(
        "state",
        f"another writer has taken over the pipeline in {directory} from this one, "
        "which did not say for long that it is at work; nothing of this run counts",
        help="start it again; if that happens often, see what keeps this machine, or the "
        "way to the store, from answering",
    )


def _another_writer(directory: DataPlace, holder: Mapping[str, Any]) -> TransientError:
    who = f": {_who(holder)}" if holder else ""
    return TransientError.of(
        "state",
        f"another writer is at work on the pipeline in {directory}{who}",
        help="wait until it has ended, or end it; its lock goes with it",
    )
