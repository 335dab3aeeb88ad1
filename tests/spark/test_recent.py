"""Rows that leave by a time of theirs: as the reference says, however ticks are cut and stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hydro_core.analysis.partition.partitioning import partition
from hydro_core.compile import CompiledProgram, best_plan, compile_graph, optimized, planned
from hydro_core.engines import Options, ShardingOptions
from hydro_core.errors import DataError
from hydro_core.lang.resolve import parse
from hydro_core.plan.planner import plan
from hydro_core.running import read_ticks, run_items
from hydro_core.settings import Settings
from hydro_core.spark.executor.memory import Memory
from hydro_core.spark.pipeline.jobs import alive_rows
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.prepared import RangeRequest
from hydro_core.spark.session.session import few_rows_session
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.ddl import parse_ddl
from hydro_core.validation.simulation.pipelines import on_pipelines
from hydro_core.validation.simulation.simulate import Case, RankedItem, Simulation, Subject
from tests.laws.recent_programs import RecentProgram, recent_program
from tests.spark.pipelines import SETTINGS
from tests.support.refused import Refused
from tests.support.selection import mostly_slow
from tests.support.stored import FEW, stored_outputs

pytestmark = pytest.mark.spark

START = datetime(2023, 12, 28, tzinfo=UTC)
DAYS = Calendar(START, "1d")
CUTS = ((1, 1, 1, 1, 1, 1), (2, 3, 1), (6,), (1, 5), (3, 3), (1, 1, 4))
SECONDS = 30


def compiled_of(made: RecentProgram) -> CompiledProgram:
    types = {name: parse_ddl(text) for name, text in made.schemas.items()}
    return compile_graph(parse(made.text), types)


def case_of(made: RecentProgram, compiled: CompiledProgram, seed: int) -> Case:
    rng = Random(seed)
    ticks = tuple(
        {n: tuple(RankedItem(rng.random(), x) for x in items) for n, items in tick.batches.items()}
        for tick in read_ticks(compiled.typed, made.ticks)
    )
    return Case(ticks, CUTS[seed % len(CUTS)])


def check(
    seed: int, engine: Callable[[CompiledProgram], Callable[[Case], Sequence[Outputs]]]
) -> None:
    made = recent_program(seed)
    compiled = compiled_of(made)
    found = Simulation(Subject(compiled, DAYS.window), engine(compiled)).check(
        case_of(made, compiled, seed), SECONDS
    )
    assert found is None, f"{made.schemas}\n{made.text}\n{found}"


@pytest.mark.parametrize("seed", mostly_slow(range(300), 3))
def test_in_memory(seed: int, spark: SparkSession) -> None:
    def engine(compiled: CompiledProgram) -> Callable[[Case], Sequence[Outputs]]:
        def run(case: Case) -> Sequence[Outputs]:
            by = optimized(compiled) if seed % 3 else compiled
            memory = Memory(plan(by.typed), few_rows_session(spark), Settings())
            ticks = iter(case.inputs(DAYS.window))
            return [
                outputs
                for length in case.ranges
                for outputs in memory.run([next(ticks) for _ in range(length)])
            ]

        return run

    check(seed, engine)


@pytest.mark.parametrize("seed", mostly_slow(range(1000, 1040), 1))
def test_on_tables(seed: int, spark: SparkSession) -> None:
    check(seed, lambda compiled: on_pipelines(compiled, DAYS.window, SETTINGS))


@pytest.mark.parametrize("mode", ["few", pytest.param("many", marks=pytest.mark.slow), "switched"])
@pytest.mark.parametrize("seed", mostly_slow(range(2000, 2020), 1))
def test_stored(seed: int, mode: str, spark: SparkSession, tmp_path: Path) -> None:
    """What is committed reads the same when later ticks have taken rows out of the state."""
    made = recent_program(seed)
    compiled = compiled_of(made)
    ticks = list(read_ticks(compiled.typed, made.ticks, DAYS))
    wanted = list(run_items(compiled, ticks, Options(optimized=False)))
    found = stored_outputs(tmp_path, compiled, ticks, mode, spark)
    assert _as_bags(found) == _as_bags(wanted), made.text


TWO_WINDOWS = """
day = a -> persist(for_=timedelta(days=1), by="at")
days = a -> persist(for_=timedelta(days=3), by="at")
day -> aggregate(n=count()) -> of_a_day
days -> changes() -> of_days
"""


@pytest.mark.parametrize("mode", ["few", "many"])
def test_two_windows_over_one_input(mode: str, spark: SparkSession, tmp_path: Path) -> None:
    """Rows leave the shorter one while the longer one, in whose table they stand, has them."""
    compiled = compile_graph(parse(TWO_WINDOWS), {"a": parse_ddl("at timestamp")})
    days = [START + timedelta(days=n) for n in range(6)]
    rows = [[{"at": (day + timedelta(hours=n)).isoformat()} for n in range(4)] for day in days]
    ticks = list(read_ticks(compiled.typed, [{"a": of_day} for of_day in rows], DAYS))
    wanted = list(run_items(compiled, ticks, Options(optimized=False)))
    found = stored_outputs(tmp_path, compiled, ticks, mode, spark)
    assert _as_bags(found) == _as_bags(wanted)


def _as_bags(ticks: Sequence[Outputs]) -> list[dict[str, list[str]]]:
    return [{name: sorted(map(repr, items)) for name, items in tick.items()} for tick in ticks]


@pytest.mark.parametrize("seed", mostly_slow(range(3000, 3030), 3))
def test_in_shards(seed: int) -> None:
    made = recent_program(seed)
    compiled = compiled_of(made)
    ticks = list(read_ticks(compiled.typed, made.ticks, DAYS))
    wanted = list(run_items(compiled, ticks, Options(optimized=False)))
    if not partition(compiled.typed).partitionable:
        return
    found = list(run_items(compiled, ticks, Options(cut=ShardingOptions(2))))
    assert repr(found) == repr(wanted), made.text


MANY_TICKS = 60
LONG = 'a -> persist(for_=timedelta(hours=30), by="at") -> changes() -> out\n'


@pytest.mark.parametrize(
    ("every", "zone"), [("1h", "UTC"), ("1d", "America/New_York"), ("1mo", "Asia/Kolkata")]
)
def test_a_range_of_many_ticks(every: str, zone: str, spark: SparkSession) -> None:
    """The ends of many ticks are looked up: where clocks are changed and months differ, too."""
    compiled = compile_graph(parse(LONG), {"a": parse_ddl("at timestamp")})
    calendar = Calendar(datetime(2026, 1, 31), every, zone=zone)
    rng, rows = Random(every), []
    for tick in range(MANY_TICKS):
        start, end = calendar.times(tick, tick)[tick]
        moments = (start, end, start + (end - start) * rng.random())
        rows.append({"a": [{"at": moment.isoformat()} for moment in moments]})
    ticks = list(read_ticks(compiled.typed, rows, calendar))
    wanted = list(run_items(compiled, ticks, Options(optimized=False)))
    memory = Memory(plan(compiled.typed), few_rows_session(spark), Settings())
    assert repr([*memory.run(ticks[:20]), *memory.run(ticks[20:])]) == repr(wanted)


def table(tick: int, rows: int = 3) -> dict[str, pa.Table]:
    start, _ = DAYS.times(tick, tick)[tick]
    schema = pa.schema([("k", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
    return {"a": pa.table({"k": ["x"] * rows, "at": [start] * rows}, schema=schema)}


COUNTED = """
a = source("k string, at timestamp")
a -> persist(for_=timedelta(days=3), by="at") -> aggregate(by="k", n=count()) -> counts
"""
STAYING = """
a = source("k string, at timestamp")
a -> persist(for_=timedelta(days=3), by="at") -> rows
"""


def test_the_state_is_bounded(spark: SparkSession, tmp_path: Path) -> None:
    """After many ticks it holds what has come lately, and a tick looks at what leaves."""
    made = planned(program := compile_graph(parse(COUNTED), {}), best_plan(program))
    pipeline = Pipeline(tmp_path / "p", made, FEW, spark)
    state = next(s for slot, s in pipeline.state_tables.items() if pipeline.plan.slot(slot).bound)
    sizes = []
    for tick in range(16):
        pipeline.run_tick(tick, table(tick), window=DAYS.times(tick, tick)[tick])
        sizes.append(pipeline.store.row_count(state.name))
    assert max(sizes) <= 3 * 3 * 3, sizes
    run = RangeRequest(16, 16, DAYS.times(16, 16), "", ())
    looked_at = alive_rows(made, pipeline.store, pipeline.state_tables, run, (["counts"], 100))
    assert [rows.num_rows for rows in looked_at.values()] == [3], "what leaves, and nothing else"
    rows = planned(compile_graph(parse(STAYING), {}))
    whole = alive_rows(rows, pipeline.store, pipeline.state_tables, run, ([], 100))
    assert [rows.num_rows for rows in whole.values()] == [6], "what is there"
    assert pipeline.output("counts")["n"].to_pylist() == [6]
    commit = pipeline.compact(keep_hours=0)
    assert commit is not None
    assert pipeline.store.row_count(state.name) <= 4 * 3
    pipeline.run_tick(16, {}, window=DAYS.times(16, 16)[16])
    assert pipeline.output("counts")["n"].to_pylist() == [3]


def test_ticks_without_times_are_refused(
    spark: SparkSession, tmp_path: Path, refused: Refused
) -> None:
    """Whichever tick it is, and by whichever plan it runs."""
    made = planned(program := compile_graph(parse(COUNTED), {}), best_plan(program))
    pipeline = Pipeline(tmp_path / "p", made, FEW, spark)
    for tick in range(3):
        with refused(DataError, "input", at="3:6"):
            pipeline.run_tick(tick, table(tick))
        pipeline.run_tick(tick, table(tick), window=DAYS.times(tick, tick)[tick])
    memory = Memory(plan(program.typed), few_rows_session(spark), Settings())
    with refused(DataError, "input", at="3:6"):
        list(memory.run([TickInput()]))


def test_rows_that_come_too_late_are_written_all_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What is checked before the commit is what was written; the next tick takes it out."""
    made = planned(program := compile_graph(parse(COUNTED), {}), best_plan(program))
    pipeline = Pipeline(tmp_path / "p", made, FEW, spark)
    state = next(s for slot, s in pipeline.state_tables.items() if pipeline.plan.slot(slot).bound)
    for tick in (0, 1, 2, 3, 4):
        times = DAYS.times(tick, tick)
        with pipeline.prepare(tick, tick, table(0), times=times) as prepared:
            prepared.write()
            assert [rows.num_rows for rows in prepared.read_back(state.name)] == [3]
            prepared.commit()
    assert pipeline.output("counts").num_rows == 0
