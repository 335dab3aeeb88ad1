"""Which ticks may run: one answer, for the sensor, `backfill`, `status` and the tick itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from hydro_core.cli.main import run_command
from hydro_core.project.flow_asset import Expect, FlowAsset, FlowOutput, Landing, Ticks
from hydrotick.code_location.factory import flow_definitions
from hydrotick.code_location.records import last_key
from hydrotick.flows.readiness import CommittedTicks, Latest, ready
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import BATCHES, opened, serve
from tests.support.refused import Refused

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

DAYS = Ticks(datetime(2026, 1, 1), "1d", datetime(2026, 2, 1))
NEVER: Latest = lambda name: pytest.fail(f"{name} need not be looked at")  # noqa: E731


NO_FLOW: CommittedTicks = lambda name: pytest.fail(f"{name} is not read")  # noqa: E731


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, tzinfo=UTC)


def flow_of(ticks: Ticks = DAYS, **landings: Landing) -> FlowAsset:
    return FlowAsset("days", "days.hydro", ticks, landings)


@pytest.mark.parametrize(
    ("ticks", "now", "until", "why"),
    [
        (DAYS, at(1, 23), 0, "its window ends at 2026-01-02 00:00 UTC"),
        (DAYS, at(2), 1, "its window ends at 2026-01-03 00:00 UTC"),
        (DAYS, datetime(2027, 1, 1, tzinfo=UTC), 31, "the flow ends with tick 2026-01-31"),
        (
            replace(DAYS, delay="2h"),
            at(2, 1),
            0,
            "its window ends at 2026-01-02 00:00 UTC, and the tick may run 2h later",
        ),
        (replace(DAYS, delay="2h"), at(2, 2), 1, "the tick may run 2h later"),
        (
            replace(DAYS, zone="Europe/Amsterdam"),
            at(1, 23),
            1,
            "its window ends at 2026-01-03 00:00 Europe/Amsterdam",
        ),
    ],
)
def test_a_tick_waits_for_its_window(ticks: Ticks, now: datetime, until: int, why: str) -> None:
    found = ready(flow_of(ticks, x=Landing("x", "day")), NEVER, NO_FLOW, now)
    assert found.until == until
    assert why in found.why


@pytest.mark.parametrize(
    ("theirs", "done", "until", "why"),
    [
        (replace(DAYS), 3, 3, "it waits for tick 2026-01-04 of `other`"),
        (replace(DAYS, start=datetime(2026, 1, 3)), 0, 2, "it waits for tick 2026-01-03"),
        (replace(DAYS, start=datetime(2025, 12, 1)), 33, 2, "it waits for tick 2026-01-03"),
        (replace(DAYS, start=datetime(2025, 12, 1)), 5, 0, "it waits for tick 2026-01-01"),
        (replace(DAYS, every="1w"), 1, 14, "it waits for tick 2026-01-08 of `other`"),
        (replace(DAYS, end=datetime(2026, 1, 4)), 3, 30, "its window ends at"),
    ],
)
def test_a_tick_waits_for_what_arrives_with_it(
    theirs: Ticks, done: int, until: int, why: str
) -> None:
    flow = FlowAsset("days", "days.hydro", DAYS, {"x": FlowOutput("other", "x")})
    flow = replace(flow, fed_by={"other": theirs})
    found = ready(flow, NEVER, lambda _: done, at(31))
    assert (found.until, why in found.why) == (until, True)


@pytest.mark.parametrize(
    ("latest", "until", "why"),
    [
        (None, 0, "it waits for `x`: no row has landed at x"),
        (at(3, 23), 2, "a row of `x` at or after 2026-01-04 00:00 UTC; the last one is of 2026-01"),
        (at(4), 3, "the last one is of 2026-01-04 00:00 UTC"),
        (3, 3, "a row of `x` of a later tick than 3; the last one is of 3"),
        (at(9), 5, "its window ends at 2026-01-07 00:00 UTC"),
    ],
)
def test_a_tick_waits_for_what_lands(latest: object, until: int, why: str) -> None:
    flow = flow_of(x=Landing("x", "day", wait="landed"), y=Landing("y", "day"))
    asked: dict[str, object] = {"x": latest}
    found = ready(flow, asked.__getitem__, NO_FLOW, at(6))  # type: ignore[arg-type]
    assert found.until == until
    assert why in found.why


def test_a_tick_waits_for_the_flow_that_it_reads() -> None:
    flow = replace(flow_of(), inputs={"x": FlowOutput("other", "out")})
    found = ready(flow, NEVER, {"other": 2}.__getitem__, at(6))
    assert found.until == 2
    assert found.why == "it waits for tick 2026-01-03 of `other`, which gives `x`"
    assert ready(flow, NEVER, {"other": 31}.__getitem__, at(6)).until == 5


def test_a_tick_of_the_future_is_not_committed(tmp_path: Path) -> None:
    flow, runner = opened(tmp_path)
    runner.now = lambda: at(4, 12)
    windows = [flow.ticks.calendar.window(tick) for tick in range(6)]
    reports = list(runner.run(flow, windows, log=lambda _: None))
    assert [report.committed for report in reports] == [True, True, True, False]
    assert "tick 2026-01-04 may not run yet: its window ends at 2026-01-05" in reports[-1].problem
    assert "the last tick that may run is 2026-01-03" in reports[-1].cure
    assert runner.next_tick(flow) == 3


def test_the_sensor_waits_for_what_lands_and_says_so(tmp_path: Path) -> None:
    flow, runner = opened(tmp_path)
    flow = replace(flow, inputs={"payments": Landing("small/payments", "tick", wait="landed")})
    runner.now = lambda: at(20)
    (tick,) = [n for n, batch in enumerate(BATCHES) if n == len(BATCHES) - 1]
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance=instance)
        (sensor,) = flow_definitions(flow, runner).sensors
        assert sensor(context).tags == {
            "flow": "small",
            "dagster/asset_partition_range_start": "2026-01-01",
            "dagster/asset_partition_range_end": "2026-01-03",
        }
        windows = [flow.ticks.calendar.window(n) for n in range(tick + 1)]
        reports = list(runner.run(flow, windows, log=lambda _: None))
        assert [report.committed for report in reports] == [True] * tick + [False]
        for window in windows[:tick]:
            recorded = dg.AssetMaterialization(last_key(flow, runner), partition=window.key)
            instance.report_runless_asset_event(recorded)
        skipped = sensor(context)
        assert "tick 2026-01-04 is next: it waits for a row of `payments`" in str(skipped)
        more = {"tick": [tick + 1], "user": ["dan"], "amount": [5]}
        path = runner.project.landing / "small" / "payments"
        write_deltalake(path, pa.table(more), mode="append")
        assert sensor(context).partition_key == "2026-01-04"


def test_commands_refuse_and_tell(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    refused: Refused,
) -> None:
    from hydro_core.errors import HydroError

    flow, runner = opened(tmp_path)
    serve(monkeypatch, [flow], ProjectSettings(home=tmp_path))
    monkeypatch.setattr("hydrotick.cli.status.Flows", lambda _: runner)
    monkeypatch.setattr("hydrotick.cli.backfill.TickRunner", lambda _: runner)
    runner.now = lambda: at(3, 12)
    with refused(HydroError, "state"):
        run_command(["backfill", "small", "--to", "2026-01-20"])
    with refused(HydroError, "config"):
        run_command(["backfill", "small", "--to", "2026-02-20"])
    assert runner.next_tick(flow) == 0
    assert run_command(["backfill", "small"]) == 0
    assert "2026-01-01 to 2026-01-02: 2 tick(s) committed in " in capsys.readouterr().out
    assert run_command(["backfill", "small"]) == 0
    said = capsys.readouterr().out
    assert "small: nothing is open: 2 tick(s) are committed, the last one is 2026-01-02" in said
    assert "its window ends at 2026-01-04 00:00 UTC" in said
    assert run_command(["status", "small"]) == 0
    assert "tick 2026-01-03 is next: its window ends at" in capsys.readouterr().out


def test_a_tick_without_rows_of_an_input_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = opened(tmp_path)
    windows = [flow.ticks.calendar.window(n) for n in range(len(BATCHES))]
    nothing = [("payments",) if not batch else () for batch in BATCHES]
    reports = list(runner.run(flow, windows[:3], log=lambda _: None))
    assert [report.empty for report in reports] == nothing[:3]
    assert reports[2].metadata_of("totals")["inputs without rows"] == "payments"
    assert runner.empty_inputs(flow) == ("payments",)
    serve(monkeypatch, [flow], runner.project)
    run_command(["status", "small"])
    assert "empty:  the last tick had no row of `payments`" in capsys.readouterr().out
    again = list(runner.run(flow, windows, log=lambda _: None))
    assert [report.empty for report in again] == nothing
    assert runner.empty_inputs(flow) == ()


def test_an_input_that_only_the_program_to_come_reads_keeps_no_tick_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = opened(tmp_path)
    runner.now = lambda: at(4, 12)
    day = flow.ticks.calendar.window(0)
    assert [report.committed for report in runner.run(flow, [day], lambda _: None)] == [True]
    program = Path(flow.program)
    more = (
        'rates = source("rate long")\nnews = source("text string")\nrates -> more\nnews -> said\n'
    )
    program.write_text(program.read_text(encoding="utf-8") + more, encoding="utf-8")
    ahead = {"rates": Landing("rates", "tick", wait="landed"), "news": FlowOutput("other", "news")}
    flow = replace(flow, inputs={**flow.inputs, **ahead})
    assert runner.ready(flow).until == 3
    serve(monkeypatch, [flow], runner.project)
    assert run_command(["status", "small"]) == 0
    assert "has changes that are not deployed" in capsys.readouterr().out
    day = flow.ticks.calendar.window(1)
    assert [report.committed for report in runner.run(flow, [day], lambda _: None)] == [True]


def test_a_landing_that_cannot_be_read_is_a_report(tmp_path: Path) -> None:
    flow, runner = opened(tmp_path)
    flow = replace(flow, inputs={"payments": Landing("small/payments", "tok", wait="landed")})
    (report,) = TickRunner(runner.project).run(
        flow, [flow.ticks.calendar.window(0)], log=lambda _: None
    )
    assert not report.committed
    assert "the tick column `tok` is missing" in report.problem


def test_what_is_only_warned_of_stops_no_tick(tmp_path: Path) -> None:
    flow, runner = opened(tmp_path)
    warned = Expect("total", at_least=5, severity="warn")
    flow = replace(flow, expect={"totals": (warned, Expect("user", unique=True))})
    (report,) = runner.run(flow, [flow.ticks.calendar.window(0)], log=lambda _: None)
    assert report.committed
    assert [v.check for _, v in report.verdicts if not v.passed] == ["total_between"]
    (again,) = runner.run(flow, [flow.ticks.calendar.window(0)], log=lambda _: None)
    assert "total_between" not in {v.check for _, v in again.verdicts}
