"""Corrections: as if rows had landed in time, in one commit, recorded by Dagster; or nothing."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.pipeline.rework import STAGING
from hydro_core.ticks.calendar import TickWindow
from hydrotick.cli.backfill import run_ticks
from hydrotick.code_location.asset_specs import asset_key
from hydrotick.code_location.records import unrecorded
from hydrotick.instance.opening import open_instance
from hydrotick.instance.run_tags import CORRECT, CORRECT_TAG
from hydrotick.quality.judge import measure
from hydrotick.runner.correction import planned
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import BATCHES, Run, contents, land, opened, reason, serve

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

ROOT = Path(__file__).parents[2]
DAYS = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
LAST = len(DAYS) - 1
IN_TIME = (*BATCHES[:1], [*BATCHES[1], ("dan", 7), ("ann", 5)], *BATCHES[2:])
"""What has landed once two rows came late, for the tick 1."""
ASSETS = ("state/payments", "totals", "before")


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.fixture(scope="module")
def in_time(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, list[str]]:
    assert spark is not None
    flow, runner = opened(tmp_path_factory.mktemp("in_time"))
    land(runner.project, IN_TIME)
    windows = [flow.ticks.calendar.window(tick) for tick in range(LAST + 1)]
    assert all(report.committed for report in runner.run(flow, windows, lambda _: None))
    return contents(flow, runner)


def ran(home: Path, instance: dg.DagsterInstance) -> tuple[FlowAsset, TickRunner, Run]:
    """The flow with its ticks committed, and then two rows that are late."""
    flow, runner = opened(home)
    run = Run(flow, runner, instance)
    assert run(0).success
    assert run(1, LAST).success
    land(runner.project, IN_TIME)
    return flow, runner, run


def test_a_correction_is_as_if_the_rows_had_landed_in_time(
    tmp_path: Path, instance: dg.DagsterInstance, in_time: Mapping[str, list[str]]
) -> None:
    flow, runner, run = ran(tmp_path, instance)
    result = run(1, tags={CORRECT_TAG: CORRECT})
    assert result.success, reason(result)
    assert contents(flow, runner) == in_time
    assert not run.failed(result)
    assert run.warned(result) == {"payments:rows_landed": DAYS[2]}
    assert {check.partition for check in run.checks(result)} == set(DAYS[1:])
    commit = runner.pipeline(flow).ledger.last
    assert commit is not None
    assert (commit.first, commit.last) == (1, LAST)
    for asset in ASSETS:
        shown = run.shown(result, asset)
        assert list(shown) == DAYS[1:]
        for of_tick in shown.values():
            assert of_tick["commit"] == commit.sequence
            assert of_tick["correction"].startswith("commit 2 computed 2026-01-02 to 2026-01-04")
            earlier = instance.get_run_by_id(of_tick["run before"])
            assert earlier is not None
            assert earlier.run_id != result.run_id
    # ann's totals of two ticks are others, dan's is new; what was before it came a tick later
    assert added_and_removed(run.shown(result, "totals")[DAYS[1]]) == (3, 2)
    assert added_and_removed(run.shown(result, "before")[DAYS[1]]) == (2, 0)
    for tick in range(1, LAST + 1):
        assert not run.failed(run.check("state/payments", tick))
    assert run(LAST + 1).success


def added_and_removed(shown: Mapping[str, object]) -> tuple[object, object]:
    return shown["rows added"], shown["rows removed"]


def test_what_was_one_range_is_corrected_from_its_first_tick(
    tmp_path: Path, instance: dg.DagsterInstance, in_time: Mapping[str, list[str]]
) -> None:
    """What `delta` remembers is the last tick's, so that of a tick within a range is gone."""
    flow, runner = opened(tmp_path)
    run = Run(flow, runner, instance)
    assert run(0, LAST).success
    land(runner.project, IN_TIME)
    plan = planned(runner, flow, DAYS[2])
    assert (plan.asked.key, plan.first.key, plan.last.key) == (DAYS[2], DAYS[0], DAYS[LAST])
    result = run(2, tags={CORRECT_TAG: CORRECT})
    assert result.success, reason(result)
    assert list(run.shown(result, "totals")) == DAYS
    assert contents(flow, runner) == in_time


