"""Deployments that fail, are killed, or meet others; and what Dagster has of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from hydro_core.artifact.deployment import deployment_numbers
from hydro_core.cli.main import main
from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydrotick.cli.backfill import run_ticks
from hydrotick.code_location.asset_specs import asset_key
from hydrotick.code_location.factory import project_definitions
from hydrotick.deploy.planning import DeployOptions, plan_deployment
from hydrotick.deploy.switch import deploy as take_over
from hydrotick.instance.opening import open_instance
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.changing import (
    COUNTED,
    DAYS,
    LAST,
    REFACTORED,
    WITH_MORE,
    as_new,
    by_name,
    planned,
    rewrite,
    rows_of,
)
from tests.orchestration.small import PROGRAM, Run, contents, opened, serve
from tests.support.refused import Refused

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


def test_dagster_has_the_restated_ticks_again(
    served: tuple[FlowAsset, TickRunner],
) -> None:
    flow, runner = served
    key = asset_key(flow, "totals")
    rewrite(flow, COUNTED)
    assert main(["deploy", "small", "--yes"]) == 0
    with open_instance(runner.project.dagster_home) as instance:
        for day in DAYS[:3]:
            wanted = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[day])
            records = instance.fetch_materializations(wanted, limit=5).records
            assert [made(record, "commit") for record in records] == [1, 0]
            assert made(records[0], "deployment") == 2
    assert main(["rollback", "small", "--yes"]) == 0
    with open_instance(runner.project.dagster_home) as instance:
        for day in DAYS[:3]:
            wanted = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[day])
            (record,) = instance.fetch_materializations(wanted, limit=1).records
            assert made(record, "deployment") == 1
        # A state that the deployment has brought is there, too.
        state = asset_key(flow, "state/running_aggregate_1")
        assert set(instance.get_materialized_partitions(state)) == set(DAYS[:3])


def made(record: dg.EventLogRecord, what: str) -> object:
    event = record.asset_materialization
    assert event is not None
    return event.metadata[what].value


def test_checks_by_themselves_hold_after_a_deployment(
    served: tuple[FlowAsset, TickRunner],
) -> None:
    """The commit of a deployment speaks of all ticks, and tables that were kept are among them."""
    flow, runner = served
    kept = PROGRAM + "payments -> persist() -> cross(right=payments) -> pairs\n"
    with open_instance(runner.project.dagster_home) as instance:
        for text in (kept, kept + "payments -> filter(lambda p: p.amount > 2) -> large\n"):
            rewrite(flow, text)
            assert main(["deploy", "small", "--yes"]) == 0
        run = Run(flow, runner, instance)
        for slot in runner.plan(flow).slots:
            for tick in (1, 2):
                assert not run.failed(run.check(f"state/{slot.id}", tick)), slot.id
        assert main(["rollback", "small", "--yes"]) == 0
        for slot in runner.plan(flow).slots:
            assert not run.failed(run.check(f"state/{slot.id}", 2)), slot.id
        assert run(3).success


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
        "started empty" in note for note in runner.deployments.prepare(flow).deployment.notes
    )


def test_going_back_stops_at_another_deployment(
    served: tuple[FlowAsset, TickRunner], refused: Refused
) -> None:
    flow, runner = served
    list(run_ticks(flow, runner, LAST, lambda _: None))
    rewrite(flow, REFACTORED)
    assert main(["deploy", "small", "--yes"]) == 0
    with refused(DataError, "state"):
        runner.pipeline(flow).rewind(2)
    assert runner.next_tick(flow) == LAST + 1


def test_what_earlier_deployments_had_is_kept_for_a_while(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = served
    tables = runner.directory(flow) / "state"
    rewrite(flow, COUNTED)
    assert main(["deploy", "small", "--yes"]) == 0
    both = {path.name for path in tables.iterdir()}
    assert main(["compact", "small"]) == 0
    assert {path.name for path in tables.iterdir()} == both
    assert deployment_numbers(runner.directory(flow)) == (1, 2)
    capsys.readouterr()
    assert main(["compact", "small", "--keep-hours", "0"]) == 0
    assert "given up before are removed: 1" in capsys.readouterr().out
    assert len({path.name for path in tables.iterdir()}) == len(both) - 1
    assert deployment_numbers(runner.directory(flow)) == (2,)
    assert main(["rollback", "small", "--yes"]) == 1
    assert "no deployment of `small` before" in capsys.readouterr().err
    list(run_ticks(flow, runner, LAST, lambda _: None))


def test_of_two_deployments_at_once_one_is_refused(
    served: tuple[FlowAsset, TickRunner], refused: Refused
) -> None:
    flow, runner = served
    rewrite(flow, COUNTED)
    first, second = (TickRunner(runner.project) for _ in range(2))
    changes = [plan_deployment(flow, one, DeployOptions()) for one in (first, second)]
    assert changes[0] is not None
    assert changes[1] is not None
    take_over(changes[0], first, lambda _: None)
    with refused(DataError, "state"):
        take_over(changes[1], second, lambda _: None)
    assert deployment_numbers(runner.directory(flow)) == (1, 2)


def test_a_tick_deploys_where_nobody_has_prepared_it(tmp_path: Path) -> None:
    """A code location shows the program as it is written until its first tick, and runs it all the
    same.
    """
    flow, runner = opened(tmp_path)
    job = project_definitions([flow], runner).resolve_job_def("small_job")
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, partition_key=DAYS[0])
        assert result.success
        state = asset_key(flow, "state/running_aggregate_1")
        assert instance.get_materialized_partitions(state) == {DAYS[0]}
    assert runner.deployments.active(flow) is not None


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


@pytest.mark.parametrize(
    "moment",
    [
        "outputs/totals",
        pytest.param("deployment 2", marks=pytest.mark.slow),
        pytest.param("ledger", marks=pytest.mark.slow),
    ],
)
def test_killed_at_any_step_it_never_happened_or_is_done(tmp_path: Path, moment: str) -> None:
    flow, runner = opened(tmp_path)
    list(run_ticks(flow, runner, 2, lambda _: None, together=3))
    rewrite(flow, COUNTED)
    before = contents(flow, runner)
    asked = [sys.executable, "-m", "tests.orchestration.killed_deploying", str(tmp_path), moment]
    done = subprocess.run(asked, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == -signal.SIGKILL
    fresh = TickRunner(ProjectSettings(home=tmp_path, spark_master="local[2]"))
    serves = 2 if moment == "ledger" else 1
    assert fresh.deployments.prepare(flow).number == serves
    if serves == 1:
        assert contents(flow, fresh) == before
    list(run_ticks(flow, fresh, LAST, lambda _: None))
    expected = as_new(tmp_path, COUNTED if serves == 2 else PROGRAM)
    assert by_name(contents(flow, fresh)) == expected


def test_a_first_plan_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = opened(tmp_path)
    serve(monkeypatch, [flow], runner.project)
    code, found = planned(capsys)
    assert code == 3
    assert (found["deployed"], found["next"], found["after"]) == (None, 1, None)
    assert not runner.directory(flow).exists()


def test_definitions_load_neither_the_optimizer_nor_spark(tmp_path: Path) -> None:
    flow, runner = opened(tmp_path)
    runner.deployments.prepare(flow)
    script = f"""
