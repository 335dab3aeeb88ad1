"""Which process does what: how a run, a lock or a message names one, and whether it has ended.

A process is named by its host, its number and its start, since numbers are used again. What a
process on another host does cannot be told from here.
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

PROCESS_TAG = ".dagster/hydrotick/process"
"""The tag of a run that names the process which executes it; the UI hides tags that begin so."""


def this_process() -> str:
    """The name of this process."""
    return f"{socket.gethostname()}:{_number_and_start(os.getpid())}"


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


class ProcessLock:
    """What one process at a time may hold: the operating system's lock on a file.

    It ends with its process, however that ends. What is written in the file is for messages, and
    for those who want to know when the holder has ended.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.file: int | None = None
        """The open file, while this process holds the lock."""

    def take(self, **says: str) -> bool:
        """Takes the lock, unless another process holds it; `says` is written beside its name."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        since = datetime.now(UTC).isoformat(timespec="seconds")
        text = json.dumps({"process": this_process(), "since": since, **says})
        os.ftruncate(file, 0)
        os.pwrite(file, text.encode(), 0)
        self.file = file
        return True

    def release(self) -> None:
        """Gives the lock back; nothing if it is not held."""
        if self.file is not None:
            os.ftruncate(self.file, 0)
            os.close(self.file)
            self.file = None

    def holder(self) -> Mapping[str, Any]:
        """What the process that holds the lock wrote; empty if none does."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {} if has_ended(found["process"]) else found


def _number_and_start(number: int) -> str:
    try:
        stat = Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    # The name stands in parentheses and may hold anything; the start is the 20th field after it.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else f"{number}@{fields[19]}"
