"""Which failures of a tick are tried again: what passes by itself, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from hydro_core.errors import (
    Code,
    DataError,
    Diagnostic,
    HydroError,
    InfrastructureError,
    ProgramError,
    TransientError,
)
from hydro_core.machine.faults import fault_of
from hydro_core.project.flow_asset import FlowAsset, Landing, Ticks
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.ledger.lock import WriterLock
from hydro_core.spark.store.ledger.records import Commit
from hydrotick.flows.readiness import ReadyTicks
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.correction import is_of_the_tick, overtaken
from hydrotick.runner.runner import TickRunner
from tests.support.refused import Refused


@pytest.mark.parametrize("code", get_args(Code))
@pytest.mark.parametrize("kind", [HydroError, ProgramError, DataError])
def test_what_is_at_fault_stays_so(kind: type[HydroError], code: Code) -> None:
    assert is_of_the_tick(kind(Diagnostic(code, "it is wrong", help="mend it")))


@pytest.mark.parametrize("code", ["state", "runtime", "config"])
@pytest.mark.parametrize("kind", [TransientError, InfrastructureError])
def test_what_may_pass_is_tried_again(kind: type[HydroError], code: Code) -> None:
    assert not is_of_the_tick(kind(Diagnostic(code, "not now", help="wait")))


def test_another_process_at_work_passes(tmp_path: Path, refused: Refused) -> None:
    with WriterLock(tmp_path), refused(HydroError, "state") as caught:
        WriterLock(tmp_path).acquire()
    assert not is_of_the_tick(caught.value)
    assert not is_of_the_tick(overtaken("totals"))


def test_a_commit_of_another_process_passes(tmp_path: Path, refused: Refused) -> None:
    one, other = Ledger(tmp_path), Ledger(tmp_path)
    one.create()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert other.refresh() is None
    one.append(Commit(0, 0, 0, "plan", {}, {}, started=now, committed=now))
    with refused(HydroError, "state") as caught:
        other.append(Commit(0, 0, 0, "plan", {}, {}, started=now, committed=now))
    assert not is_of_the_tick(caught.value)


def test_a_tick_that_is_not_due_yet_may_run_later(refused: Refused) -> None:
    calendar = Ticks(datetime(2026, 1, 1)).calendar
    with refused(HydroError, "state") as caught:
        ReadyTicks(calendar, 3, "its window is open").refuse(calendar.window(3))
    assert not is_of_the_tick(caught.value)


@pytest.mark.parametrize("number", [5, 13, 28, 30], ids=["EIO", "EACCES", "ENOSPC", "EROFS"])
def test_what_the_machine_does_passes(number: int) -> None:
    told = fault_of(OSError(number, "as the system says"))
    assert told is not None
    assert not is_of_the_tick(told)


def test_a_ledger_that_the_disk_does_not_give_is_the_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    def failing(_: object) -> object:
        raise OSError(5, "Input/output error")

    ledger, now = Ledger(tmp_path), datetime(2026, 1, 1, tzinfo=UTC)
    ledger.create()
    ledger.append(Commit(0, 0, 0, "plan", {}, {}, started=now, committed=now))
    monkeypatch.setattr("hydro_core.spark.store.ledger.ledger.pq.ParquetFile", failing)
    with refused(HydroError, "runtime") as caught:
        assert Ledger(tmp_path).last
    assert not is_of_the_tick(caught.value)


def test_an_input_that_the_asset_does_not_say_any_more_stops_its_flow(tmp_path: Path) -> None:
    """The error has the code `config`: it comes again until somebody mends the asset."""
    program = tmp_path / "totals.hydro"
    program.write_text('a = source("k string")\na -> persist() -> out\n')
    where = {"a": Landing("a.csv", "day")}
    flow = FlowAsset("totals", program, Ticks(datetime(2026, 1, 1)), where)
    runner = TickRunner(ProjectSettings(home=tmp_path / "data"))
    deployed = runner.deployments.prepare(flow).name
    ledger, now = Ledger(runner.directory(flow)), datetime.now(UTC)
    ledger.create()
    ledger.append(Commit(0, 0, 0, deployed, {}, {}, started=now, committed=now))
    other = replace(flow, inputs={"b": Landing("b.csv", "day")})
    (report,) = runner.run(other, [flow.ticks.calendar.window(1)], lambda _: None)
    assert "its asset does not say any more where that lands" in report.problem
    assert not report.committed
    assert report.judged
