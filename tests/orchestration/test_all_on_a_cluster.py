"""The shared vectors and the demo with tables in a store, by two workers that share nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.orchestration.all_on_a_cluster import DAYS
from tests.orchestration.flights_by_hand import QUERIES
from tests.spark.test_vectors_in_pipelines import VECTORS
from tests.support.standalone import Standalone, standalone
from tests.support.store_server import (
    KEY,
    SECRET,
    StoreServer,
    quick_store_server,
    with_credentials,
)

pytestmark = [pytest.mark.spark, pytest.mark.dagster, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
PARTS = 8
"""The vectors are judged in so many parts: what fails in one says so before all are done."""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreServer]:
    with_credentials(monkeypatch)
    with quick_store_server() as found:
        yield found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Standalone]:
    credentials = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    with standalone(tmp_path / "nodes", credentials) as found:
        yield found


def problems(
    cluster: Standalone, store: StoreServer, home: Path, *words: str
) -> tuple[int, dict[str, str]]:
    """How much a driver has done, and what is wrong with some of it."""
    home.mkdir()
    module = "tests.orchestration.all_on_a_cluster"
    with (home / "out").open("wb") as out, (home / "errors").open("wb") as errors:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", module, cluster.url, store.url, home, *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "AWS_EC2_METADATA_DISABLED": "true"},
            stdout=out,
            stderr=errors,
            check=False,
        )
    assert done.returncode == 0, (home / "errors").read_text()[-6000:]
    lines = (home / "out").read_text().splitlines()
    told = [json.loads(line) for line in lines if line.startswith("[")]
    return len(told), {name: problem for name, problem in told if problem}


@pytest.mark.skipif(not VECTORS, reason="the shared vectors are not here")
@pytest.mark.parametrize("part", range(PARTS))
def test_all_vectors(cluster: Standalone, store: StoreServer, tmp_path: Path, part: int) -> None:
    wanted = len(VECTORS[part::PARTS])
    words = "vectors", str(part), str(PARTS)
    assert problems(cluster, store, tmp_path / "there", *words) == (wanted, {})


def test_days_of_the_demo(cluster: Standalone, store: StoreServer, tmp_path: Path) -> None:
    found = problems(cluster, store, tmp_path / "there", "flights")
    assert found == (DAYS * len(QUERIES), {})
