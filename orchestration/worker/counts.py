"""What a worker has counted since it was started: how work ended, and which checks failed."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from .jobs import WorkerJob
from .wire import Message

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

    def told(self, job: WorkerJob, message: Message) -> None:
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
