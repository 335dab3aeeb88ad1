"""A parameter that changes is a program that changes: told, planned, deployed and taken back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.copies import verify
from hydrotick.cli.backfill import run_ticks
from hydrotick.quality.judge import measure
from hydrotick.runner.runner import TickRunner
from tests.orchestration.changing import DAYS, LAST, by_name, rewrite
from tests.orchestration.small import PROGRAM, contents, opened, serve
from tests.support.refused import Refused

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

NAMING = PROGRAM.replace(
    "payments -> persist()", "payments -> filter(lambda p: p.amount > above) -> persist()"
)


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


class Serving:
    """The small flow with a parameter, as each command of it finds it."""

    def __init__(self, home: Path, shards: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._home, self._shards, self._patch = home, shards, monkeypatch
        self.give(above=2)

    def give(self, **params: object) -> FlowAsset:
        """The asset says other parameters from now on, and a new process reads it."""
        flow, self.runner = opened(self._home, self._shards)
        rewrite(flow, NAMING)
        self.flow = replace(flow, params=params, expect={})
        serve(self._patch, [self.flow], self.runner.project)
        return self.flow

    def run(self, last: int, *, together: int = 1) -> None:
        list(run_ticks(self.flow, self.runner, last, lambda _: None, together=together))

    @property
    def holds(self) -> Mapping[str, list[str]]:
        return by_name(contents(self.flow, self.runner))

    @property
    def undeployed(self) -> str:
        return self.runner.deployments.undeployed(self.flow).says


@pytest.fixture(params=[1, 2], ids=["whole", "shards"])
def serving(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Serving:
    found = Serving(tmp_path / "home", request.param, monkeypatch)
    found.run(2)
    return found


@pytest.fixture
def ideal(serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serving:
    """The same flow in a home of its own, in which one value has always been there."""
    return Serving(tmp_path / "ideal", serving._shards, monkeypatch)


def always(ideal: Serving, last: int, above: int) -> Mapping[str, list[str]]:
    ideal.give(above=above)
    ideal.run(last, together=last + 1)
    return ideal.holds


def test_another_value_waits_until_it_is_deployed(
    serving: Serving, ideal: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    serving.give(above=0)
    assert serving.undeployed == "not deployed: parameter `above`: 2 → 0"
    serving.run(LAST)
    assert serving.holds == always(ideal, LAST, 2)
    serving.give(above=0)
    capsys.readouterr()
    assert main(["plan", "small", "--format", "json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["outputs"]["totals"]["change"] == "changed"
    assert found["notes"][0] == "parameter `above`: 2 → 0"


def test_it_is_deployed_and_taken_back(serving: Serving, ideal: Serving) -> None:
    serving.give(above=0)
    assert main(["deploy", "small", "--yes"]) == 0
    serving.give(above=0)
    assert serving.undeployed == ""
    serving.run(LAST)
    assert serving.holds == always(ideal, LAST, 0)
    serving.give(above=0)
    assert main(["rollback", "small", "--yes"]) == 0
    serving.give(above=0)
    assert "parameter `above`: 2 → 0" in serving.undeployed
    serving.give(above=2)
    assert serving.undeployed == ""
    assert main(["correct", "small", "--from", DAYS[0], "--yes"]) == 0
    serving.give(above=2)
    assert verify(serving.runner.directory(serving.flow), measure).problems == ()


def test_one_that_goes_cannot_be_deployed_and_ticks_go_on(
    serving: Serving, ideal: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    serving.give()
    assert "cannot be deployed as it is: there is no name `above`" in serving.undeployed
    serving.run(LAST)
    assert serving.holds == always(ideal, LAST, 2)
    serving.give()
    assert main(["deploy", "small", "--yes"]) == 1
    assert "there is no name `above`" in capsys.readouterr().err


def test_what_says_the_same_is_nothing_to_deploy(
    serving: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    serving.give(above=3)
    rewrite(serving.flow, NAMING.replace("above", "above - 1"))
    assert main(["plan", "small"]) in (0, 3)
    serving.give(above=2)
    capsys.readouterr()
    assert main(["plan", "small"]) == 0


def test_one_that_is_misspelled_runs_nothing(tmp_path: Path, refused: Refused) -> None:
    flow, runner = opened(tmp_path / "home")
    flow = replace(flow, params={"abuve": 1})
    with refused(HydroError, "config"):
        list(run_ticks(flow, runner, 0, lambda _: None))
    assert isinstance(runner, TickRunner)
    assert runner.next_tick(flow) == 0
