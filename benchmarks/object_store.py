"""What a warm tick asks of an object store for its landing, after a few files and after many.

A landing in a bucket (a server of S3's protocol on loopback) has a file for each tick. The next
tick looks at it and reads its rows, as flows do, without Spark. Requests and bytes of two such
ticks are compared: one after `--few` files, one after `--many`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from benchmarks.measure import Ratio, note, parser_of, report
from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import InputBatches
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.ddl import parse_ddl
from tests.support.store_server import KEY, SECRET, Mirror, StoreServer, store_server

ITEM = parse_ddl("user string, v long")
START = datetime(2020, 1, 1, tzinfo=UTC)
ROWS = 100
GOAL = 1.2


@dataclass(frozen=True)
class Tick:
    """What a tick took."""

    requests: int
    bytes: int


def landed(folder: Path, kind: str, tick: int) -> None:
    """The rows of a tick, in a file of their own."""
    days = [date(2020, 1, 1) + timedelta(days=tick)] * ROWS
    rows = pa.table({"day": days, "user": ["u"] * ROWS, "v": list(range(ROWS))})
    if kind == "Parquet":
        pq.write_table(rows, folder / f"{tick:05}.parquet")
        return
    write_deltalake(folder, rows, mode="append")
    if tick % 100 == 99:
        DeltaTable(folder).create_checkpoint()


def no_session() -> NoReturn:
    """Nothing here is large enough for Spark."""
    raise AssertionError


def warm(
    place: DataPlace, home: Path, land: Callable[[int], None], tick: int, server: StoreServer
) -> Tick:
    """The second of two ticks that follow each other."""
    batches = InputBatches(
        {"x": LandingTable(place, "day")},
        {"x": ITEM},
        no_session,
        calendar=Calendar(START),
        directory=home,
    )
    read = batches.read(0, tick - 1, batches.landings.look(0))["x"].read
    for now in (tick, tick + 1):
        land(now)
        server.asked.clear()
        server.sent = 0
        seen = batches.landings.look(now, [read])
        read = batches.read(now, now, seen)["x"].read
    return Tick(len(server.asked), server.sent)


def main() -> None:
    """Prints requests, bytes and times, and their ratios."""
    parser = parser_of("object_store", __doc__ or "")
    parser.add_argument("--few", type=int, default=10, help="files before the first (10)")
    parser.add_argument("--many", type=int, default=1000, help="files before the second (1000)")
    asked = parser.parse_args()
    os.environ.update(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    rows, ratios = [], []
    with store_server() as server, tempfile.TemporaryDirectory() as scratch:
        for kind in ("Parquet", "Delta"):
            took = {}
            for count in (asked.few, asked.many):
                folder = Path(scratch, kind, str(count))
                folder.mkdir(parents=True)
                mirror = Mirror(server, folder, f"{kind}{count}")

                def land(tick: int, folder: Path = folder, mirror: Mirror = mirror) -> None:
                    landed(folder, kind, tick)  # noqa: B023 - it is called within the loop
                    mirror.sync()

                for tick in range(count):
                    landed(folder, kind, tick)
                mirror.sync()
                home = Path(scratch, "home", f"{kind}{count}")
                one = took[count] = warm(server.at(mirror.name), home, land, count, server)
                note(f"{kind}, {count} files: {one}")
                told = {"requests": one.requests, "KiB": one.bytes // 1024}
                rows.append({"landing": kind, "files": count, **told})
            few, many = took[asked.few], took[asked.many]
            what = f"requests of a tick after {asked.many} files over {asked.few}, {kind}"
            ratios.append(Ratio(what, many.requests / few.requests, GOAL))
    report("A warm tick's landing in an object store", rows, ratios, asked)


if __name__ == "__main__":
    main()
