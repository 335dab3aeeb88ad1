"""A week in a store by two workers that share nothing, one of them killed: as on one disk."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.standalone import conf_of_driver, standalone
from tests.support.store_server import KEY, SECRET, StoreServer

pytestmark = [pytest.mark.spark, pytest.mark.dagster, pytest.mark.slow]

SECONDS = 400
DAYS = [f"2026-01-0{day}" for day in range(1, 8)]
CHANGED = ("total=sum(", "total=min(")
LATE = b"day,user,amount\n2026-01-03,ann,40\n2026-01-05,dan,7\n"
ROOT = Path(__file__).parents[2]


@dataclass
class Shop:
    """A project that `hydrotick init` has made, and its commands as processes."""

    folder: Path
    environment: Mapping[str, str]

    def __call__(self, *words: str, at: Path | None = None, code: int = 0) -> str:
        """What a command prints."""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "hydro_core.cli.main", *words],
            cwd=at or self.folder,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def committed(self) -> int:
        """How many ticks are committed."""
        (flow,) = json.loads(self("status", "totals", "--format", "json"))["flows"]
        return int(flow["committed"])

    def rows(self) -> list[Any]:
        """What the output says of each day."""
        found = []
        for day in DAYS:
            told = json.loads(self("show", "totals", "totals", "--tick", day, "--format", "json"))
            found.append(told["rows"])
        return found

    @contextmanager
    def sensed(self) -> Iterator[None]:
        """`hydrotick dev`, whose sensor runs the ticks that are due, and all that it starts."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [sys.executable, "-m", "hydro_core.cli.main", "dev", "--port", str(port)]
        with (self.folder / "dev.log").open("wb") as log:
            dev = subprocess.Popen(
                words, cwd=self.folder, env=dict(self.environment), stdout=log, stderr=log
            )
        try:
            yield
            assert dev.poll() is None, (self.folder / "dev.log").read_text()
        finally:
            below = psutil.Process(dev.pid).children(recursive=True) if dev.poll() is None else []
            dev.send_signal(signal.SIGTERM)
            try:
                dev.wait(60)
            except subprocess.TimeoutExpired:
                dev.kill()
            _, left = psutil.wait_procs(below, 20)
            for process in left:
                process.kill()


def until(holds: Callable[[], bool], log: Path) -> None:
    """Waits until something holds."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, log.read_text()[-6000:]
        time.sleep(1)


def toml(conf: Mapping[str, str]) -> str:
    """Settings of Spark's own, and that ticks run one by one."""
    said = ", ".join(f'"{name}" = "{value}"' for name, value in conf.items())
    return f"""
[spark]
conf = {{{said}}}

[ticks]
range = 1

[dagster]
sensors = "running"
sensor_seconds = 5
"""


def shop(folder: Path, environment: Mapping[str, str], *words: str, conf: str) -> Shop:
    """A new project."""
    known = {n: v for n, v in os.environ.items() if not n.startswith(("HYDROTICK", "DAGSTER"))}
    told = {**known, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **environment}
    made = Shop(folder, told)
    made("init", folder.name, *words, at=folder.parent)
    written = folder / "hydrotick.toml"
    storage = written.read_text().partition("[storage]")
    written.write_text(conf + ("\n[storage]" + storage[2] if storage[1] else ""))
    return made


def test_a_week_in_a_store_by_workers_apart(server: StoreServer, tmp_path: Path) -> None:
    here = shop(tmp_path / "here", {"HYDROTICK_SPARK_MASTER": "local[2]"}, conf=toml({}))
    credentials = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    apart = standalone(tmp_path / "nodes", credentials, cores=4, memory="2g")
    with apart as cluster:
        environment = {
            **credentials,
            "AWS_ENDPOINT_URL": server.url,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "HYDROTICK_SPARK_MASTER": cluster.url,
        }
        # Who asks for Spark beside the sensor's is given some of it.
        conf = toml({**conf_of_driver(), "spark.cores.max": "2"})
        url = "s3://landing/shop"
        there = shop(tmp_path / "there", environment, "--storage", url, conf=conf)
        assert "tables, by executors" in there("doctor")
        with there.sensed():
            log = there.folder / "dev.log"
            until(lambda: there.committed() >= 2, log)
            cluster.nodes["worker-1"].kill()
            until(lambda: there.committed() == len(DAYS), log)
            story(there, lambda name, content: server.put(f"shop/landing/payments/{name}", content))
        assert not (there.folder / "data" / "pipelines").exists()
        here("backfill", "totals")
        landing = here.folder / "data" / "landing" / "payments"
        wanted = story(here, lambda name, content: (landing / name).write_bytes(content))
        assert there.rows() == here.rows() == wanted
        there("status", "totals", "--verify")


def story(of: Shop, land: Callable[[str, bytes], Any]) -> list[Any]:
    """A deployment, rows that come late, and a correction; gives what is there then."""
    program = of.folder / "assets" / "totals" / "totals.hydro"
    program.write_text(program.read_text().replace(*CHANGED))
    of("deploy", "totals", "--yes")
    land("late.csv", LATE)
    of("correct", "totals", "--from", "2026-01-03", "--yes")
    return of.rows()
