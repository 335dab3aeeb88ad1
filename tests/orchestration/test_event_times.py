"""Lateness by the time of events, in reports, in the ledger and in the status."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydrotick.cli.status import status_of
from hydrotick.flows.late_arrivals import LateEvents
from tests.orchestration.late import Late

pytestmark = pytest.mark.spark

PROGRAM = """
payments = source("user string, amount long, at timestamp")
payments -> persist() -> aggregate(by="user", total=sum("amount")) -> delta() -> totals
payments -> prev() -> before
"""
LINES = [
    '{"tick": 0, "user": "ann", "amount": 1, "at": "2026-01-01T10:00:00Z"}',
    '{"tick": 1, "user": "ann", "amount": 2, "at": "2026-01-01T23:00:00Z"}',
    '{"tick": 1, "user": "bob", "amount": 3, "at": "2026-01-01T12:00:00Z"}',
    '{"tick": 1, "user": "bob", "amount": 4, "at": "2026-01-02T12:00:00Z"}',
    '{"tick": 2, "user": "bob", "amount": 4, "at": null}',
]
LATE = LateEvents(2, 12 * 3600.0)


def test_lateness_by_events_is_told(tmp_path: Path, spark: SparkSession) -> None:
    assert spark is not None
    late = Late(tmp_path, kind="json")
    landing = replace(late.flow.landings["payments"], event="at")
    late.flow = replace(late.flow, inputs={"payments": landing})
    late.edit(PROGRAM)
    (late.place / "a.jsonl").write_text("".join(f"{line}\n" for line in LINES))
    reports = late.run(0, 1)
    assert [report.events for report in reports] == [{}, {"payments": LATE}]
    assert reports[1].metadata["payments: rows of earlier events"] == 2
    assert reports[1].metadata["payments: most seconds before"] == 12 * 3600
    found = status_of(late.flow, late.runner, None)
    assert found.events == {"payments": LATE}
    assert str(LATE) == "2 row(s) are of events from before it, the earliest by 12:00:00"
    # A tick that is told again, and one that is computed again, say the same.
    assert late.run(1, 1)[0].events == {"payments": LATE}
    assert late.correct(1)[-1].events == {"payments": LATE}
    assert status_of(late.flow, late.runner, None).events == {"payments": LATE}
    assert late.run(2, 2)[0].events == {}
    assert status_of(late.flow, late.runner, None).events == {}
