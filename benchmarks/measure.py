"""What the benchmarks share: time, processor time and peak memory of runs, tables and JSON.

Runs that are compared take turns in one warm process, so whatever else the machine does hits all of
them; the ratio of their processor times is what counts, not their seconds. Processor time is that
of this process, its JVM and the JVM's Python workers together. Peaks of memory are those of a run
itself, as Linux tells them in /proc; a JVM keeps a heap that it once needed, so its peak is also
that of earlier runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from hydro_core.compile import executable
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.session.session import shared_session

RESULTS = Path("benchmarks/results")

Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Usage:
    """What one run took."""

    seconds: float
    cpu: float
    python_mb: int
    jvm_mb: int
    workers_mb: int


@dataclass(frozen=True, slots=True)
class Ratio:
    """What a benchmark is for: one processor time over another, if it names nothing else."""

    what: str
    value: float
    goal: float | None = None


@dataclass(slots=True)
class Runs:
    """All runs of one thing that is measured."""

    usages: list[Usage] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The median time of a run."""
        return statistics.median(usage.seconds for usage in self.usages)

    @property
    def cpu(self) -> float:
        """The median processor time of a run."""
        return statistics.median(usage.cpu for usage in self.usages)

    def record(self) -> dict[str, float]:
        """The medians, and the peaks of memory."""
        return {
            "runs": len(self.usages),
            "seconds": round(self.seconds, 4),
            "cpu_seconds": round(self.cpu, 3),
            **self.memory(),
        }

    def memory(self) -> dict[str, int]:
        """The peaks of memory, in MB."""
        return {
            "python_mb": max(usage.python_mb for usage in self.usages),
            "jvm_mb": max(usage.jvm_mb for usage in self.usages),
            "workers_mb": max(usage.workers_mb for usage in self.usages),
        }


class Meter:
    """Measures runs in this process and the JVM of a session.

    A comparison begins no further round after `limit` seconds, once it has one that counts.
    """

    def __init__(self, spark: SparkSession, limit: float) -> None:
        self._limit = limit
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - Spark offers no question for it
        self.jvm = int(jvm.ProcessHandle.current().pid())
        """The JVM's process."""
        self._ticks = os.sysconf("SC_CLK_TCK")

    def measure(self, run: Run) -> Usage:
        """Runs it once."""
        for pid in self._processes():
            _reset_peak(pid)
        cpu, before = self._cpu(), time.perf_counter()
        run()
        seconds, used = time.perf_counter() - before, self._cpu() - cpu
        workers = [pid for pid in self._processes() if pid not in (os.getpid(), self.jvm)]
        return Usage(
            seconds,
            used,
            _peak(os.getpid()),
            _peak(self.jvm),
            sum(_peak(pid) for pid in workers),
        )

    def alternate(
        self, variants: Mapping[str, Callable[[int], object]], rounds: Iterable[int], warm: int = 0
    ) -> dict[str, Runs]:
        """Runs all variants once in each round, forwards and backwards in turns.

        The first `warm` rounds are not counted.
        """
        found = {name: Runs() for name in variants}
        started = time.perf_counter()
        for turn, number in enumerate(rounds):
            if turn > warm and time.perf_counter() - started > self._limit:
                break
            # In turns, so that none always finds the caches that another has left.
            for name in list(variants) if turn % 2 else reversed(variants):
                usage = self.measure(lambda name=name, number=number: variants[name](number))
                if turn >= warm:
                    found[name].usages.append(usage)
                note(f"{number}: {name} {usage.seconds:.2f} s, cpu {usage.cpu:.2f} s")
        return found

    def _processes(self) -> list[int]:
        """This process, the JVM, and what the JVM has started."""
        found = [os.getpid(), self.jvm]
        children = _children()
        waiting = [self.jvm]
        while waiting:
            own = children.get(waiting.pop(), [])
            found += own
            waiting += own
        return found

    def _cpu(self) -> float:
        return sum(_cpu_ticks(pid) for pid in self._processes()) / self._ticks


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            found.setdefault(int(fields[1]), []).append(int(entry.name))
    return found


def _cpu_ticks(pid: int) -> int:
    """User and system time of a process and of its children that have ended."""
    fields = _stat(pid)
    return sum(map(int, fields[11:15])) if fields else 0


def _stat(pid: int) -> list[str]:
    """The fields of a process from its state on; none if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _reset_peak(pid: int) -> None:
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        return


def _peak(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)


def session(
    memory: str = "1g", extra: tuple[tuple[str, str], ...] = ()
) -> tuple[SparkSession, Settings]:
    """The session of a benchmark, and the settings with it; `extra` are more options of Spark."""
    settings = Settings().with_(master="local[2]", memory=memory, extra=extra)
    return shared_session(settings.spark), settings


def plan_of(text: str) -> TickPlan:
    """The plan of a program."""
    return executable(text)


def note(line: str) -> None:
    """Says how far a benchmark is, on standard error."""
    sys.stderr.write(f"  {line}\n")
    sys.stderr.flush()


def parser_of(name: str, doc: str) -> argparse.ArgumentParser:
    """The arguments that all benchmarks have."""
    parser = argparse.ArgumentParser(
        description=doc.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=RESULTS / f"{name}.json")
    parser.add_argument("--memory", default="1g", help="memory of the JVM")
    parser.add_argument(
        "--seconds", type=float, default=150, help="no further round of a comparison after these"
    )
    return parser


def report(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    ratios: Sequence[Ratio],
    asked: argparse.Namespace,
) -> None:
    """Prints the rows as a table, and writes them and the ratios as JSON where that was asked."""
    print(title)
    print(as_table(rows))
    found = {
        "title": title,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "cores": os.cpu_count(),
        "sizes": {name: value for name, value in vars(asked).items() if name != "out"},
        "ratios": [asdict(ratio) for ratio in ratios],
        "rows": list(rows),
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def as_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table in Markdown, its columns as wide as they need to be."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    lines = [
        "| " + " | ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
