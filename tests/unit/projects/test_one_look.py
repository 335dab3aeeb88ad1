"""Readiness, late rows, the batch and the sample of a tick take one look at a landing; no Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hydro_core.files import kinds
from hydro_core.storage import delta
from hydro_core.ticks.wanted import ReadLimits, WantedRows
from hydrotick.flows.landed_past import look
from tests.orchestration.late import IN_TIME, Late


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_all_who_ask_in_a_tick_take_one_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    late = Late(tmp_path, "correct", kind, removed="hold")
    landing = replace(late.flow.inputs["payments"], wait="landed")
    flow, runner = replace(late.flow, inputs={"payments": landing}, sample_keys=2), late.runner
    late.land(IN_TIME)
    runner.deployments.prepare(flow)
    looks: list[Any] = []
    list_files, open_table = kinds._files, delta.opened_table
    monkeypatch.setattr(kinds, "_files", lambda at: looks.append(at) or list_files(at))
    monkeypatch.setattr(
        delta, "opened_table", lambda at, *version: looks.append(at) or open_table(at, *version)
    )

    one_look = runner.one_look(flow)
    assert runner.ready(flow, one_look).until == 3
    reading = look(runner, flow, one_look)
    read = reading([flow.ticks.calendar.window(0)])["payments"].read
    sample = runner.sample(flow)
    assert sample is not None
    inputs = runner.inputs(flow, sample._plan)
    inputs.seen = reading.seen
    wanted = WantedRows("payments", ({},), 0, 10)
    rows = inputs.wanted(wanted, 0, ReadLimits(100), read.version)
    assert (len(rows[0]), inputs.rows_there("payments", read.version)) == (2, len(IN_TIME))
    assert looks == [late.place]


def test_what_lands_after_a_look_is_for_the_next_one(tmp_path: Path) -> None:
    late = Late(tmp_path, kind="parquet")
    late.land(IN_TIME)
    late.runner.deployments.prepare(late.flow)
    one_look = late.runner.one_look(late.flow)
    assert one_look().latest("payments") == 3
    late.land([(7, "ann", 1)])
    assert one_look().latest("payments") == 3
    assert late.runner.one_look(late.flow)().latest("payments") == 7
