"""Maintenance of stored pipelines: whatever ends it, nothing of the past is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydro_core.errors import DataError
from hydro_core.spark.store.ledger.ledger import Ledger
from tests.spark.pipelines import SETTINGS, Crash, batch, contents, crash_at, opened
from tests.support.refused import Refused

pytestmark = pytest.mark.spark

TICKS = 4


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What all ticks leave without any maintenance."""
    pipeline = opened(tmp_path_factory.mktemp("expected") / "pipeline")
    for tick in range(TICKS):
        pipeline.run_tick(tick, batch(tick))
    return contents(pipeline)


@pytest.fixture(scope="module")
def three_ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three ticks whose rows lie in files that Spark has written, and one that was given up."""
    directory = tmp_path_factory.mktemp("three") / "pipeline"
    pipeline = opened(directory, settings=SETTINGS.with_(small_write_rows=0))
    for tick in range(3):
        pipeline.run_tick(tick, batch(tick))
    pipeline.step = crash_at("tables")
    with pytest.raises(Crash):
        pipeline.run_tick(3, batch(3, messages=5))
    return directory


def steps_of_compact(directory: Path, copy: Path) -> list[str]:
    """The steps of compacting a copy, in order."""
    pipeline = opened(Path(shutil.copytree(directory, copy)))
    steps: list[str] = []
    pipeline.step = steps.append
    pipeline.compact(keep_hours=0)
    return steps


def test_compact_ended_at_any_step_loses_nothing(
    three_ticks: Path, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    steps = steps_of_compact(three_ticks, tmp_path / "steps")
    tables = {spec.name for spec in opened(three_ticks).tables}
    assert steps.index("noted") == len(tables)
    assert set(steps[: len(tables)]) == {f"compacted {name}" for name in tables}
    assert steps[len(tables) + 1] == "dropped what is retired"
    assert set(steps[len(tables) + 2 :]) == {f"vacuumed {name}" for name in tables}
    for number, step in enumerate(steps):
        directory = Path(shutil.copytree(three_ticks, tmp_path / str(number)))
        pipeline = opened(directory)
        pipeline.step = crash_at(step)
        with pytest.raises(Crash):
            pipeline.compact(keep_hours=0)
        pipeline = opened(directory)
        assert pipeline.next_tick == 3, step
        if number % 2:
            pipeline.compact(keep_hours=0)
        pipeline.run_tick(3, batch(3))
        assert contents(pipeline) == expected, step


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.spark.pipelines import opened
pipeline = opened(Path(sys.argv[1]))
def step(name):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
pipeline.step = step
pipeline.compact(keep_hours=0)
"""


@pytest.mark.parametrize("step", ["noted", "vacuumed outputs/notify"])
def test_compact_killed_loses_nothing(
    three_ticks: Path, tmp_path: Path, expected: dict[str, list[str]], step: str
) -> None:
    directory = Path(shutil.copytree(three_ticks, tmp_path / "killed"))
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(directory), step],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
        timeout=180,
    )
    assert done.returncode == -signal.SIGKILL
    pipeline = opened(directory)
    pipeline.run_tick(3, batch(3))
    assert contents(pipeline) == expected


def test_compact_removes_what_nothing_needs(three_ticks: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(three_ticks, tmp_path / "pipeline"))
    files = len(list(directory.rglob("*.parquet")))
    pipeline = opened(directory)
    pipeline.compact()
    assert len(list(directory.rglob("*.parquet"))) >= files
    before = contents(pipeline)
    pipeline.compact(keep_hours=0)
    named = {file.path for table in pipeline.store.tables.values() for file in table.files()}
    left = {file for file in directory.rglob("*.parquet") if "_ledger" not in file.parts}
    assert left == named
    assert contents(pipeline) == before


def test_negative_hours_are_refused(three_ticks: Path, tmp_path: Path, refused: Refused) -> None:
    directory = Path(shutil.copytree(three_ticks, tmp_path / "pipeline"))
    before = Ledger(directory).last
    with refused(DataError, "config"):
        opened(directory).compact(keep_hours=-1)
    assert Ledger(directory).last == before


def test_going_back_ended_at_any_step_loses_nothing(
    three_ticks: Path, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    directory = Path(shutil.copytree(three_ticks, tmp_path / "pipeline"))
    pipeline = opened(directory)
    pipeline.step = crash_at("restored")
    with pytest.raises(Crash):
        pipeline.rewind(0)
    pipeline = opened(directory)
    assert pipeline.next_tick == 3
    pipeline.rewind(0)
    for tick in range(1, TICKS):
        pipeline.run_tick(tick, batch(tick))
    assert contents(pipeline) == expected


def test_going_back_beyond_what_compact_kept_is_refused(
    three_ticks: Path, tmp_path: Path, expected: dict[str, list[str]], refused: Refused
) -> None:
    directory = Path(shutil.copytree(three_ticks, tmp_path / "pipeline"))
    pipeline = opened(directory)
    pipeline.compact(keep_hours=0)
    with refused(DataError, "state"):
        pipeline.rewind(0)
    pipeline.run_tick(3, batch(3))
    assert contents(pipeline) == expected


def test_the_commit_of_the_last_tick_is_found_behind_maintenance(
    three_ticks: Path, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(three_ticks, tmp_path / "pipeline"))
    pipeline = opened(directory)
    made = pipeline.ledger.last_run
    assert made is not None
    assert made == pipeline.ledger.last
    for _ in range(2):
        pipeline.compact()
        assert Ledger(directory).last_run == made
    pipeline.rewind(0)
    again = Ledger(directory).last_run
    assert again is not None
    assert again.ticks == range(1)
    pipeline.rewind(-1)
    assert Ledger(directory).last_run is None
