"""Flows on Spark's own cluster whose workers share no file with the driver, nor with each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.orchestration.late import Late
from tests.orchestration.on_a_cluster import corrected, in_rounds, jsonable, with_own_modules
from tests.orchestration.test_pipelines_in_a_store import changes
from tests.support.standalone import Standalone, standalone
from tests.support.store_server import KEY, SECRET, StoreServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Standalone]:
    credentials = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    with standalone(tmp_path / "nodes", credentials) as found:
        yield found


def on_cluster(cluster: Standalone, server: StoreServer, home: Path, what: str) -> Any:
    """What a driver of its own gives; workers that it wants to be killed are, and replaced."""
    words = ["tests.orchestration.on_a_cluster", cluster.url, server.url, str(home), what]
    home.mkdir()
    with (home / "out").open("w") as out, (home / "errors").open("w") as errors:
        driver = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "AWS_EC2_METADATA_DISABLED": "true"},
            stdout=out,
            stderr=errors,
        )
        try:
            while driver.poll() is None:
                if (home / "kill").exists():
                    kill_and_replace(cluster, (home / "kill").read_text())
                    (home / "kill").unlink()
                time.sleep(0.02)
        finally:
            driver.kill()
            driver.wait()
    assert driver.returncode == 0, (home / "errors").read_text()[-6000:]
    return json.loads((home / "out").read_text().splitlines()[-1])


def kill_and_replace(cluster: Standalone, host: str) -> None:
    """Ends a worker, with all that runs in it, and starts another."""
    workers = [node for name, node in cluster.nodes.items() if name != "master" and node.lives()]
    node = next((node for node in workers if node.host == host), workers[0])
    node.kill()
    cluster.start_workers(f"worker-{len(cluster.nodes)}")


def test_all_that_is_done_to_a_flow(
    spark: SparkSession, server: StoreServer, cluster: Standalone, tmp_path: Path
) -> None:
    assert spark is not None
    found = on_cluster(cluster, server, tmp_path / "there", "many")
    wanted = jsonable(changes(Late(tmp_path / "here", "next", "parquet")))
    assert found == wanted


def test_functions_of_the_projects_own_modules(
    spark: SparkSession, server: StoreServer, cluster: Standalone, tmp_path: Path
) -> None:
    assert spark is not None
    found = on_cluster(cluster, server, tmp_path / "there", "own")
    here = with_own_modules(Late(tmp_path / "here", "next", "parquet"))
    assert found == jsonable(corrected(here))
    told = [str(row) for rows in found[0].values() for row in rows]
    assert any("since (2020, 1, 3)" in row for row in told), told


def test_workers_that_are_killed(
    spark: SparkSession, server: StoreServer, cluster: Standalone, tmp_path: Path
) -> None:
    assert spark is not None
    found, lost, done = on_cluster(cluster, server, tmp_path / "there", "killed")
    assert found == jsonable(in_rounds(Late(tmp_path / "here", "next", "parquet")))
    assert (len(cluster.nodes), len(done)) == (6, 3), done
    assert lost, "rows that were kept with a worker were gone with it"


def test_flows_take_turns_here_and_there(
    server: StoreServer, cluster: Standalone, tmp_path: Path
) -> None:
    found, same = on_cluster(cluster, server, tmp_path / "there", "turns")
    assert found == [["", "local[2]"], ["", cluster.url]] * 4
    assert same
