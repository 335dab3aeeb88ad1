"""From the launch of a run to the materialization of its tick, in a warm worker.

    python -m benchmarks.launched [--ticks N] [--rows N]
    python -m benchmarks.launched --fleet [--flows N] [--days N] [--together N]

A tick of few rows of the sample flow, launched by Dagster's default launcher, with the executor of
several processes, and as `hydrotick dev` does it. The processor time is that of all processes: of
the run's own (with what the code server does to start them), of the worker and of its process, of
their JVM, and of this one, which launches. Beside them stands what Dagster alone takes: an asset
that does nothing, in a project that has nothing else. `--fleet` runs many flows, a year's worth of
which no company would run in a JVM for each run: with a worker of two flows at a time, and without
one; memory is that of all processes, of what is shared by share.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import psutil

from benchmarks.measure import RESULTS, as_table, note
from hydrotick.instance import prepare_instance
from tests.orchestration.launched import Company, Launches, until

FIRST = date(2026, 1, 1)
WAYS = {
    "default launcher": ("totals_job", False),
    "multiprocess executor": ("several", False),
    "dev": ("totals_job", True),
    "Dagster alone": ("nothing", False),
}
"""The job, and whether the instance is that of `hydrotick dev`."""
NOTHING = """
import dagster as dg

days = dg.DailyPartitionsDefinition("2026-01-01", end_offset=365)

@dg.asset(partitions_def=days)
def idle() -> dg.MaterializeResult:
    return dg.MaterializeResult()

