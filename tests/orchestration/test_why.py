"""Where rows of outputs come from, and the check of outputs by what the program gives."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from hydro_core.cli.main import run_command
from hydro_core.project.flow_asset import FlowAsset
from hydrotick.project.settings import ProjectSettings
from hydrotick.quality.suites import EQUALS
from hydrotick.runner.report import TickReport
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import BATCHES, land, opened, serve

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

SAMPLE = "hydrotick.quality.sample"
DAYS = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


def ran(flow: FlowAsset, runner: TickRunner, first: int, last: int) -> list[TickReport]:
    windows = [flow.ticks.calendar.window(tick) for tick in range(first, last + 1)]
    return list(runner.run(flow, windows, lambda _: None))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FlowAsset, TickRunner]:
    flow, runner = opened(tmp_path)
    monkeypatch.setenv("HYDROTICK_HOME", str(tmp_path))
    serve(monkeypatch, [flow])
    assert all(report.committed for report in ran(flow, runner, 0, 3))
    return flow, runner


def asked(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> Any:
    assert run_command(["why", "small", *words, "--format", "json"]) == status
    return json.loads(capsys.readouterr().out)


def told(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert run_command(["why", "small", *words]) == status
    return capsys.readouterr().out


def landed(found: Any, name: str = "payments") -> list[tuple[str, str, int]]:
    rows = found["inputs"][name]["rows"]
    return [(row["tick"], row["row"]["user"], row["row"]["amount"]) for row in rows]


def test_a_total_comes_from_all_rows_of_its_key(
    small: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    found = asked(capsys, "totals", "--where", "user=ann")
    assert found["tick"] == DAYS[3]
    assert found["rows"] == found["stored"] == [{"user": "ann", "total": 211}]
    assert found["least"]
    assert landed(found) == [
        (DAYS[0], "ann", 1), (DAYS[1], "ann", 10), (DAYS[3], "ann", 100), (DAYS[3], "ann", 100)
    ]  # fmt: skip
    text = told(capsys, "totals", "--where", "total=211", "--limit", "3")
    assert text.startswith("As of 2026-01-04 `totals` has one row with `total` = 211:\n")
    assert "4 landed rows: without any one of them" in text
    assert "2026-01-02  ann       10\n" in text
    assert "… and 1 more\n" in text


def test_a_row_of_the_tick_before_is_looked_for_there_alone(
    small: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    found = asked(capsys, "before", "--where", "user=ann", "--tick", DAYS[1])
    assert landed(found) == [(DAYS[0], "ann", 1)]


def test_a_row_that_is_not_there_was_there_once(
    small: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    found = asked(capsys, "totals", "--where", "user=bob")
    assert found["rows"] == []
    assert found["there"] == [DAYS[0]]
    assert landed(found) == [(DAYS[0], "bob", 2)]
    text = told(capsys, "totals", "--where", "user=zoe")
    assert "`totals` has no row with `user` = zoe. No tick before had one." in text


def test_a_tick_to_come_is_told_beforehand(
    small: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    _, runner = small
    land(runner.project, [*BATCHES, [("bob", 40)]])
    text = told(capsys, "totals", "--where", "user=bob", "--tick", "2026-01-05")
    assert text.startswith("2026-01-05 is not committed. As of 2026-01-05 `totals` will have one ")
    assert "42\n" in text


def test_what_landed_late_is_no_part_of_it(
    small: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    _, runner = small
    land(runner.project, [[*BATCHES[0], ("ann", 1000)], *BATCHES[1:]])
    found = asked(capsys, "totals", "--where", "user=ann")
    assert found["rows"] == [{"user": "ann", "total": 211}]
    assert ("2026-01-01", "ann", 1000) not in landed(found)


def test_of_too_many_rows_nothing_is_computed(
    small: tuple[FlowAsset, TickRunner],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HYDROTICK_WHY_ROWS", "3")
    text = told(capsys, "totals", "--where", "user=ann")
    assert "ann     211" in text
    assert "not computed: more rows of `payments` can matter than the 3 that are" in text
    assert "It comes from 2 landed rows" not in text


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (("totals", "--where", "usr=ann"), "did you mean `user`"),
        (("total", "--where", "user=ann"), "did you mean `totals`"),
        (("totals", "--where", "total=many"), "the column is long"),
        (("totals", "--where", "user=ann", "--tick", "2026-01-09"), "2026-01-01 to 2026-01-04"),
    ],
)
def test_what_is_not_there_is_refused(
    small: tuple[FlowAsset, TickRunner], words: tuple[str, ...], cure: str
) -> None:
    with pytest.raises(Exception) as refused:  # noqa: PT011 - of either kind
        run_command(["why", "small", *words])
    assert cure in str(refused.value)


def verdict(report: TickReport, output: str = "totals") -> Any:
    return next(v for asset, v in report.verdicts if asset == output and v.check == EQUALS)


def compared(found: Any) -> tuple[int, int]:
    """How many keys were compared, by how many landed rows; none where it says why not."""
    numbers = re.findall(
        r"[0-9,]+(?= (?:key|landed))", found.seen.get("compared", "0 keys, 0 landed")
    )
    return int(numbers[0].replace(",", "")), int(numbers[1].replace(",", ""))


def corrupt(flow: FlowAsset, runner: TickRunner, user: str, by: int) -> None:
    """Changes the state's rows of a user, as a wrong plan would have left them."""
    pipeline = runner.pipeline(flow)
    changed = 0
    for spec in pipeline.state_tables.values():
        for file in pipeline.store.tables[spec.name].files():
            table = pq.read_table(file.path, partitioning=None)
            items = table["item"].combine_chunks()
            names = [field.name for field in items.type]
            if "total" not in names:
                continue
            rows = [
                {**row, "total": row["total"] + by} if row["user"] == user else row
                for row in items.to_pylist()
            ]
            changed += rows != items.to_pylist()
            at = table.column_names.index("item")
            new = table.set_column(at, table.schema.field("item"), pa.array(rows, items.type))
            pq.write_table(new, file.path)
    assert changed


