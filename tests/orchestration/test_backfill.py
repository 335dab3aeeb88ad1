"""A backfill as the UI launches it: real webserver, daemon and worker, one run in order."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from assets.chat.asset import CHAT
from hydrotick.instance import prepare_instance
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import land
from tests.orchestration.web import NODES, Api, answers

pytestmark = [pytest.mark.spark, pytest.mark.dagster, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
SECONDS = 400
TICKS = 7
LAUNCH = """mutation($p: LaunchBackfillParams!){launchPartitionBackfill(backfillParams:$p){
  ... on LaunchBackfillSuccess{backfillId} ... on PythonError{message}}}"""
STATE = """query($id:String!){partitionBackfillOrError(backfillId:$id){
  ... on PartitionBackfill{status runs(limit:50){status tags{key value}}}}}"""
RANGES = """query($k:AssetKeyInput!){assetNodeOrError(assetKey:$k){... on AssetNode{
  assetPartitionStatuses{... on TimePartitionStatuses{ranges{startKey endKey status}}}}}}"""
MADE = """query($k:AssetKeyInput!){assetNodeOrError(assetKey:$k){... on AssetNode{
  assetMaterializations(limit:10){runId}}}}"""


@pytest.fixture
def project(tmp_path: Path) -> ProjectSettings:
    found = ProjectSettings(home=tmp_path / "home")
    assert CHAT.land is not None
    CHAT.land(found.landing)
    return found


@contextmanager
def served(project: ProjectSettings, *command: str) -> Iterator[Api]:
    """A server of the UI with its daemon, up and answering; it gets its port as an argument."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "HYDROTICK_HOME": str(project.home),
        "DAGSTER_HOME": str(project.dagster_home),
        "PYTHONHASHSEED": "3",
    }
    words = [sys.executable, "-m", *command, str(port)]
    log = project.home / "dev.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(words, cwd=ROOT, env=environment, stdout=output, stderr=output) as dev,
    ):
        try:
            found = Api(port)
            _until(lambda: answers(found))
            yield found
        finally:
            dev.send_signal(signal.SIGINT)
            dev.wait(60)


@pytest.fixture
def api(project: ProjectSettings) -> Iterator[Api]:
    """`hydrotick dev`, up and answering."""
    with served(project, "hydro_core.cli.main", "dev", "--port") as found:
        yield found


def test_a_backfill_is_one_run_in_order(api: Api, project: ProjectSettings) -> None:
    axis = CHAT.ticks.calendar
    keys = [axis.window(tick).key for tick in range(TICKS)]
    assets = [
        node["assetKey"]
        for node in api(NODES)["assetNodes"]
        if node["groupName"] == "chat" and node["isExecutable"]
    ]
    found = _backfilled(api, {"assetSelection": assets, "partitionNames": keys})
    assert found["status"] == "COMPLETED_SUCCESS"
    (run,) = found["runs"]
    tags = {tag["key"]: tag["value"] for tag in run["tags"]}
    assert run["status"] == "SUCCESS"
    assert tags["dagster/asset_partition_range_start"] == keys[0]
    assert tags["dagster/asset_partition_range_end"] == keys[-1]
    for key in assets:
        (done,) = api(RANGES, k=key)["assetNodeOrError"]["assetPartitionStatuses"]["ranges"]
        assert (done["startKey"], done["endKey"]) == (keys[0], keys[-1])
        assert done["status"] == "MATERIALIZED"
    assert TickRunner(project).next_tick(CHAT) == TICKS


def test_what_is_built_on_flows_is_made_with_them(tmp_path: Path) -> None:
    """The global page's "Materialize all": two flows, and what is built on both."""
    home = ProjectSettings(home=tmp_path / "home")
    land(home)
    prepare_instance(home.dagster_home)
    module = "tests.orchestration.two_flows"
    with served(home, "dagster", "dev", "-h", "127.0.0.1", "-m", module, "-p") as api:
        nodes = [node for node in api(NODES)["assetNodes"] if node["isExecutable"]]
        wanted = [node["assetKey"] for node in nodes]
        asked = {"assetSelection": wanted, "allPartitions": True}
        found = _backfilled(api, asked)
        assert found["status"] == "COMPLETED_SUCCESS"
        assert {run["status"] for run in found["runs"]} == {"SUCCESS"}
        for node in nodes:
            ranges = api(RANGES, k=node["assetKey"])["assetNodeOrError"]
            if node["assetKey"]["path"] != ["summary"]:
                (done,) = ranges["assetPartitionStatuses"]["ranges"]
                assert (done["startKey"], done["endKey"]) == ("2026-01-01", "2026-01-04")
                assert done["status"] == "MATERIALIZED"
        (made,) = api(MADE, k={"path": ["summary"]})["assetNodeOrError"]["assetMaterializations"]
        assert made["runId"]


def _backfilled(api: Api, asked: dict[str, Any]) -> Any:
    launched = api(LAUNCH, p=asked)["launchPartitionBackfill"]
    assert "backfillId" in launched, launched

    def state() -> Any:
        return api(STATE, id=launched["backfillId"])["partitionBackfillOrError"]

    _until(lambda: state()["status"] in ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED"))
    return state()


def _until(holds: Any) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(1)
