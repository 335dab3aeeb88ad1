"""Runs of a flow together with its checks and with what others build on it."""

from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from hydrotick.code_location.asset_specs import asset_key, partitions_of
from hydrotick.quality.suites import EQUALS
from tests.orchestration.small import BATCHES, Run, land, opened, reason

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

DAYS = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.fixture
def run(tmp_path: Path, instance: dg.DagsterInstance) -> Run:
    return Run(*opened(tmp_path), instance)


@pytest.fixture
def ran() -> list[str]:
    """The days for which the report has run."""
    return []


@pytest.fixture
def report(run: Run, ran: list[str]) -> dg.AssetsDefinition:
    """What somebody built on two outputs of the flow, one of them with blocking checks."""

    @dg.asset(
        deps=[asset_key(run.flow, "totals"), asset_key(run.flow, "before")],
        partitions_def=partitions_of(run.axis),
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def report(context: dg.AssetExecutionContext) -> None:
        ran.extend(context.partition_keys)

    return report


def test_what_is_built_on_a_flow_runs_with_it(
    run: Run, report: dg.AssetsDefinition, ran: list[str]
) -> None:
    assert run(0, among=[report]).success
    assert ran == DAYS[:1]
    result = run(1, 3, among=[report])
    assert result.success
    assert ran == DAYS
    assert not [event for event in result.all_events if event.is_step_skipped]
    for asset in ("state/payments", "totals", "before"):
        assert run.recorded(asset) == DAYS
        assert list(run.shown(result, asset)) == DAYS[1:]


def test_what_is_built_on_a_flow_does_not_run_after_a_tick_that_failed(
    run: Run, report: dg.AssetsDefinition, ran: list[str], tmp_path: Path
) -> None:
    _, runner = opened(tmp_path)
    land(runner.project, [*BATCHES[:2], [("ann", -500)], *BATCHES[3:]])
    result = run(0, 3, among=[report])
    assert not result.success
    assert ran == []
    assert run.recorded("totals") == DAYS[:2]
    assert run.recorded("state/payments") == DAYS[:2]


def test_who_asks_for_one_asset_gets_the_tick(run: Run) -> None:
    assert run(0, only="totals").success
    for asset in ("state/payments", "totals", "before"):
        assert run.recorded(asset) == DAYS[:1]


def test_a_failed_launch_leaves_the_checks_as_they_were_judged_last(
    run: Run, tmp_path: Path
) -> None:
    assert run(0, among=[]).success
    assert set(run.painted().values()) == {("SUCCEEDED", DAYS[0])}
    early = run(2, among=[])
    assert not early.success
    assert f"run {DAYS[1]} and those after it first" in reason(early)
    assert set(run.painted().values()) == {("SUCCEEDED", DAYS[0])}

    _, runner = opened(tmp_path)
    land(runner.project, [BATCHES[0], [("ann", -50)], *BATCHES[2:]])
    assert not run(1, 3, among=[]).success
    painted = run.painted()
    assert painted.pop("totals:total_between") == ("FAILED", DAYS[1])
    assert set(painted.values()) == {("SUCCEEDED", DAYS[1])}


def test_checks_by_themselves_judge_the_last_committed_tick(run: Run) -> None:
    nothing = run.check("totals")
    assert not nothing.success
    assert "no tick of small is committed" in reason(nothing)
    assert run(0, 1).success
    result = run.check("totals")
    assert result.success
    found = run.checks(result)
    assert {check.metadata["tick"].value for check in found} == {DAYS[1]}
    counted = [c.metadata["element_count"].value for c in found if c.check_name != EQUALS]
    assert set(counted) == {1}


def test_a_tick_without_a_row_of_an_input_warns_and_is_committed(run: Run) -> None:
    result = run(0, 3)
    assert result.success
    found = {e.partition: e for e in run.checks(result) if e.check_name == "rows_landed"}
    assert {day: found[day].passed for day in DAYS} == dict.fromkeys(DAYS, True) | {DAYS[2]: False}
    assert found[DAYS[2]].severity is dg.AssetCheckSeverity.WARN
    again = run.check("landing/payments")
    assert again.success
    assert [e.passed for e in run.checks(again)] == [True] * 3


def test_a_committed_tick_says_that_it_was_not_run_again(run: Run) -> None:
    assert run(0).success
    again = run(0)
    assert again.success
    said = run.shown(again, "totals")[DAYS[0]]["note"]
    assert said.startswith(f"{DAYS[0]} was committed on ")
    assert "this run computed nothing" in said
    logs = [log.user_message for log in run.instance.all_logs(again.run_id)]
    assert said in logs


def test_rows_of_a_tick_and_of_its_table(run: Run) -> None:
    result = run(0, 3)
    totals, state = run.shown(result, "totals"), run.shown(result, "state/payments")
    assert [totals[day]["dagster/partition_row_count"] for day in DAYS] == [2, 1, 0, 2]
    assert [totals[day]["dagster/row_count"] for day in DAYS] == [2, 3, 3, 5]
    # It holds what the last tick has left, so of a range only that has rows in it.
    assert [state[day].get("dagster/partition_row_count") for day in DAYS] == [None, None, None, 3]
    assert [state[day].get("dagster/row_count") for day in DAYS] == [None, None, None, 3]


def test_check_numbers_of_a_range_are_those_of_each_tick(run: Run, tmp_path: Path) -> None:
    def numbers(found: list[dg.AssetCheckEvaluation]) -> dict[tuple[str, str, str], dict[str, int]]:
        return {
            (str(e.asset_key), e.check_name, str(e.partition)): {
                name: value.value
                for name, value in e.metadata.items()
                if isinstance(value.value, int)
            }
            for e in found
        }

    together = numbers(run.checks(run(0, 3)))
    with dg.DagsterInstance.ephemeral() as apart:
        alone = Run(*opened(tmp_path / "alone"), apart)
        one_by_one = numbers([e for tick in range(4) for e in alone.checks(alone(tick))])
    assert together.keys() == one_by_one.keys()
    for key, found in together.items():
        # Of a state that each tick replaces, a range stores that of its last tick alone.
        assert found == one_by_one[key] or (not found and "payments" in key[0])
    assert together["AssetKey(['small', 'totals'])", "user_unique", DAYS[3]]["element_count"] == 2
