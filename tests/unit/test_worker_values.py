"""What a worker tells of ticks is read as the same values; errors are errors of the same kind."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from hydro_core.errors import (
    Diagnostic,
    EngineEndedError,
    HydroError,
    InternalSparkError,
    ProgramError,
    Span,
    TransientError,
)
from hydro_core.project.flow_asset import FlowAsset, Landing, Ticks
from hydro_core.spark.functions.reruns import GuardedFunction, RerunCount
from hydro_core.ticks.calendar import TickWindow
from hydro_core.types.records import as_record, of_record
from hydrotick.flows.late_arrivals import ChangedTicks, LateArrivals
from hydrotick.openlineage import Parent
from hydrotick.quality.changed import ChangedRows, CorrectionResult, RowsRead
from hydrotick.quality.suites import Verdict
from hydrotick.runner.report import TickReport
from hydrotick.runner.runner import TickRequest
from hydrotick.worker.client import WorkerFailedError, asked_json, asked_of, error_of, failure

DAY = TickWindow(
    2, "2026-01-03", datetime(2026, 1, 3, tzinfo=UTC), datetime(2026, 1, 4, tzinfo=UTC)
)
FULL = TickReport(
    DAY,
    committed=True,
    problem="a problem",
    cure="a cure",
    verdicts=(
        ("totals", Verdict("types", True, "as declared", {"unexpected": ["é"], "count": 3})),
        ("state/sums", Verdict("unique", False, "one of each", {"mean": 0.5}, "warn")),
    ),
    rows={"landing/payments": 3, "totals": 2},
    totals={"totals": 7},
    sizes={"totals": 1234},
    tables={"totals": "/data/totals"},
    judged=False,
    again="again",
    commit=4,
    seconds=0.25,
    corrected=CorrectionResult(
        "2026-01-03", 4, {"payments": RowsRead(3, None)}, {"t": ChangedRows(1, 2)}
    ),
    empty=("payments",),
    noticed={"payments": LateArrivals({"2026-01-01": 2}, (ChangedTicks("a", "b", 1, None),), 5)},
    ran_again=(RerunCount(GuardedFunction("k", "rate", "totals.hydro", 12), 2, 3, 0, 2),),
)


def _sent(value: Any) -> Any:
    return json.loads(json.dumps(as_record(value)))


@pytest.mark.parametrize("report", [FULL, TickReport(DAY, committed=False)])
def test_a_report_is_the_same_behind_the_wire(report: TickReport) -> None:
    found = of_record(TickReport, _sent(report))
    assert found == report
    assert found.metadata == report.metadata
    assert list(found.warnings("totals")) == list(report.warnings("totals"))


def test_what_a_check_has_seen_is_shown_whatever_it_is() -> None:
    seen = {"number": np.int64(3), "day": DAY.start, "sum": np.float64(0.5), "type": int}
    told = _sent(Verdict("types", True, "as declared", seen))["seen"]
    assert told == {
        "number": 3,
        "day": "2026-01-03T00:00:00+00:00",
        "sum": 0.5,
        "type": "<class 'int'>",
    }


def test_ticks_are_asked_for_by_their_keys() -> None:
    flow = FlowAsset(
        name="totals",
        program="totals.hydro",
        ticks=Ticks(datetime(2026, 1, 1, tzinfo=UTC), "1d"),
        inputs={"payments": Landing("payments", "day")},
    )
    window = flow.ticks.calendar.window
    asked = TickRequest(
        frozenset({window(7)}), frozenset(map(window, (0, 1, 2, 7))), True, Parent("r", "j")
    )
    sent = json.loads(json.dumps(asked_json(asked)))
    assert sent["also"] == [["2026-01-01", "2026-01-03"], ["2026-01-08", "2026-01-08"]]
    assert asked_of(flow, sent) == asked


class _OwnError(EngineEndedError):
    pass


@pytest.mark.parametrize(
    ("raised", "kind"),
    [(ProgramError, ProgramError), (TransientError, TransientError), (_OwnError, EngineEndedError)],
)
def test_an_error_for_people_is_the_same(raised: type[HydroError], kind: type[HydroError]) -> None:
    said = Diagnostic("type", "it is wrong", Span("a.hydro", 1, 2, 1, 5, "text"), "map", help="so")
    found = error_of(json.loads(json.dumps(failure(raised(said)))))
    assert type(found) is kind
    assert isinstance(found, HydroError)
    assert found.diagnostics == (said,)
    assert isinstance(found, TransientError) == (kind is not ProgramError)


def test_what_is_a_bug_keeps_where_it_came_from() -> None:
    def raised(error: BaseException) -> Exception:
        try:
            raise error
        except BaseException as caught:  # noqa: BLE001 - as the process of a worker does
            return error_of(failure(caught))

    ended = raised(SystemExit(0))
    assert isinstance(ended, WorkerFailedError)
    assert str(ended).startswith("SystemExit: 0\n\nIn the worker:\n")
    assert "in raised" in str(ended)
    assert isinstance(raised(InternalSparkError("no plan")), InternalSparkError)
