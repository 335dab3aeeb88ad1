"""What a warm tick asks of an object store for its tables, after a few ticks and after many.

A pipeline with a state and two outputs is kept in a bucket (a server of S3's protocol on loopback).
A tick takes the right to write, finds its tables where the last commit left them, appends rows to
each, and commits; now and then files are joined and logs summed up. What computes rows, and what is
asked for landings (`object_store`), is left out, so that a thousand ticks take a minute. Requests
and bytes are means of `--over` ticks, since upkeep comes now and then. Beside them stands what a
process asks that opens the pipeline anew, as a run without a worker does.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Ratio, note, parser_of, report
from hydro_core.storage.remote import DataPlace
from tests.support.store_server import KEY, SECRET, StoreServer, quick_store_server
from tests.unit.storage.test_corrections_in_a_store import opened, tick

GOAL = 1.1


@dataclass
class Asked:
    """What was asked in some ticks, and the processor time that they took."""

    requests: float
    received: float
    sent: float
    seconds: float


class Ticks:
    """The ticks of one pipeline, in one process; of a store with what they ask."""

    def __init__(self, place: DataPlace, server: StoreServer) -> None:
        self.place, self.server = place, server
        self.pipeline, self.next = opened(place), 0

    def run(self, count: int) -> Asked:
        """Runs so many, and gives what each asked on average."""
        server = self.server
        server.asked.clear()
        server.sent = server.taken = 0
        began = time.process_time()
        for _ in range(count):
            tick(self.pipeline, self.next, "row")
            self.next += 1
        took = time.process_time() - began
        totals = (len(server.asked), server.sent, server.taken, took)
        return Asked(*(total / count for total in totals))

    def anew(self) -> Asked:
        """The next tick, of a process that has just begun."""
        self.pipeline = opened(self.place)
        return self.run(1)


def main() -> None:
    """Prints requests, bytes and times, and their ratios."""
    parser = parser_of("store_ticks", __doc__ or "")
    parser.add_argument("--few", type=int, default=10, help="ticks before the first (10)")
    parser.add_argument("--many", type=int, default=1000, help="ticks before the second (1000)")
    parser.add_argument("--over", type=int, default=20, help="ticks that are counted (20)")
    asked = parser.parse_args()
    os.environ.update(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    rows, took = [], {}
    with quick_store_server() as server, tempfile.TemporaryDirectory() as scratch:
        places: dict[str, DataPlace] = {
            "store": server.at("pipelines/small"),
            "directory": Path(scratch, "small"),
        }
        for where, place in places.items():
            ticks = Ticks(place, server)
            for count in (asked.few, asked.many):
                ticks.run(count - ticks.next)
                for how, one in (("warm", ticks.run(asked.over)), ("anew", ticks.anew())):
                    took[where, how, count] = one
                    note(f"{where}, {how}, after {count} ticks: {one}")
                    told = {"place": where, "process": how, "ticks": count}
                    told |= {"requests": round(one.requests, 1)}
                    told |= {"KiB received": round(one.received / 1024, 1)}
                    told |= {"KiB sent": round(one.sent / 1024, 1)}
                    rows.append({**told, "cpu ms": round(one.seconds * 1000, 1)})
        ratios = [
            Ratio(
                f"requests of a {how} tick after {asked.many} ticks over {asked.few}",
                took["store", how, asked.many].requests / took["store", how, asked.few].requests,
                GOAL,
            )
            for how in ("warm", "anew")
        ]
    report("A warm tick's tables in an object store", rows, ratios, asked)


if __name__ == "__main__":
    main()
