"""Another program takes over: what it keeps stays, what it wants is made from the past, and from
then on everything is as if it had always run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_text
from hydro_core.errors import DataError
from hydro_core.ir.graph import Endpoint
from hydro_core.optimize.optimizer import optimize
from hydro_core.plan.planner import Bootstrap, Leaf, WantedTables, bootstrap
from hydro_core.program_change.difference import difference
from hydro_core.spark.inputs.batches import stored_batches
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import STAGING, StagedPast, deployment, rollback
from hydro_core.spark.pipeline.tables import Tables
from tests.spark.pipelines import SETTINGS, Crash, batch, crash_at, opened, planned
from tests.support.deployments import output_states, records
from tests.support.refused import Refused

pytestmark = pytest.mark.spark

BEFORE = """
members  = source("user string")
messages = source("user string, text string")
known = messages -> persist()
known -> aggregate(by="user", n=count()) -> counts
members -> persist() -> everybody
"""

AFTER = """
members  = source("user string")
messages = source("user string, text string")
history = messages -> persist()
history -> aggregate(by="user", n=count(), last=max("text")) -> counts
history -> delta() -> [0]j
messages -> prev() -> [1]j
j = union() -> unique() -> recent
members -> persist() -> everybody
members -> old() -> aggregate(n=count()) -> how_many
"""
LAST = 3
OUTPUTS = ("counts", "recent", "everybody", "how_many")


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


def run(pipeline: Pipeline, first: int, last: int) -> Pipeline:
    for tick in range(first, last + 1):
        pipeline.run_tick(tick, batch(tick))
    return pipeline


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("before") / "pipeline"
    run(opened(directory, BEFORE), 0, LAST)
    return directory


@pytest.fixture
def served(run_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run_once, tmp_path / "pipeline"))


@pytest.fixture(scope="module")
def from_the_start(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return shown(run(opened(tmp_path_factory.mktemp("after") / "pipeline", AFTER), 0, LAST + 2))


def test_every_output_says_what_it_is() -> None:
    before, after = (
        deployment_of("chat", program.typed, optimize(program.typed))
        for program in map(compile_text, (BEFORE, AFTER))
    )
    assert output_states(difference(before, after, records(before))) == {
        "counts": "columns",
        "recent": "new",
        "everybody": "same",
        "how_many": "new",
    }


def shown(pipeline: Pipeline) -> dict[str, list[str]]:
    return {
        name: sorted(map(repr, pipeline.output(name, every=True).to_pylist()))
        for name in pipeline.output_tables
    }


def after(directory: Path, kept: Mapping[str, str] = {}) -> Pipeline:
    """The program that is to take over; `kept` are the tables that serve for its slots."""
    plan = planned(AFTER)
    fresh = Pipeline(directory, plan, SETTINGS)
    state = {
        slot: replace(spec, name=kept.get(slot, spec.name))
        for slot, spec in fresh.state_tables.items()
    }
    tables = Tables(state, fresh.output_tables, "after")
    return Pipeline(directory, plan, SETTINGS, tables=tables)


def made(rework: StagedPast, by: Bootstrap, serving: Pipeline) -> StagedPast:
    """The ticks beside, as ranges of two."""
    for first in range(rework.first, rework.last + 1, 2):
        last = min(first + 1, rework.last)
        read = {n: b for t in range(first, last + 1) for n, b in batch(t).items()}
        assert set(by.inputs) <= set(read)
        stored = stored_batches(serving.store, by.tables, (first, last), serving.spark)
        for tick in range(first, last + 1):
            landed = {n: rows for n, rows in batch(tick).items() if n in by.inputs}
            within = {n: b.within(tick, tick) for n, b in stored.items()}
            rework.staging.run_tick(tick, {**landed, **within})
    return rework


def all_of(target: Pipeline, *but: str) -> WantedTables:
    slots = frozenset(s for s, spec in target.state_tables.items() if spec.name not in but)
    return WantedTables(slots, frozenset(target.output_tables) - {"everybody"})


def the_slot(pipeline: Pipeline, stream: str) -> str:
    [found] = [s.id for s in pipeline.plan.slots if str(s.stream) == stream]
    return found


def test_everything_can_be_made_from_the_landed_past(
    served: Path, from_the_start: dict[str, list[str]], refused: Refused
) -> None:
    serving, target = opened(served, BEFORE), after(served)
    wanted = all_of(target)
    by = bootstrap(target.plan, wanted, {})
    assert sorted(by.inputs) == ["members", "messages"]
    before = shown(serving)
    with deployment(serving, target, by, wanted) as rework:
        made(rework, by, serving)
        assert shown(opened(served, BEFORE)) == before
        commit = rework.replace()
    assert (commit.first, commit.last, commit.plan) == (0, LAST, "after")
    run(after(served), LAST + 1, LAST + 2)
    assert shown(after(served)) == from_the_start
    with refused(DataError, "state"):
        opened(served, BEFORE).run_tick(LAST + 3, batch(0))


def test_what_is_stored_is_kept_and_read_in_place_of_the_landed_past(
    served: Path, from_the_start: dict[str, list[str]]
) -> None:
    serving = opened(served, BEFORE)
    table = serving.state_tables[the_slot(serving, "messages")].name
    members = serving.state_tables[the_slot(serving, "members")].name
    fresh = after(served)
    target = after(
        served, {the_slot(fresh, "messages"): table, the_slot(fresh, "members"): members}
    )
    wanted = all_of(target, table, members)
    leaves = {Endpoint("messages"): Leaf(table), Endpoint("members"): Leaf(members)}
    by = bootstrap(target.plan, wanted, leaves)
    assert by.inputs == ()
    assert set(by.tables) == {table, members}
    with deployment(serving, target, by, wanted) as rework:
        made(rework, by, serving).replace()
    run(target, LAST + 1, LAST + 2)
    assert shown(target) == from_the_start


SLOW = pytest.mark.slow
STEPS = (
    pytest.param("outputs/counts", marks=SLOW),
    "outputs/recent",
    pytest.param("ledger", marks=SLOW),
)


@pytest.mark.parametrize("step", STEPS)
def test_a_deployment_that_was_killed_never_happened_or_is_done(
    served: Path, from_the_start: dict[str, list[str]], step: str
) -> None:
    serving, target = opened(served, BEFORE), after(served)
    before, wanted = shown(serving), all_of(target)
    by = bootstrap(target.plan, wanted, {})
    target.step = crash_at(step)
    rework = made(deployment(serving, target, by, wanted), by, serving)
    with pytest.raises(Crash):
        rework.replace()
    serving.lock.release()  # as the end of the process does
    if step != "ledger":
        again = opened(served, BEFORE)
        run(again, LAST + 1, LAST + 1)
        assert shown(again)["everybody"][: len(before["everybody"])] == before["everybody"]
        target = after(served)
        with deployment(again, target, by, wanted) as rework:
            made(rework, by, again).replace()
    served_now = after(served)
    run(served_now, served_now.next_tick, LAST + 2)
    assert shown(after(served)) == from_the_start


def test_the_program_before_takes_over_again(served: Path, tmp_path: Path) -> None:
    serving, target = opened(served, BEFORE), after(served)
    wanted = all_of(target)
    by = bootstrap(target.plan, wanted, {})
    with deployment(serving, target, by, wanted) as rework:
        made(rework, by, serving).replace()
    run(target, LAST + 1, LAST + 1)
    back = opened(served, BEFORE)
    with rollback(target, back) as rework:
        assert (rework.first, rework.last) == (LAST + 1, LAST + 1)
        run(rework.staging, rework.first, rework.last)
        rework.replace()
    assert not (served / STAGING).exists()
    run(back, LAST + 2, LAST + 2)
    expected = run(opened(tmp_path / "expected", BEFORE), 0, LAST + 2)
    assert shown(back) == shown(expected)


def test_nothing_wanted_is_nothing_to_run(served: Path) -> None:
    serving = opened(served, BEFORE)
    same = Pipeline(
        served,
        planned(BEFORE.replace("known", "history")),
        SETTINGS,
        tables=Tables(serving.state_tables, serving.output_tables, "renamed"),
    )
    by = bootstrap(same.plan, WantedTables(), {})
    with deployment(serving, same, by, WantedTables()) as rework:
        assert rework.is_complete
        commit = rework.replace()
    assert (commit.first, commit.last, commit.plan) == (LAST + 1, LAST, "renamed")
    run(same, LAST + 1, LAST + 1)
