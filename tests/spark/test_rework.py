"""Ticks that are computed again: as if the data had been there in time, and in one commit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hydro_core.catalog.forms import Form
from hydro_core.errors import DataError, TransientError
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import STAGING, correction
from tests.spark.pipelines import Batch, Crash, batch, contents, crash_at, opened
from tests.support.refused import Refused

pytestmark = pytest.mark.spark

LAST = 4
SLOW = pytest.mark.slow
LATE = {"members": pa.table({"user": ["late"]}), "messages": batch(9, 3)["messages"]}


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


def landed(tick: int, late: int | None) -> Batch:
    """The batch of a tick; `late` is the tick to which rows came later."""
    rows = batch(tick)
    return {n: pa.concat_tables([rows[n], LATE[n]]) for n in rows} if tick == late else rows


def run(pipeline: Pipeline, first: int, last: int, late: int | None = None) -> Pipeline:
    for tick in range(first, last + 1):
        pipeline.run_tick(tick, landed(tick, late))
    return pipeline


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("once") / "pipeline"
    run(opened(directory), 0, LAST)
    return directory


@pytest.fixture
def served(run_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run_once, tmp_path / "pipeline"))


@pytest.fixture(scope="module")
def in_time(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], dict[str, list[str]]]:
    """What there is if the rows had come to their tick in time."""

    @cache
    def ran(late: int) -> dict[str, list[str]]:
        directory = tmp_path_factory.mktemp("in_time") / "pipeline"
        return contents(run(opened(directory), 0, LAST, late))

    return ran


@pytest.mark.parametrize("late", [pytest.param(0, marks=SLOW), 2, pytest.param(LAST, marks=SLOW)])
def test_a_correction_is_as_if_the_rows_had_come_in_time(
    served: Path, in_time: Callable[[int], dict[str, list[str]]], late: int
) -> None:
    pipeline = opened(served)
    before = contents(pipeline)
    with correction(pipeline, late) as rework:
        assert rework.first == late
        run(rework.staging, rework.first, rework.last, late)
        assert contents(opened(served)) == before
        commit = rework.replace()
    assert (commit.first, commit.last) == (late, LAST)
    assert contents(pipeline) == in_time(late)
    assert contents(opened(served)) == in_time(late)
    assert not (served / STAGING).exists()
    assert opened(served).run_tick(LAST + 1, batch(LAST + 1)).first == LAST + 1


STEPS = ("outputs/notify", pytest.param("outputs/everything", marks=SLOW), "ledger")


@pytest.mark.parametrize("step", STEPS)
def test_a_correction_that_was_killed_never_happened_or_is_done(
    served: Path, in_time: Callable[[int], dict[str, list[str]]], step: str
) -> None:
    pipeline = opened(served)
    before = contents(pipeline)
    pipeline.step = crash_at(step)
    rework = correction(pipeline, 2)
    run(rework.staging, rework.first, rework.last, 2)
    with pytest.raises(Crash):
        rework.replace()
    pipeline.lock.release()  # as the end of the process does
    done = step == "ledger"
    again = opened(served)
    if not done:
        with correction(again, 2) as rework:
            run(rework.staging, rework.first, rework.last, 2)
            rework.abandon()
        assert contents(again) == before
        with correction(again, 2) as rework:
            run(rework.staging, rework.first, rework.last, 2)
            rework.replace()
    assert contents(opened(served)) == in_time(2)


def test_an_abandoned_correction_leaves_nothing(served: Path) -> None:
    pipeline = opened(served)
    before = contents(pipeline)
    with correction(pipeline, 1) as rework:
        run(rework.staging, rework.first, 2, 1)
        with pytest.raises(RuntimeError, match="complete"):
            rework.replace()
    assert contents(pipeline) == before
    assert not (served / STAGING).exists()
    pipeline.run_tick(LAST + 1, batch(LAST + 1))


def test_only_committed_ticks_are_computed_again(served: Path, refused: Refused) -> None:
    with refused(DataError, "state"):
        correction(opened(served), LAST + 1)
    opened(served).run_tick(LAST + 1, batch(LAST + 1))


def test_one_writer_at_a_time(served: Path) -> None:
    with correction(opened(served), 2), pytest.raises(TransientError, match="another writer"):
        opened(served).run_tick(LAST + 1, batch(LAST + 1))


# `delta` of what comes and goes keeps the last tick only.
LAST_ONLY = """
messages = source("user string, text string")
messages -> window(2) -> aggregate(by="user", n=count()) -> sort() -> enumerate() -> delta() -> out
"""


def test_a_table_of_the_last_tick_is_had_from_an_earlier_version(tmp_path: Path) -> None:
    def only(tick: int, late: int | None) -> Batch:
        return {"messages": landed(tick, late)["messages"]}

    def ran(name: str, late: int | None) -> Pipeline:
        pipeline = opened(tmp_path / name, LAST_ONLY)
        for tick in range(LAST + 1):
            pipeline.run_tick(tick, only(tick, late))
        return pipeline

    pipeline = ran("served", None)
    assert any(spec.form is Form.VALUES for spec in pipeline.state_tables.values())
    with correction(pipeline, 3) as rework:
        assert rework.first == 3
        for tick in range(3, LAST + 1):
            rework.staging.run_tick(tick, only(tick, 3))
        rework.replace()
    expected = ran("expected", 3)
    assert shown(pipeline) == shown(expected)
    # the corrected ticks are one commit now: within it the past is had from before it
    with correction(pipeline, LAST) as rework:
        assert rework.first == 3


def shown(pipeline: Pipeline) -> list[str]:
    return sorted(map(repr, pipeline.output("out", every=True).to_pylist()))


def test_a_log_that_was_summed_up_is_had_from_before(served: Path) -> None:
    pipeline = opened(served)
    pipeline.compact(keep_hours=7 * 24)
    with correction(pipeline, 2) as rework:
        assert rework.first <= 2
        run(rework.staging, rework.first, rework.last)
        rework.replace()
    pipeline.run_tick(LAST + 1, batch(LAST + 1))
