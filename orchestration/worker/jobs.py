"""What a worker is asked to do, and in which order it is done.

Flows take turns: of those that wait, the one goes first whose last turn was the longest ago, so
that a flow with a year of ticks keeps no other waiting for longer than one piece of work. One
piece of work of a flow goes on at a time.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from hydro_core.lang.source import PROGRAMS
from hydro_core.project.discover import ASSETS, SETTINGS

from .wire import Message

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Fit:
    """What a process must have loaded, and have its Spark started with, to do a piece of work."""

    root: str
    code: str
    master: str
    memory: str


@dataclass(slots=True, eq=False)
class WorkerJob:
    """A piece of work for one flow: `request` says what, and `tell` is called with what happens."""

    flow: str
    fit: Fit
    request: Message
    tell: Callable[[Message], None] = lambda _: None
    ended: threading.Event = field(default_factory=threading.Event)
    number: int = field(default_factory=lambda: next(_numbers))
    asked: float = field(default_factory=time.monotonic)
    began: float | None = None

    @property
    def run(self) -> str:
        """The run of Dagster that it is, or that it is for."""
        return str(self.request.get("run", ""))

    @property
    def seconds(self) -> float:
        """How long it goes on, or waits."""
        return time.monotonic() - (self.asked if self.began is None else self.began)

    def as_json(self) -> dict[str, Any]:
        return {"flow": self.flow, "run": self.run, "seconds": round(self.seconds, 1)}


class Turns:
    """The work that waits, and whose turn it is."""

    def __init__(self) -> None:
        self._waiting: list[WorkerJob] = []
        self._last: dict[str, int] = {}
        self._turn = count(1)

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[WorkerJob]:
        return iter(list(self._waiting))

    def add(self, job: WorkerJob) -> None:
        """Work that waits from now on."""
        self._waiting.append(job)

    def next(self, busy: set[str]) -> list[WorkerJob]:
        """What may begin, the first one first; nothing of flows that are busy."""
        first = dict[str, WorkerJob]()
        for job in self._waiting:
            if job.flow not in busy:
                first.setdefault(job.flow, job)
        return sorted(first.values(), key=lambda job: (self._last.get(job.flow, 0), job.number))

    def take(self, job: WorkerJob) -> None:
        """The work begins: its flow has had its turn."""
        self._waiting.remove(job)
        self._last[job.flow] = next(self._turn)

    def drop(self, job: WorkerJob) -> bool:
        """The work is not wanted any more; False if it does not wait."""
        if job not in self._waiting:
            return False
        self._waiting.remove(job)
        return True


_ENDS = ("failed", "gone", "cancelled")
"""What is told of work that does not end as it should; of the rest, it was done."""


class WorkCounts:
    """Counts by flow; told from the threads of all processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: Counter[tuple[str, str]] = Counter()
        self._checks: Counter[tuple[str, str, str]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._wrong: dict[int, str] = {}

    def record(self, job: WorkerJob, message: Message) -> None:
        """Takes what a process tells of its work."""
        kind = message["kind"]
        with self._lock:
            if kind in _ENDS:
                self._wrong[job.number] = kind
            elif kind == "report":
                self._report(job.flow, message["report"])
            if kind in ("end", "gone"):
                self._ends[job.flow, self._wrong.pop(job.number, "done")] += 1
                # In milliseconds: sums of them are exact.
                self._seconds[job.flow] += round(1000 * job.seconds)

    def as_json(self) -> dict[str, Any]:
        """The counts, each with what it is of."""
        with self._lock:
            return {
                "ends": [[*of, number] for of, number in sorted(self._ends.items())],
                "checks": [[*of, number] for of, number in sorted(self._checks.items())],
                "seconds": [[flow, ms / 1000] for flow, ms in sorted(self._seconds.items())],
            }

    def _report(self, flow: str, report: Message) -> None:
        for asset, verdict in report["verdicts"]:
            if not verdict["passed"]:
                self._checks[flow, f"{asset}:{verdict['check']}", verdict["severity"]] += 1


_PACKAGES = ("hydro_core", "hydrotick")
_KINDS = frozenset({".py", *PROGRAMS, ".yaml", ".yml", ".toml", ".json", ".sql"})
_MOST_BYTES = 4 * 1024 * 1024
"""A larger file holds data, of which its size and time tell."""


def code_number(root: Path | None) -> str:
    """The number of the code of a project in the folder `root`, and of hydrotick."""
    digest = hashlib.sha256()
    for name, file in sorted(_files(root)):
        stat = file.stat()
        large = stat.st_size > _MOST_BYTES
        content = str((stat.st_size, stat.st_mtime_ns)).encode() if large else file.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _files(root: Path | None) -> Iterator[tuple[str, Path]]:
    """The files by names that are the same on every machine."""
    for package in _PACKAGES:
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for file in Path(folder).rglob("*.py"):
                yield f"{package}/{file.relative_to(folder)}", file
    if root is not None:
        declared = [f for f in (root / ASSETS).rglob("*") if f.suffix in _KINDS and f.is_file()]
        settings = [root / SETTINGS] if (root / SETTINGS).is_file() else []
        for file in (*declared, *settings):
            yield str(file.relative_to(root)), file
