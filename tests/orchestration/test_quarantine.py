"""Rows that are wrong go to a table beside the outputs; what becomes of them is what becomes of any
row: of late ones, of corrected ones, in ranges, in shards, after a rollback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.project.flow_asset import OnError
from hydro_core.spark.pipeline.copies import verify
from hydrotick.flows.flows import QuarantineCounts, quarantined
from hydrotick.quality.judge import measure
from hydrotick.quality.suites import NO_WRONG_ROWS, quarantine_verdicts
from hydrotick.runner.report import TickReport
from tests.orchestration.changing import by_name
from tests.orchestration.late import Late
from tests.orchestration.small import PROGRAM, contents

pytestmark = pytest.mark.spark

LINES: Sequence[Sequence[str]] = (
    ['{"tick": 0, "user": "ann", "amount": 1}', '{"tick": 0, "user": "bob", "amount": "x"}'],
    ['{"tick": 1, "user": "ann", "amount": 10}', "no JSON", '{"tick": 1, "user": "bob"'],
    ['{"tick": 2, "user": "cat", "amount": 5}'],
)
WRONG = [(0, "0.jsonl, line 2"), (1, "1.jsonl, line 2"), (1, "1.jsonl, line 3")]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


class Wrong(Late):
    """The small flow with files of JSON lines, of which up to so many a tick may be wrong."""

    def __init__(self, home: Path, allowed: int = 2, policy: str = "next", shards: int = 1) -> None:
        super().__init__(home, policy, "json")
        self.flow = replace(self.flow, shards=shards)
        self.allow(allowed)

    def allow(self, rows: int) -> None:
        landing = replace(self.flow.landings["payments"], on_error=OnError(rows))
        self.flow = replace(self.flow, inputs={"payments": landing})

    def put(self, name: str, lines: Sequence[str]) -> None:
        (self.place / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))

    def all_put(self, lines: Sequence[Sequence[str]] = LINES) -> Wrong:
        for tick, of in enumerate(lines):
            self.put(str(tick), of)
        return self

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """What is in quarantine, of all ticks."""
        found = self.runner.pipeline(self.flow).output("quarantine", every=True).to_pylist()
        return sorted(found, key=lambda row: (row["tick"], row["place"], row["reason"]))

    @property
    def places(self) -> list[tuple[int, str]]:
        return [(row["tick"], row["place"]) for row in self.rows]

    def whole(self) -> Wrong:
        assert verify(self.runner.directory(self.flow), measure).problems == ()
        return self


def told(flow: Wrong, report: TickReport) -> Mapping[str, Any]:
    (found,) = quarantine_verdicts(flow.flow, report.window.key, report.rows)
    assert (found[0], found[1].check, found[1].severity) == ("quarantine", NO_WRONG_ROWS, "warn")
    return {"passed": found[1].passed, **found[1].seen}


def test_wrong_rows_do_not_stop_the_flow(tmp_path: Path) -> None:
    flow = Wrong(tmp_path / "one").all_put()
    reports = [flow.run(tick, tick)[0] for tick in range(3)]
    assert all(report.committed for report in reports), reports[-1].failure
    assert flow.places == WRONG
    assert flow.rows[0] == {
        "tick": 0,
        "source": "payments",
        "place": "0.jsonl, line 2",
        "reason": "column `amount`: 'x' is not of type long",
        "row": LINES[0][1],
    }
    assert [report.rows["quarantine"] for report in reports] == [1, 2, 0]
    assert told(flow, reports[2]) == {"passed": True}
    assert told(flow, reports[1])["rows in quarantine"] == 2
    assert reports[1].metadata["rows in quarantine"] == 2
    assert "quarantine" in " ".join(reports[1].warnings("small"))
    assert quarantined(flow.flow, flow.runner) == QuarantineCounts(0, 3, "2026-01-02")
    # Ticks together, and in shards, are what they are one by one.
    together = Wrong(tmp_path / "together").all_put().ran((0, 2))
    assert contents(together.flow, together.runner) == contents(flow.flow, flow.runner)
    cut = Wrong(tmp_path / "shards", shards=2).all_put().ran((0, 2))
    assert cut.whole().rows == flow.rows
    assert by_name(cut.contents)["outputs/totals"] == by_name(flow.contents)["outputs/totals"]


def test_too_many_fail_the_tick_and_the_ticks_before_stand(tmp_path: Path) -> None:
    flow = Wrong(tmp_path, allowed=1).all_put()
    reports = flow.run(0, 2)
    assert [report.committed for report in reports] == [True, False]
    assert reports[1].problem.startswith(
        "2 row(s) of the input `payments` do not fit in 2026-01-02, and at most 1 may be in "
        "quarantine; the first: 1.jsonl, line 2: it is not JSON: "
    )
    assert "{quarantine: 2}" in reports[1].cure
    assert flow.places == WRONG[:1]
    flow.whole().allow(2)
    flow.ran((1, 2))
    assert flow.places == WRONG


def test_mended_rows_come_back_with_a_correction(tmp_path: Path) -> None:
    flow = Wrong(tmp_path / "mended").all_put().ran((0, 0), (1, 2))
    mended = [[line.replace('"x"', "7") for line in LINES[0]], LINES[1][:2], LINES[2]]
    flow.all_put(mended)
    assert [change.first for change in flow.waiting["payments"].changed] == ["2026-01-01"]
    flow.correct(0)
    assert flow.whole().places == WRONG[1:2]
    ideal = Wrong(tmp_path / "ideal").all_put(mended).ran((0, 2))
    assert flow.by_name == ideal.by_name
    # Too many of them, and the correction leaves all as it was.
    flow.put("0", ["x", "y", "z"])
    window = flow.flow.ticks.calendar.window(0)
    (report,) = flow.runner.correct(flow.flow, window, lambda _: None)
    assert not report.committed
    assert flow.whole().by_name == ideal.by_name


@pytest.mark.parametrize("policy", ["next", "correct"])
def test_a_wrong_row_that_is_late(tmp_path: Path, policy: str) -> None:
    flow = Wrong(tmp_path, policy=policy).all_put().ran((0, 1))
    flow.put("late", ['{"tick": 0, "user": "dan", "amount": 1}', "late and wrong"])
    flow.ran((2, 2))
    arrived = 2 if policy == "next" else 0
    assert flow.whole().places == sorted([*WRONG, (arrived, "late.jsonl, line 2")])


def test_a_quarantine_is_deployed_and_goes_with_a_rollback(tmp_path: Path) -> None:
    misfit = '{"tick": 1, "user": "bob", "amount": "x"}'
    flow = Wrong(tmp_path).all_put([[LINES[0][0]], [LINES[1][0], misfit], LINES[2]])
    wrong = [(1, "1.jsonl, line 2")]
    strict = replace(
        flow.flow, inputs={"payments": replace(flow.flow.landings["payments"], on_error=None)}
    )
    flow.flow, quarantining = strict, flow.flow
    reports = flow.run(0, 2)
    assert [report.committed for report in reports] == [True, False]
    assert "not of type long" in reports[1].problem
    # What serves has no quarantine before it is deployed.
    flow.flow = quarantining
    assert not flow.run(1, 1)[0].committed
    change = flow.deploy(PROGRAM)
    assert change.difference.outputs["quarantine"].change == "new"
    flow.ran((1, 2))
    assert flow.whole().places == wrong
    before = flow.by_name
    flow.deploy(PROGRAM.replace("total=sum", "total=max"))
    assert flow.whole().places == wrong
    flow.rollback()
    assert flow.whole().by_name == before


def test_nothing_is_left_of_a_tick_that_was_ended(tmp_path: Path) -> None:
    flow = Wrong(tmp_path).all_put()
    pipeline = flow.runner.pipeline(flow.flow)

    def ended(step: str) -> None:
        if step == "tables":
            raise KeyboardInterrupt

    pipeline.step = ended
    with pytest.raises(KeyboardInterrupt):
        flow.run(0, 1)
    pipeline.step = lambda _: None
    flow.open()
    flow.ran((0, 1))
    assert flow.whole().places == WRONG


FAILS = """
payments = source("user string, amount long")
payments -> persist() -> with_columns(share=lambda p: 100 // p.amount)
  -> aggregate(by="user", total=sum("share")) -> delta() -> totals
payments -> prev() -> before
"""
ZEROS = [
    ['{"tick": 0, "user": "ann", "amount": 1}', '{"tick": 0, "user": "bob", "amount": 0}'],
    ['{"tick": 1, "user": "ann", "amount": 0}', '{"tick": 1, "user": "ann", "amount": 0}'],
    ['{"tick": 2, "user": "bob", "amount": 5}', '{"tick": 2, "user": "cat", "amount": "x"}'],
]


class Failing(Wrong):
    """The flow with a function that fails where an amount is 0, up to so often a tick."""

    def __init__(self, home: Path, allowed: int = 2, shards: int = 1) -> None:
        super().__init__(home, shards=shards)
        self.flow = replace(self.flow, on_error=OnError(allowed))
        self.edit(FAILS)


def test_a_function_that_fails_does_not_stop_the_flow(tmp_path: Path) -> None:
    flow = Failing(tmp_path / "one").all_put(ZEROS).ran((0, 0), (1, 1), (2, 2))
    place, reason = "small.hydro, line 3", "ZeroDivisionError: integer division or modulo by zero"
    failed = [(0, '{"user": "bob", "amount": 0}'), *[(1, '{"user": "ann", "amount": 0}')] * 2]
    found = [
        *(
            {
                "tick": tick,
                "source": "with_columns()",
                "place": place,
                "reason": f"lambda p: 100 // p.amount: {reason}",
                "row": row,
            }
            for tick, row in failed
        ),
        {
            "tick": 2,
            "source": "payments",
            "place": "2.jsonl, line 2",
            "reason": "column `amount`: 'x' is not of type long",
            "row": ZEROS[2][1],
        },
    ]
    assert flow.whole().rows == found
    outputs = flow.runner.pipeline(flow.flow).output("totals", every=True).to_pylist()
    assert sorted(outputs, key=lambda row: row["tick"]) == [
        {"tick": 0, "user": "ann", "total": 100},
        {"tick": 2, "user": "bob", "total": 20},
    ]
    together = Failing(tmp_path / "together").all_put(ZEROS).ran((0, 2))
    assert together.contents == flow.contents
    # Refused items of all users go to one table, which no one routing serves.
    (refused,) = Failing(tmp_path / "shards", shards=2).all_put(ZEROS).run(0, 0)
    assert "cannot be cut into shards" in str(refused.failure)
    assert not refused.committed


def test_a_function_that_fails_too_often_fails_the_tick(tmp_path: Path) -> None:
    flow = Failing(tmp_path, allowed=1).all_put(ZEROS)
    reports = flow.run(0, 2)
    assert [report.committed for report in reports] == [True, False]
    assert reports[1].problem.startswith(
        "2 row(s) are such that a function fails in 2026-01-02, and at most 1 may be in "
        "quarantine; the first: small.hydro, line 3: lambda p: 100 // p.amount: ZeroDivisionError"
    )
    assert [row["tick"] for row in flow.whole().rows] == [0]
    # What was wrong and is mended comes back, whichever way it was wrong.
    flow.all_put([[line.replace(": 0}", ": 4}") for line in lines] for lines in ZEROS])
    flow.correct(0)
    assert flow.whole().rows == []
    flow.ran((1, 2))
    assert flow.whole().places == [(2, "2.jsonl, line 2")]


LONG_USER = "y" * 200_000
CSV_FILES = {
    "0": b"\xef\xbb\xbftick,user,amount\n" + b'0,"a\r\nb",1\n' * 100_000,
    "1": f'user,amount,tick\nbob,10,1\n{LONG_USER},5,1\n"cat,7,1\n'.encode(),
    "2": b"tick,user,amount",
}
"""Over 1 MiB with quoted line ends and a mark; columns in another order, a field over 128 KiB and a
quote that is never closed; and a header without a line end."""


def test_a_landing_of_csv(tmp_path: Path) -> None:
    flow = Wrong(tmp_path / "tolerant", allowed=1)
    strict = Wrong(tmp_path / "strict")
    landing = replace(strict.flow.landings["payments"], on_error=None)
    strict.flow = replace(strict.flow, inputs={"payments": landing})
    for name, content in CSV_FILES.items():
        for place in (flow.place, strict.place):
            (place / f"{name}.csv").write_bytes(content)
    flow.ran((0, 2))
    assert flow.whole().places == [(1, "1.csv, line 4")]
    assert flow.rows[0]["reason"] == "it has a quote, opened in line 4, that is never closed"
    totals = flow.runner.pipeline(flow.flow).output("totals", every=True).to_pylist()
    found = {(row["user"], row["total"]) for row in totals}
    assert found == {("a\r\nb", 100_000), ("bob", 10), (LONG_USER, 5)}
    (report, *_) = strict.run(0, 0)
    assert not report.committed
    assert "1.csv`, line 4 has a quote, opened in line 4, that is never closed" in report.problem
    (strict.place / "1.csv").write_bytes(CSV_FILES["1"].replace(b'"cat', b"cat"))
    strict.ran((0, 2))
    totals = strict.runner.pipeline(strict.flow).output("totals", every=True).to_pylist()
    assert {(row["user"], row["total"]) for row in totals} == found | {("cat", 7)}
