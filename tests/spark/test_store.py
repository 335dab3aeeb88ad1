"""State on disk: a tick is committed whole or not at all, whatever ends its process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from hydro_core.errors import DataError, ProgramError, TransientError
from hydro_core.spark.inputs.batches import batch_of
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger
from hydro_core.types.ddl import parse_ddl
from tests.spark.pipelines import (
    OUTPUTS,
    PROGRAM,
    SETTINGS,
    Crash,
    batch,
    contents,
    crash_at,
    opened,
)
from tests.support.refused import Refused
from tests.support.selection import alternately_slow

pytestmark = pytest.mark.spark

TICKS = 3


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    pipeline = opened(tmp_path_factory.mktemp("uninterrupted"))
    for tick in range(TICKS):
        pipeline.run_tick(tick, batch(tick))
    return contents(pipeline)


@pytest.fixture(scope="module")
def two_ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("two") / "pipeline"
    pipeline = opened(directory)
    for tick in range(2):
        pipeline.run_tick(tick, batch(tick))
    return directory


@pytest.fixture
def committed(two_ticks: Path, tmp_path: Path) -> Path:
    """A pipeline with two committed ticks, of the test's own."""
    return Path(shutil.copytree(two_ticks, tmp_path / "pipeline"))


def finish(directory: Path) -> dict[str, list[str]]:
    """What there is when all ticks have run, those that are missing from here on."""
    pipeline = opened(directory)
    for tick in range(pipeline.next_tick, TICKS):
        pipeline.run_tick(tick, batch(tick))
    return contents(pipeline)


def test_a_tick_gives_rows_and_a_line_in_the_ledger(committed: Path) -> None:
    pipeline = opened(committed)
    assert (pipeline.last_committed, pipeline.next_tick) == (1, 2)
    commit = pipeline.run_tick(2, batch(2))
    assert pipeline.output("notify").num_rows == 3 * 2 + 1 * 4
    counts = sorted(pipeline.output("counts").to_pylist(), key=lambda row: row["user"])
    assert counts == [{"tick": 2, "user": "u0", "n": 3}, {"tick": 2, "user": "u1", "n": 3}]
    assert sorted(pipeline.output("before", as_of=1)["text"].to_pylist()) == ["0.0", "0.1"]
    assert pipeline.output("everything", as_of=1).num_rows == 4
    assert pipeline.output_frame("everything").count() == 6
    assert {i.name: i.rows for i in commit.inputs} == {"members": 1, "messages": 2}
    assert commit.rows["outputs/notify"] == 10
    assert Ledger(committed).last == commit


def test_ordered_outputs_have_positions(committed: Path) -> None:
    rows = opened(committed).output("in_order").to_pylist()
    assert sorted((r["position"], r["user"], r["text"]) for r in rows) == [
        (0, "u0", "1.0"),
        (1, "u1", "1.1"),
    ]


def test_a_range_gives_what_its_ticks_give(
    tmp_path: Path, uninterrupted: dict[str, list[str]]
) -> None:
    schemas = {"members": "user string", "messages": "user string, text string"}
    pipeline = opened(tmp_path / "pipeline")
    pipeline.run_tick(0, batch(0))
    parts = {
        name: pa.concat_tables(
            batch(t)[name].append_column("at", pa.array([t] * batch(t)[name].num_rows))
            for t in range(1, TICKS)
        )
        for name in schemas
    }
    given = {n: batch_of(n, rows, parse_ddl(schemas[n]), "at") for n, rows in parts.items()}
    pipeline.run_range(1, TICKS - 1, given)
    assert contents(pipeline) == uninterrupted


def test_large_results_go_through_files_and_are_the_same(
    tmp_path: Path, uninterrupted: dict[str, list[str]]
) -> None:
    """With a bound of no rows Spark writes all; with 3, what was thought small proves large."""
    for bound in (0, 3):
        directory = tmp_path / str(bound)
        pipeline = opened(directory, settings=SETTINGS.with_(small_write_rows=bound))
        for tick in range(TICKS):
            pipeline.run_tick(tick, batch(tick))
        assert contents(pipeline) == uninterrupted
        assert list((directory / "outputs/notify/staged").iterdir())


STEPS = ("state/", "outputs/notify", "compacted", "ledger")


