"""The transitive closure of a graph that grows: rules, tick by tick, beside DuckDB from scratch.

Edges come in so many ticks, in a random order, and stay. Within groups of nodes they lead from
smaller to greater numbers, so what can be reached is bounded. A pipeline on Spark runs the rules
tick by tick; in each tick DuckDB computes the closure of all edges so far by a recursive query, in
turns with it, and their processor times are compared. The reference, which computes each tick from
all of history, does so with fewer edges. Also told: how many schedules of Paxos `simulate` runs in
a second.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.measure import Meter, Ratio, Runs, note, parser_of, report, session
from hydro_core.compile import best_plan, compile_graph, planned
from hydro_core.engines import Options, run_whole
from hydro_core.lang.rules.translate import graph_of_rules, read_rules
from hydro_core.settings import Settings
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.ticks.tick import TickInput
from hydro_core.validation.simulation.schedules import Limits, ScheduledRules, ScheduleSearch

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


class Scratch:
    """DuckDB, which computes the closure of all edges up to a tick."""

    def __init__(self, batches: list[Batch]) -> None:
        self._batches, self.paths = batches, list[int]()

    def tick(self, number: int) -> None:
        """Counts the paths as of a tick."""
        rows = [pair for batch in self._batches[: number + 1] for pair in batch]
        with duckdb.connect() as database:
            database.execute("set threads = 1")
            edge = pa.table({"src": [a for a, _ in rows], "dst": [b for _, b in rows]})
            database.execute("create table edge as select * from edge")
            (count,) = database.execute(QUERY).fetchone() or (0,)
            self.paths.append(count)
            del edge


class ByReference:
    """The rules by their definitions, tick by tick."""

    def __init__(self, batches: list[Batch]) -> None:
        program = compile_graph(graph_of_rules(read_rules(RULES)))
        rows = ([{"src": a, "dst": b} for a, b in batch] for batch in batches)
        self._ticks = run_whole(program, (TickInput({"edge": b}) for b in rows), Options())
        self.paths = list[int]()

    def tick(self, number: int) -> None:
        """Runs the next tick."""
        del number
        self.paths.append(len(next(self._ticks)["path"]))


class BySpark:
    """A pipeline of the rules."""

    def __init__(
        self, batches: list[Batch], directory: Path, spark: SparkSession, settings: Settings
    ) -> None:
        program = compile_graph(graph_of_rules(read_rules(RULES)))
        plan = planned(program, best_plan(program))
        self._batches, self._pipeline = batches, Pipeline(directory, plan, settings, spark)

    def tick(self, number: int) -> None:
        """Runs and commits a tick."""
        batch = self._batches[number]
        edge = pa.table({"src": [a for a, _ in batch], "dst": [b for _, b in batch]})
        self._pipeline.run_tick(number, {"edge": edge})

    def paths(self) -> int:
        """How many paths there are as of the last tick."""
        return self._pipeline.output("path").num_rows


def schedules_a_second(count: int) -> float:
    """How fast schedules of Paxos are explored."""
    rules = ScheduledRules(read_rules(PAXOS.read_text(encoding="utf-8")))
    begun = time.perf_counter()
    done = ScheduleSearch(rules, (), Limits()).run(count, 0)
    assert done.found is None
    return count / (time.perf_counter() - begun)


def cpu(runs: Runs, last: int, ticks: int = 5) -> float:
    """The processor time of a tick, as the mean of some up to the last one."""
    usages = runs.usages[max(last - ticks + 1, 0) : last + 1]
    return sum(usage.cpu for usage in usages) / len(usages)


def main() -> int:
    """Measures all, and says how a late tick is to an early one and to DuckDB."""
    parser = parser_of("closure", __doc__)
    parser.add_argument("--edges", type=int, default=100_000)
    parser.add_argument("--ticks", type=int, default=50)
    parser.add_argument("--schedules", type=int, default=100)
    parser.add_argument("--on-reference", type=int, default=10_000, help="edges for the reference")
    parser.set_defaults(seconds=3600)
    asked = parser.parse_args()
    spark, settings = session(asked.memory)
    batches, few = edges(asked.edges, asked.ticks), edges(asked.on_reference, asked.ticks)
    meter, ticks = Meter(spark, asked.seconds), range(asked.ticks)
    scratch, reference, of_few = Scratch(batches), ByReference(few), Scratch(few)
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as place:
        pipeline = BySpark(batches, Path(place), spark, settings)
        found = meter.alternate({"Spark": pipeline.tick, "DuckDB": scratch.tick}, ticks)
        if len(found["Spark"].usages) < asked.ticks:
            sys.exit(f"there was time for {len(found['Spark'].usages)} ticks: give --seconds")
        assert pipeline.paths() == scratch.paths[-1], (pipeline.paths(), scratch.paths[-1])
    found |= {
        f"{name}, {asked.on_reference:,} edges": runs
        for name, runs in meter.alternate(
            {"reference": reference.tick, "DuckDB": of_few.tick}, ticks
        ).items()
    }
    assert reference.paths == of_few.paths
    rate = schedules_a_second(asked.schedules)
    note(f"schedules of Paxos: {rate:.0f} a second")
    last = asked.ticks - 1
    at = sorted({last // 10, last // 5, last // 2, last})
    rows = [
        {
            "tick": t,
            "paths": scratch.paths[t],
            **{f"{n}, cpu s": cpu(r, t) for n, r in found.items()},
        }
        for t in at
    ]
    whole = {name: sum(usage.cpu for usage in runs.usages) for name, runs in found.items()}
    early = cpu(found["Spark"], last // 5)
    of_few_names = [name for name in found if name not in ("Spark", "DuckDB")]
    ratios = [
        Ratio(
            "Spark: the last ticks over those at a fifth", cpu(found["Spark"], last) / early, 1.1
        ),
        Ratio(
            "Spark over DuckDB from scratch: the last ticks",
            cpu(found["Spark"], last) / cpu(found["DuckDB"], last),
        ),
        Ratio("Spark over DuckDB from scratch: all ticks", whole["Spark"] / whole["DuckDB"]),
        Ratio(
            f"reference over DuckDB from scratch, {asked.on_reference:,} edges: all ticks",
            whole[of_few_names[0]] / whole[of_few_names[1]],
        ),
        Ratio("schedules of Paxos in a second", rate),
    ]
    report(f"closure of {asked.edges:,} edges in {asked.ticks} ticks", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
