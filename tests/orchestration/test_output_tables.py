"""Outputs as people read them: a Delta table that is the output as of the last committed tick.

Whatever is done to a flow, in whichever order: what any reader of Delta finds is what the ledger
says, or, after a kill between the two, what it said before.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.errors import ProgramError
from hydro_core.project.flow_asset import FlowAsset, KeptOutput
from hydro_core.spark.pipeline.copies import copy_pipeline, verify
from hydro_core.spark.store.outputs.published import PUBLISHED
from hydrotick.cli.backfill import run_ticks
from hydrotick.code_location.asset_specs import asset_key
from hydrotick.code_location.factory import project_definitions
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.changing import rewrite
from tests.orchestration.small import land, opened, serve
from tests.support.refused import Refused
from tests.support.selection import mostly_slow

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

TABLE = KeptOutput("table")
PROGRAM = """
payments = source("user string, amount long")
payments -> persist() -> aggregate(by="user", total=sum("amount"), n=count()) -> totals
payments -> persist() -> everything
payments -> window(2) -> lately
payments -> today
payments -> sort_by_key(lambda p: p.amount) -> in_order
payments -> persist() -> aggregate(mean=avg("amount")) -> mean
"""
OTHER = """
payments = source("user string, amount long")
sums = persist() -> aggregate(by="user", total=sum("amount"), n=count(), m=max("amount"))
payments -> sums -> totals
payments -> persist() -> with_columns(amount=lambda p: p.amount + 1) -> everything
payments -> window(3) -> lately
payments -> today
payments -> sort_by_key(lambda p: p.amount) -> in_order
payments -> persist() -> filter(lambda p: p.amount > 2) -> large
"""
OUTPUTS = ("totals", "everything", "lately", "today", "in_order", "mean")
Rows = list[list[tuple[str, int]]]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


def published(directory: Path) -> Mapping[str, Counter[str]]:
    """What a reader that knows of nothing but Delta finds in each table."""
    return {
        place.name: bag(DeltaTable(place).to_pyarrow_table())
        for place in sorted((directory / PUBLISHED).iterdir())
    }


def bag(rows: pa.Table) -> Counter[str]:
    return Counter(repr(tuple(sorted(row.items()))) for row in rows.to_pylist())


def logged(flow: FlowAsset, runner: TickRunner) -> Mapping[str, Counter[str]]:
    """The outputs as of the last tick, as their logs have them."""
    pipeline = runner.pipeline(flow)
    last = pipeline.last_committed
    if last is None or last < 0:
        return {name: Counter() for name in flow.tables if name in pipeline.output_tables}
    return {
        name: bag(pipeline.output(name, last).drop_columns(["tick"]))
        for name in flow.tables
        if name in pipeline.output_tables
    }


def assert_same(flow: FlowAsset, runner: TickRunner) -> None:
    directory = runner.directory(flow)
    assert published(directory) == logged(flow, runner)
    found = verify(directory)
    assert not found.problems, found.problems
    assert not [note for note in found.notes if PUBLISHED in note], found.notes
    assert runner.behind(flow) == ()


def begun(home: Path, program: str = PROGRAM) -> tuple[FlowAsset, TickRunner]:
    flow, runner = opened(home)
    rewrite(flow, program)
    return replace(flow, expect={}, outputs=dict.fromkeys(OUTPUTS, TABLE)), runner


class Story:
    """What an operator does to a flow, at random."""

    def __init__(self, home: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rng = Random(seed)
        self.flow, self.runner = begun(home)
        self.rows: Rows = [self._batch() for _ in range(12)]
        self.deployed = [PROGRAM]
        self.monkeypatch = monkeypatch
        self.told: list[str] = []
        self.vacuumed = False
        land(self.runner.project, self.rows)
        self.served()

    def served(self) -> None:
        serve(self.monkeypatch, [self.flow], self.runner.project)

    def _batch(self) -> list[tuple[str, int]]:
        count = self.rng.choice((0, 1, 2, 2, 4))
        return [(self.rng.choice("abc"), self.rng.randint(1, 4)) for _ in range(count)]

    @property
    def done(self) -> int:
        return self.runner.next_tick(self.flow)

    def tick(self) -> None:
        last = min(self.done + self.rng.randint(0, 2), len(self.rows) - 1)
        together = self.rng.randint(1, 3)
        list(run_ticks(self.flow, self.runner, last, lambda _: None, together=together))

    def killed(self) -> None:
        """The process ends between the ledger's row and the tables, or after some of them."""
        if self.done >= len(self.rows):
            return
        step = self.rng.choice(("to publish", "published totals", "published today"))

        def stop(name: str) -> None:
            if name == step:
                raise _Killed

        pipeline = self.runner.pipeline(self.flow)
        pipeline.step = stop
        window = self.flow.ticks.calendar.window(self.done)
        with suppress(_Killed):
            list(self.runner.run(self.flow, [window], lambda _: None))
        before = self.done
        self.runner = TickRunner(self.runner.project)
        assert self.done == before
        if self.flow.tables and before < len(self.rows):
            # What is behind is brought up before the next tick, also where that one fails.
            list(run_ticks(self.flow, self.runner, before, lambda _: None))

    def correct(self) -> None:
        if not self.done:
            return
        first = self.rng.randrange(self.done)
        self.rows[first] = [*self.rows[first][1:], *self._batch()]
        land(self.runner.project, self.rows)
        window = self.flow.ticks.calendar.window(first)
        for report in self.runner.correct(self.flow, window, lambda _: None):
            assert report.committed, report.problem

    def deploy(self) -> None:
        text = OTHER if self.deployed[-1] == PROGRAM else PROGRAM
        if not self.done:
            return
        rewrite(self.flow, text)
        names = [n for n in (*OUTPUTS, "large") if f"-> {n}\n" in text]
        self.flow = replace(self.flow, outputs=dict.fromkeys(names, TABLE))
        self.served()
        options = self.rng.choice(([], ["--from-now"], ["--forward-only"]))
        if main(["deploy", "small", "--yes", *options]):
            assert options, "it can be deployed"
            assert main(["deploy", "small", "--yes"]) == 0
        self.runner = TickRunner(self.runner.project)
        self.deployed.append(text)

    def rollback(self) -> None:
        if len(self.deployed) < 2:
            return
        assert main(["rollback", "small", "--yes"]) == 0
        self.deployed.pop()
        rewrite(self.flow, self.deployed[-1])
        self.runner = TickRunner(self.runner.project)
        self.flow = replace(
            self.flow,
            outputs={n: TABLE for n in (*OUTPUTS, "large") if f"-> {n}\n" in self.deployed[-1]},
        )
        self.served()
        self.runner.pipeline(self.flow).compact()

    def rewind(self) -> None:
        if self.vacuumed or len(self.deployed) > 1:
            return
        ledger = self.runner.pipeline(self.flow).ledger
        ends = [c.last for c in ledger.commits() if c.ticks and c.last < self.done - 1]
        there = ledger.commit_of(ends[-1]) if ends else None
        if there is not None and there.last == ends[-1]:
            self.runner.pipeline(self.flow).rewind(ends[-1])

    def compact(self) -> None:
        if self.done:
            hours = self.rng.choice((0, 24))
            self.vacuumed |= hours == 0
            self.runner.pipeline(self.flow).compact(keep_hours=hours)

    def as_log(self) -> None:
        """An output is a log again, and then a table."""
        if not self.done:
            return
        tables = dict(self.flow.outputs)
        name = self.rng.choice(sorted(tables))
        self.flow = replace(self.flow, outputs={n: t for n, t in tables.items() if n != name})
        self.runner.pipeline(self.flow).compact()
        assert_same(self.flow, self.runner)
        self.flow = replace(self.flow, outputs=tables)
        self.runner.pipeline(self.flow).compact()

    def tell(self, steps: int) -> None:
        acts: list[Callable[[], None]] = [
            self.tick, self.tick, self.tick, self.killed, self.correct, self.deploy,
            self.rollback, self.rewind, self.compact, self.as_log,
        ]  # fmt: skip
        self.tick()
        for _ in range(steps):
            act = self.rng.choice(acts)
            self.told.append(f"{act.__name__} at {self.done}")
            act()
            assert_same(self.flow, self.runner)


