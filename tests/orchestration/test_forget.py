"""A person is forgotten: a pipeline is what it would be had the person's rows never landed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.inputs import changes
from hydro_core.spark.pipeline.copies import verify
from hydrotick.flows.landed_past import look, missing
from hydrotick.quality.judge import measure
from hydrotick.runner.forgetting import forget, forget_plan
from hydrotick.runner.runner import TickRunner
from tests.orchestration.forgetting import (
    BY_KEY,
    IN_ALL,
    MOMENTS,
    PERSON,
    Ended,
    Story,
    end_at,
    having,
    tables,
)
from tests.orchestration.late import IN_TIME, LATE
from tests.orchestration.shop import Shop
from tests.orchestration.small import BATCHES, contents, land, opened
from tests.support.refused import Refused

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.dagster]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.mark.parametrize("kind", ["parquet", pytest.param("delta", marks=pytest.mark.slow)])
def test_it_is_as_if_the_rows_had_never_landed(tmp_path: Path, kind: str, refused: Refused) -> None:
    story = Story(tmp_path, IN_ALL, kind=kind).land(IN_TIME, "first.parquet")
    story.ran((0, 1), (2, 2), (3, 3))
    before = tables(story.mine)
    assert having(story.mine.runner.directory(story.mine.flow), PERSON)
    if kind == "parquet":
        with refused(DataError, "input"):
            forget(story.plan(), lambda _: None)
    assert tables(story.mine) == before
    story.clean()
    assert story.plan().landed["payments"].removed
    story.forget()
    story.land([(4, "ann", 4), (4, "bob", 1), (2, "eve", 9)], "second.parquet")
    story.mine.ran((4, 5))
    story.never.ran((4, 5))
    assert set(tables(story.mine)) == set(tables(story.never))
    story.forget().ran((6, 6)).agrees()


def test_ended_anywhere_it_is_ended_by_the_next(tmp_path: Path) -> None:
    """Between two moments all is as before, or without the rows; ticks go on from either."""
    story = Story(tmp_path, IN_ALL).land(IN_TIME).ran((0, 1), (2, 3))
    story.clean()
    before, first = tables(story.mine), story.plan().first
    assert first == 0
    for moment in MOMENTS:
        assert end_at(story, moment), moment
        if moment == "ledger":
            story.never.correct(first)
        counted = MOMENTS.index(moment) >= MOMENTS.index("ledger")
        assert tables(story.mine) == (tables(story.never) if counted else before), moment
        assert not story.plan().is_nothing, moment
        directory = story.mine.runner.directory(story.mine.flow)
        assert verify(directory, measure).problems == (), moment
        if moment == "ledger":
            story.land([(4, "bob", 1)]).ran((4, 4))
    story.forget().land([(5, "cat", 1), (2, "eve", 1)]).ran((5, 6)).agrees()


def test_late_rows_are_read_with_their_own_ticks_and_none_is_lost(tmp_path: Path) -> None:
    story = Story(tmp_path, BY_KEY).land(IN_TIME).ran((0, 3)).land(LATE).ran((4, 4))
    story.land([(1, "fay", 7), (1, "ann", 2), (7, "ann", 1)])
    story.forget()
    assert story.mine.waiting == {}
    story.ran((5, 5)).agrees()


def test_a_table_that_is_too_large_to_compare_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which rows of its files are gone is not known, so their ticks are computed again."""
    monkeypatch.setattr(changes, "_COMPARED", 0)
    story = Story(tmp_path, IN_ALL).land(IN_TIME).ran((0, 3)).land(LATE)
    story.forget().ran((4, 4)).agrees()


@pytest.mark.parametrize("decided", [False, True])
def test_rows_that_had_gone_before_are_not_taken_for_theirs(
    tmp_path: Path, refused: Refused, decided: bool
) -> None:
    """Somebody else's day was removed, which a tick has noticed: it is not lost by this."""
    story = Story(tmp_path, IN_ALL).land(IN_TIME).ran((0, 3))
    DeltaTable(story.mine.place).delete("tick = 0 and user = 'bob'")
    story.mine.ran((4, 4))
    if decided:
        story.mine.accept()
    before = tables(story.mine)
    story.clean()
    with refused(DataError, "state"):
        story.plan()
    assert tables(story.mine) == before
    story.mine.correct(0)
    DeltaTable(story.never.place).delete("tick = 0 and user = 'bob'")
    story.never.ran((4, 4)).correct(0)
    story.forget()