job = dg.define_asset_job("nothing", [idle], executor_def=dg.in_process_executor)
defs = dg.Definitions(assets=[idle], jobs=[job])
"""

PARTS = ("launcher", "run", "worker", "process", "JVM")


def key(day: int) -> str:
    """The tick of a day."""
    return (FIRST + timedelta(days=day)).isoformat()


def company(at: Path, flows: int, days: int, rows: int) -> Company:
    """A project of so many flows, with so many days of rows for all of them."""
    made = Company(at)
    payments = made.home / "landing" / "payments"
    shutil.rmtree(payments)
    payments.mkdir(parents=True)
    for day in range(days + 1):
        lines = [f"{key(day)},user{number % 97},{number % 50}" for number in range(rows)]
        (payments / f"{key(day)}.csv").write_text("\n".join(["day,user,amount", *lines, ""]))
    declared = made.shop / "assets"
    for number in range(1, flows):
        shutil.copytree(declared / "totals", declared / f"flow_{number}")
        with suppress(FileNotFoundError):
            (declared / f"flow_{number}" / "tests.yaml").unlink()
    return made


def compiled(at: Path) -> Mapping[str, str]:
    """Variables of processes whose code has been compiled, as that of what is installed has."""
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(at / "compiled")}


class Processes:
    """The processes of a company, and what each part of them has taken."""

    def __init__(self, worker: int) -> None:
        self._me, self._worker = psutil.Process(), psutil.Process(worker)

    def used(self) -> dict[str, float]:
        """Seconds of processor time by part, up to now."""
        servers = [p for p in self._me.children() if p.pid != self._worker.pid]
        processes = self._worker.children()
        jvms = [p for q in processes for p in q.children(recursive=True) if p.name() == "java"]
        return {
            "launcher": _own(self._me),
            # Those that have ended are in the time of who has waited for them.
            "run": sum(map(_with_ended, servers)),
            "worker": _own(self._worker),
            "process": sum(map(_own, processes)),
            "JVM": sum(map(_own, jvms)),
        }

    def runs_have_ended(self) -> bool:
        """Whether no process of a run is there."""
        servers = [p for p in self._me.children() if p.pid != self._worker.pid]
        below = [child for p in servers for child in p.children(recursive=True)]
        return not [p for p in below if "spawn_main" in " ".join(_words(p))]


def _own(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _with_ended(process: psutil.Process) -> float:
    found = 0.0
    with suppress(psutil.Error):
        times = process.cpu_times()
        found = times.user + times.system + times.children_user + times.children_system
        found += sum(map(_with_ended, process.children()))
    return found


def _words(process: psutil.Process) -> Sequence[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return ()


def ways(made: Company, ticks: int) -> Iterator[dict[str, object]]:
    """A row for each way of launching; two ticks of each are not counted."""
    day, variables = 0, compiled(made.home)
    with made.worker(**variables) as worker:
        for way, (job, ours) in WAYS.items():
            home = prepare_instance(made.home / "dagster") if ours else made.dagster
            if job == "nothing":
                made.definitions.write_text(NOTHING)
            with made.launcher(DAGSTER_HOME=str(home), **variables) as launches:
                processes, seen = Processes(worker.pid), []
                for number in range(ticks + 2):
                    found = tick(launches, processes, key(day), job)
                    day += 1
                    if number >= 2:
                        seen.append(found)
            yield {
                "way": way,
                "ticks": len(seen),
                **{name: statistics.median(f[name] for f in seen) for name in seen[0]},
            }


def tick(launches: Launches, processes: Processes, partition: str, job: str) -> Mapping[str, float]:
    """One tick: seconds to its materialization and to the end of its run, processor seconds."""
    before, began = processes.used(), time.time()
    run = launches.run(partition, job)
    until(processes.runs_have_ended)
    used = processes.used()
    assert launches.status(run) == "SUCCESS", launches.says(run)
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    told = max(log.timestamp for log in launches.instance.all_logs(run, of_type=kind))
    ended = launches.instance.get_run_record_by_id(run)
    assert ended is not None
    assert ended.end_time is not None
    parts = {name: round(used[name] - before[name], 2) for name in PARTS}
    found = {
        "materialized": round(told - began, 2),
        "ended": round(ended.end_time - began, 2),
        "CPU": round(sum(parts.values()), 2),
        **parts,
    }
    note(f"{job} {partition}: {found}")
    return found


def fleet(at: Path, size: tuple[int, int, int], together: int) -> Iterator[dict[str, object]]:
    """All flows over all days, two at a time, in ranges: with a worker, and without one.

    Args:
        at: a folder, in which each of the two has a project of its own.
        size: flows, days, and rows of a day.
        together: ticks of a range.
    """
    flows, days, _ = size
    for way in ("worker", "none"):
        made = company(at / way, *size)
        variables = compiled(made.home)
        worker = made.worker(**variables) if way == "worker" else nullcontext()
        with worker, made.launcher(**variables) as launches, watched() as seen:
            began = time.time()
            runs = _all(launches, flows, days, together)
            row: dict[str, object] = {
                "way": way,
                "runs": runs,
                "seconds": round(time.time() - began, 1),
                "JVMs": len(seen["jvms"]),
                "MiB at most": max(seen["memory"]),
            }
            note(str(row))
            yield row


def _all(launches: Launches, flows: int, days: int, together: int) -> int:
    """Launches ranges of all flows, two flows at a time; gives how many runs that took."""
    names = ["totals", *(f"flow_{number}" for number in range(1, flows))]
    left = [(start, name) for start in range(0, days, together) for name in names]
    going: dict[str, str] = {}
    count = len(left)
    while left or going:
        for name, run in list(going.items()):
            if launches.status(run) in {"SUCCESS", "FAILURE", "CANCELED"}:
                assert launches.status(run) == "SUCCESS", launches.says(run)
                del going[name]
        free = [(start, name) for start, name in left if name not in going]
        if free and len(going) < 2:
            start, name = free[0]
            left.remove((start, name))
            last = min(start + together, days) - 1
            going[name] = launches.launch(key(start), f"{name}_job", key(last))
            note(f"{name} {key(start)} to {key(last)}: {len(left)} left")
        else:
            time.sleep(0.2)
    return count


def _ratio(row: Mapping[str, object], alone: Mapping[str, object]) -> float:
    return round(float(str(row["CPU"])) / float(str(alone["CPU"])), 2)


@contextmanager
def watched() -> Iterator[dict[str, list[int]]]:
    """The JVMs that were there, and the memory of all processes below this one, in MiB."""
    seen: dict[str, list[int]] = {"jvms": [], "memory": [0]}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            sizes = 0
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    sizes += process.memory_full_info().pss
                    long = process.name() == "java" and process.create_time() < time.time() - 2
                    if long and process.pid not in seen["jvms"]:
                        seen["jvms"].append(process.pid)
            seen["memory"].append(sizes // 2**20)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def main() -> int:
    """Measures, prints a table, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=7)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--fleet", action="store_true")
    parser.add_argument("--flows", type=int, default=20)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--together", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS / "launched.json")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hydrotick-launched-") as at:
        if asked.fleet:
            size = (asked.flows, asked.days, asked.rows)
            rows = list(fleet(Path(at), size, asked.together))
        else:
            made = company(Path(at), 1, len(WAYS) * (asked.ticks + 2), asked.rows)
            rows = list(ways(made, asked.ticks))
    print(as_table(rows))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    said: dict[str, object] = {
        "at": datetime.now(UTC).isoformat(),
        "load": os.getloadavg(),
        "rows": rows,
    }
    if not asked.fleet:
        said["ratios"] = [
            {"what": "seconds to the materialization", "value": rows[0]["materialized"], "goal": 5},
            {"what": "processor seconds of a run", "value": rows[0]["CPU"], "goal": 3},
            {"what": "of what Dagster alone takes", "value": _ratio(rows[0], rows[-1])},
        ]
    asked.out.write_text(json.dumps(said, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
