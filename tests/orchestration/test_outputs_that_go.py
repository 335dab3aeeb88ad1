"""Outputs that a program gives no more, or under other names, are planned, deployed, taken back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydro_core.spark.pipeline.copies import verify
from hydrotick.cli.backfill import run_ticks
from hydrotick.code_location.asset_specs import asset_key
from hydrotick.code_location.factory import project_definitions
from hydrotick.quality.judge import measure
from hydrotick.runner.runner import TickRunner
from tests.orchestration.changing import (
    ALL_RENAMED,
    DAYS,
    LAST,
    RENAMED,
    WITHOUT,
    as_new,
    by_name,
    planned,
    rewrite,
    rows_of,
)
from tests.orchestration.small import PROGRAM, Run, contents, serve

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.fixture
def flow(served: tuple[FlowAsset, TickRunner], monkeypatch: pytest.MonkeyPatch) -> FlowAsset:
    """The flow that is served, nothing of whose outputs is expected."""
    small = replace(served[0], expect={})
    serve(monkeypatch, [small], served[1].project)
    return small


@pytest.fixture
def runner(served: tuple[FlowAsset, TickRunner]) -> TickRunner:
    """What runs it."""
    return served[1]


@pytest.mark.parametrize(
    "case",
    [
        (WITHOUT, (), {"before"}, set()),
        (RENAMED, ("--compare", "2"), {"before"}, {"earlier"}),
        (RENAMED, ("--forward-only",), {"before"}, {"earlier"}),
        (ALL_RENAMED, ("--from", DAYS[1]), {"before", "totals"}, {"earlier", "sums"}),
    ],
    ids=["removed", "renamed", "forward only", "all renamed"],
)
def test_outputs_go_and_come(
    flow: FlowAsset,
    runner: TickRunner,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    case: tuple[str, tuple[str, ...], set[str], set[str]],
) -> None:
    text, words, gone, new = case
    rewrite(flow, text)
    code, found = planned(capsys, *words)
    assert code == 3
    outputs = found["outputs"]
    assert isinstance(outputs, dict)
    assert {n for n, o in outputs.items() if o["change"] == "gone"} == gone
    assert {n for n, o in outputs.items() if o["change"] == "new"} == new
    for name in gone:
        assert outputs[name] == {
            "change": "gone",
            "proof": [],
            "restated": None,
            "compared": None,
        }
    assert main(["deploy", "small", "--yes", *words]) == 0
    assert "gone; its table is there for `hydrotick rollback`" in capsys.readouterr().out
    assert main(["show", "small", "before"]) == 1
    assert "neither an output nor a state `before`" in capsys.readouterr().err
    assert main(["status", "small", "--verify"]) == 0
    list(run_ticks(flow, runner, LAST, lambda _: None))
    assert by_name(contents(flow, runner)) == as_new(tmp_path / "changed", text)

    assert main(["rollback", "small", "--yes"]) == 0
    as_it_was = as_new(tmp_path / "before", PROGRAM)
    assert by_name(contents(flow, runner)) == as_it_was
    capsys.readouterr()
    assert rows_of(capsys, "before", "--tick", DAYS[2]) == [{"user": "ann", "amount": 10}]

    # once more, and an output of that name comes again
    assert main(["deploy", "small", "--yes"]) == 0
    rewrite(flow, PROGRAM)
    outputs = planned(capsys)[1]["outputs"]
    assert isinstance(outputs, dict)
    assert {n for n, o in outputs.items() if o["change"] == "new"} == gone
    assert main(["deploy", "small", "--yes"]) == 0
    assert by_name(contents(flow, runner)) == as_it_was
    assert verify(runner.directory(flow), measure).problems == ()
    assert planned(capsys)[0] == 0


def test_what_an_asset_expects_of_it_is_told(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(served[0], ALL_RENAMED)
    for command in (["plan", "small"], ["deploy", "small", "--yes"]):
        assert main(command) == 1
        said = capsys.readouterr().err
        assert "`expect`: the program has no output `totals`" in said
        assert "there are `sums`, `earlier`" in said


def test_flows_that_read_it_are_told(
    flow: FlowAsset,
    runner: TickRunner,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = Path(flow.program).with_name("peaks.hydro")
    program.write_text('old = source("user string, amount long"); old -> peaks', encoding="utf-8")
    reads = {"old": FlowOutput("small", "before")}
    other = replace(flow, name="peaks", program=program, inputs=reads)
    serve(monkeypatch, [flow, other], runner.project)
    rewrite(flow, WITHOUT)
    says = "`peaks` reads `before`, which goes"
    notes = planned(capsys)[1]["notes"]
    assert isinstance(notes, list)
    assert [note for note in notes if says in note]
    assert main(["deploy", "small", "--yes"]) == 0
    assert says in capsys.readouterr().out
    (report,) = runner.run(other, [flow.ticks.calendar.window(0)], log=lambda _: None)
    assert "the flow `small` has no output `before`" in report.problem


def test_dagster_has_its_asset_no_more(
    flow: FlowAsset, runner: TickRunner, instance: dg.DagsterInstance
) -> None:
    def assets() -> set[dg.AssetKey]:
        graph = project_definitions([flow], TickRunner(runner.project)).resolve_asset_graph()
        return {*graph.get_all_asset_keys()}

    before = asset_key(flow, "before")
    assert before in assets()
    rewrite(flow, RENAMED)
    assert before in assets()
    assert main(["deploy", "small", "--yes"]) == 0
    assert assets() & {before, asset_key(flow, "earlier")} == {asset_key(flow, "earlier")}
    assert Run(flow, TickRunner(runner.project), instance)(LAST).success
    assert main(["rollback", "small", "--yes"]) == 0
    assert before in assets()