def test_ranges_of_a_correction_are_one_commit_whose_laws_hold(
    tmp_path: Path, instance: dg.DagsterInstance, in_time: Mapping[str, list[str]]
) -> None:
    flow, runner, run = ran(tmp_path, instance)
    object.__setattr__(runner.project, "range_ticks", 2)
    seen: list[list[str]] = []

    def computed(windows: Sequence[TickWindow]) -> None:
        seen.append([window.key for window in windows])
        # what lands meanwhile is not for this correction: all its ranges read one version
        land(runner.project, (*IN_TIME[:LAST], [("late", 1)]))

    runner.computed_again = computed
    assert run(0, tags={CORRECT_TAG: CORRECT}).success
    assert seen == [DAYS[:2], DAYS[2:]]
    assert contents(flow, runner) == in_time
    assert verify(runner.directory(flow), measure).problems == ()
    for asset in ("state/payments", "totals"):
        for tick in range(LAST + 1):
            result = run.check(asset, tick)
            assert result.success
            assert not run.failed(result)
    assert run(LAST + 1).success


def test_a_committed_tick_is_not_computed_again_unless_that_is_asked_for(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    flow, runner, run = ran(tmp_path, instance)
    before = contents(flow, runner)
    result = run(1)
    assert result.success
    assert contents(flow, runner) == before
    note = run.shown(result, "totals")[DAYS[1]]["note"]
    assert "this run computed nothing" in note
    assert f"`{CORRECT_TAG}` = `{CORRECT}`" in note
    assert f"hydrotick correct small --from {DAYS[1]}" in note
    result = run(1, tags={CORRECT_TAG: "true"})
    assert f"`{CORRECT_TAG}` is `true`: write `{CORRECT}`" in reason(result)
    assert contents(flow, runner) == before


def test_a_run_that_corrects_goes_on_with_the_open_ticks(
    tmp_path: Path, instance: dg.DagsterInstance, in_time: Mapping[str, list[str]]
) -> None:
    flow, runner = opened(tmp_path)
    run = Run(flow, runner, instance)
    assert run(0).success
    assert run(1, 2).success
    land(runner.project, IN_TIME)
    result = run(1, LAST, tags={CORRECT_TAG: CORRECT})
    assert result.success, reason(result)
    assert contents(flow, runner) == in_time
    assert list(run.shown(result, "totals")) == DAYS[1:]
    # a tag that finds nothing committed is no obstacle
    assert run(LAST + 1, tags={CORRECT_TAG: CORRECT}).success


@pytest.mark.parametrize("together", [1, 100])
def test_a_check_that_fails_leaves_everything_as_it_was(
    tmp_path: Path, instance: dg.DagsterInstance, together: int
) -> None:
    flow, runner, run = ran(tmp_path, instance)
    object.__setattr__(runner.project, "range_ticks", together)
    before = contents(flow, runner)
    land(runner.project, (*IN_TIME[:2], [("eve", -3)], *IN_TIME[3:]))
    result = run(1, tags={CORRECT_TAG: CORRECT})
    assert not result.success
    assert set(run.failed(result)) == {"totals:total_between"}
    said = reason(result)
    assert DAYS[2] in said
    assert "nothing was changed" in said
    assert contents(flow, runner) == before
    assert not (runner.directory(flow) / STAGING).exists()
    assert run.shown(result, "totals") == {}
    land(runner.project)
    assert run(LAST + 1).success


def test_what_was_corrected_and_not_recorded_is_recorded_by_what_runs_next(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    flow, runner, run = ran(tmp_path, instance)
    first = flow.ticks.calendar.window(1)
    assert [r.committed for r in runner.correct(flow, first, lambda _: None)] == [True] * LAST
    ((begin, end),) = unrecorded(flow, runner, instance)
    assert (begin.key, end.key) == (DAYS[1], DAYS[LAST])
    result = run(LAST + 1)
    assert result.success
    assert list(run.shown(result, "totals")) == [*DAYS[1:], "2026-01-05"]
    assert unrecorded(flow, runner, instance) == []


@pytest.mark.parametrize(
    "moment", ["outputs/totals", pytest.param("ledger", marks=pytest.mark.slow)]
)
def test_killed_within_a_correction(
    tmp_path: Path, in_time: Mapping[str, list[str]], moment: str
) -> None:
    flow, runner = opened(tmp_path)
    run_in_two(flow, runner)
    before = contents(flow, runner)
    land(runner.project, IN_TIME)
    done = subprocess.run(
        [sys.executable, "-m", "tests.orchestration.killed", str(tmp_path), "1", moment, "correct"],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        check=False,
        timeout=300,
    )
    assert done.returncode == -signal.SIGKILL
    flow, runner = opened(tmp_path)
    runner.pipeline(flow).store.check(runner.pipeline(flow).ledger.refresh())
    assert contents(flow, runner) == (in_time if moment == "ledger" else before)
    if moment != "ledger":
        assert [r.committed for r in runner.correct(flow, window(flow, 1), lambda _: None)]
        assert contents(flow, runner) == in_time
    list(run_ticks(flow, runner, LAST + 1, lambda _: None))
    with open_instance(runner.project.dagster_home) as instance:
        assert unrecorded(flow, runner, instance) == []
        key = asset_key(flow, "totals")
        made = instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=key, asset_partitions=[DAYS[1]]), limit=1
        ).records[0]
        assert made.asset_materialization is not None
        assert made.asset_materialization.metadata["commit"].value == 2


