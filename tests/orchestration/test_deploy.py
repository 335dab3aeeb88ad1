"""A changed program is planned, deployed and taken back: as if it had always run, or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.optimize import optimizer
from hydro_core.optimize.cost import ROWS, Statistics
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.pipeline.rework import STAGING, StagedPast, staging_for
from hydrotick.cli.backfill import run_ticks
from hydrotick.quality.judge import measure
from hydrotick.runner.runner import TickRunner
from tests.orchestration.changing import (
    COUNTED,
    DAYS,
    DOUBLED,
    LAST,
    REFACTORED,
    TURNED,
    WITH_MORE,
    as_new,
    by_name,
    planned,
    rewrite,
    rows_of,
)
from tests.orchestration.small import PROGRAM, contents, serve

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


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
    assert runner.deployments.undeployed(flow).says == ""


def test_a_flow_is_opened_anew_where_its_state_is_elsewhere(
    served: tuple[FlowAsset, TickRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same program serves again, and its state was made anew meanwhile."""
    flow, runner = served
    known = runner.pipeline(flow)
    assert runner.pipeline(flow) is known
    last = runner.deployments.seen(flow)
    assert last is not None
    moved = {name.replace("state/", "state/z-"): table for name, table in last.tables.items()}
    now = replace(last, tables=moved)
    monkeypatch.setattr(runner.deployments, "seen", lambda _: now)
    found = runner.pipeline(flow)
    assert {table.name for table in found.tables} == set(moved) != set(last.tables)


