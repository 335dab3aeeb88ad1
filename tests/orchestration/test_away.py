"""Rows that go away and come back: missed while they are away, read once, and never twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.errors import DataError
from hydrotick.cli import status as late_status
from tests.orchestration.changing import COUNTED, REFACTORED
from tests.orchestration.late import DAYS, IN_TIME, OPEN, Late, Row
from tests.orchestration.small import PROGRAM, serve
from tests.support.refused import Refused

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

GONE: list[Row] = [(1, "dan", 7), (1, "ann", 5), (3, "eve", 4)]
"""Rows of a file of their own."""
ALL = [*IN_TIME, *GONE]

Ideal = Callable[[Sequence[Row], int], Mapping[str, list[str]]]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.fixture(scope="module")
def of_rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ideal:
    """What there is after some ticks if exactly these rows arrived with each."""
    assert spark is not None

    @cache
    def ran(rows: tuple[Row, ...], ticks: int, text: str) -> Mapping[str, list[str]]:
        late = Late(tmp_path_factory.mktemp("in_time"))
        late.edit(text)
        late.land(rows)
        return late.ran((0, ticks - 1)).by_name

    return lambda rows, ticks, text=PROGRAM: ran(tuple(sorted(rows)), ticks, text)


class Away(Late):
    """The flow whose file can be taken away and put back."""

    def __init__(self, home: Path, policy: str = "next", removed: str = "note") -> None:
        super().__init__(home, policy, "parquet", removed)
        self.land(IN_TIME)
        self.file = self.land(GONE, "gone.parquet")
        self.kept = home / "kept"
        self.ran((0, 1), (2, OPEN - 1))

    def take(self) -> None:
        self.file.rename(self.kept)
        self.open()

    def put(self, name: str = "gone.parquet") -> None:
        self.kept.rename(self.place / name)
        self.open()

    def says(self) -> str:
        """What `status` says of it."""
        self.open()
        return "\n".join(
            late_status.late_lines("small", late_status.late_rows(self.flow, self.runner))
        )


@pytest.mark.parametrize(
    ("ticks", "name"),
    [
        (1, "gone.parquet"),
        (3, "other.parquet"),
        pytest.param(1, "other.parquet", marks=pytest.mark.slow),
        pytest.param(3, "gone.parquet", marks=pytest.mark.slow),
    ],
)
def test_a_file_that_returns_is_read_once(
    tmp_path: Path, of_rows: Ideal, name: str, ticks: int
) -> None:
    away = Away(tmp_path)
    away.take()
    last = OPEN + ticks - 1
    reports = [report for tick in range(OPEN, last + 1) for report in away.run(tick, tick)]
    for report in reports:
        says = report.noticed["payments"].says_changed
        assert says == f"{DAYS[1]} (2 removed), {DAYS[3]} (1 removed)"
    assert "removed" in away.says()
    away.put(name)
    assert away.waiting == {}
    assert away.says() == ""
    (report,) = away.run(last + 1, last + 1)
    assert report.committed
    assert not report.noticed
    assert away.verified().by_name == of_rows(ALL, last + 2)
    assert away.ran((last + 2, last + 2)).by_name == of_rows(ALL, last + 3)


def test_a_table_that_is_restored_is_read_once(tmp_path: Path, of_rows: Ideal) -> None:
    late = Late(tmp_path)
    late.land(IN_TIME)
    late.land(GONE)
    late.ran((0, 1), (2, OPEN - 1))
    table = DeltaTable(late.place)
    before = table.version()
    table.delete("user = 'dan' or user = 'bob'")
    late.ran((OPEN, OPEN))
    table = DeltaTable(late.place)
    table.restore(before)
    late.open()
    assert late.waiting == {}
    late.land([(0, "gil", 1)])
    (report,) = late.run(OPEN + 1, OPEN + 1)
    assert report.noticed["payments"].late == {DAYS[0]: 1}
    assert late.verified().by_name == of_rows([*ALL, (OPEN + 1, "gil", 1)], OPEN + 2)


def test_rows_that_are_deleted_and_appended_again_are_read_once(
    tmp_path: Path, of_rows: Ideal
) -> None:
    late = Late(tmp_path)
    late.land(ALL)
    late.ran((0, OPEN - 1))
    DeltaTable(late.place).delete("user = 'dan'")
    late.land([(1, "dan", 7)])
    assert late.waiting == {}
    DeltaTable(late.place).delete("user = 'dan'")
    late.ran((OPEN, OPEN))
    late.land([(1, "dan", 7), (1, "dan", 7)])
    assert late.waiting["payments"].late == {DAYS[1]: 1}
    late.ran((OPEN + 1, OPEN + 1))
    assert late.verified().by_name == of_rows([*ALL, (OPEN + 1, "dan", 7)], OPEN + 2)


def test_what_is_back_in_part_is_missed_in_part(tmp_path: Path, of_rows: Ideal) -> None:
    away = Away(tmp_path)
    away.take()
    away.ran((OPEN, OPEN))
    away.land(GONE[:1], "part.parquet")
    assert away.waiting["payments"].says_changed == f"{DAYS[1]} (1 removed), {DAYS[3]} (1 removed)"
    away.ran((OPEN + 1, OPEN + 1))
    assert away.verified().by_name == of_rows(ALL, OPEN + 2)
    away.land(GONE[1:], "rest.parquet")
    assert away.waiting == {}
    away.ran((OPEN + 2, OPEN + 2))
    assert away.by_name == of_rows(ALL, OPEN + 3)


def test_what_is_back_with_more_is_late_by_that(tmp_path: Path, of_rows: Ideal) -> None:
    away = Away(tmp_path)
    away.take()
    away.ran((OPEN, OPEN))
    away.land([*GONE, (1, "new", 1), GONE[0]], "gone.parquet")
    assert away.waiting["payments"].late == {DAYS[1]: 2}
    away.ran((OPEN + 1, OPEN + 1))
    more = [(OPEN + 1, "new", 1), (OPEN + 1, "dan", 7)]
    assert away.verified().by_name == of_rows([*ALL, *more], OPEN + 2)


def test_a_rewritten_row_waits_until_the_old_one_is_back(tmp_path: Path, of_rows: Ideal) -> None:
    away = Away(tmp_path)
    away.take()
    away.land([GONE[0], (1, "ann", 6), GONE[2]], "gone.parquet")
    assert away.waiting["payments"].says_changed == f"{DAYS[1]} (1 removed, 1 added)"
    away.ran((OPEN, OPEN), (OPEN + 1, OPEN + 1))
    assert away.by_name == of_rows(ALL, OPEN + 2)
    away.land([(1, "ann", 5)], "old.parquet")
    assert away.waiting["payments"].late == {DAYS[1]: 1}
    away.ran((OPEN + 2, OPEN + 2))
    assert away.verified().by_name == of_rows([*ALL, (OPEN + 2, "ann", 6)], OPEN + 3)
    away.correct(0)
    assert away.by_name == of_rows([*ALL, (1, "ann", 6)], OPEN + 3)


def test_late_rows_that_go_and_return_are_read_once(tmp_path: Path, of_rows: Ideal) -> None:
    away = Away(tmp_path)
    file = away.land([(0, "late", 2)], "late.parquet")
    away.ran((OPEN, OPEN))
    file.rename(tmp_path / "late")
    away.ran((OPEN + 1, OPEN + 1))
    (tmp_path / "late").rename(file)
    away.ran((OPEN + 2, OPEN + 2))
    assert away.verified().by_name == of_rows([*ALL, (OPEN, "late", 2)], OPEN + 3)
    away.deploy(COUNTED)
    assert away.by_name == of_rows([*ALL, (OPEN, "late", 2)], OPEN + 3, COUNTED)


def test_away_at_a_deployment_and_back_after_it(
    tmp_path: Path, of_rows: Ideal, refused: Refused
) -> None:
    away = Away(tmp_path)
    away.take()
    away.ran((OPEN, OPEN))
    away.edit(COUNTED)
    with refused(DataError, "state"):
        away.planned()
    away.deploy(REFACTORED)
    away.ran((OPEN + 1, OPEN + 1))
    away.put()
    assert away.waiting == {}
    away.ran((OPEN + 2, OPEN + 2))
    outputs = {n: r for n, r in of_rows(ALL, OPEN + 3).items() if n.startswith("outputs/")}
    assert {n: r for n, r in away.verified().by_name.items() if n in outputs} == outputs
    away.deploy(COUNTED)
    away.take()
    away.ran((OPEN + 3, OPEN + 3))
    away.put()
    away.rollback()
    outputs = {n: r for n, r in of_rows(ALL, OPEN + 4).items() if n.startswith("outputs/")}
    assert {n: r for n, r in away.by_name.items() if n in outputs} == outputs


@pytest.mark.parametrize("touched", [False, True])
def test_large_files_are_known_as_they_were(
    tmp_path: Path, of_rows: Ideal, monkeypatch: pytest.MonkeyPatch, touched: bool
) -> None:
    """One that may be another is told, and its rows are not read a second time."""
    monkeypatch.setattr("hydro_core.spark.inputs.snapshot._LARGEST", 0)
    away = Away(tmp_path)
    away.take()
    away.ran((OPEN, OPEN))
    assert away.waiting["payments"].says_changed == (
        f"{DAYS[1]} to {DAYS[3]} (rewritten; which rows cannot be told)"
    )
    away.put()
    if touched:
        os.utime(away.file)
        assert "cannot be told" in away.waiting["payments"].says_changed
        away.ran((OPEN + 1, OPEN + 1))
        away.accept()
    assert away.waiting == {}
    away.ran((OPEN + 1 + touched, OPEN + 1 + touched))
    assert away.verified().by_name == of_rows(ALL, OPEN + 2 + touched)
    away.correct(0)
    assert away.by_name == of_rows(ALL, OPEN + 2 + touched)


def test_corrected_without_and_again_with(tmp_path: Path, of_rows: Ideal) -> None:
    away = Away(tmp_path, "correct")
    away.take()
    away.ran((OPEN, OPEN))
    assert away.by_name == of_rows(IN_TIME, OPEN + 1)
    away.put("other.parquet")
    away.ran((OPEN + 1, OPEN + 1))
    assert away.verified().by_name == of_rows(ALL, OPEN + 2)


def test_refused_until_it_is_back_or_accepted(tmp_path: Path, of_rows: Ideal) -> None:
    away = Away(tmp_path, "refuse")
    away.take()
    assert not away.run(OPEN, OPEN)[0].committed
    away.put()
    away.ran((OPEN, OPEN))
    away.take()
    assert not away.run(OPEN + 1, OPEN + 1)[0].committed
    away.accept()
    away.ran((OPEN + 1, OPEN + 1), (OPEN + 2, OPEN + 2))
    away.put("other.parquet")
    away.ran((OPEN + 3, OPEN + 3))
    assert away.verified().by_name == of_rows(ALL, OPEN + 4)


@pytest.mark.parametrize("policy", ["next", "correct", "refuse"])
def test_held_until_it_is_back(tmp_path: Path, of_rows: Ideal, policy: str) -> None:
    away = Away(tmp_path, policy, "hold")
    away.take()
    ready = away.runner.ready(away.flow)
    assert ready.until == OPEN
    assert f"{DAYS[1]} (2 removed)" in ready.why
    assert "`hydrotick accept small`" in ready.why
    (report,) = away.run(OPEN, OPEN)
    assert not report.committed
    assert not report.judged
    away.put("other.parquet")
    assert away.runner.ready(away.flow).until > OPEN
    away.ran((OPEN, OPEN + 1))
    assert away.verified().by_name == of_rows(ALL, OPEN + 2)


def test_held_until_somebody_decides(tmp_path: Path, of_rows: Ideal) -> None:
    away = Away(tmp_path, "next", "hold")
    away.take()
    away.accept()
    away.ran((OPEN, OPEN))
    away.put()
    away.ran((OPEN + 1, OPEN + 1))
    assert away.by_name == of_rows(ALL, OPEN + 2)
    away.take()
    assert not away.run(OPEN + 2, OPEN + 2)[0].committed
    away.correct(1)
    away.ran((OPEN + 2, OPEN + 2))
    assert away.by_name == of_rows(IN_TIME, OPEN + 3)


def test_commands_say_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    away = Away(tmp_path, "next", "hold")
    serve(monkeypatch, [away.flow])
    monkeypatch.setenv("HYDROTICK_HOME", str(tmp_path))
    monkeypatch.setenv("HYDROTICK_SPARK_MASTER", "local[2]")
    assert main(["backfill", "small", "--to", DAYS[OPEN]]) == 0
    away.take()
    capsys.readouterr()
    main(["status", "small"])
    said = capsys.readouterr().out
    assert f"held; tick {DAYS[OPEN + 1]} is next: it waits for rows that" in said
    assert "rows that committed ticks have read and that are gone" in said
    main(["backfill", "small"])
    captured = capsys.readouterr()
    assert "that are gone" in captured.out + captured.err
