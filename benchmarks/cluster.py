"""Large ticks on a cluster: their time beside embedded Spark, and the memory of their driver.

Two workers of Spark's own cluster, processes of this machine, share a directory with the driver.
A flow of running totals, each of whose ticks has keys that no other has, is filled with `--stored`
keys. Then drivers of their own run one tick each: of `--few` new keys, and of `--new`. Of each the
peak memory of its Python and of its JVM is told, without the pages of files that are mapped, which
the system takes back when it needs them; the ratio of the two is what counts. A tick of
`--compared` keys over none is run on the cluster, and within a process (`local[2]`).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure import Ratio, note, parser_of, report
from hydro_core.project.flow_asset import Expect, FlowAsset, Landing, Ticks
from hydro_core.settings import size_in_bytes
from hydro_core.spark.session.launch import jvm_process
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.support.standalone import conf_of_driver, standalone

PROGRAM = """
payments = source("user string, amount long")
payments -> persist() -> aggregate(by="user", total=sum("amount")) -> delta() -> totals
"""
SCHEMA = pa.schema([("tick", pa.int64()), ("user", pa.string()), ("amount", pa.int64())])
WITHIN = 1.2
"""A driver's memory may differ by so much: what a tick has does not count."""
_AT_ONCE = 1_000_000


def flow_in(home: Path) -> FlowAsset:
    """Running totals of users."""
    program = home / "totals.hydro"
    program.write_text(PROGRAM, encoding="utf-8")
    return FlowAsset(
        name="totals",
        program=program,
        ticks=Ticks(datetime(2026, 1, 1, tzinfo=UTC), "1d"),
        inputs={"payments": Landing("payments", "tick")},
        expect={
            "totals": (Expect("user", not_null=True, unique=True), Expect("total", at_least=0))
        },
    )


def land(home: Path, tick: int, first: int, rows: int) -> None:
    """Lands so many rows of a tick, of keys that no other tick has."""
    folder = home / "landing" / "payments"
    folder.mkdir(parents=True, exist_ok=True)
    for part, begin in enumerate(range(first, first + rows, _AT_ONCE)):
        count = min(_AT_ONCE, first + rows - begin)
        numbers = pa.array(range(begin, begin + count), pa.int64())
        users = pc.binary_join_element_wise("user-", numbers.cast(pa.string()), "")
        ticks = pa.repeat(pa.scalar(tick, pa.int64()), count)
        table = pa.Table.from_arrays([ticks, users, numbers], schema=SCHEMA)
        pq.write_table(table, folder / f"{tick:03}-{part:03}.parquet")


def run(home: Path, master: str, tick: int, conf: dict[str, str]) -> dict[str, float]:
    """Runs a tick in this process, and gives what it took."""
    project = ProjectSettings(home=home, spark_master=master, spark_conf=conf, sample_keys=2)
    runner, flow = TickRunner(project), flow_in(home)
    began = time.perf_counter()
    with peak_of_own_memory() as peak:
        (report_,) = runner.run(flow, [flow.ticks.calendar.window(tick)], lambda _: None)
    assert report_.committed, report_.problem
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "python_mb": peak[0],
        "jvm_mb": in_mb(jvm_process(), "VmHWM"),
        "with_mapped_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


@contextmanager
def peak_of_own_memory() -> Iterator[list[int]]:
    """The MiB that are no file's and that this process had at most, looked at twenty times a
    second.
    """
    peak, ended = [0], threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            peak[0] = max(peak[0], in_mb("self", "RssAnon"))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield peak
    finally:
        ended.set()
        looking.join()


def in_mb(process: int | str | None, what: str) -> int:
    """What the system says of a process's memory, in MiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith(f"{what}:"))
    return int(found.split()[1]) // 1024


def in_a_process(home: Path, master: str, tick: int, conf: dict[str, str]) -> dict[str, float]:
    """The same in a driver of its own."""
    words = [str(home), master, str(tick), json.dumps(conf)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.cluster", "--tick", *words],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    note(f"tick {tick} on {master}: {found}")
    return found


def ticks(asked: Any, folder: Path) -> Iterator[dict[str, Any]]:
    """What each tick that is measured took."""
    memory = asked.executor_memory
    conf = {**conf_of_driver(), "spark.executor.memory": memory}
    node = f"{size_in_bytes(memory) // 2**20 + 512}m"
    home, compared = folder / "home", folder / "compared"
    for one in (home, compared):
        one.mkdir()
    land(compared, 0, 0, asked.compared)
    with standalone(folder / "nodes", {}, memory=node, shared=(folder,)) as cluster:
        took = in_a_process(compared, cluster.url, 0, conf)
        yield {"what": "compared", "where": "cluster", "new": asked.compared, "stored": 0, **took}
        first, tick = 0, 0
        while first < asked.stored:
            land(home, tick, first, min(asked.new, asked.stored - first))
            first += min(asked.new, asked.stored - first)
            in_a_process(home, cluster.url, tick, conf)
            tick += 1
        for what, rows in (("few", asked.few), ("new", asked.new)):
            land(home, tick, first, rows)
            took = in_a_process(home, cluster.url, tick, conf)
            yield {"what": what, "where": "cluster", "new": rows, "stored": first, **took}
            first, tick = first + rows, tick + 1
    again = replace_home(compared, folder / "embedded")
    took = in_a_process(again, "local[2]", 0, {})
    yield {"what": "compared", "where": "local[2]", "new": asked.compared, "stored": 0, **took}


def replace_home(home: Path, to: Path) -> Path:
    """The same landing for a flow that has not run."""
    to.mkdir()
    (home / "landing").rename(to / "landing")
    return to


def main() -> None:
    """Prints times and peaks of memory, and their ratios."""
    if sys.argv[1:2] == ["--tick"]:
        home, master, tick, conf = sys.argv[2:]
        print(json.dumps(run(Path(home), master, int(tick), json.loads(conf))))
        return
    parser = parser_of("cluster", __doc__ or "")
    parser.add_argument("--stored", type=int, default=5_000_000, help="keys before (5000000)")
    parser.add_argument("--new", type=int, default=1_000_000, help="keys of a large tick (1000000)")
    parser.add_argument("--few", type=int, default=100_000, help="keys of a small one (100000)")
    parser.add_argument("--compared", type=int, default=5_000_000, help="of the timed (5000000)")
    parser.add_argument("--executor-memory", default="1g", help="of each of the two (1g)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = list(ticks(asked, Path(scratch)))
    by = {(row["what"], row["where"]): row for row in rows}
    few, new = by["few", "cluster"], by["new", "cluster"]
    apart, here = by["compared", "cluster"], by["compared", "local[2]"]

    def memory(row: dict[str, Any]) -> float:
        return float(row["python_mb"] + row["jvm_mb"])

    what = f"memory of a driver, {asked.new:,} new keys over {asked.few:,}"
    ratios = [
        Ratio(what, memory(new) / memory(few), WITHIN),
        Ratio("seconds of a tick on two workers over local[2]", apart["seconds"] / here["seconds"]),
    ]
    report("Large ticks on a cluster", rows, ratios, asked)


if __name__ == "__main__":
    main()