def test_every_output_is_judged_for_some_keys(small: tuple[FlowAsset, TickRunner]) -> None:
    flow, runner = small
    land(runner.project, [*BATCHES, [("ann", 5)]])
    (report,) = ran(flow, runner, 4, 4)
    for output in ("totals", "before"):
        found = verdict(report, output)
        assert found.passed
        assert min(compared(found)) >= 1
    assert [v.passed for v in runner.judge_again(flow, report.window, "totals")] == [True] * 3


def test_a_wrong_state_is_seen_and_the_key_is_named(
    small: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = small
    corrupt(flow, runner, "ann", 1)
    land(runner.project, [*BATCHES, [("ann", 5), ("bob", 1)]])
    (report,) = ran(flow, runner, 4, 4)
    assert not report.committed
    found = verdict(report)
    assert not found.passed
    assert found.seen["the program gives"] == [{"user": "ann", "total": 216}]
    (wrong,) = found.seen["the plan gives"]
    assert wrong["user"] == "ann"
    assert wrong["total"] != 216
    look = "hydrotick why small totals --where user=ann --tick 2026-01-05"
    assert look in report.problem
    text = told(capsys, *look.split()[3:])
    assert "216" in text


def test_parts_of_a_wrong_range_are_judged_by_the_same_keys(
    small: tuple[FlowAsset, TickRunner],
) -> None:
    flow, runner = small
    corrupt(flow, runner, "ann", 1)
    cats = [(f"cat{n}", 1) for n in range(9)]
    land(runner.project, [*BATCHES, cats, [*cats, ("ann", 5)], cats, [("ann", 5)]])
    reports = ran(replace(flow, sample_keys=1), runner, 4, 7)
    assert [(r.window.tick, r.committed) for r in reports] == [(4, True), (5, False)]
    found = verdict(reports[1])
    assert (found.seen["at"], found.seen["key"]) == ("2026-01-06", {"user": "ann"})


def test_what_landed_late_counts_with_the_tick_that_read_it(
    small: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = small
    late = [[*BATCHES[0], ("ann", 1000)], *BATCHES[1:], [("ann", 5)], [("ann", 6)]]
    land(runner.project, late)
    for report in (*ran(flow, runner, 4, 4), *ran(flow, runner, 5, 5)):
        assert report.committed, report.problem
        assert compared(verdict(report))[1] >= 5
    assert verdict(report, "before").passed
    found = asked(capsys, "before", "--where", "amount=1000")
    assert landed(found) == [("2026-01-05", "ann", 1000)]


def test_a_past_that_is_not_landed_any_more_breaks_nothing(
    small: tuple[FlowAsset, TickRunner],
) -> None:
    flow, runner = small
    land(runner.project, [[], [], [], [], [("ann", 5)]])
    table = DeltaTable(runner.project.landing / "small" / "payments")
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    (report,) = ran(flow, runner, 4, 4)
    assert report.committed
    note = "not compared: rows of `payments` that ticks have read are not landed any more"
    assert verdict(report).seen["note"] == note


def test_of_too_many_rows_fewer_keys_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{SAMPLE}._MOST_ROWS", 30)
    project = ProjectSettings(home=tmp_path, spark_master="local[2]")
    users = [f"u{n}" for n in range(8)]
    land(project, [[(user, 1) for user in users for _ in range(5)]] * 3)
    flow, runner = opened(tmp_path)
    reports = ran(flow, runner, 0, 2)
    assert compared(verdict(reports[-1]))[0] == 2
    monkeypatch.setattr(f"{SAMPLE}._MOST_ROWS", 3)
    found = runner.judge_again(flow, reports[-1].window, "totals")[-1]
    assert found.passed
    assert "not compared: more than 3 rows of `payments` can matter" in found.seen["note"]


def test_much_is_looked_through_now_and_then(
    small: tuple[FlowAsset, TickRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, runner = small
    (file,) = (runner.project.landing / "small" / "payments").glob("*.parquet")
    monkeypatch.setattr(f"{SAMPLE}._MOST_BYTES", file.stat().st_size // 3 + 1)
    done = []
    for tick in range(4):
        window = flow.ticks.calendar.window(tick)
        done.append(compared(runner.judge_again(flow, window, "totals")[-1])[0] > 0)
    assert done == [True, False, False, True]


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    flow, runner = opened(tmp_path)
    reports = ran(replace(flow, sample_keys=0), runner, 0, 0)
    assert reports[0].committed
    assert EQUALS not in {v.check for _, v in reports[0].verdicts}


OUTPUTS = """
payments = source("user string, amount long")
payments -> persist() -> everything
payments -> persist() -> aggregate(by="user", total=sum("amount")) -> standing
payments -> map(lambda user, amount: (user, amount)) -> persist() -> pairs
"""


def test_outputs_are_judged_however_they_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = opened(tmp_path)
    program = tmp_path / "outputs.hydro"
    program.write_text(OUTPUTS, encoding="utf-8")
    flow = replace(flow, program=program, expect={})
    monkeypatch.setenv("HYDROTICK_HOME", str(tmp_path))
    serve(monkeypatch, [flow])
    reports = [*ran(flow, runner, 0, 1), *ran(flow, runner, 2, 3)]
    for report in (reports[1], reports[3]):
        assert report.committed, report.problem
        for output in ("everything", "standing", "pairs"):
            assert compared(verdict(report, output))[1] >= 1
    found = asked(capsys, "everything", "--where", "user=ann", "--where", "amount=100")
    assert landed(found) == [(DAYS[3], "ann", 100)] * 2
    found = asked(capsys, "pairs", "--where", "_1=ann", "--where", "_2=10")
    assert landed(found) == [(DAYS[1], "ann", 10)]
    found = asked(capsys, "standing", "--where", "user=bob")
    assert found["rows"] == [{"user": "bob", "total": 2}]
    for output in ("everything", "standing", "pairs"):
        assert all(v.passed for v in runner.judge_again(flow, reports[2].window, output))