import sys
from pathlib import Path
from tests.orchestration.small import small_flow
from hydrotick.code_location.factory import project_definitions
from hydrotick.runner.runner import TickRunner
from hydrotick.project.settings import ProjectSettings
flow = small_flow(Path({str(tmp_path / "program")!r}))
defs = project_definitions([flow], TickRunner(ProjectSettings(home=Path({str(tmp_path)!r}))))
keys = {{key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}}
assert "small/state/running_aggregate_1_state" in keys, keys
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


def test_dagster_tells_what_is_out_of_date(served: tuple[FlowAsset, TickRunner]) -> None:
    flow, runner = served
    tables = ["state/running_aggregate_1", "state/payments", "totals", "before"]

    def causes(instance: dg.DagsterInstance) -> dict[str, set[str]]:
        graph = project_definitions([flow], TickRunner(runner.project)).resolve_asset_graph()
        asked = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        found = {}
        for name in tables:
            of = asked.get_stale_causes(asset_key(flow, name), DAYS[1])
            found[name] = {f"{cause.category.value}: {cause.reason}" for cause in of}
        return found

    with open_instance(runner.project.dagster_home) as instance:
        assert causes(instance) == {name: set() for name in tables}
        rewrite(flow, COUNTED)
        # The statement of `before` is what it was.
        changed = {"CODE: has a new code version"}
        assert causes(instance) == {n: changed if n == "totals" else set() for n in tables}
        assert main(["deploy", "small", "--yes"]) == 0
        # What was restated is up to date; so is what the deployment did not touch.
        assert causes(instance) == {name: set() for name in tables}
