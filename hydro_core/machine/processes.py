"""Which process does what: how a run, a lock or a message names one, and whether it has ended.

A process is named by its host, its number, its start and the start of its machine, since numbers
are used again. What a process on another host does cannot be told from here.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


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
