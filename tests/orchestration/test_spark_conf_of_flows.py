"""Flows with settings of Spark of their own take turns in one process."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hydro_core.cli.main import run_command
from hydro_core.project.flow_asset import FlowSpark
from hydrotick.code_location.factory import project_definitions
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import opened, serve, small_flow

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

SCRIPT = """
import json, sys
from dataclasses import replace
from pathlib import Path
from hydro_core.project.flow_asset import FlowSpark
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import contents, land, small_flow

home = Path(sys.argv[1])
project = ProjectSettings(
    home=home, spark_master="local[2]", spark_conf={"spark.task.maxFailures": "3"}
)
land(project)
plain = small_flow(home / "program")
cores = replace(plain, name="cores", spark=FlowSpark({"spark.executor.heartbeatInterval": "7s"}))
joins = replace(plain, name="joins", spark=FlowSpark({"spark.sql.autoBroadcastJoinThreshold": "5"}))
runner, told = TickRunner(project), []
names = ("spark.executor.heartbeatInterval", "spark.sql.autoBroadcastJoinThreshold")
names += ("spark.task.maxFailures",)
for tick in (0, 1):
    for flow in (plain, cores, joins):
        window = flow.ticks.calendar.window(tick)
        (report,) = runner.run(flow, [window], lambda _: None)
        conf = runner.pipeline(flow).spark.conf
        told.append([report.problem, *(conf.get(name, "") for name in names)])
rows = [sorted(contents(flow, runner).values()) for flow in (plain, cores, joins)]
print(json.dumps([told, rows[0] == rows[1] == rows[2]]))
"""


def test_each_flow_runs_with_its_own(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    words = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told, same = json.loads(done.stdout.splitlines()[-1])
    of_all = str(32 * 1024 * 1024)
    assert told == [["", "", of_all, "3"], ["", "7s", of_all, "3"], ["", "", "5", "3"]] * 2
    assert same


def test_status_says_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(tmp_path)
    project = ProjectSettings(home=tmp_path, spark_conf={"spark.task.maxFailures": "3"})
    flow = small_flow(tmp_path / "program")
    assert dict(TickRunner(project).settings_for(flow).spark.extra) == project.spark_conf
    serve(monkeypatch, [flow], project)
    assert run_command(["status"]) == 0
    assert "  spark:  spark.task.maxFailures = 3\n" in capsys.readouterr().out
    run_command(["status", "--format", "json"])
    (told,) = json.loads(capsys.readouterr().out)["flows"]
    assert told["spark_conf"] == {"spark.task.maxFailures": "3"}


def test_status_and_the_ui_say_where_flows_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(tmp_path)
    here = ProjectSettings(home=tmp_path, spark_master="local[2]")
    flow = small_flow(tmp_path / "program")
    there = replace(flow, name="there", spark=FlowSpark(master="spark://one:7077"))
    serve(monkeypatch, [flow, there], here)
    assert run_command(["status"]) == 0
    assert capsys.readouterr().out.count("spark:  spark.master = spark://one:7077\n") == 1
    definitions = project_definitions([flow, there], TickRunner(here))
    shown = {
        spec.key.path[0]: spec.metadata.get("spark")
        for spec in definitions.resolve_all_asset_specs()
        if "totals" in spec.key.path
    }
    assert shown == {"small": None, "there": "spark://one:7077"}
    elsewhere = replace(here, spark_master="yarn")
    serve(monkeypatch, [flow], elsewhere)
    assert run_command(["status"]) == 0
    assert "  spark:  spark.master = yarn\n" in capsys.readouterr().out
