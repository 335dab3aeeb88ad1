"""Twenty million rows of history within the memory that Spark has by default.

A stream of payments is joined with all customers ever seen and summed per customer over all
history, from Parquet files to Parquet files, by `hydrotick run --input … --engine spark` in a
process of its own. Printed are the time, and the most memory that its JVM and its Python had.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

PROGRAM = """
payments  = source("customer long, amount long, day date")
customers = source("customer long, city string")
paid = payments -> persist()
known = customers -> persist()
paid -> join(right=known, on="customer") -> delta() -> named
paid -> aggregate(by="customer", n=count(), total=sum("amount"), largest=max("amount"))
  -> delta() -> totals
"""
DAYS, FILES = 30, 16


def generate(folder: Path, rows: int, customers: int) -> None:
    """Payments of thirty days, and customers that all come on the first."""
    random = np.random.default_rng(7)
    start = np.datetime64("2024-01-01")
    (folder / "payments").mkdir()
    for number in range(FILES):
        size = rows // FILES
        # A file holds a few days, as files do that arrive in time.
        days = start + np.sort(random.integers(0, DAYS, size) * FILES // FILES)
        table = pa.table(
            {
                "customer": random.integers(0, customers, size),
                "amount": random.integers(1, 10_000, size),
                "day": pa.array(days.astype("datetime64[D]")),
            }
        )
        pyarrow.parquet.write_table(table, folder / "payments" / f"{number:02}.parquet")
    names = [f"city {n % 997}" for n in range(customers)]
    table = pa.table({"customer": np.arange(customers), "city": names})
    pyarrow.parquet.write_table(table, folder / "customers.parquet")


class Watch(threading.Thread):
    """The most memory that the processes below one have at once, by kind, and their CPU time."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root = root
        self.bytes = dict[str, int]()
        self.ticks = dict[int, int]()
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(0.5):
            sums = dict[str, int]()
            for number, kind, size, ticks in _processes(self._root):
                sums[kind] = sums.get(kind, 0) + size
                self.ticks[number] = ticks
            for kind, size in sums.items():
                self.bytes[kind] = max(size, self.bytes.get(kind, 0))

    def stop(self) -> None:
        self._done.set()
        self.join()


def _processes(root: int) -> list[tuple[int, str, int, int]]:
    """Number, kind, resident bytes and ticks of the processor, of a process and those below it."""
    seen = dict[int, tuple[int, str, int, int]]()
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            name, _, rest = (place / "stat").read_text().partition("(")[2].rpartition(")")
            pages = int((place / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        fields = rest.split()
        parent, used = int(fields[1]), int(fields[11]) + int(fields[12])
        seen[int(place.name)] = parent, name, pages * os.sysconf("SC_PAGE_SIZE"), used
    found = []
    for number, (_, name, size, used) in seen.items():
        at = number
        while at in seen and at != root:
            at = seen[at][0]
        if at == root:
            kind = "driver" if number == root else "JVM" if name == "java" else "others"
            found.append((number, kind, size, used))
    return found


def measure(folder: Path, words: list[str]) -> dict[str, float]:
    """One run in a process of its own."""
    command = [str(Path(sys.executable).parent / "hydrotick"), "run", str(folder / "p.hydro")]
    command += ["--input", f"payments={folder / 'payments'}:day"]
    command += ["--input", f"customers={folder / 'customers.parquet'}"]
    command += ["--engine", "spark", "--out", str(folder / "out"), *words]
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        watch = Watch(process.pid)
        watch.start()
        said = process.stdout.read().decode() if process.stdout else ""
        process.wait()
        watch.stop()
    if process.returncode:
        raise SystemExit(f"the run failed with {process.returncode}")
    print(said, end="", file=sys.stderr)
    mebibytes = {f"{kind} MiB": size / 2**20 for kind, size in watch.bytes.items()}
    processor = sum(watch.ticks.values()) / os.sysconf("SC_CLK_TCK")
    return {"seconds": time.monotonic() - begin, "CPU seconds": processor, **mebibytes}


def main() -> None:
    """Generates, runs, prints a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--customers", type=int, default=1_000_000)
    parser.add_argument("--ticks-at-once", default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hydrotick-scale-") as name:
        folder = Path(name)
        (folder / "p.hydro").write_text(PROGRAM)
        generate(folder, given.rows, given.customers)
        words = ["--ticks-at-once", given.ticks_at_once] if given.ticks_at_once else []
        found = measure(folder, words)
    for what, value in found.items():
        print(f"{what:12} {value:10,.1f}")
    print(json.dumps({"rows": given.rows, "customers": given.customers, **found}))


if __name__ == "__main__":
    main()
