"""A driver of a cluster that ends, or stands still, in the middle of its work, and those after it:
MASTER URL HOME STEP [MOMENT SIGNAL]; it prints what is there then.

The moment is `task`: executors are at work for the tables, or `written`: they have written some.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.session.session import shared_session
from hydro_core.spark.store.delta import write
from hydro_core.spark.store.ledger.lock import LOCK_FILE, WriterLock
from hydro_core.storage.remote import DataPlace
from hydrotick.quality.judge import measure
from tests.orchestration.late import IN_TIME, LATE, OPEN
from tests.orchestration.on_a_cluster import OnCluster
from tests.orchestration.test_pipelines_in_a_store import CHANGED
from tests.support.standalone import conf_of_driver
from tests.support.store_server import StoreServer

HOST = "HYDROTICK_TEST_HOST"
"""The variable that names the machine that the process takes itself to be on."""


class SignalsItself:
    """Sends a signal to this process, once, at a moment at which executors write tables."""

    def __init__(self, home: Path, moment: str, number: int) -> None:
        self.home, self.moment, self.number = home, moment, number
        self._work, self._guard, self._done = write.write_parquet, threading.Lock(), False
        write.write_parquet = self._writes  # type: ignore[assignment]

    def _writes(self, *given: Any, **named: Any) -> Mapping[DataPlace, int]:
        if self.moment == "task":
            threading.Thread(target=self._in_a_task, daemon=True).start()
        done: Mapping[DataPlace, int] = self._work(*given, **named)
        if self.moment == "written" and done:
            self._signal([str(file) for file in done])
        return done

    def _in_a_task(self) -> None:
        tracker = shared_session().sparkContext.statusTracker()
        while True:
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None and info.numActiveTasks:
                    self._signal([info.name])
                    return
            time.sleep(0.005)

    def _signal(self, what: list[str]) -> None:
        with self._guard:
            if self._done:
                return
            self._done = True
            (self.home / "signalled").write_text(json.dumps(what))
            os.kill(os.getpid(), self.number)


def patiently(work: Callable[[], Any]) -> float:
    """Does it as soon as nobody else has the lease; gives when it had it, in seconds since 1970."""
    taken, acquire = list[float](), WriterLock.acquire

    def acquires(lock: WriterLock, on: str = "") -> None:
        acquire(lock, on)
        taken.append(time.time())

    WriterLock.acquire = acquires  # type: ignore[method-assign]
    while True:
        try:
            work()
        except AssertionError as problem:
            if "another writer is at work" not in str(problem):
                raise
            time.sleep(1)
        else:
            return taken[0]


def main(words: list[str]) -> Any:
    """Does a step; gives what is there then, when it took the lease, and what is left beside."""
    master, url, home, step = *words[:2], Path(words[2]), words[3]
    if HOST in os.environ:
        socket.gethostname = lambda: os.environ[HOST]
    first = not (home / "program").exists()
    late = OnCluster(StoreServer(url), home, master, many=True)
    # There is room for two: one that stands still keeps its executors.
    late.project = replace(late.project, spark_conf={**conf_of_driver(), "spark.cores.max": "2"})
    late.open()
    if first:
        late.land(IN_TIME, "in_time.parquet")
        late.ran((0, 1))
    if words[4:]:
        SignalsItself(home, words[4], getattr(signal, words[5]))
    begun = 0.0
    if step == "tick":
        begun = patiently(lambda: late.ran((2, OPEN - 1)))
    elif step == "correct":
        late.land(LATE, "late.parquet")
        late.open()
        begun = patiently(lambda: late.correct(1))
    elif step == "deploy":
        late.deploy(CHANGED)
    elif step.startswith("compact"):
        if step == "compact":
            late.edit(CHANGED)
            late.open()
        late.runner.pipeline(late.flow).compact(0)
    # Of a table beyond the ledger, where one that was overtaken has left it, nobody reads.
    pipeline = late.runner.pipeline(late.flow)
    pipeline.store.check(pipeline.ledger.refresh())
    told = {**late.by_name}
    assert verify(late.pipeline, measure).problems == ()
    return [told, begun, beside(late)]


def beside(late: OnCluster) -> list[str]:
    """Files of rows below the pipeline's place that no table has."""
    pipeline = late.runner.pipeline(late.flow)
    pipeline.store.check(pipeline.ledger.refresh())
    held = {file.path for table in pipeline.store.tables.values() for file in table.files()}
    found = (late.pipeline / part for part in ("state", "outputs", "_staged"))
    rows = (file for place in found for file in place.files() if file.suffix == ".parquet")
    return sorted(
        str(file)
        for file in rows
        if file not in held and "_delta_log" not in str(file) and LOCK_FILE not in str(file)
    )


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))  # noqa: T201
