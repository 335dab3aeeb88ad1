"""What serves and what the ledger says was read are one thing, whatever is done, in any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from hydro_core.errors import DataError
from hydro_core.project.flow_asset import Landing
from hydro_core.spark.store import earlier_tables as as_it_was
from tests.orchestration.changing import COUNTED, DOUBLED, WITH_MORE
from tests.orchestration.late import IN_TIME, LATE, OPEN, Late, Row, at
from tests.orchestration.small import PROGRAM
from tests.support.refused import Refused

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

LATER = [(0, "fay", 9)]
"""A row that comes late for the first tick, after the others."""
TWO = (
    PROGRAM
    + """
refunds = source("user string, amount long")
refunds -> persist() -> refunded
"""
)

Served = Callable[[Sequence[Row], int, str], Mapping[str, list[str]]]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.fixture(scope="module")
def served(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """What there is after some ticks, by a program, if exactly these rows arrived with each."""
    assert spark is not None

    @cache
    def ran(rows: tuple[Row, ...], ticks: int, text: str) -> Mapping[str, list[str]]:
        late = Late(tmp_path_factory.mktemp("served"))
        late.edit(text)
        late.land(rows)
        return late.ran((0, ticks - 1)).by_name

    return lambda rows, ticks, text: ran(tuple(sorted(rows)), ticks, text)


def begun(home: Path, policy: str, kind: str) -> Late:
    """The flow with its first ticks committed."""
    late = Late(home, policy, kind)
    late.land(IN_TIME)
    return late.ran((0, 0), (1, 1), (2, OPEN - 1))


@pytest.mark.parametrize("kind", ["delta", pytest.param("parquet", marks=pytest.mark.slow)])
def test_back_after_a_correction(tmp_path: Path, served: Served, kind: str) -> None:
    late = begun(tmp_path, "correct", kind)
    late.deploy(COUNTED)
    late.land(LATE)
    late.open()
    late.correct(1)
    assert late.rollback() <= 1
    assert late.by_name == served([*IN_TIME, *LATE], OPEN, PROGRAM)
    late.ran((OPEN, OPEN)).verified()
    assert late.by_name == served([*IN_TIME, *LATE], OPEN + 1, PROGRAM)
    assert late.waiting == {}


@pytest.mark.parametrize("kind", ["parquet", pytest.param("delta", marks=pytest.mark.slow)])
def test_back_after_late_rows_arrived(tmp_path: Path, served: Served, kind: str) -> None:
    late = begun(tmp_path, "next", kind)
    late.deploy(COUNTED)
    late.land(LATE)
    late.ran((OPEN, OPEN), (OPEN + 1, OPEN + 1))
    assert late.rollback() == OPEN
    late.ran((OPEN + 2, OPEN + 2)).verified()
    assert late.by_name == served([*IN_TIME, *at(OPEN)], OPEN + 3, PROGRAM)


@pytest.mark.parametrize("kind", ["delta", pytest.param("parquet", marks=pytest.mark.slow)])
def test_back_twice_with_corrections_between(tmp_path: Path, served: Served, kind: str) -> None:
    late = begun(tmp_path, "correct", kind)
    late.deploy(COUNTED)
    late.land(LATE)
    late.ran((OPEN, OPEN))
    late.deploy(DOUBLED)
    late.land(LATER)
    late.ran((OPEN + 1, OPEN + 1))
    rows = [*IN_TIME, *LATE, *LATER]
    late.rollback()
    assert late.by_name == served(rows, OPEN + 2, COUNTED)
    late.rollback()
    assert late.by_name == served(rows, OPEN + 2, PROGRAM)
    late.ran((OPEN + 2, OPEN + 2)).verified()
    assert late.by_name == served(rows, OPEN + 3, PROGRAM)


def test_corrected_deployed_and_back(tmp_path: Path, served: Served) -> None:
    late = begun(tmp_path, "next", "parquet")
    late.land(LATE)
    late.correct(1)
    late.deploy(COUNTED)
    late.land(LATER)
    late.correct(0)
    late.correct(OPEN - 1)
    late.rollback()
    rows = [*IN_TIME, *LATE, *LATER]
    assert late.by_name == served(rows, OPEN, PROGRAM)
    late.ran((OPEN, OPEN)).verified()
    assert late.by_name == served(rows, OPEN + 1, PROGRAM)


@pytest.mark.parametrize("asked", [{"forward_only": True}, {"first": 2}], ids=["on", "from"])
def test_a_part_of_the_past_stays_and_is_corrected(
    tmp_path: Path, served: Served, asked: Mapping[str, object]
) -> None:
    late = begun(tmp_path, "next", "delta")
    window = late.flow.ticks.calendar.window
    late.deploy(COUNTED, **{k: window(v) if k == "first" else v for k, v in asked.items()})
    late.land(LATE)
    late.correct(1)
    rows = [*IN_TIME, *LATE]
    states = {n: r for n, r in served(rows, OPEN, COUNTED).items() if n.startswith("state/")}
    assert {n: r for n, r in late.by_name.items() if n in states} == states
    late.rollback()
    late.ran((OPEN, OPEN)).verified()
    assert late.by_name == served(rows, OPEN + 1, PROGRAM)


def test_back_after_rows_were_accepted(tmp_path: Path, served: Served) -> None:
    late = begun(tmp_path, "refuse", "parquet")
    late.deploy(COUNTED)
    late.land(LATE)
    late.accept()
    late.rollback()
    late.ran((OPEN, OPEN)).verified()
    assert late.by_name == served([*IN_TIME, *at(OPEN)], OPEN + 1, PROGRAM)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param(COUNTED, "delta", id="column-delta", marks=pytest.mark.slow),
        pytest.param(COUNTED, "parquet", id="column-parquet"),
        pytest.param(DOUBLED, "delta", id="changed-delta"),
        pytest.param(DOUBLED, "parquet", id="changed-parquet", marks=pytest.mark.slow),
        pytest.param(WITH_MORE, "delta", id="new-delta", marks=pytest.mark.slow),
        pytest.param(WITH_MORE, "parquet", id="new-parquet", marks=pytest.mark.slow),
    ],
)
def test_late_rows_are_deployed_as_they_arrived(
    tmp_path: Path, served: Served, kind: str, text: str
) -> None:
    """Whether a table is made from the landing or from a stored one."""
    late = begun(tmp_path, "next", kind)
    late.land(LATE)
    late.ran((OPEN, OPEN), (OPEN + 1, OPEN + 1))
    if kind == "delta":
        DeltaTable(late.place).optimize.compact()
    found = late.deploy(text)
    if found.work.made_by.inputs:
        (note,) = (one for one in found.notes if "came late" in one)
        assert "`payments` is read as it arrived: 3 rows of 2026-01-02 (2), 2026-01-03 (1)" in note
    assert late.by_name == served([*IN_TIME, *at(OPEN)], OPEN + 2, text)
    late.land([(1, "gil", 2)])
    late.ran((OPEN + 2, OPEN + 2)).verified()
    rows = [*IN_TIME, *at(OPEN), (OPEN + 2, "gil", 2)]
    assert late.by_name == served(rows, OPEN + 3, text)
    late.rollback()
    assert late.by_name == served(rows, OPEN + 3, PROGRAM)
    late.correct(1)
    assert late.by_name == served([*IN_TIME, *LATE, (1, "gil", 2)], OPEN + 3, PROGRAM)


def test_rows_that_arrived_late_are_not_told_any_more(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many late rows the files are known: once these are joined, nobody knows the rows."""
    monkeypatch.setattr("hydro_core.spark.inputs.arrivals._HASHED", 0)
    late = begun(tmp_path, "next", "delta")
    late.land(LATE)
    late.ran((OPEN, OPEN))
    late.edit(DOUBLED)
    late.open()
    assert "read as it arrived" in late.planned().notes[-1]
    DeltaTable(late.place).optimize.compact()
    late.land([(OPEN + 1, "own", 1)])
    late.ran((OPEN + 1, OPEN + 1))
    late.open()
    note = late.planned().notes[-1]
    assert "3 rows of 2026-01-02 (2), 2026-01-03 (1) came late, and which they are" in note
    late.deploy(DOUBLED)
    rows = [*IN_TIME, *LATE, (OPEN + 1, "own", 1)]
    totals = late.by_name["outputs/totals"]
    assert totals == served(rows, OPEN + 2, DOUBLED)["outputs/totals"]