@pytest.mark.parametrize(
    ("step", "at"),
    alternately_slow(STEPS, [0, 2]),
)
def test_after_a_crash_the_next_run_goes_on(
    tmp_path: Path, committed: Path, uninterrupted: dict[str, list[str]], step: str, at: int
) -> None:
    directory = committed if at else tmp_path / "new"
    pipeline = opened(directory)
    name = next(t.name for t in pipeline.tables) if step == "state/" else step
    pipeline.step = crash_at(name)
    with pytest.raises(Crash):
        pipeline.run_tick(at, batch(at))
    done = at if step == "ledger" else at - 1
    assert (opened(directory).last_committed or -1) == (done or -1)
    assert finish(directory) == uninterrupted


def test_a_crash_between_tables_shows_nothing_to_readers(committed: Path) -> None:
    pipeline = opened(committed)
    before = contents(pipeline)
    pipeline.step = crash_at("tables")
    with pytest.raises(Crash):
        pipeline.run_tick(2, batch(2))
    assert contents(opened(committed)) == before


KILLED = """
import os, signal, sys
from pathlib import Path
from hydro_core.types.ddl import parse_ddl
from tests.spark.pipelines import batch, opened
from tests.support.selection import alternately_slow
pipeline = opened(Path(sys.argv[1]))
def step(name):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
pipeline.step = step
pipeline.run_tick(pipeline.next_tick, batch(pipeline.next_tick))
"""


@pytest.mark.parametrize(
    "step", ["outputs/notify", pytest.param("compacted", marks=pytest.mark.slow)]
)
def test_after_a_kill_the_next_run_goes_on(
    committed: Path, uninterrupted: dict[str, list[str]], step: str
) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(committed), step],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
        timeout=180,
    )
    assert done.returncode == -signal.SIGKILL
    assert finish(committed) == uninterrupted


def test_a_tick_out_of_order_is_refused(committed: Path, refused: Refused) -> None:
    pipeline = opened(committed)
    with refused(TransientError, "state"):
        pipeline.run_tick(3, batch(3))
    with refused(TransientError, "state"):
        pipeline.run_tick(1, batch(1))


def test_the_first_tick_is_0(tmp_path: Path, refused: Refused) -> None:
    with refused(TransientError, "state"):
        opened(tmp_path / "pipeline").run_tick(5, batch(5))
    assert not (tmp_path / "pipeline" / LEDGER).exists()


def test_a_second_writer_is_refused_until_the_first_has_decided(committed: Path) -> None:
    one, two = opened(committed), opened(committed)
    with (
        one.prepare(2, 2, batch(2)),
        pytest.raises(TransientError, match="another writer") as caught,
    ):
        two.run_tick(2, batch(2))
    assert caught.value.code == "state"
    two.run_tick(2, batch(2))
    assert one.last_committed == 2


def test_what_is_prepared_can_be_looked_at_and_given_up(
    committed: Path, uninterrupted: dict[str, list[str]]
) -> None:
    pipeline = opened(committed)
    before = contents(pipeline)
    prepared = pipeline.prepare(2, 2, batch(2))
    assert prepared.outputs["notify"].rows == prepared.outputs["notify"].arrow().num_rows == 10
    changed = prepared.outputs["counts"].frame(pipeline.spark).select("user", "copies").collect()
    assert sorted(map(tuple, changed)) == [("u0", -1), ("u0", 1), ("u1", -1), ("u1", 1)]
    assert prepared.state["messages"].rows == 2
    prepared.abandon()
    assert contents(pipeline) == before
    with pytest.raises(RuntimeError, match="already"):
        prepared.commit()
    assert finish(committed) == uninterrupted


def test_going_back_takes_later_ticks_away(
    committed: Path, uninterrupted: dict[str, list[str]], refused: Refused
) -> None:
    before = contents(opened(committed))
    pipeline = opened(committed)
    for tick in (2, 3):
        pipeline.run_tick(tick, batch(tick, messages=5))
    pipeline.rewind(1)
    assert (pipeline.next_tick, opened(committed).last_committed) == (2, 1)
    assert contents(pipeline) == before
    assert finish(committed) == uninterrupted
    pipeline.rewind(-1)
    assert pipeline.next_tick == 0
    assert finish(committed) == uninterrupted
    with refused(DataError, "state"):
        pipeline.rewind(TICKS - 1)


