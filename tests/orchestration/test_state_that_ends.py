"""A flow whose rows leave by their time: corrected, deployed and taken back after they left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.project.flow_asset import FlowAsset, Landing, Ticks
from hydro_core.spark.pipeline.copies import verify
from hydrotick.cli.backfill import run_ticks
from hydrotick.project.settings import ProjectSettings
from hydrotick.quality.judge import measure
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import serve

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

START, TICKS = datetime(2026, 1, 1, tzinfo=UTC), 9
PROGRAM = """
paid = source("user string, at timestamp")
lately = paid -> persist(for_=timedelta(days=2), by="at")
lately -> aggregate(by="user", n=count(), last=max("at")) -> counts
lately -> rows
"""
LONGER = PROGRAM.replace("days=2", "days=4")
Landed = Sequence[Sequence[tuple[str, int]]]
"""The rows of each tick: who, and how many hours before or after the tick's start."""


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


def landed(seed: int) -> list[list[tuple[str, int]]]:
    rng = Random(seed)
    return [
        [(rng.choice("abc"), rng.choice((-60, -30, 1, 5, 9, 30))) for _ in range(rng.randint(1, 4))]
        for _ in range(TICKS)
    ]


def opened(home: Path, program: str, rows: Landed) -> tuple[FlowAsset, TickRunner]:
    project = ProjectSettings(home=home, spark_master="local[2]", sample_keys=0)
    land(project, rows)
    (home / "ends.hydro").write_text(program, encoding="utf-8")
    ticks, landing = Ticks(START, "1d"), Landing("ends", "tick")
    return FlowAsset("ends", home / "ends.hydro", ticks, {"paid": landing}), TickRunner(project)


def land(project: ProjectSettings, rows: Landed) -> None:
    table = pa.Table.from_pylist(
        [
            {"tick": t, "user": user, "at": START + timedelta(days=t, hours=hours)}
            for t, batch in enumerate(rows)
            for user, hours in batch
        ],
        schema=pa.schema(
            [("tick", pa.int64()), ("user", pa.string()), ("at", pa.timestamp("us", tz="UTC"))]
        ),
    )
    (project.landing / "ends").parent.mkdir(parents=True, exist_ok=True)
    write_deltalake(project.landing / "ends", table, mode="overwrite")


def outputs(flow: FlowAsset, runner: TickRunner) -> Mapping[str, list[str]]:
    """Every output as of every committed tick."""
    pipeline = runner.pipeline(flow)
    assert verify(runner.directory(flow), measure).problems == ()
    return {
        f"{name} {tick}": sorted(map(repr, pipeline.output(name, tick).to_pylist()))
        for name in pipeline.output_tables
        for tick in range(runner.next_tick(flow))
    }


def as_new(home: Path, program: str, rows: Landed) -> Mapping[str, list[str]]:
    """What a flow has that has always run so."""
    flow, runner = opened(home, program, rows)
    list(run_ticks(flow, runner, TICKS - 1, lambda _: None, together=TICKS))
    return outputs(flow, runner)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_it_is_as_if_it_had_always_been_so(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = landed(seed)
    flow, runner = opened(tmp_path / "flow", PROGRAM, rows)
    list(run_ticks(flow, runner, TICKS - 1, lambda _: None))
    state = next(s for s in runner.pipeline(flow).state_tables.values() if s.bound is not None)
    there = sum(map(len, rows))
    assert runner.pipeline(flow).store.row_count(state.name) < there, "some have left the state"
    assert outputs(flow, runner) == as_new(tmp_path / "new", PROGRAM, rows)

    rows[3] = [*rows[3], ("c", 2), ("a", -20)]
    land(runner.project, rows)
    window = flow.ticks.calendar.window(3)
    assert all(report.committed for report in runner.correct(flow, window, lambda _: None))
    corrected = as_new(tmp_path / "corrected", PROGRAM, rows)
    assert outputs(flow, runner) == corrected

    serve(monkeypatch, [flow], runner.project)
    Path(flow.program).write_text(LONGER, encoding="utf-8")
    assert main(["deploy", "ends", "--yes"]) == 0
    runner = TickRunner(runner.project)
    assert outputs(flow, runner) == as_new(tmp_path / "longer", LONGER, rows)
    assert main(["rollback", "ends", "--yes"]) == 0
    runner = TickRunner(runner.project)
    assert outputs(flow, runner) == corrected

    Path(flow.program).write_text(PROGRAM, encoding="utf-8")
    runner.pipeline(flow).compact(keep_hours=0)
    assert outputs(flow, runner) == corrected
    window = replace(flow, fed_by={}).ticks.calendar.window(5)
    assert all(report.committed for report in runner.correct(flow, window, lambda _: None))
    assert outputs(flow, runner) == corrected, "from the first tick, since files were removed"
