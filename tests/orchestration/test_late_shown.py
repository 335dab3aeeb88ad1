"""What people see of late rows: in Dagster, and in `status`."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from hydrotick.cli.status import status_of
from tests.orchestration.late import DAYS, IN_TIME, LATE, OPEN, Late, committed
from tests.orchestration.small import Run

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


def test_dagster_shows_late_rows(tmp_path: Path) -> None:
    late = committed(tmp_path, "next")
    with dg.DagsterInstance.ephemeral() as instance:
        run = Run(late.flow, late.runner, instance)
        result = run(OPEN)
        assert result.success
        assert not run.failed(result)
        assert run.warned(result) == {
            "payments:no_late_rows": DAYS[OPEN], "payments:rows_landed": DAYS[OPEN]
        }  # fmt: skip
        shown = run.shown(result, "totals")[DAYS[OPEN]]
        assert "late rows" not in shown
        (arrived,) = result.get_asset_observation_events()[-1:]
        metadata = arrived.asset_observation_data.asset_observation.metadata
        assert metadata["late rows"].value == 3
        assert metadata["late rows are of"].value == "3 rows of 2026-01-02 (2), 2026-01-03 (1)"
        again = run.check("landing/payments", OPEN)
        assert "payments:no_late_rows" in run.warned(again)


def test_status_tells_what_waits_and_what_arrived(tmp_path: Path) -> None:
    late = committed(tmp_path, "next")
    with dg.DagsterInstance.ephemeral() as instance:
        found = status_of(late.flow, late.runner, instance).late["payments"]
        assert (found.rows, found.ticks, found.arrived) == (3, {DAYS[1]: 2, DAYS[2]: 1}, {})
        late.ran((OPEN, OPEN))
        found = status_of(late.flow, late.runner, instance).late["payments"]
        assert (found.rows, found.ticks, found.arrived) == (0, {}, {DAYS[1]: 2, DAYS[2]: 1})
        assert json.dumps(found.arrived)


def test_a_correction_before_a_tick_is_recorded_with_it(tmp_path: Path) -> None:
    late = Late(tmp_path, "correct")
    late.land(IN_TIME)
    with dg.DagsterInstance.ephemeral() as instance:
        run = Run(late.flow, late.runner, instance)
        assert run(0).success
        assert run(1, 3).success
        late.land(LATE)
        result = run(OPEN)
        assert result.success
        shown = run.shown(result, "totals")
        assert list(shown) == DAYS[1 : OPEN + 1]
        assert shown[DAYS[1]]["rows added"] > 0
        assert "rows added" not in shown[DAYS[OPEN]]
