"""A driver of a cluster for all that is judged elsewhere on one machine: MASTER URL HOME WHAT.

`vectors N M` runs the shared vectors as pipelines in the bucket of the server at URL, of every M
the N-th, and `flights` days of the demo. It prints a line for each that was done: its name, and
what is wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assets.flights.asset import FLIGHTS
from assets.flights.landing import land
from hydro_core.errors import HydroError
from hydro_core.settings import Settings
from hydro_core.spark.session.session import shared_session
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.flights_by_hand import QUERIES, ByHand
from tests.orchestration.on_a_cluster import ManyRunner
from tests.spark.test_vectors_in_pipelines import VECTORS, judge, mode_of
from tests.support.standalone import conf_of_driver
from tests.support.store_server import Mirror, StoreServer

DAYS = 4


def vectors(server: StoreServer, master: str, part: int, parts: int) -> Iterator[tuple[str, str]]:
    """What is wrong with each of the vectors of a part, "" where nothing is."""
    conf = tuple(conf_of_driver().items())
    spark = shared_session(Settings().with_(master=master, extra=conf).spark)
    assert str(spark.sparkContext.master) == master
    for number, vector in enumerate(VECTORS):
        if number % parts != part:
            continue
        place: Any = server.at(f"vectors/{number}")
        try:
            judge(vector, mode_of(vector), place, spark, wide=False, optimize=True)
        except (AssertionError, HydroError) as problem:
            yield vector["name"], str(problem) or repr(problem)
        else:
            yield vector["name"], ""


def flights(server: StoreServer, master: str, home: Path) -> Iterator[tuple[str, str]]:
    """What is wrong with each output of each of some days, by what DuckDB computes."""
    project = ProjectSettings(
        home=home,
        spark_master=master,
        spark_conf=conf_of_driver(),
        data_store="s3://landing/data",
        landing_store="s3://landing/data/landing",
        storage=server.settings,
    )
    land(home / "landed", days=DAYS)
    Mirror(server, home / "landed", "data/landing/flights").sync()
    windows = [FLIGHTS.ticks.calendar.window(tick) for tick in range(DAYS)]
    # Two days that executors write, as one range, then days as they are.
    for runner, part in ((ManyRunner(project), windows[:2]), (TickRunner(project), windows[2:])):
        for some in (part,) if part[0].tick == 0 else ([window] for window in part):
            for report in runner.run(FLIGHTS, some, lambda _: None):
                assert report.committed, report.failure
    by_hand, pipeline = ByHand(), TickRunner(project).pipeline(FLIGHTS)
    assert pipeline.last_committed == DAYS - 1
    for output in QUERIES:
        for tick in range(DAYS):
            rows = pipeline.output(output, every=True)
            found = by_hand.count(output, tick, rows.filter(_of(rows, tick)))
            yield f"{output} {tick}", "" if found == (0, 0) else f"missing, too many: {found}"


def _of(rows: Any, tick: int) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.equal(rows["tick"], pa.scalar(tick))


def main(words: list[str]) -> None:
    """Does what is asked."""
    master, url, home, what = *words[:2], Path(words[2]), words[3]
    server = StoreServer(url)
    if what == "vectors":
        done = vectors(server, master, int(words[4]), int(words[5]))
    else:
        done = flights(server, master, home)
    for name, problem in done:
        print(json.dumps([name, problem]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
