"""A tick, a range and a deployment on a cluster: executors are processes of their own, here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.dagster, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from hydro_core.settings import MEBIBYTE
from hydrotick.deploy.planning import plan_deployment
from hydrotick.deploy.planning import DeployOptions
from hydrotick.deploy.switch import deploy
from hydrotick.runner.runner import TickRunner
from hydrotick.cli.backfill import run_ticks
from tests.orchestration.small import contents, opened

flow, runner = opened(Path(sys.argv[1]))
project = replace(runner.project, spark_master="local-cluster[2,1,1024]", spark_memory="1500m")
runner = TickRunner(project)
# A function that has to be Python: executors start workers, which need this package.
program = flow.program.read_text().replace(
    "payments -> prev() -> before",
    "payments -> map(lambda r: (r.user, str(sorted([r.amount, 0])))) -> prev() -> before",
)
flow.program.write_text(program)
ticks = [done.window.key for done in run_ticks(flow, runner, 0, lambda _: None)]
ranges = [done.window.key for done in run_ticks(flow, runner, 3, lambda _: None, together=3)]
assert (ticks, ranges) == (["2026-01-01"], ["2026-01-04"]), (ticks, ranges)
before = runner.pipeline(flow).output("before", every=True).to_pylist()
assert ("ann", "[0, 10]") in {(row["_1"], row["_2"]) for row in before}, before

spark = runner.pipeline(flow).spark
context = spark.sparkContext
assert context._jsc.sc().getExecutorMemoryStatus().size() == 3, "the driver and two executors"
runtime = context._jvm.java.lang.Runtime.getRuntime()
assert runtime.maxMemory() < 900 * MEBIBYTE, runtime.maxMemory()


def where(batches):
    import hydro_core

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"file": [hydro_core.__file__]})


def outputs():
    found = contents(flow, runner)
    return {name: rows for name, rows in found.items() if name.startswith("outputs/")}


# Its states are computed from what has landed, in shards.
there, cut = outputs(), replace(flow, shards=2)
deploy(plan_deployment(cut, runner, DeployOptions()), runner, lambda _: None)
assert runner.deployments.undeployed(cut).says == ""
assert len(runner.pipeline(flow).state_tables) == 4
assert outputs() == there, (outputs(), there)

files = {row.file for row in spark.range(2).mapInArrow(where, "file string").collect()}
assert files, files
assert all("hydro_core.zip" in file for file in files), files
"""


@pytest.fixture
def _no_traces() -> Iterator[None]:
    """Spark puts what its workers need into its own directory, which is that of the package."""
    work = Path(pyspark.__file__).parent / "work"
    there = work.exists()
    yield
    if not there:
        shutil.rmtree(work, ignore_errors=True)


@pytest.mark.usefixtures("_no_traces")
def test_a_flow_runs_on_a_cluster(tmp_path: Path) -> None:
    # In a file: what is given by `-c` looks to PySpark like doctests, which end the process.
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "home")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
        timeout=400,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "WARN" not in done.stderr
