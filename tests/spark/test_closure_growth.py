"""What a tick of a recursion reads and hands on: what meets its new rows, however much there is.

The closure of a graph, whose edges stay. The tick's own edges and all that they meet are the same
each time; what grows is the rest of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import networkx as nx
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.work import RowCounter, RowsTouched
from hydro_core.compile import best_plan, compile_graph, planned
from hydro_core.lang.rules.translate import graph_of_rules, read_rules
from hydro_core.spark.pipeline.pipeline import Pipeline
from tests.spark.pipelines import SETTINGS

pytestmark = pytest.mark.spark

EDGES = ".input edge(src: long, dst: long)\n.output path\nedge(x, y)@next :- edge(x, y).\n"
LEFT = EDGES + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z)."
BOTH = EDGES + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), path(y, z)."
Pairs = list[tuple[int, int]]

LATE: Pairs = [(1, 2), (3, 1), (4, 5), (5, 6)]
"""What the tick that is measured brings."""


def graph(count: int) -> Pairs:
    """Chains of five nodes, of which the tick's edges meet the first, and a node that leads to very
    many, of which they meet one.
    """
    starts = range(0, count * 5, 5)
    chains = [(s + i, s + i + 1) for s in starts for i in range(4)]
    hub = [(-1, 1), *((-1, 1000 + i) for i in range(count * 5))]
    return [pair for pair in (*chains, *hub) if pair not in LATE]


def opened(directory: Path, rules: str, spark: SparkSession) -> Pipeline:
    """A pipeline of rules, as they are deployed."""
    program = compile_graph(graph_of_rules(read_rules(rules)))
    return Pipeline(directory, planned(program, best_plan(program)), SETTINGS, spark)


def edges(pairs: Iterable[tuple[int, int]]) -> dict[str, pa.Table]:
    """A batch."""
    given = list(pairs)
    return {"edge": pa.table({"src": [a for a, _ in given], "dst": [b for _, b in given]})}


def late_tick(pipeline: Pipeline, history: Pairs, spark: SparkSession) -> RowsTouched:
    """What is touched in the tick behind some history; what it gives is judged."""
    half = len(history) // 2
    for tick, pairs in enumerate((history[:half], history[half:], [(-7, -8)])):
        pipeline.run_tick(tick, edges(pairs))
    with RowCounter(spark).counting() as touched:
        pipeline.run_tick(3, edges(LATE))
    found = {(r["x"], r["y"]) for r in pipeline.output("path").to_pylist()}
    edges_now = nx.DiGraph([*history, (-7, -8), *LATE])
    assert found == set(nx.transitive_closure(edges_now, reflexive=False).edges)
    return touched


@pytest.mark.parametrize(
    "rules", [pytest.param(LEFT, marks=pytest.mark.slow), BOTH], ids=["left", "both"]
)
def test_a_tick_reads_what_its_new_rows_meet(
    rules: str, tmp_path: Path, spark: SparkSession
) -> None:
    little, *more = (
        late_tick(opened(tmp_path / str(n), rules, spark), graph(n), spark) for n in (20, 40, 80)
    )
    assert little.read > 0
    assert [(t.read, t.made) for t in more] == [(little.read, little.made)] * 2
