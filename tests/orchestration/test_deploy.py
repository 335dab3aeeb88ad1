"""A changed program is planned, deployed and taken back: as if it had always run, or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import dagster as dg
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from assets.spec import FlowAsset
from hydro_core.cli.main import main
from hydro_core.spark.pipeline_verify import verify
from hydro_core.spark.rework import BESIDE
from orchestration import backfill, deploy, show
from orchestration.factory import asset_key, project_definitions
from orchestration.quality.facts import measure
from orchestration.runner import TickRunner
from orchestration.settings import ProjectSettings
from orchestration.ticking import open_instance, run_ticks
from tests.orchestration.small import PROGRAM, Run, contents, opened

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

ROOT = Path(__file__).parents[2]
DAYS = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
LAST = len(DAYS) - 1
REFACTORED = """
# The same, written by somebody else.
history = source("user string, amount long", name="payments") -> persist()
history -> delta() -> prev() -> before
sums = history -> aggregate(by="user", total=sum("amount"))
sums -> delta() -> totals
"""
COUNTED = PROGRAM.replace('total=sum("amount"))', 'total=sum("amount"), n=count())')
DOUBLED = PROGRAM.replace(
    "payments -> persist()",
    "payments -> with_columns(amount=lambda p: 2 * p.amount) -> persist()",
)
WITH_MORE = PROGRAM + "payments -> filter(lambda p: p.amount > 2) -> large\n"


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FlowAsset, TickRunner]:
    """The flow, three ticks of which are committed, as that of the commands."""
    flow, runner = opened(tmp_path)
    list(run_ticks(flow, runner, 2, lambda _: None))
    for module in (backfill, deploy, show):
        monkeypatch.setattr(module, "ALL_ASSETS", [flow])
        monkeypatch.setattr(module, "project_settings", lambda: runner.project)
    return flow, runner


def as_new(tmp_path: Path, text: str) -> Mapping[str, list[str]]:
    """What the pipeline of a program has that has always run."""
    flow, runner = opened(tmp_path / "as_new")
    rewrite(flow, text)
    list(run_ticks(flow, runner, LAST, lambda _: None))
    return by_name(contents(flow, runner))


def by_name(found: Mapping[str, list[str]]) -> Mapping[str, list[str]]:
    """By what the tables are, wherever they stand."""
    return {name.rpartition("-")[0] or name: rows for name, rows in found.items()}


def rewrite(flow: FlowAsset, text: str) -> None:
    Path(flow.program).write_text(text, encoding="utf-8")


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    capsys.readouterr()
    code = main(["plan", "small", *words, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def rows_of(
    capsys: pytest.CaptureFixture[str], output: str, *words: str
) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["show", "small", output, *words, "--format", "json"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["rows"]
    return sorted(found, key=repr)


def test_a_program_that_says_the_same_is_nothing_to_deploy(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = served
    rewrite(flow, f"# a comment\n{PROGRAM}")
    code, found = planned(capsys)
    assert code == 0
    assert (found["deployed"], found["next"], found["after"]) == (1, 1, DAYS[2])
    assert main(["deploy", "small", "--yes"]) == 0
    assert "nothing to deploy" in capsys.readouterr().out
    assert runner.deployments.undeployed(flow) == ""


def test_a_refactored_program_keeps_its_tables(
    served: tuple[FlowAsset, TickRunner], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = served
    rewrite(flow, REFACTORED)
    assert "not deployed" in runner.deployments.undeployed(flow)
    before = contents(flow, runner)
    code, found = planned(capsys)
    assert code == 0
    outputs = found["outputs"]
    assert isinstance(outputs, dict)
    assert {name: o["change"] for name, o in outputs.items()} == {
        "totals": "same",
        "before": "same",
    }
    assert all(o["proof"] and o["restated"] is None for o in outputs.values())
    states = found["states"]
    assert isinstance(states, dict)
    assert {s["change"] for s in states.values()} == {"kept"}
    assert main(["deploy", "small", "--yes"]) == 0
    assert contents(flow, runner) == before
    assert runner.deployments.undeployed(flow) == ""
    list(run_ticks(flow, runner, LAST, lambda _: None))
    expected = as_new(tmp_path, REFACTORED)
    assert {n: r for n, r in by_name(contents(flow, runner)).items() if "outputs" in n} == {
        n: r for n, r in expected.items() if "outputs" in n
    }


@pytest.mark.parametrize("text", [COUNTED, DOUBLED, WITH_MORE], ids=["column", "changed", "new"])
def test_everything_is_as_if_the_new_program_had_always_run(
    served: tuple[FlowAsset, TickRunner],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
) -> None:
    flow, runner = served
    rewrite(flow, text)
    code, found = planned(capsys)
    assert code == 3
    assert (found["deployed"], found["next"]) == (1, 2)
    assert main(["deploy", "small", "--yes"]) == 0
    assert "deployment 2 serves" in capsys.readouterr().out
    assert not (runner.directory(flow) / BESIDE).exists()
    assert verify(runner.directory(flow), measure).problems == ()
    for tick in range(runner.next_tick(flow), LAST + 1):
        list(run_ticks(flow, runner, tick, lambda _: None))
    assert by_name(contents(flow, runner)) == as_new(tmp_path, text)
    assert planned(capsys)[0] == 0


def test_ticks_go_on_with_what_is_deployed(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = served
    for text in (COUNTED, "payments -> what() -> totals"):
        rewrite(flow, text)
        assert "small.hydro" in runner.deployments.undeployed(flow)
        list(run_ticks(flow, TickRunner(runner.project), runner.next_tick(flow), lambda _: None))
    assert rows_of(capsys, "totals", "--tick", DAYS[LAST])[0] == {"user": "ann", "total": 211}
    assert main(["plan", "small"]) == 1
    assert "what" in capsys.readouterr().err


def test_dagster_has_the_restated_ticks_again(
    served: tuple[FlowAsset, TickRunner],
) -> None:
    flow, runner = served
    key = asset_key(flow, "totals")
    rewrite(flow, COUNTED)
    assert main(["deploy", "small", "--yes"]) == 0
    with open_instance(runner.project.dagster_home) as instance:
        for tick, day in enumerate(DAYS[:3]):
            wanted = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[day])
            records = instance.fetch_materializations(wanted, limit=5).records
            assert [made(record, "commit") for record in records] == [3, tick]
            assert made(records[0], "deployment") == 2
        # A state that the deployment has brought is there, too.
        state = asset_key(flow, "state/aggregate_from_1")
        assert set(instance.get_materialized_partitions(state)) == set(DAYS[:3])


def made(record: dg.EventLogRecord, what: str) -> object:
    event = record.asset_materialization
    assert event is not None
    return event.metadata[what].value


def test_a_code_location_that_was_loaded_before_goes_on(
    served: tuple[FlowAsset, TickRunner],
) -> None:
    """Its definitions are those of the earlier deployment; what runs is the one that serves."""
    flow, runner = served
    with open_instance(runner.project.dagster_home) as instance:
        run = Run(flow, runner, instance)
        rewrite(flow, WITH_MORE)
        assert main(["deploy", "small", "--yes"]) == 0
        result = run(3)
        assert result.success
        assert run.recorded("large") == DAYS
        assert run.recorded("totals") == DAYS


@pytest.mark.parametrize("words", [("--forward-only",), ("--from", DAYS[1])], ids=["on", "from"])
def test_a_part_of_the_past_stays(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    flow, runner = served
    before = {day: rows_of(capsys, "totals", "--tick", day) for day in DAYS[:3]}
    rewrite(flow, COUNTED)
    code, found = planned(capsys, *words)
    assert code == 3
    outputs = found["outputs"]
    assert isinstance(outputs, dict)
    assert outputs["totals"]["restated"] == (None if len(words) == 1 else [DAYS[1], DAYS[2]])
    assert main(["deploy", "small", *words, "--yes"]) == 0
    kept = DAYS[:3] if len(words) == 1 else DAYS[:1]
    for day in kept:
        assert rows_of(capsys, "totals", "--tick", day) == [{**r, "n": None} for r in before[day]]
    list(run_ticks(flow, runner, LAST, lambda _: None))
    assert rows_of(capsys, "totals") == [
        {"user": "ann", "total": 211, "n": 4},
        {"user": "cat", "total": 3, "n": 1},
    ]
    if len(words) > 1:
        assert rows_of(capsys, "totals", "--tick", DAYS[1]) == [
            {"user": "ann", "total": 11, "n": 2}
        ]


def test_the_last_ticks_are_compared(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = served
    rewrite(flow, DOUBLED)
    before = contents(flow, runner)
    code, found = planned(capsys, "--compare", "2")
    assert code == 3
    outputs = found["outputs"]
    assert isinstance(outputs, dict)
    # Two days ago ann's total was new; today nothing is.
    assert outputs["totals"]["compared"] == {"added": 1, "removed": 1}
    assert outputs["before"]["compared"] == {"added": 0, "removed": 0}
    assert contents(flow, runner) == before
    assert not (runner.directory(flow) / BESIDE).exists()


def test_the_deployment_before_serves_again(
    served: tuple[FlowAsset, TickRunner], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = served
    rewrite(flow, DOUBLED)
    assert main(["deploy", "small", "--yes"]) == 0
    list(run_ticks(flow, runner, LAST, lambda _: None))
    assert main(["rollback", "small", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "deployment 2 → 1" in said
    assert "changes that are not deployed" in said
    assert by_name(contents(flow, runner)) == as_new(tmp_path, PROGRAM)
    assert main(["rollback", "small", "--yes"]) == 1
    assert "no deployment of `small` before" in capsys.readouterr().err
    list(run_ticks(flow, runner, LAST + 1, lambda _: None))


def test_a_landed_past_that_is_gone_is_refused_or_begun_from_now(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = served
    table = DeltaTable(runner.project.landing / "small" / "payments")
    table.delete("tick < 3")
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    rewrite(
        flow,
        PROGRAM + 'payments -> persist() -> aggregate(by="user", n=count()) -> delta() -> counts\n',
    )
    before = contents(flow, runner)
    assert main(["deploy", "small", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "payments" in said
    assert "--from-now" in said
    assert contents(flow, runner) == before
    code, found = planned(capsys, "--from-now")
    assert code == 3
    states = found["states"]
    assert isinstance(states, dict)
    assert "empty" in {s["change"] for s in states.values()}
    assert main(["deploy", "small", "--from-now", "--yes"]) == 0
    list(run_ticks(flow, runner, LAST, lambda _: None))
    assert rows_of(capsys, "counts") == [{"user": "ann", "n": 2}, {"user": "cat", "n": 1}]
    assert rows_of(capsys, "totals")[0] == {"user": "ann", "total": 211}
    assert any(
        "started empty" in note for note in runner.deployments.prepared(flow).deployment.notes
    )


def test_a_past_that_fails_with_the_new_program_changes_nothing(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = served
    rewrite(
        flow,
        PROGRAM.replace(
            "payments -> persist()",
            "payments -> with_columns(amount=lambda p: 0 - p.amount) -> persist()",
        ),
    )
    before = contents(flow, runner)
    assert main(["deploy", "small", "--yes"]) == 1
    said = capsys.readouterr().err
    assert DAYS[0] in said
    assert "everything is as it was" in said
    assert contents(flow, runner) == before
    list(run_ticks(flow, runner, LAST, lambda _: None))


@pytest.mark.parametrize("moment", ["deployment 2", "outputs/totals", "ledger"])
def test_killed_at_any_step_it_never_happened_or_is_done(tmp_path: Path, moment: str) -> None:
    flow, runner = opened(tmp_path)
    list(run_ticks(flow, runner, 2, lambda _: None))
    rewrite(flow, COUNTED)
    before = contents(flow, runner)
    asked = [sys.executable, "-m", "tests.orchestration.killed_deploying", str(tmp_path), moment]
    done = subprocess.run(asked, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == -signal.SIGKILL
    fresh = TickRunner(ProjectSettings(home=tmp_path, spark_master="local[2]"))
    serves = 2 if moment == "ledger" else 1
    assert fresh.deployments.prepared(flow).number == serves
    if serves == 1:
        assert contents(flow, fresh) == before
    list(run_ticks(flow, fresh, LAST, lambda _: None))
    expected = as_new(tmp_path, COUNTED if serves == 2 else PROGRAM)
    assert by_name(contents(flow, fresh)) == expected


def test_definitions_load_neither_the_optimizer_nor_spark(tmp_path: Path) -> None:
    flow, runner = opened(tmp_path)
    runner.deployments.prepared(flow)
    script = f"""
import sys
from pathlib import Path
from tests.orchestration.small import small_flow
from orchestration.factory import project_definitions
from orchestration.runner import TickRunner
from orchestration.settings import ProjectSettings
flow = small_flow(Path({str(tmp_path / "program")!r}))
defs = project_definitions([flow], TickRunner(ProjectSettings(home=Path({str(tmp_path)!r}))))
keys = {{key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}}
assert "small/state/aggregate_from_1_state" in keys, keys
assert not {{"pyspark", "egglog", "great_expectations"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_assets_tell_their_deployment(served: tuple[FlowAsset, TickRunner]) -> None:
    flow, runner = served
    rewrite(flow, COUNTED)
    graph = project_definitions([flow], runner).resolve_asset_graph()
    shown = graph.get(asset_key(flow, "totals")).metadata
    assert shown["deployment"] == 1
    assert "small.hydro" in shown["not deployed"]
    assert "persist" in shown["plan"].value
