"""Flows that feed each other: an output of one is an input of another."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydrotick.code_location.factory import project_definitions
from hydrotick.code_location.next_run import next_run
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import BATCHES, land, opened, serve

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

PEAKS = """
totals = source("user string, total long")
totals -> persist() -> aggregate(by="user", most=max("total")) -> delta() -> peaks
"""


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.fixture
def fed(tmp_path: Path) -> tuple[FlowAsset, FlowAsset, TickRunner]:
    small, runner = opened(tmp_path)
    program = tmp_path / "program" / "peaks.hydro"
    program.write_text(PEAKS, encoding="utf-8")
    inputs = {"totals": FlowOutput("small", "totals")}
    return small, replace(small, name="peaks", program=program, inputs=inputs, expect={}), runner


def run(flow: FlowAsset, runner: TickRunner, *ticks: int) -> list[str]:
    windows = [flow.ticks.calendar.window(tick) for tick in ticks]
    return [report.problem for report in runner.run(flow, windows, log=lambda _: None)]


def peaks(flow: FlowAsset, runner: TickRunner) -> list[tuple[int, str, int]]:
    rows = runner.pipeline(flow).output("peaks", every=True).to_pylist()
    return sorted((row["tick"], row["user"], row["most"]) for row in rows)


def test_ticks_follow_those_of_the_other_flow(
    fed: tuple[FlowAsset, FlowAsset, TickRunner], instance: dg.DagsterInstance
) -> None:
    small, second, runner = fed
    assert "it waits for tick 2026-01-01 of `small`" in next_run(second, runner, instance).says
    (refused,) = run(second, runner, 0)
    assert "it waits for tick 2026-01-01 of `small`, which gives `totals`" in refused
    assert run(small, runner, 0, 1) == ["", ""]
    due = next_run(second, runner, instance).ticks
    assert due is not None
    assert [window.tick for window in due] == [0, 1]
    assert run(second, runner, 0, 1) == ["", ""]
    assert peaks(second, runner) == [(0, "ann", 1), (0, "bob", 2), (1, "ann", 11)]
    assert run(small, runner, 2, 3) == ["", ""]
    assert run(second, runner, 2, 3) == ["", ""]
    assert peaks(second, runner)[3:] == [(3, "ann", 211), (3, "cat", 3)]


def test_what_the_other_flow_computes_again_is_followed(
    fed: tuple[FlowAsset, FlowAsset, TickRunner],
) -> None:
    small, second, runner = fed
    assert run(small, runner, 0, 1, 2) == ["", "", ""]
    assert run(second, runner, 0, 1) == ["", ""]
    land(runner.project, [*BATCHES[:1], [("ann", 40)], *BATCHES[2:]])
    reports = runner.correct(small, small.ticks.calendar.window(1), lambda _: None)
    assert {report.problem for report in reports} == {""}
    assert set(run(second, runner, 2)) == {""}
    assert peaks(second, runner) == [(0, "ann", 1), (0, "bob", 2), (1, "ann", 41)]


@pytest.mark.parametrize("by", [None, ["user"]])
def test_texts_that_end_a_line_for_some(
    fed: tuple[FlowAsset, FlowAsset, TickRunner],
    by: list[str] | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small, second, runner = fed
    path = runner.project.landing / "small" / "payments"
    users = ["a\u2028b", "c\u0085", "\u2029 /=%"]
    shutil.rmtree(path)

    def add(tick: int, amount: int) -> None:
        rows = {"tick": [tick] * 3, "user": users, "amount": [amount] * 3}
        write_deltalake(path, pa.table(rows), mode="append", partition_by=by)

    serve(monkeypatch, [small, second], runner.project)
    add(0, 1)
    add(1, 2)
    for flow in (small, second):
        assert main(["backfill", flow.name, "--to", "2026-01-02"]) == 0
    add(0, 10)
    add(2, 100)
    capsys.readouterr()
    main(["status", "--format", "json"])
    late = {"2026-01-01": 3}
    assert json.loads(capsys.readouterr().out)["flows"][0]["late"]["payments"]["ticks"] == late
    for flow in (small, second):
        assert set(run(flow, runner, 2)) == {""}
    totals = {0: 1, 1: 3, 2: 113}
    assert peaks(second, runner) == sorted((t, u, n) for t, n in totals.items() for u in users)


def test_shorter_ticks_read_the_longer_one_that_was_over(
    fed: tuple[FlowAsset, FlowAsset, TickRunner],
) -> None:
    small, second, runner = fed
    second = replace(second, ticks=replace(small.ticks, every="12h"), fed_by={"small": small.ticks})
    assert run(small, runner, 0, 1, 2) == ["", "", ""]
    ready = runner.ready(second)
    assert (ready.until, ready.last) == (8, "2026-01-04-12:00")
    assert "it waits for tick 2026-01-04 of `small`" in ready.why
    assert set(run(second, runner, *range(6))) == {""}
    assert peaks(second, runner) == [(2, "ann", 1), (2, "bob", 2), (4, "ann", 11)]
    land(runner.project, [*BATCHES[:1], [("ann", 40)], *BATCHES[2:]])
    reports = runner.correct(small, small.ticks.calendar.window(1), lambda _: None)
    assert {report.problem for report in reports} == {""}
    assert set(run(second, runner, 6, 7)) == {""}
    assert peaks(second, runner) == [(2, "ann", 1), (2, "bob", 2), (4, "ann", 41)]
    graph = project_definitions([small, second], runner).resolve_asset_graph()
    mapping = graph.get_partition_mapping(
        dg.AssetKey(["peaks", "peaks"]), dg.AssetKey(["small", "totals"])
    )
    assert mapping.start_offset == mapping.end_offset == -1


def test_a_log_of_changes_is_not_read_as_if_it_only_gave(
    fed: tuple[FlowAsset, FlowAsset, TickRunner],
) -> None:
    small, second, runner = fed
    text = Path(small.program).read_text(encoding="utf-8")
    Path(small.program).write_text(text.replace(" -> delta()", ""), encoding="utf-8")
    assert run(small, runner, 0, 1) == ["", ""]
    (refused,) = run(second, runner, 0)
    assert "takes rows back" in refused


def test_what_is_read_is_an_asset_of_the_other_flow(
    fed: tuple[FlowAsset, FlowAsset, TickRunner],
) -> None:
    small, second, runner = fed
    defs = project_definitions([small, second], runner)
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    fed_key = dg.AssetKey(["small", "totals"])
    made = [key for key in graph.materializable_asset_keys if key.path[0] == "peaks"]
    assert any(fed_key in graph.get(key).parent_keys for key in made)
    assert dg.AssetKey(["peaks", "landing", "totals"]) not in graph.get_all_asset_keys()
    lineage = graph.get(dg.AssetKey(["peaks", "peaks"])).metadata["dagster/column_lineage"]
    assert lineage.deps_by_column["user"] == [dg.TableColumnDep(fed_key, "user")]


def test_one_run_goes_through_both(
    fed: tuple[FlowAsset, FlowAsset, TickRunner], instance: dg.DagsterInstance
) -> None:
    small, second, runner = fed
    job = project_definitions([small, second], runner).resolve_implicit_global_asset_job_def()
    done = job.execute_in_process(
        instance=instance, partition_key="2026-01-01", raise_on_error=False
    )
    assert done.success
    assert peaks(second, runner) == [(0, "ann", 1), (0, "bob", 2)]
    recorded = instance.get_materialized_partitions(dg.AssetKey(["peaks", "peaks"]))
    assert recorded == {"2026-01-01"}


def test_an_output_that_is_not_there_is_told(
    fed: tuple[FlowAsset, FlowAsset, TickRunner],
) -> None:
    small, second, runner = fed
    second = replace(second, inputs={"totals": FlowOutput("small", "total")})
    graph = project_definitions([small, second], runner).resolve_asset_graph()
    shown = graph.get(dg.AssetKey(["peaks", "program"])).description
    assert "the flow `small` has no output `total`" in shown
    assert "did you mean `totals`?" in shown
    assert dg.AssetKey(["small", "totals"]) in graph.materializable_asset_keys
