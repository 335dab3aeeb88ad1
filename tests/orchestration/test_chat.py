"""The chat's sample ticks give through Dagster, Spark and Delta what the reference gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from assets.chat.asset import CHAT
from hydro_core.engines import Options
from hydro_core.lang.load import load
from hydro_core.running import run_json
from hydrotick.cli.backfill import run_ticks
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

SAMPLE = Path("assets/chat/sample/ticks.json")


def test_the_sample(spark: SparkSession, tmp_path: Path) -> None:
    assert spark is not None
    sample = json.loads((Path(__file__).parents[2] / SAMPLE).read_text(encoding="utf-8"))
    runner = TickRunner(ProjectSettings(home=tmp_path))
    assert CHAT.land is not None
    CHAT.land(runner.project.landing)
    list(run_ticks(CHAT, runner, len(sample["ticks"]) - 1, lambda _: None))
    wanted = run_json(
        load(str(CHAT.program)), CHAT.schemas, sample["ticks"], Options(optimized=False)
    )
    pipeline = runner.pipeline(CHAT)
    for tick, outputs in enumerate(wanted):
        rows = pipeline.output("notify", every=True).to_pylist()
        found = [[row["_1"], row["_2"]] for row in rows if row["tick"] == tick]
        assert sorted(found, key=repr) == sorted(outputs["notify"], key=repr)
    assert sum(len(outputs["notify"]) for outputs in wanted) > 10