def test_a_refactored_program_keeps_its_tables(
    served: tuple[FlowAsset, TickRunner], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = served
    rewrite(flow, REFACTORED)
    assert "not deployed" in runner.deployments.undeployed(flow).says
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
    assert runner.deployments.undeployed(flow).says == ""
    list(run_ticks(flow, runner, LAST, lambda _: None))
    expected = as_new(tmp_path, REFACTORED)
    assert {n: r for n, r in by_name(contents(flow, runner)).items() if "outputs" in n} == {
        n: r for n, r in expected.items() if "outputs" in n
    }


def test_the_order_of_what_has_a_name_does_not_matter(
    served: tuple[FlowAsset, TickRunner], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = served
    rewrite(flow, COUNTED)
    assert main(["deploy", "small", "--yes"]) == 0
    before = contents(flow, runner)
    rewrite(flow, TURNED)
    code, found = planned(capsys, "--compare", "2")
    assert code == 0
    outputs, states = found["outputs"], found["states"]
    assert isinstance(outputs, dict)
    assert isinstance(states, dict)
    assert {o["change"] for o in outputs.values()} == {"same"}
    assert {s["change"] for s in states.values()} == {"kept"}
    assert all(o["proof"] for o in outputs.values())
    assert main(["deploy", "small", "--yes"]) == 0
    assert contents(flow, runner) == before
    assert runner.deployments.undeployed(flow).says == ""
    list(run_ticks(flow, runner, LAST, lambda _: None))
    assert by_name(contents(flow, runner)) == as_new(tmp_path, COUNTED)

    # with something new beside it, the plan is another, and outputs keep their columns' order
    rewrite(flow, TURNED + "payments -> filter(lambda p: p.amount > 2) -> large\n")
    outputs = planned(capsys)[1]["outputs"]
    assert isinstance(outputs, dict)
    assert {n: o["change"] for n, o in outputs.items()} == {
        "totals": "same",
        "before": "same",
        "large": "new",
    }
    assert main(["deploy", "small", "--yes"]) == 0
    assert verify(runner.directory(flow), measure).problems == ()
    list(run_ticks(flow, runner, LAST + 1, lambda _: None))
    assert [*rows_of(capsys, "totals", "--tick", DAYS[LAST])[0]] == ["user", "total", "n"]


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
    assert "deployment 2 is active" in capsys.readouterr().out
    assert not (runner.directory(flow) / STAGING).exists()
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
        assert "small.hydro" in runner.deployments.undeployed(flow).says
        list(run_ticks(flow, TickRunner(runner.project), runner.next_tick(flow), lambda _: None))
    assert rows_of(capsys, "totals", "--tick", DAYS[LAST])[0] == {"user": "ann", "total": 211}
    assert main(["plan", "small"]) == 1
    assert "what" in capsys.readouterr().err


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
    served: tuple[FlowAsset, TickRunner],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow, runner = served
    ran = _ran(monkeypatch)
    rewrite(flow, REFACTORED)
    outputs = planned(capsys, "--compare", "2")[1]["outputs"]
    assert isinstance(outputs, dict)
    assert [o["compared"] for o in outputs.values()] == [{"added": 0, "removed": 0}] * 2
    assert ran == []
    rewrite(flow, DOUBLED)
    before = contents(flow, runner)
    code, found = planned(capsys, "--compare", "2")
    assert code == 3
    outputs = found["outputs"]
    assert isinstance(outputs, dict)
    # Two days ago ann's total was new; today nothing is. What stays as it is is not run.
    assert ran == [{"totals"}]
    assert outputs["totals"]["compared"] == {"added": 1, "removed": 1}
    assert outputs["before"]["compared"] == {"added": 0, "removed": 0}
    assert contents(flow, runner) == before
    assert not (runner.directory(flow) / STAGING).exists()


def _ran(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The outputs that are computed as staged tables, by pipeline."""
    made: list[set[str]] = []

    def noted(*args: Any, **kwargs: Any) -> StagedPast:
        rework = staging_for(*args, **kwargs)
        made.append({*rework.staging.plan.graph.sinks})
        return rework

    monkeypatch.setattr("hydro_core.spark.pipeline.rework.staging_for", noted)
    return made


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
    # It is deployed anew, and what was deployed as number 2 is still there.
    assert planned(capsys)[1]["next"] == 3
    assert by_name(contents(flow, runner)) == as_new(tmp_path, PROGRAM)
    assert main(["rollback", "small", "--yes"]) == 1
    assert "no deployment of `small` before" in capsys.readouterr().err
    list(run_ticks(flow, runner, LAST + 1, lambda _: None))


def test_an_input_is_renamed_and_returns(
    served: tuple[FlowAsset, TickRunner],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flow, runner = served
    landing = flow.inputs["payments"]
    renamed = replace(flow, inputs={"paid": landing})
    both = replace(flow, inputs={"paid": landing, "payments": landing})
    rewrite(flow, PROGRAM.replace("payments", "paid"))
    # Until it is deployed ticks read the input by its former name, which the asset still has.
    serve(monkeypatch, [both], runner.project)
    assert "has changes" in runner.deployments.undeployed(both).says
    assert main(["deploy", "small", "--yes"]) == 0
    serve(monkeypatch, [renamed], runner.project)
    list(run_ticks(renamed, runner, LAST, lambda _: None))
    capsys.readouterr()
    assert main(["rollback", "small", "--yes"]) == 1
    assert "the deployment of `small` before reads `payments`" in capsys.readouterr().err
    serving = runner.deployments.active(renamed)
    assert serving is not None
    assert serving.number == 2
    serve(monkeypatch, [both], runner.project)
    assert main(["rollback", "small", "--yes"]) == 0
    assert by_name(contents(both, runner)) == as_new(tmp_path, PROGRAM)
    list(run_ticks(both, runner, LAST + 1, lambda _: None))


def test_corrections_reach_back_before_the_deployment(
    served: tuple[FlowAsset, TickRunner], tmp_path: Path
) -> None:
    flow, runner = served
    rewrite(flow, DOUBLED)
    assert main(["deploy", "small", "--yes"]) == 0
    list(run_ticks(flow, runner, LAST, lambda _: None))
    assert main(["correct", "small", "--from", DAYS[1], "--yes"]) == 0
    assert by_name(contents(flow, runner)) == as_new(tmp_path, DOUBLED)
    assert verify(runner.directory(flow), measure).problems == ()


def test_what_earlier_ticks_say_of_the_data_is_used(
    served: tuple[FlowAsset, TickRunner],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow, runner = served
    list(run_ticks(flow, runner, 11, lambda _: None, together=12))
    rewrite(flow, COUNTED)
    assert main(["plan", "small"]) == 3
    assert "assumed" not in capsys.readouterr().out, "the plan stays that was made without it"
    with monkeypatch.context() as always:
        always.setattr(optimizer, "REBUILT", 0)
        assert main(["plan", "small"]) == 3
        assert "assumed: payments 1,000 rows in a tick" in capsys.readouterr().out
        assert main(["deploy", "small", "--yes"]) == 0
    serving = runner.deployments.active(flow)
    assert serving is not None
    assert Statistics.of(serving.deployment.costs.statistics).inputs["payments"].rows == ROWS
    before = contents(flow, runner)
    rewrite(flow, TURNED)
    capsys.readouterr()
    assert main(["deploy", "small", "--yes"]) == 0
    assert contents(flow, runner) == before, "the same by other statistics changes no table"