@pytest.mark.parametrize("bound", [0, 100])
def test_small_files_are_joined(tmp_path: Path, bound: int) -> None:
    settings = SETTINGS.with_(small_write_rows=bound)
    plain = opened(tmp_path / "plain", settings=settings)
    joined = opened(tmp_path / "joined", settings=settings.with_(compact_every=2))
    for tick in range(3):
        plain.run_tick(tick, batch(tick))
        joined.run_tick(tick, batch(tick))
    files = [sum(len(t.files()) for t in p.store.tables.values()) for p in (plain, joined)]
    assert files[0] > files[1]
    assert contents(joined) == contents(plain)
    plain.compact(keep_hours=0)
    joined.compact(keep_hours=0)
    for pipeline in (plain, joined):
        assert len(list(state_of(pipeline, "messages").rglob("*.parquet"))) == 1
        pipeline.run_tick(3, batch(3))
    assert contents(joined) == contents(plain)


def test_another_program_is_refused(committed: Path, refused: Refused) -> None:
    other = opened(committed, PROGRAM.replace("-> before", "-> sort() -> before"))
    with refused(DataError, "state"):
        other.run_tick(2, batch(2))


def test_the_same_program_under_other_names_goes_on(committed: Path) -> None:
    same = opened(committed, PROGRAM.replace("broadcast", "all_pairs"))
    assert same.run_tick(2, batch(2)).last == 2


def test_a_missing_table_is_a_state_error(committed: Path, refused: Refused) -> None:
    shutil.rmtree(committed / "outputs/notify")
    with refused(DataError, "state"):
        opened(committed).run_tick(2, batch(2))


def test_a_missing_ledger_is_a_state_error(committed: Path, refused: Refused) -> None:
    shutil.rmtree(committed / LEDGER)
    with refused(DataError, "state"):
        opened(committed).run_tick(0, batch(0))


def state_of(pipeline: Pipeline, slot: str) -> Path:
    return pipeline.directory / pipeline.state_tables[slot].name


def test_a_missing_file_is_a_state_error(committed: Path, refused: Refused) -> None:
    pipeline = opened(committed)
    next(state_of(pipeline, "messages").glob("*.parquet")).unlink()
    with refused(DataError, "state"):
        pipeline.run_tick(2, batch(2))


@pytest.mark.parametrize("few_rows", [0, 100_000])
def test_a_broken_file_is_a_state_error(committed: Path, few_rows: int, refused: Refused) -> None:
    pipeline = opened(committed, settings=SETTINGS.with_(few_rows=few_rows))
    for file in state_of(pipeline, "messages").glob("*.parquet"):
        file.write_bytes(b"PAR1 nothing of use PAR1")
    with refused(DataError, "state") as caught:
        pipeline.run_tick(2, batch(2))
    assert "at org." not in str(caught.value)


def test_a_log_that_ends_too_early_is_a_state_error(committed: Path, refused: Refused) -> None:
    pipeline = opened(committed)
    table = state_of(pipeline, "messages")
    version = DeltaTable(table).version()
    (table / "_delta_log" / f"{version:020}.json").unlink()
    with refused(DataError, "state"):
        pipeline.run_tick(2, batch(2))


def test_a_failed_tick_commits_nothing(committed: Path, refused: Refused) -> None:
    before = contents(opened(committed))
    data = {**batch(2), "messages": pa.table({"user": ["u"], "text": [7]})}
    pipeline = opened(committed)
    with refused(DataError, "input"):
        pipeline.run_tick(2, {"messages": pa.table({"user": ["u"]})})
    with refused(DataError, "input"):
        pipeline.run_tick(2, {"mesages": data["messages"]})
    assert contents(pipeline) == before
    pipeline.run_tick(2, batch(2))


def test_an_output_column_named_as_ours_is_refused(tmp_path: Path, refused: Refused) -> None:
    for column in ("tick", "Tick", "position"):
        program = f'a = source("{column} long")\na -> sort() -> out'
        with refused(ProgramError, "type"):
            opened(tmp_path, program)
    opened(tmp_path, 'a = source("position long")\na -> out')


def test_untyped_nulls_are_stored(tmp_path: Path) -> None:
    program = "a = source('long')\nb = null()\na -> cross(right=b) -> persist() -> out"
    pipeline = opened(tmp_path / "pipeline", program.replace("'", '"'))
    for tick in range(2):
        pipeline.run_tick(tick, {"a": pa.table({"item": [tick]})})
    assert pipeline.output("out").num_rows == 0


def test_state_stays_readable_as_of_every_tick(committed: Path, refused: Refused) -> None:
    pipeline = opened(committed)
    assert [pipeline.output("everything", as_of=t).num_rows for t in (0, 1)] == [2, 4]
    for tick in (2, 7):
        with refused(DataError, "state"):
            pipeline.output("everything", as_of=tick)
    with refused(DataError, "name"):
        pipeline.output("nothing")
    assert set(OUTPUTS) == set(pipeline.output_tables)
