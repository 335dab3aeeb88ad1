"""A tick looks once at a landing: readiness, late rows, reading and sample take the same look."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from hydro_core.files import kinds
from hydro_core.storage import delta
from hydrotick.quality.suites import EQUALS
from hydrotick.runner.runner import TickRunner
from tests.orchestration.late import IN_TIME, OPEN, Late
from tests.orchestration.small import Run

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """How often the files of a folder are listed, or the log of a Delta table is read."""
    found = Counter[Path]()
    list_files, open_table = kinds._files, delta.opened_table

    def listed(path: Any) -> Any:
        found[path] += 1
        return list_files(path)

    def opened(place: Any, version: int | None = None) -> Any:
        found[place] += 1
        return open_table(place, version)

    monkeypatch.setattr(kinds, "_files", listed)
    monkeypatch.setattr(delta, "opened_table", opened)
    return found


@pytest.mark.parametrize("landing", [("delta", "correct"), ("parquet", "next")], ids=str)
def test_a_tick_looks_once_at_a_landing(
    tmp_path: Path, instance: dg.DagsterInstance, looks: Counter[Path], landing: tuple[str, str]
) -> None:
    kind, policy = landing
    late = Late(tmp_path, policy, kind, removed="hold")
    inputs = {"payments": replace(late.flow.inputs["payments"], wait="landed")}
    flow = replace(late.flow, inputs=inputs, sample_keys=2)
    late.land([*IN_TIME, (OPEN, "ann", 1), (OPEN + 1, "bob", 1)])
    run = Run(flow, TickRunner(late.project), instance)
    assert run(0, OPEN - 1).success
    late.land([(1, "eve", 3)])
    looks.clear()
    result = run(OPEN)
    assert result.success
    assert f"totals:{EQUALS}" in {
        f"{one.asset_key.path[-1]}:{one.check_name}" for one in run.checks(result)
    }
    assert {place: n for place, n in looks.items() if late.place in (place, *place.parents)} == {
        late.place: 1
    }
