"""Ticks as Dagster runs: what is recorded, what is refused, and what a broken check stops."""

from __future__ import annotations

import json
from logging import WARNING
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.ledger.lock import WriterLock
from hydrotick.instance.run_tags import TICKS_TAG, is_judged
from tests.orchestration.small import (
    BATCHES,
    PROGRAM,
    Run,
    contents,
    land,
    opened,
    reason,
    serve,
)

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

DAYS = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
ASSETS = ("state/payments", "totals", "before")


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


def test_a_range_is_one_run_in_order(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    flow, runner = opened(tmp_path)
    run = Run(flow, runner, instance)
    result = run(0, 3)
    assert result.success, reason(result)
    for asset in ASSETS:
        assert run.recorded(asset) == DAYS
    assert not run.failed(result)
    assert run.warned(result) == {"payments:rows_landed": DAYS[2]}
    assert len(run.checks(result)) == len(DAYS) * 13
    totals = runner.pipeline(flow).output("totals", every=True).to_pylist()
    assert sorted((row["tick"], row["user"], row["total"]) for row in totals) == [
        (0, "ann", 1),
        (0, "bob", 2),
        (1, "ann", 11),
        (3, "ann", 211),
        (3, "cat", 3),
    ]


def test_a_tick_shows_rows_and_tables(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    flow, runner = opened(tmp_path)
    result = Run(flow, runner, instance)(0)
    shown = {
        event.asset_key.path[-1]: event.materialization.metadata
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None
    }
    assert shown["totals"]["dagster/row_count"].value == 2
    files = Path(shown["totals"]["dagster/table_name"].value).glob("*.parquet")
    assert shown["totals"]["bytes"].value == sum(file.stat().st_size for file in files) > 0
    assert shown["totals"]["seconds"].value > 0
    assert str(tmp_path) in str(shown["totals"]["dagster/table_name"].value)
    (read,) = result.get_asset_observation_events()
    assert read.asset_observation_data.asset_observation.metadata["rows read"].value == 2


def test_a_range_that_ran_twice_is_told(
    tmp_path: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flow, runner = opened(tmp_path)
    land(runner.project, [[("ann", 1)], [("ann", 2**40)]])
    flow.program.write_text(f"{PROGRAM}payments -> map(lambda p: p.amount * p.amount % 97) -> rest")
    run = Run(flow, runner, instance)
    result = run(0, 1)
    assert result.success, reason(result)
    function = "lambda p: p.amount * p.amount % 97 (small.hydro, line 5)"
    for day in DAYS[:2]:
        shown = run.shown(result, "rest")[day]
        assert shown["ran again in Python"] == f"{function}, 1 time in all"
    warned = [e.user_message for e in instance.all_logs(result.run_id) if e.level == WARNING]
    assert any(f"{DAYS[0]}: Spark cannot tell" in message for message in warned)
    assert runner.pipeline(flow).output("rest").to_pylist() == [{"tick": 1, "item": 2**80 % 97}]
    serve(monkeypatch, [flow], runner.project)
    capsys.readouterr()
    assert main(["status", "small"]) == 0
    said = capsys.readouterr().out
    assert f"one range ran twice, the last of {DAYS[0]} to {DAYS[1]}" in said
    assert f"what {function} gives" in said
    assert main(["status", "small", "--format", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["flows"][0]["reruns"]
    assert told == {"function": function, "times": 1, "ticks": DAYS[:2], "stays": False}
    why = ["why", "small", "totals", "--where", "user=ann"]
    assert main(why) == 0
    said = capsys.readouterr().out
    assert "The range of this tick ran twice. Spark cannot tell" in said
    assert function in said
    assert main([*why, "--tick", DAYS[0], "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["ran_again"] == [function]


def test_a_committed_tick_is_recorded_again_and_not_run(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    flow, runner = opened(tmp_path)
    with dg.DagsterInstance.ephemeral() as lost:
        once = Run(flow, runner, lost)
        first = once.checks(once(0))
    before = contents(flow, runner)
    run = Run(flow, runner, instance)
    again = run(0)
    assert again.success
    assert contents(flow, runner) == before
    assert run.recorded("totals") == DAYS[:1]
    checks = [
        {(e.asset_key, e.check_name, e.passed) for e in found}
        for found in (first, run.checks(again))
    ]
    assert checks[0] == checks[1]
    assert len(checks[0]) == 13
    assert "run before" not in run.shown(again, "totals")[DAYS[0]]
    third = run(0)
    assert run.shown(third, "totals")[DAYS[0]]["run before"] == again.run_id
    assert TICKS_TAG not in ended(instance, third).tags


def test_a_tick_out_of_order_is_refused(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    flow, runner = opened(tmp_path)
    run = Run(flow, runner, instance)
    result = run(2)
    assert not result.success
    assert "2026-01-03" in reason(result)
    assert "run 2026-01-01 and those after it first" in reason(result)
    assert runner.next_tick(flow) == 0
    assert run.recorded("totals") == []


def test_a_broken_expectation_stops_the_tick(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    flow, runner = opened(tmp_path)
    land(runner.project, [*BATCHES[:1], [("ann", -50), ("bob", 1)], *BATCHES[2:]])
    run = Run(flow, runner, instance)
    result = run(0, 3)
    assert not result.success
    (broken,) = run.failed(result).values()
    assert (broken.check_name, broken.partition) == ("total_between", DAYS[1])
    assert broken.severity is dg.AssetCheckSeverity.ERROR
    assert "-49" in str(broken.metadata)
    assert "total_between" in reason(result)
    assert is_judged(ended(instance, result))
    assert ended(instance, result).tags[TICKS_TAG] == f"{DAYS[0]}; {DAYS[1]} failed"
    assert runner.next_tick(flow) == 1
    for asset in ASSETS:
        assert run.recorded(asset) == DAYS[:1]
    later = run(2)
    assert not later.success
    assert f"run {DAYS[1]} and those after it first" in reason(later)
    assert not is_judged(ended(instance, later))

    land(runner.project)
    # A run that is executed again begins with the tags that it had.
    goes_on = run(1, 3, tags={TICKS_TAG: f"{DAYS[0]}; {DAYS[1]} failed"})
    assert goes_on.success
    assert ended(instance, goes_on).tags[TICKS_TAG] == f"{DAYS[1]} to {DAYS[3]}"
    assert run.recorded("totals") == DAYS
    _, other = opened(tmp_path / "other")
    with dg.DagsterInstance.ephemeral() as apart:
        assert Run(flow, other, apart)(0, 3).success
    assert contents(flow, runner) == contents(flow, other)


def test_what_was_committed_and_not_recorded_is_recorded_by_what_runs_next(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    flow, runner = opened(tmp_path)
    # As when a process is killed after its commit.
    windows = [flow.ticks.calendar.window(tick) for tick in range(2)]
    assert all(report.committed for report in runner.run(flow, windows, log=lambda _: None))
    run = Run(flow, runner, instance)
    result = run(2)
    assert result.success
    for asset in ASSETS:
        assert run.recorded(asset) == DAYS[:3]
    assert {check.partition for check in run.checks(result)} == set(DAYS[:3])


def test_what_stops_a_tick_from_outside_is_no_judgement_of_it(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    flow, runner = opened(tmp_path)
    run = Run(flow, runner, instance)
    assert run(0).success
    with WriterLock(runner.directory(flow)):
        result = run(1)
    assert "another writer is at work" in reason(result)
    assert not is_judged(ended(instance, result))
    assert run(1).success


def ended(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> dg.DagsterRun:
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    return run


def test_a_table_that_loses_a_row_stops_the_tick(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, runner = opened(tmp_path)
    run = Run(flow, runner, instance)
    assert run(0, 2).success
    whole = StoredTable.append

    def loses(table: StoredTable, rows: pa.Table) -> None:
        whole(table, rows.slice(1) if table.spec.role == "state" else rows)

    with monkeypatch.context() as broken:
        broken.setattr(StoredTable, "append", loses)
        result = run(3)
    assert {name.partition(":")[2] for name in run.failed(result)} == {
        "persist_is_old_plus_new",
        "delta_of_persist_is_batch",
    }
    assert runner.next_tick(flow) == 3
    assert run(3).success
    (state,) = [
        name for name in contents(flow, runner) if name.startswith("state/running_aggregate")
    ]
    assert contents(flow, runner)[state] == [
        "{'t': 3, 'item': {'user': 'ann', 'total': 211}}",
        "{'t': 3, 'item': {'user': 'bob', 'total': 2}}",
        "{'t': 3, 'item': {'user': 'cat', 'total': 3}}",
    ]


def test_a_check_by_itself_finds_what_was_changed_later(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    flow, runner = opened(tmp_path)
    run = Run(flow, runner, instance)
    assert run(0, 1).success
    state = "state/running_aggregate_1"
    assert not run.failed(run.check(state, 1))
    assert not run.failed(run.check("totals", 1))
    changed = [_raise_total(f) for f in runner.directory(flow).glob(f"{state}*/*.parquet")]
    assert sum(changed) > 0
    assert set(run.failed(run.check(state, 1))) == {
        "running_aggregate_1_state:persist_is_old_plus_new",
        "running_aggregate_1_state:delta_of_persist_is_batch",
    }


def _raise_total(file: Path) -> bool:
    """Changes what Ann has, behind the back of the table that the file belongs to."""
    stored = pq.ParquetFile(file).read()
    rows = stored.to_pylist()
    for row in rows:
        if row["item"] == {"user": "ann", "total": 11}:
            row["item"]["total"] = 99
    changed = pa.Table.from_pylist(rows, schema=stored.schema)
    pq.write_table(changed, file)
    return not changed.equals(stored)


def test_input_that_is_missing_is_said(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    flow, runner = opened(tmp_path)
    (runner.project.landing / "small" / "payments").rename(tmp_path / "elsewhere")
    result = Run(flow, runner, instance)(0)
    assert not result.success
    assert "payments" in reason(result)
    assert "land its data first" in reason(result)
