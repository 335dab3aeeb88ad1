"""Two runners at once on one flow, as two code locations on one home are: no tick twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydrotick.runner.report import TickReport
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import contents, opened

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


def test_one_commits_and_the_other_is_refused_or_finds_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    flow, one = opened(tmp_path / "shared")
    windows = [flow.ticks.calendar.window(tick) for tick in range(4)]
    one.deployments.prepare(flow)
    runners = [one, TickRunner(one.project)]

    def run(runner: TickRunner) -> list[TickReport]:
        return list(runner.run(flow, windows, log=lambda _: None))

    with ThreadPoolExecutor(2) as together:
        reports = list(together.map(run, runners))
    committed = [t for commit in one.deployments.ledger(flow).commits() for t in commit.ticks]
    assert committed == [0, 1, 2, 3]
    for told in reports:
        # Who was too late has nothing to mend: trying again is enough.
        refused = [report for report in told if not report.committed]
        assert all(not report.judged and report.cure for report in refused)
    for runner in runners:
        assert [report.committed for report in run(runner)] == [True] * 4
    _, alone = opened(tmp_path / "alone")
    run(alone)
    assert contents(flow, runners[1]) == contents(flow, alone)
