"""Small ticks: what they leave out gives the same as what larger ones do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydro_core.spark import pipeline_jobs, store_write
from hydro_core.spark.store_write import Pending, Written
from tests.spark.pipelines import batch, opened

pytestmark = pytest.mark.spark

PROGRAM = """
members  = source("user string")
messages = source("user string, text string")
renamed  = members -> rename(member="user")
renamed  -> persist() -> everybody
renamed  -> greeted
messages -> select("user") -> unique() -> speakers
"""


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


def test_what_nothing_can_reach_takes_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = opened(tmp_path, PROGRAM)
    pipeline.run_tick(0, batch(0))
    asked: list[str] = []

    def collect_all(pending: Mapping[str, Pending], bound: int) -> Mapping[str, Written] | None:
        asked.extend(pending)
        return store_write.collect_all(pending, bound)

    monkeypatch.setattr(pipeline_jobs, "collect_all", collect_all)
    pipeline.run_tick(1, {"messages": batch(1)["messages"]})
    assert asked == ["outputs/everybody", "outputs/speakers"]
    assert pipeline.output("greeted").num_rows == 0
    assert pipeline.output("greeted", as_of=0).to_pylist() == [{"tick": 0, "member": "m0"}]
    assert pipeline.output("speakers").num_rows == 2
    pipeline.run_tick(2, batch(2))
    assert sorted(pipeline.output("everybody", every=True)["member"].to_pylist()) == ["m0", "m2"]