def test_whoever_reads_the_outputs_is_told_and_forgets_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flow behind it has its change, though the history of what it has read is gone."""
    shop, never = Shop(tmp_path / "mine").serve(monkeypatch), Shop(tmp_path / "never")
    land(never.settings, [[row for row in rows if row[0] != "ann"] for rows in BATCHES])
    for one in (shop, never):
        one.run(2)
    DeltaTable(shop.settings.landing / "small" / "payments").delete("user = 'ann'")
    words = ["--where", "user=ann", "--yes"]
    assert main(["forget", "peaks", *words]) == 1
    assert "forget them in `small` first" in capsys.readouterr().err
    assert main(["forget", "small", *words]) == 0
    assert "Forget them next in what reads the same, or what this gives: `peaks`" in (
        capsys.readouterr().out
    )
    shop.runner = TickRunner(shop.settings)
    assert missing(shop.peaks, look(shop.runner, shop.peaks))["totals"].says_changed
    assert main(["forget", "peaks", *words]) == 0
    for name in ("small", "peaks"):
        assert having(shop.settings.pipelines / name, "ann") == []
        assert main(["forget", name, "--where", "user=ann", "--dry-run"]) == 0
    shop.runner = TickRunner(shop.settings)
    assert shop.run(3).contents() == never.run(3).contents()


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
    _, runner = served
    asked = ["forget", "small", "--where", "user=ann"]
    dry = [*asked, "--dry-run", "--format", "json"]
    assert main(dry) == 3
    told = json.loads(capsys.readouterr().out)
    assert (told["landed"]["payments"]["rows"], told["first"], told["ticks"]) == (4, None, 0)
    assert told["stored"]["outputs/totals"] > 0
    for wrong, said in {
        "who=ann": "no input has such a column",
        "user": "there is no `=`",
        "amount=x": "amount=x",
    }.items():
        assert main(["forget", "small", "--where", wrong, "--dry-run"]) == 1
        assert said in capsys.readouterr().err
    assert main([*asked, "--yes"]) == 1
    assert "would bring them back" in capsys.readouterr().err
    DeltaTable(runner.project.landing / "small" / "payments").delete("user = 'ann'")
    assert main(dry) == 3
    told = json.loads(capsys.readouterr().out)
    assert (told["landed"]["payments"]["rows"], told["first"]) == (0, "2026-01-01")
    assert main([*asked, "--yes"]) == 0
    assert "forgotten in" in capsys.readouterr().out
    assert main([*asked, "--dry-run"]) == 0
    assert "Nothing is known to be there" in capsys.readouterr().out
    code = main(["status", "small", "--verify"])
    assert code == 0, capsys.readouterr()


def test_a_number_is_found_in_its_column_alone(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["forget", "small", "--where", "amount=10", "--dry-run"]) == 3
    assert "landing/payments  1 row(s)" in capsys.readouterr().out
    assert main(["forget", "small", "--where", "amount=0", "--dry-run"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["outputs/totals", "ledger", "vacuumed", "noted"])
def test_killed_it_is_ended_by_the_next(tmp_path: Path, moment: str) -> None:
    flow, runner = opened(tmp_path / "mine")
    never, knows = opened(tmp_path / "never")
    land(knows.project, [[row for row in rows if row[0] != "ann"] for rows in BATCHES])
    windows = [flow.ticks.calendar.window(tick) for tick in range(len(BATCHES))]
    for one in (runner, knows):
        assert all(report.committed for report in one.run(flow, windows, lambda _: None))
    before, after = contents(flow, runner), contents(never, knows)
    DeltaTable(runner.project.landing / "small" / "payments").delete("user = 'ann'")
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
    assert contents(flow, runner) == (before if moment == "outputs/totals" else after)
    plan = forget_plan(runner, flow, {"payments": ("user", "ann")})
    assert not plan.is_nothing
    forget(plan, lambda _: None)
    assert contents(flow, runner) == after
    assert having(runner.directory(flow), "ann") == []
    assert verify(runner.directory(flow), measure).problems == ()


class Told:
    """A random story: what is done, one after the other."""

    def __init__(self, home: Path, seed: int) -> None:
        self.rng = Random(seed)
        self.program = self.rng.choice([BY_KEY, IN_ALL])
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
        self.story.clean()
        first = self.story.plan().first
        if self.rng.random() < 0.5:
            self.said.append(self.rng.choice(MOMENTS))
            end_at(self.story, self.said[-1])
        if first is not None and self.story.plan().first is None:
            self.story.never.correct(first)
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
    story = Story(tmp_path, BY_KEY, kind="parquet")
    if done:
        story.land([(0, "bob", 1), (1, "eve", 2)], "before.parquet").ran((0, done - 1))
    story.land([(done, "ann", 5), (done, "bob", 1)], "after.parquet")
    _killed_before_its_commit(story, done)
    directory = story.mine.runner.directory(story.mine.flow)
    assert having(directory, PERSON)
    story.clean()
    forget(story.plan(), lambda _: None)
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
