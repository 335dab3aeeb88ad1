"""The flights, day by day, with landings and tables in an object store, and in a directory.

The days before are run as ranges, in both; then single days take turns, so whatever else the
machine does hits both. The store is a server of S3's protocol on loopback, in a process that is not
measured, and answers from memory: what it takes is what asking takes.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from assets.flights.landing import land
from benchmarks.measure import Meter, Ratio, note, parser_of, plan_of, report, session
from benchmarks.year import PROGRAM, Ours
from hydro_core.storage.remote import RemotePath, remote_at
from hydro_core.storage.settings import StorageSettings
from tests.support.store_server import BUCKET, KEY, SECRET, quick_store_server

RANGE = 10


def main() -> int:
    """Prints processor time and time of a day, and their ratios."""
    parser = parser_of("flights_on_a_store", __doc__ or "")
    parser.add_argument("--days", type=int, default=60, help="days before those that are timed")
    parser.add_argument("--singles", type=int, default=8, help="single days that are timed")
    parser.add_argument("--warm", type=int, default=3, help="single days before these")
    asked = parser.parse_args()
    os.environ.update(
        AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, AWS_EC2_METADATA_DISABLED="true"
    )
    spark, settings = session(asked.memory)
    meter, plan = Meter(spark, asked.seconds), plan_of(PROGRAM.read_text(encoding="utf-8"))
    last = asked.days + asked.warm + asked.singles
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as name, served() as server:
        here, there = Path(name), server.at("bench")
        land(here / "landed", days=last)
        server.hold(here / "landed", "bench/landed")
        places = {"directory": here, "store": there}
        ours = {
            what: Ours(place / "pipeline", plan, place / "landed", spark, settings)
            for what, place in places.items()
        }
        for what, one in ours.items():
            ranges(one, asked.days)
            note(f"{asked.days} days, {what}")
        start = server.asked
        single = meter.alternate(
            {what: lambda day, one=one: one.range(day, day) for what, one in ours.items()},
            range(asked.days, last),
            asked.warm,
        )
        requests = (server.asked - start) / (last - asked.days)
    rows = [
        {
            "tables and landings in": what,
            **single[what].record(),
            "requests": round(requests) if what == "store" else 0,
        }
        for what in ours
    ]
    ratios = [
        Ratio("a single day, store over directory", single["store"].cpu / single["directory"].cpu),
        Ratio(
            "time of a single day, store over directory",
            single["store"].seconds / single["directory"].seconds,
        ),
    ]
    report("The flights on a store and in a directory", rows, ratios, asked)
    return 0


def ranges(ours: Ours, days: int) -> None:
    """Runs the days before."""
    for first in range(0, days, RANGE):
        ours.range(first, min(first + RANGE, days) - 1)


class Server:
    """A store in a process of its own."""

    def __init__(self, url: str, link: Connection) -> None:
        self._url, self._link = url, link

    @property
    def asked(self) -> int:
        """How many requests there were."""
        self._link.send(None)
        found: int = self._link.recv()
        return found

    def at(self, name: str) -> RemotePath:
        """A place in its bucket."""
        return remote_at(f"s3://{BUCKET}/{name}", StorageSettings(self._url, "us-east-1"))

    def hold(self, directory: Path, name: str) -> None:
        """Has the files of a directory be there."""
        files = (file for file in directory.rglob("*") if file.is_file())
        self._link.send(
            {f"{name}/{file.relative_to(directory)}": file.read_bytes() for file in files}
        )
        self._link.recv()


@contextmanager
def served() -> Iterator[Server]:
    """A server, until the block is left."""
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe()
    process = spawning.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        yield Server(here.recv(), here)
    finally:
        process.terminate()
        process.join()


def _serve(link: Any) -> None:
    with quick_store_server() as server:
        link.send(server.url)
        while True:
            files = link.recv()
            if files is not None:
                server.hold(files)
            link.send(len(server.asked))


if __name__ == "__main__":
    sys.exit(main())
