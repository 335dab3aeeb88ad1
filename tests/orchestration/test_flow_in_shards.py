"""A flow in shards: its ticks give what they give whole, killed or not, and N can be changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.copies import verify
from hydrotick.cli.backfill import run_ticks
from hydrotick.quality.judge import measure
from hydrotick.runner.runner import TickRunner
from tests.orchestration import small
from tests.orchestration.changing import LAST, planned, rewrite, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

ROOT = Path(__file__).parents[2]
TICKS = LAST + 1


def outputs(flow: FlowAsset, runner: TickRunner) -> Mapping[str, list[str]]:
    found = small.contents(flow, runner)
    return {name: rows for name, rows in found.items() if name.startswith("outputs/")}


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    """What all ticks leave in one piece."""
    assert spark is not None
    flow, runner = small.opened(tmp_path_factory.mktemp("whole"))
    list(run_ticks(flow, runner, LAST, lambda _: None, together=TICKS))
    return outputs(flow, runner)


def test_killed_before_the_row_that_makes_a_tick_count(
    whole: Mapping[str, list[str]], tmp_path: Path
) -> None:
    """All shards' tables have the tick, and the ledger does not: it has not happened."""
    small.opened(tmp_path)
    words = ["tests.orchestration.killed", str(tmp_path), "1", "tables", "shards", "2"]
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL, os.strerror(abs(done.returncode))
    flow, runner = small.opened(tmp_path, shards=2)
    assert runner.next_tick(flow) == 1
    assert runner.pipeline(flow).output("totals").num_rows == len(small.BATCHES[0])

    ticks = list(run_ticks(flow, runner, LAST, lambda _: None))
    assert outputs(flow, runner) == whole
    assert all(verdict.passed for tick in ticks for _, verdict in tick.report.verdicts)
    shards = {name.rpartition(" ")[2] for name in runner.pipeline(flow).state_tables}
    assert shards == {"0", "1"}
    assert verify(runner.directory(flow), measure).problems == ()


@pytest.mark.slow
def test_another_number_of_shards_is_deployed_as_a_program_is(
    whole: Mapping[str, list[str]],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ticks go on as they are deployed until then; the states come of the landed past again."""
    flow, runner = small.opened(tmp_path, shards=2)
    list(run_ticks(flow, runner, 1, lambda _: None, together=2))
    flow = replace(flow, shards=3)
    small.serve(monkeypatch, [flow], runner.project)
    assert "what serves has 2 shards" in runner.deployments.undeployed(flow).says
    assert main(["status", "small"]) == 0
    assert "what serves has 2 shards" in capsys.readouterr().out
    list(run_ticks(flow, runner, 2, lambda _: None))
    code, found = planned(capsys)
    assert code == 3
    assert {o["change"] for o in found["outputs"].values()} == {"same"}  # type: ignore[attr-defined]
    assert main(["deploy", "small", "--yes"]) == 0
    assert "3 shards: payments by user" in capsys.readouterr().out
    runner = TickRunner(runner.project)
    assert runner.deployments.undeployed(flow).says == ""
    list(run_ticks(flow, runner, LAST, lambda _: None))
    assert outputs(flow, runner) == whole
    assert len(rows_of(capsys, "totals")) == 2
    assert main(["correct", "small", "--from", "2026-01-02", "--yes"]) == 0
    assert outputs(flow, TickRunner(runner.project)) == whole
    assert main(["rollback", "small", "--yes"]) == 0
    assert outputs(flow, TickRunner(runner.project)) == whole


def test_a_program_that_cannot_be_cut_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = small.opened(tmp_path, shards=2)
    rewrite(flow, small.PROGRAM + "payments -> cross(right=payments) -> pairs")
    small.serve(monkeypatch, [flow], runner.project)
    assert main(["backfill", "small"]) == 1
    said = capsys.readouterr().err
    assert "flow `small`, `shards`: small cannot be cut into shards: `cross`" in said
    assert "leave `shards`" in said
    assert "--replicate" not in said
