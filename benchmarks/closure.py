"""The transitive closure of a graph that grows: rules, tick by tick, beside DuckDB from scratch.

Edges come in so many ticks, in a random order, and stay. Within groups of nodes they lead from
smaller to greater numbers, so what can be reached is bounded. The reference and a pipeline on Spark
run the same rules; DuckDB computes the closure of all edges so far by a recursive query, at some
ticks. Also told: how many schedules of Paxos `simulate` runs in a second.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa

from benchmarks.measure import Meter, Ratio, note, parser_of, report, session
from hydro_core.compile import best_plan, compile_graph, planned
from hydro_core.engines import Options, run_whole
from hydro_core.lang.rules.translate import graph_of_rules, read_rules
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.ticks.tick import TickInput
from hydro_core.validation.simulation.schedules.explore import Limits, ScheduleSearch
from hydro_core.validation.simulation.schedules.machine import RuleMachine

GROUP, OF_GROUP = 8, 16
"""Nodes of a group, and edges within it."""
RULES = """
.input edge(src: long, dst: long)
.output path
edge(x, y)@next :- edge(x, y).
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
QUERY = """
with recursive path(x, y) as (
  select src, dst from edge union select path.x, edge.dst from path join edge on path.y = edge.src
) select count(*) from path
"""
PAXOS = Path(__file__).parents[1] / "examples" / "rules" / "paxos.dl"
Batch = list[tuple[int, int]]


def edges(count: int, ticks: int) -> list[Batch]:
    """The edges of each tick."""
    random = Random(7)
    found: Batch = []
    while len(found) < count:
        first = len(found) // OF_GROUP * GROUP
        pairs = list(combinations(range(first, first + GROUP), 2))
        found += random.sample(pairs, OF_GROUP)
    found = found[:count]
    random.shuffle(found)
    return [found[i * count // ticks : (i + 1) * count // ticks] for i in range(ticks)]


def by_reference(batches: list[Batch]) -> Iterator[tuple[float, int]]:
    """The seconds of each tick, and how many paths there are."""
    program = compile_graph(graph_of_rules(read_rules(RULES)))
    rows = ([{"src": a, "dst": b} for a, b in batch] for batch in batches)
    outputs = run_whole(program, (TickInput({"edge": batch}) for batch in rows), Options())
    begun = time.perf_counter()
    for given in outputs:
        yield time.perf_counter() - begun, len(given["path"])
        begun = time.perf_counter()


def by_duckdb(batches: list[Batch], at: list[int]) -> Mapping[int, tuple[float, int]]:
    """The seconds of the closure of all edges up to some ticks, from scratch."""
    found, rows = {}, []
    for tick, batch in enumerate(batches):
        rows += batch
        if tick not in at:
            continue
        with duckdb.connect() as database:
            database.execute("set threads = 1")
            edge = pa.table({"src": [a for a, _ in rows], "dst": [b for _, b in rows]})
            database.execute("create table edge as select * from edge")
            begun = time.perf_counter()
            (count,) = database.execute(QUERY).fetchone() or (0,)
            found[tick] = (time.perf_counter() - begun, count)
            del edge
    return found


def schedules_a_second(count: int) -> float:
    """How fast schedules of Paxos are explored."""
    machine = RuleMachine(read_rules(PAXOS.read_text(encoding="utf-8")))
    begun = time.perf_counter()
    done = ScheduleSearch(machine, (), Limits()).run(count, 0)
    assert done.found is None
    return count / (time.perf_counter() - begun)


def main() -> int:
    """Measures all, and says how a late tick is to an early one and to DuckDB."""
    parser = parser_of("closure", __doc__)
    parser.add_argument("--edges", type=int, default=100_000)
    parser.add_argument("--ticks", type=int, default=50)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--on-reference", type=int, default=10_000, help="edges for the reference")
    parser.set_defaults(seconds=3600)
    asked = parser.parse_args()
    batches = edges(asked.edges, asked.ticks)
    last = len(batches) - 1
    at = sorted({last // 5, last // 2, last})
    scratch_times = by_duckdb(batches, at)
    note(f"DuckDB from scratch: {scratch_times}")
    few = edges(asked.on_reference, asked.ticks)
    reference, judge = list(by_reference(few)), by_duckdb(few, at)
    note(f"reference, {asked.on_reference:,} edges: {[(t, *reference[t]) for t in at]}")
    assert all(reference[t][1] == judge[t][1] for t in at)
    spark, settings = session(asked.memory)
    program = compile_graph(graph_of_rules(read_rules(RULES)))
    plan = planned(program, best_plan(program))
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        pipeline = Pipeline(Path(scratch), plan, settings, spark)

        def tick(number: int) -> object:
            batch = batches[number]
            table = pa.table({"src": [a for a, _ in batch], "dst": [b for _, b in batch]})
            return pipeline.run_tick(number, {"edge": table})

        found = Meter(spark, asked.seconds).alternate({"Spark": tick}, range(len(batches)), 0)
        paths = pipeline.output("path").num_rows
    usages = found["Spark"].usages
    if len(usages) < len(batches):
        sys.exit(f"there was time for {len(usages)} ticks: give more --seconds, or fewer --ticks")
    assert paths == scratch_times[last][1], (paths, scratch_times[last])
    rate = schedules_a_second(asked.schedules)
    note(f"schedules of Paxos: {rate:.0f} a second")
    early, late = (sum(u.seconds for u in usages[t - 4 : t + 1]) / 5 for t in (at[0], last))
    rows = [
        {
            "tick": t,
            "Spark, s": usages[t].seconds,
            "Spark cpu, s": usages[t].cpu,
            "DuckDB from scratch, s": scratch_times[t][0],
            "paths": scratch_times[t][1],
            f"reference, {asked.on_reference:,} edges, s": reference[t][0],
        }
        for t in at
    ]
    ratios = [
        Ratio("Spark: the last ticks over those at a fifth, seconds", late / early),
        Ratio(
            "Spark: the last ticks over DuckDB from scratch, seconds", late / scratch_times[last][0]
        ),
        Ratio("schedules of Paxos in a second", rate),
    ]
    report(f"closure of {asked.edges:,} edges in {asked.ticks} ticks", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
