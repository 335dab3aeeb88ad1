"""A backfill as the UI launches it: real webserver, daemon and worker, one run in order."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assets.chat.asset import CHAT
from orchestration.runner import TickRunner
from orchestration.settings import ProjectSettings
from orchestration.ticks import TickAxis
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


@pytest.fixture
def project(tmp_path: Path) -> ProjectSettings:
    found = ProjectSettings(home=tmp_path / "home")
    assert CHAT.land is not None
    CHAT.land(found.landing)
    return found


@pytest.fixture
def api(project: ProjectSettings) -> Iterator[Api]:
    """`hydrotick dev`, up and answering."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "hydro_core.cli.main", "dev", "--port", str(port)]
    environment = {**os.environ, "HYDROTICK_HOME": str(project.home), "PYTHONHASHSEED": "3"}
    log = project.home / "dev.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output) as dev,
    ):
        try:
            found = Api(port)
            _until(lambda: answers(found))
            yield found
        finally:
            dev.send_signal(signal.SIGINT)
            dev.wait(60)


def test_a_backfill_is_one_run_in_order(api: Api, project: ProjectSettings) -> None:
    axis = TickAxis(CHAT.ticks)
    keys = [axis.window(tick).key for tick in range(TICKS)]
    assets = [
        node["assetKey"]
        for node in api(NODES)["assetNodes"]
        if node["groupName"] == "chat" and node["isExecutable"]
    ]
    launched = api(LAUNCH, p={"assetSelection": assets, "partitionNames": keys})
    backfill = launched["launchPartitionBackfill"]["backfillId"]

    def state() -> Any:
        return api(STATE, id=backfill)["partitionBackfillOrError"]

    _until(lambda: state()["status"] in ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED"))
    assert state()["status"] == "COMPLETED_SUCCESS"
    (run,) = state()["runs"]
    tags = {tag["key"]: tag["value"] for tag in run["tags"]}
    assert run["status"] == "SUCCESS"
    assert tags["dagster/asset_partition_range_start"] == keys[0]
    assert tags["dagster/asset_partition_range_end"] == keys[-1]
    for key in assets:
        (done,) = api(RANGES, k=key)["assetNodeOrError"]["assetPartitionStatuses"]["ranges"]
        assert (done["startKey"], done["endKey"]) == (keys[0], keys[-1])
        assert done["status"] == "MATERIALIZED"
    assert TickRunner(project).next_tick(CHAT) == TICKS


def _until(holds: Any) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(1)