class _Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("seed", mostly_slow(range(40), 1))
def test_whatever_is_done(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(tmp_path, seed, monkeypatch)
    try:
        story.tell(8)
    except Exception as problem:
        raise AssertionError("\n".join(story.told)) from problem


def test_any_reader_of_delta_reads_them(tmp_path: Path, spark: SparkSession) -> None:
    """DuckDB and Spark, which know nothing of hydrotick; each version is a tick."""
    flow, runner = begun(tmp_path)
    list(run_ticks(flow, runner, 3, lambda _: None))
    place = runner.directory(flow) / PUBLISHED / "totals"
    totals = DeltaTable(place).to_pyarrow_dataset()
    asked = "SELECT user, total, n FROM totals ORDER BY user"
    wanted = [("ann", 211, 4), ("bob", 2, 1), ("cat", 3, 1)]
    assert duckdb.sql(asked).fetchall() == wanted
    assert totals.count_rows() == 3
    frame = spark.read.format("delta").load(str(place)).orderBy("user")
    assert [tuple(row) for row in frame.select("user", "total", "n").collect()] == wanted
    lately = DeltaTable(runner.directory(flow) / PUBLISHED / "lately")
    assert bag(lately.to_pyarrow_table()) == bag(
        pa.table({"user": ["cat", "ann", "ann"], "amount": [3, 100, 100]})
    ), "a row that is there twice stands twice"
    changes = pa.table(DeltaTable(place).load_cdf(starting_version=0).read_all())
    told = Counter(changes["_change_type"].to_pylist())
    assert told == {"insert": 3, "update_preimage": 2, "update_postimage": 2}


def test_a_version_is_a_tick(tmp_path: Path) -> None:
    """A reader of a version finds what the output was at a tick, and the log says at which."""
    flow, runner = begun(tmp_path)
    list(run_ticks(flow, runner, 3, lambda _: None))
    table = DeltaTable(runner.directory(flow) / PUBLISHED / "totals")
    pipeline, seen = runner.pipeline(flow), []
    for entry in table.history():
        if "hydrotick" not in entry:
            continue
        tick = int(str(entry["hydrotick"]).removeprefix("as of tick "))
        then = DeltaTable(table.table_uri, version=entry["version"]).to_pyarrow_table()
        assert bag(then) == bag(pipeline.output("totals", tick).drop_columns(["tick"]))
        seen.append(tick)
    assert seen == [3, 2, 1, 0]


def test_what_does_not_grow_is_not_appended_to(tmp_path: Path, refused: Refused) -> None:
    flow, runner = begun(tmp_path)
    flow = replace(
        flow, outputs={"everything": KeptOutput("append"), "lately": KeptOutput("append")}
    )
    with refused(ProgramError, "config") as caught:
        runner.deployments.prepare(flow)
    assert "`everything`" not in str(caught.value)
    flow = replace(flow, outputs={"everything": KeptOutput("append")})
    list(run_ticks(flow, runner, 3, lambda _: None))
    assert_same(flow, runner)
    table = DeltaTable(runner.directory(flow) / PUBLISHED / "everything")
    assert {entry["operation"] for entry in table.history()} <= {"CREATE TABLE", "WRITE"}


def test_what_was_forgotten_is_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow, runner = begun(tmp_path)
    list(run_ticks(flow, runner, 3, lambda _: None))
    serve(monkeypatch, [flow], runner.project)
    DeltaTable(runner.project.landing / "small" / "payments").delete("user = 'ann'")
    assert main(["forget", "small", "--where", "user=ann", "--yes"]) == 0
    runner = TickRunner(ProjectSettings(home=tmp_path, spark_master="local[2]"))
    assert_same(flow, runner)
    files = list((runner.directory(flow) / PUBLISHED).rglob("*.parquet"))
    assert files
    assert not [file for file in files if b"ann" in file.read_bytes()]


def test_it_stays_right_where_somebody_else_has_written(tmp_path: Path) -> None:
    flow, runner = begun(tmp_path)
    list(run_ticks(flow, runner, 1, lambda _: None))
    table = DeltaTable(runner.directory(flow) / PUBLISHED / "totals")
    table.delete("user = 'ann'")
    assert verify(runner.directory(flow)).notes
    list(run_ticks(flow, runner, 2, lambda _: None))
    assert_same(flow, runner)


def test_in_shards_and_in_the_ui(tmp_path: Path) -> None:
    program = PROGRAM.replace("payments -> persist() -> aggregate(mean=avg", "# ")
    program = program.replace("payments -> sort_by_key", "# ")
    flow, runner = opened(tmp_path, shards=2)
    rewrite(flow, program)
    flow = replace(flow, expect={}, outputs={"totals": TABLE, "lately": TABLE, "everything": "All"})
    list(run_ticks(flow, runner, 3, lambda _: None, together=2))
    assert_same(flow, runner)
    made = project_definitions([flow], runner).resolve_asset_graph()
    totals, everything = (made.get(asset_key(flow, name)) for name in ("totals", "everything"))
    place = runner.directory(flow) / PUBLISHED / "totals"
    assert totals.metadata["table"].value == str(place)
    assert "table" not in everything.metadata


def test_copies_leave_them_out_and_the_next_tick_makes_them(tmp_path: Path) -> None:
    flow, runner = begun(tmp_path / "home")
    list(run_ticks(flow, runner, 1, lambda _: None))
    directory = runner.directory(flow)
    copy_pipeline(directory, tmp_path / "copy")
    assert (tmp_path / "copy" / "outputs").exists()
    assert not (tmp_path / "copy" / PUBLISHED).exists()
    shutil.rmtree(directory / PUBLISHED)
    assert set(runner.behind(flow)) == set(OUTPUTS)
    list(run_ticks(flow, runner, 2, lambda _: None))
    assert_same(flow, runner)


def test_a_table_goes_when_its_output_does_and_not_before(tmp_path: Path) -> None:
    """The program, and what is said beside it, have lost an output; ticks go on with it."""
    flow, runner = begun(tmp_path)
    list(run_ticks(flow, runner, 1, lambda _: None))
    rewrite(flow, PROGRAM.replace("payments -> today", "# "))
    without = replace(flow, outputs={name: TABLE for name in OUTPUTS if name != "today"})
    list(run_ticks(without, runner, 2, lambda _: None))
    assert_same(flow, runner)
    rewrite(flow, PROGRAM)
    list(run_ticks(without, runner, 3, lambda _: None))
    assert set(published(runner.directory(flow))) == set(OUTPUTS) - {"today"}
    assert_same(without, runner)