def test_many_rows_that_arrived_late_are_known_by_their_files(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hydro_core.spark.inputs.arrivals._HASHED", 0)
    late = begun(tmp_path, "next", "parquet")
    late.land([*LATE, (OPEN, "own", 1), (OPEN + 1, "own", 2)])
    late.ran((OPEN, OPEN))
    late.correct(2)
    late.ran((OPEN + 1, OPEN + 1))
    late.deploy(DOUBLED)
    rows = [*IN_TIME, *LATE[2:], *at(2, LATE[:2]), (OPEN, "own", 1), (OPEN + 1, "own", 2)]
    assert late.by_name == served(rows, OPEN + 2, DOUBLED)
    late.rollback()
    assert late.by_name == served(rows, OPEN + 2, PROGRAM)


def test_nothing_goes_back_without_the_rows_that_were_read(
    tmp_path: Path, served: Served, refused: Refused
) -> None:
    late = begun(tmp_path, "next", "parquet")
    late.deploy(COUNTED)
    late.land([(OPEN, "own", 1), (OPEN, "two", 1)], "own.parquet")
    late.ran((OPEN, OPEN))
    before = late.contents
    (late.place / "own.parquet").rename(tmp_path / "away")
    with refused(DataError, "state"):
        late.rollback()
    late.open()
    assert late.contents == before
    (tmp_path / "away").rename(late.place / "back.parquet")
    late.rollback()
    rows = [*IN_TIME, (OPEN, "own", 1), (OPEN, "two", 1)]
    assert late.by_name == served(rows, OPEN + 1, PROGRAM)


def test_what_was_read_and_what_serves_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    """Tables of before a correction are refused, whoever thinks that they serve."""
    late = begun(tmp_path, "correct", "delta")
    late.deploy(COUNTED)
    late.land(LATE)
    late.correct(1)
    before = late.contents
    monkeypatch.setattr(as_it_was, "anew_since", lambda *_: None)
    with refused(DataError, "state"):
        late.rollback()
    late.open()
    assert late.contents == before


def test_an_input_that_slept_wakes_with_all_that_came(tmp_path: Path) -> None:
    late = Late(tmp_path, "next", "parquet")
    landing = Landing("small/refunds", "tick")
    other = late.place.parent / "refunds"
    other.mkdir()
    late.flow = replace(late.flow, inputs={**late.flow.inputs, "refunds": landing})
    late.edit(TWO)
    late.land(IN_TIME)
    late.land([(0, "ann", 1), (2, "bob", 2)], "../refunds/1.parquet")
    late.ran((0, 0), (1, 2))
    both, late.flow = (
        late.flow,
        replace(late.flow, inputs={"payments": late.flow.inputs["payments"]}),
    )
    late.deploy(WITH_MORE)
    late.land([(1, "late", 3), (3, "own", 4)], "../refunds/2.parquet")
    late.ran((3, 3))
    late.flow = both
    late.rollback()
    late.land([(2, "later", 5)], "../refunds/3.parquet")
    late.ran((4, 4)).verified()
    rows = late.by_name["outputs/refunded"]
    assert [row for row in rows if "'own'" in row and "'tick': 3" in row]
    assert [row for row in rows if "'late'" in row and "'tick': 4" in row]
    assert [row for row in rows if "'later'" in row and "'tick': 4" in row]
    assert len(rows) == 5
