"""A person is forgotten: a pipeline is what it would be had the person's rows never landed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.inputs import changes as landing_diff
from hydro_core.spark.pipeline.forgetting import by_key
from hydro_core.spark.pipeline.verify import verify
from hydrotick.flows.landed_past import look, missing
from hydrotick.quality.judge import measure
from hydrotick.runner.forgetting import forget
from hydrotick.runner.runner import TickRunner
from hydrotick.runner.to_forget import to_forget
from tests.orchestration.forgetting import (
    BY_KEY,
    IN_ALL,
    MOMENTS,
    PERSON,
    PROGRAMS,
    Ended,
    Story,
    clean,
    end_at,
    having,
    tables,
)
from tests.orchestration.late import IN_TIME, LATE
from tests.orchestration.small import BATCHES, contents, land, opened
from tests.support.refused import Refused

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.dagster]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("by key", "parquet"),
        ("in all", "delta"),
        pytest.param("by key", "delta", marks=pytest.mark.slow),
        pytest.param("in all", "parquet", marks=pytest.mark.slow),
    ],
)
def test_it_is_as_if_the_rows_had_never_landed(
    tmp_path: Path, kind: str, program: str, refused: Refused
) -> None:
    story = Story(tmp_path, PROGRAMS[program], kind=kind).land(IN_TIME, "first.parquet")
    story.ran((0, 1), (2, 2), (3, 3))
    assert having(story.mine.runner.directory(story.mine.flow), PERSON)
    if kind == "parquet":
        with refused(DataError, "input"):
            forget(story.found(), lambda _: None)
        clean(story.mine.place, PERSON)
    found = story.found()
    assert found.is_by_key == (program == "by key")
    assert not found.is_nothing
    story.forget()
    assert having(story.mine.place, PERSON) == []
    story.land([(4, "ann", 4), (4, "bob", 1), (2, "eve", 9)], "second.parquet")
    story.mine.ran((4, 5))
    story.never.ran((4, 5))
    assert set(tables(story.mine)) == set(tables(story.never))
    if kind == "parquet":
        clean(story.mine.place, PERSON)
    story.forget().ran((6, 6)).agrees()


@pytest.mark.parametrize("program", [pytest.param("by key", marks=pytest.mark.slow), "in all"])
def test_ended_anywhere_it_is_ended_by_the_next(tmp_path: Path, program: str) -> None:
    """Between two moments all is as before, or without the rows; ticks go on from either."""
    story = Story(tmp_path, PROGRAMS[program]).land(IN_TIME).ran((0, 1), (2, 3))
    before, after = tables(story.mine), tables(story.never)
    for number, moment in enumerate(MOMENTS):
        assert end_at(story, moment), moment
        counted = number >= MOMENTS.index("ledger")
        assert tables(story.mine) == (after if counted else before), moment
        assert not story.found().is_nothing, moment
        directory = story.mine.runner.directory(story.mine.flow)
        assert verify(directory, measure).problems == (), moment
        if moment == "ledger":
            story.land([(4, "bob", 1)]).ran((4, 4))
            after = tables(story.never)
    story.forget().land([(5, "cat", 1), (2, "eve", 1)]).ran((5, 6)).agrees()


def test_what_is_late_stays_late_and_others_that_are_gone_are_kept(tmp_path: Path) -> None:
    """What others have late, or have lost, is as it was: of the person there is nothing."""
    story = Story(tmp_path, BY_KEY).land(IN_TIME).ran((0, 3)).land(LATE).ran((4, 4))
    story.land([(1, "fay", 7), (1, "ann", 2), (7, "ann", 1)])
    story.forget()
    assert {n: one.rows for n, one in story.mine.waiting.items()} == {"payments": 1}
    story.ran((5, 5)).agrees()
    assert story.mine.waiting == {}


@pytest.mark.parametrize("program", PROGRAMS)
def test_late_rows_of_a_table_that_is_too_large_to_compare_stay_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """The deletion writes the file with late rows anew: which of its rows they are is known."""
    monkeypatch.setattr(landing_diff, "_COMPARED", 0)
    story = Story(tmp_path, PROGRAMS[program]).land(IN_TIME).ran((0, 3)).land(LATE)
    story.forget()
    assert {n: one.rows for n, one in story.mine.waiting.items()} == {"payments": 2}
    story.ran((4, 4)).agrees()
    assert story.mine.waiting == {}


def test_who_reads_the_same_table_notices_what_came_before(tmp_path: Path) -> None:
    """One flow deletes rows of a table and its history, another one reads it, too."""
    story = Story(tmp_path, BY_KEY).land(IN_TIME).ran((0, 3))
    mine = story.mine
    twin = replace(mine.flow, name="twin", inputs=dict(mine.flow.inputs))
    windows = [twin.ticks.calendar.window(tick) for tick in range(5)]
    assert all(one.committed for one in mine.runner.run(twin, windows[:4], lambda _: None))
    story.land(LATE)
    forget(story.found(), lambda _: None, [mine.flow, twin])
    mine.open()
    late = missing(twin, look(mine.runner, twin))["payments"]
    assert late.says_late == "1 row(s) of 2026-01-03"
    # Nothing is late that may stand for what went.
    both = "2026-01-01 to 2026-01-02 (2 removed, 1 added), 2026-01-04 (2 removed)"
    assert late.says_changed == both
    found = to_forget(mine.runner, twin, {"payments": ("user", PERSON)})
    forget(found, lambda _: None, [mine.flow, twin])
    mine.open()
    assert missing(twin, look(mine.runner, twin))["payments"].metadata == {
        "late rows": 2,
        "late rows are of": "2 rows of 2026-01-02 (1), 2026-01-03 (1)",
    }
    story.ran((4, 4)).agrees()
    assert all(one.committed for one in mine.runner.run(twin, windows[4:], lambda _: None))
    assert contents(twin, mine.runner) == tables(story.never)


def test_a_deployment_before_is_not_there_any_more(tmp_path: Path, refused: Refused) -> None:
    story = Story(tmp_path, BY_KEY).land(IN_TIME).ran((0, 3))
    story.mine.deploy(IN_ALL)
    story.never.deploy(IN_ALL)
    story.forget()
    with refused(DataError, "state"):
        story.mine.rollback()
    story.land([(4, "bob", 1)]).ran((4, 4)).agrees()
    for one in (story.mine, story.never):
        one.deploy(BY_KEY)
        one.correct(2)
    story.agrees()
    story.mine.rollback()
    story.never.rollback()
    story.agrees()


def test_the_command_says_what_there_is_and_takes_it_out(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["forget", "small", "--where", "user=ann"]
    assert main([*asked, "--dry-run", "--format", "json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert (told["landed"]["payments"]["rows"], told["by_key"], told["ticks"]) == (4, True, 0)
    assert sum(told["tables"].values()) > 0
    for wrong, said in {
        "who=ann": "no input has such a column",
        "user": "there is no `=`",
        "amount=x": "amount=x",
    }.items():
        assert main(["forget", "small", "--where", wrong, "--dry-run"]) == 1
        assert said in capsys.readouterr().err
    assert main([*asked, "--yes"]) == 0
    assert "forgotten in" in capsys.readouterr().out
    assert main([*asked, "--dry-run"]) == 0
    assert "Nothing is known to be there" in capsys.readouterr().out
    assert main(["status", "small", "--verify"]) == 0


def test_what_runs_in_shards_is_forgotten_by_key(tmp_path: Path) -> None:
    flow, runner = opened(tmp_path, shards=2)
    found = by_key(runner.pipeline(flow), {"payments": ("user",)}, "ann")
    assert (found.obstacles, len(found.rows)) == ((), 6)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["landings", "outputs/totals", "ledger", "erased", "noted"])
def test_killed_it_is_ended_by_the_next(tmp_path: Path, moment: str) -> None:
    flow, runner = opened(tmp_path / "mine")
    never, knows = opened(tmp_path / "never")
    land(knows.project, [[row for row in rows if row[0] != "ann"] for rows in BATCHES])
    windows = [flow.ticks.calendar.window(tick) for tick in range(len(BATCHES))]
    for one in (runner, knows):
        assert all(report.committed for report in one.run(flow, windows, lambda _: None))
    before, after = contents(flow, runner), contents(never, knows)
    words = runner.project.home, "0", moment, "forget"
    done = subprocess.run(
        [sys.executable, "-m", "tests.orchestration.killed", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        check=False,
        timeout=300,
    )
    assert done.returncode == -signal.SIGKILL
    flow, runner = opened(tmp_path / "mine")
    pipeline = runner.pipeline(flow)
    pipeline.store.recover(pipeline.ledger.refresh())
    assert contents(flow, runner) == (after if moment in {"ledger", "erased", "noted"} else before)
    found = to_forget(runner, flow, {"payments": ("user", "ann")})
    assert not found.is_nothing
    forget(found, lambda _: None)
    assert contents(flow, runner) == after
    assert verify(runner.directory(flow), measure).problems == ()


class Told:
    """A random story: what is done, one after the other."""

    def __init__(self, home: Path, seed: int) -> None:
        self.rng = Random(seed)
        self.program = self.rng.choice([*PROGRAMS.values()])
        self.kind, policy = self.rng.choice(["delta", "parquet"]), self.rng.choice(POLICIES)
        self.story = Story(home, self.program, kind=self.kind, policy=policy)
        self.until, self.deployed, self.said = 0, 0, [self.kind, policy, self.program]

    def tell(self, what: str) -> None:
        self.said.append(what)
        getattr(self, what)()

    def land(self) -> None:
        users = self.rng.choices(["ann", "bob", "cat"], k=self.rng.randint(1, 4))
        last = self.until + 2
        # A landing without any rows is none.
        rows = [(last, "bob", 1)] if self.story.mine.files == 0 else []
        rows += [(self.rng.randint(0, last), user, self.rng.randint(0, 9)) for user in users]
        self.story.land(rows, f"{len(self.said)}.parquet")

    def tick(self) -> None:
        last = self.until + self.rng.randint(0, 1)
        self.story.ran((self.until, last))
        self.until = last + 1

    def forget(self) -> None:
        if self.kind == "parquet":
            clean(self.story.mine.place, PERSON)
        if self.rng.random() < 0.5:
            self.said.append(self.rng.choice(MOMENTS))
            end_at(self.story, self.said[-1])
        self.story.forget()
        self.deployed = 0

    def correct(self) -> None:
        for one in (self.story.mine, self.story.never):
            one.correct(0)

    def deploy(self) -> None:
        self._turn()
        for one in (self.story.mine, self.story.never):
            one.deploy(self.program)
        self.deployed += 1

    def back(self) -> None:
        if not self.deployed:
            return
        self._turn()
        for one in (self.story.mine, self.story.never):
            one.rollback()
            one.edit(self.program)
            one.open()
        self.deployed = 0

    def _turn(self) -> None:
        self.program = IN_ALL if self.program == BY_KEY else BY_KEY


POLICIES = ["next", "correct"]
WORDS = ["land", "land", "tick", "tick", "forget", "correct", "deploy", "back"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_stories_end_as_if_the_rows_had_never_landed(tmp_path: Path, seed: int) -> None:
    told = Told(tmp_path, seed)
    try:
        for word in ["land", "tick", *told.rng.choices(WORDS, k=10), "forget"]:
            told.tell(word)
        told.story.ran((told.until, told.until)).agrees()
    except (AssertionError, DataError) as error:
        raise AssertionError("\n".join(told.said)) from error


@pytest.mark.parametrize("done", [0, 2])
def test_what_a_killed_tick_has_left_is_forgotten_too(tmp_path: Path, done: int) -> None:
    """It stands in tables that no commit names yet, or not in that version."""
    story = Story(tmp_path, PROGRAMS["by key"], kind="parquet")
    if done:
        story.land([(0, "bob", 1), (1, "eve", 2)], "before.parquet").ran((0, done - 1))
    story.land([(done, "ann", 5), (done, "bob", 1)], "after.parquet")
    _killed_before_its_commit(story, done)
    directory = story.mine.runner.directory(story.mine.flow)
    assert having(directory, PERSON)
    clean(story.mine.place, PERSON)
    forget(story.found(), lambda _: None)
    assert [*having(directory, PERSON)] == []
    story.mine.open()
    story.ran((done, done)).agrees()


def _killed_before_its_commit(story: Story, tick: int) -> None:
    def step(name: str) -> None:
        if name.startswith("outputs/"):
            raise Ended

    pipeline = story.mine.runner.pipeline(story.mine.flow)
    pipeline.step = step
    with pytest.raises(Ended):
        story.mine.ran((tick, tick))
    story.mine.open()