def run_in_two(flow: FlowAsset, runner: TickRunner) -> None:
    """The first tick, then the others: a table that holds its last tick alone is had after it."""
    for last in (0, LAST):
        list(run_ticks(flow, runner, last, lambda _: None, together=LAST))


def window(flow: FlowAsset, tick: int) -> object:
    return flow.ticks.calendar.window(tick)


@pytest.fixture
def flow_of_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FlowAsset:
    """The flow, as the commands find it, with its ticks committed and two rows late."""
    flow, runner = opened(tmp_path)
    serve(monkeypatch, [flow])
    monkeypatch.setenv("HYDROTICK_HOME", str(tmp_path))
    monkeypatch.setenv("HYDROTICK_SPARK_MASTER", "local[2]")
    run_in_two(flow, runner)
    land(runner.project, IN_TIME)
    return flow


@pytest.mark.usefixtures("flow_of_commands")
class TestCommands:
    """`correct`, `backfill --from` and `show`, as words of the command line."""

    def test_correct_asks_does_and_says(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert main(["correct", "small", "--from", DAYS[1]]) == 1
        assert "there is no terminal to ask at" in capsys.readouterr().err
        monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
        assert main(["correct", "small", "--from", DAYS[1]]) == 1
        assert "Nothing was changed." in capsys.readouterr().out
        monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
        assert main(["correct", "small", "--from", DAYS[1]]) == 0
        said = capsys.readouterr().out
        assert "small: 2026-01-02 to 2026-01-04 (3 tick(s)) are computed again" in said
        assert "2026-01-02 to 2026-01-04: computed; 3 of 3 after" in said
        assert "payments  6 row(s) read, 4 before" in said
        assert "totals    3 row(s) added, 2 removed" in said
        assert "before    2 row(s) added, 0 removed" in said
        assert main(["correct", "small", "--from", DAYS[1], "--yes", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == {
            "flow": "small",
            "first": DAYS[1],
            "last": DAYS[LAST],
            "ticks": 3,
            "commit": 3,
            "inputs": {"payments": {"rows": 6, "before": 6}},
            "outputs": {
                "totals": {"added": 0, "removed": 0},
                "before": {"added": 0, "removed": 0},
            },
        }

    def test_correct_says_which_tick_fails(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        _, runner = opened(tmp_path)
        land(runner.project, (*IN_TIME[:2], [("eve", -3)], *IN_TIME[3:]))
        assert main(["correct", "small", "--from", DAYS[1], "--yes"]) == 1
        said = capsys.readouterr().err
        assert f"tick {DAYS[2]} of `small` failed" in said
        assert "`total` is at least 0" in said
        assert "nothing was changed" in said
        assert main(["correct", "small", "--from", "2026-01-09", "--yes"]) == 1
        said = capsys.readouterr().err
        assert "tick 2026-01-09 of `small` is not committed" in said
        assert f"the committed ticks are {DAYS[0]} to {DAYS[LAST]}" in said

    def test_backfill_from_a_committed_tick(
        self, capsys: pytest.CaptureFixture[str], in_time: Mapping[str, list[str]], tmp_path: Path
    ) -> None:
        words = ["backfill", "small", "--yes", "--to"]
        assert main([*words, DAYS[2], "--from", DAYS[1]]) == 1
        assert "those after it come of them" in capsys.readouterr().err
        assert main([*words, "2026-01-06", "--from", "2026-01-06"]) == 1
        assert "2026-01-05 before it is open" in capsys.readouterr().err
        assert main([*words, DAYS[LAST], "--from", DAYS[1]]) == 0
        assert contents(*opened(tmp_path)) == in_time
        assert main([*words, "2026-01-06", "--from", DAYS[LAST]]) == 0
        said = capsys.readouterr().out
        assert "small: corrected" in said
        assert "2026-01-05 to 2026-01-06: 2 tick(s) committed" in said

    def test_show_follows_the_ledger(self, capsys: pytest.CaptureFixture[str]) -> None:
        def shown(*words: str) -> tuple[str, list[dict[str, object]]]:
            assert main(["show", "small", *words, "--format", "json"]) == 0
            found = json.loads(capsys.readouterr().out)
            return found["tick"], sorted(found["rows"], key=repr)

        assert shown("totals") == (
            DAYS[LAST],
            [{"user": "ann", "total": 211}, {"user": "cat", "total": 3}],
        )
        assert shown("totals", "--tick", DAYS[1]) == (DAYS[1], [{"user": "ann", "total": 11}])
        assert shown("running_aggregate_1", "--tick", DAYS[0])[1] == [
            {"user": "ann", "total": 1},
            {"user": "bob", "total": 2},
        ]
        assert len(shown("state/payments", "--limit", "2")[1]) == 2
        assert main(["correct", "small", "--from", DAYS[1], "--yes"]) == 0
        capsys.readouterr()
        assert shown("totals", "--tick", DAYS[1])[1] == [
            {"user": "ann", "total": 16},
            {"user": "dan", "total": 7},
        ]
        assert main(["show", "small", "totals", "--tick", DAYS[LAST], "--limit", "1"]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"1 of 2 row(s) as of tick {DAYS[LAST]}"

    def test_show_says_what_there_is(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["show", "small", "total"]) == 1
        said = capsys.readouterr().err
        assert "did you mean `totals`?" in said
        assert "the outputs are `totals`, `before`" in said
        for key in ("2026-01-09", "2027-01-01", "tomorrow"):
            assert main(["show", "small", "totals", "--tick", key]) == 1
            said = capsys.readouterr().err
            assert key in said
            assert f"the committed ticks are {DAYS[0]} to {DAYS[LAST]}" in said


class Terminal(io.StringIO):
    """What somebody types."""

    def isatty(self) -> bool:
        return True
