"""Which process executes a run, as a tag of the run: whether it lives can be told from outside."""

from __future__ import annotations

import os
from pathlib import Path

PROCESS_TAG = "hydrotick/process"


def this_process() -> str:
    """This process by its number and its start, since numbers are used again."""
    return _identity(os.getpid())


def is_alive(process: str) -> bool:
    """Whether a process goes on, by what `this_process` gave in it."""
    number = process.partition("@")[0]
    return number.isdigit() and _identity(int(number)) == process


def _identity(number: int) -> str:
    try:
        stat = Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    # The name stands in parentheses and may hold anything; the start is the 20th field after it.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else f"{number}@{fields[19]}"
