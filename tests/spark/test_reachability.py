"""What a package needs, and what that needs: a fixpoint on Spark, judged by networkx."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet
import pytest

from hydro_core.cli.main import main
from hydro_core.spark.frames import materialize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PROGRAM = """
edges = source("a string, b string")
roots = source("string")
reached = union() -> unique()
roots -> reached
reached -> map(lambda x: (x, None)) -> [0] step
edges -> map(lambda r: (r.a, r.b)) -> [1] step
step = join() -> map(lambda k, v: v[1]) -> reached
reached -> out
"""
Edges = list[tuple[str, str]]


def reachable(here: Path, edges: Edges, root: str) -> set[str]:
    """What is reached from the root, by `hydrotick run` on Spark."""
    (here / "p.hydro").write_text(PROGRAM)
    columns = {"a": [a for a, _ in edges], "b": [b for _, b in edges]}
    pyarrow.parquet.write_table(pa.table(columns), here / "edges.parquet")
    pyarrow.parquet.write_table(pa.table({"item": [root]}), here / "roots.parquet")
    words = ["run", str(here / "p.hydro"), "--engine", "spark", "--out", str(here / "out")]
    for name in ("edges", "roots"):
        words += ["--input", f"{name}={here / name}.parquet"]
    assert main(words) == 0
    found = pyarrow.parquet.read_table(here / "out" / "out").column("item").to_pylist()
    assert len(found) == len(set(found))
    return set(found)


def by_networkx(edges: Edges, root: str) -> set[str]:
    graph = nx.DiGraph(edges)
    return {root, *nx.descendants(graph, root)}


def stored(spark: SparkSession) -> int:
    """How many sets of rows Spark keeps."""
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


def generated(nodes: int, edges: int, seed: int) -> Edges:
    """Packages that need others, mostly much needed ones, and now and then in circles."""
    chosen = random.Random(seed)
    pairs: dict[tuple[str, str], None] = {}
    while len(pairs) < edges:
        a = chosen.randrange(nodes)
        b = int(nodes * chosen.random() ** 3)
        pairs[f"p{a}", f"p{b}"] = None
    return list(pairs)


def test_reachability(tmp_path: Path, spark: SparkSession) -> None:
    edges = generated(200, 350, 3)
    assert reachable(tmp_path, edges, "p7") == by_networkx(edges, "p7")


def test_plans_do_not_grow_and_nothing_stays(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    checkpointed = materialize.checkpointed

    def noted(frame: DataFrame) -> tuple[DataFrame, int]:
        plan: Any = frame._jdf
        sizes.append(len(plan.queryExecution().analyzed().toString()))
        return checkpointed(frame)

    monkeypatch.setattr("hydro_core.spark.files.run.checkpointed", noted)
    before = stored(spark)
    path = [(f"p{i}", f"p{i + 1}") for i in range(36)]
    assert len(reachable(tmp_path, path, "p0")) == 37
    assert len(sizes) > 36
    assert max(sizes[30:]) <= max(sizes[:30])
    assert stored(spark) <= before, "kept plans of other tests may be given up"


def debian() -> Iterator[tuple[str, str]]:
    """Which package of this machine's index names which as one that it depends on."""
    command = shutil.which("apt-cache")
    if command is None:
        return
    index = subprocess.run([command, "dumpavail"], capture_output=True, text=True, check=True)
    package = ""
    for line in index.stdout.splitlines():
        field, _, value = line.partition(": ")
        if field == "Package":
            package = value
        elif field in ("Depends", "Pre-Depends", "Recommends"):
            for name in re.split(r"[,|]", value):
                yield package, re.split(r"[ :(]", name.strip())[0]


@pytest.mark.slow
def test_reachability_among_debian_packages(tmp_path: Path, spark: SparkSession) -> None:
    edges = sorted(set(debian()))
    if len(edges) < 100_000:
        edges = generated(60_000, 275_000, 11)
    graph = nx.DiGraph(edges)
    assert len(graph) > 30_000
    root = max(graph, key=lambda n: (graph.out_degree(n), n))
    wanted = by_networkx(edges, root)
    assert len(wanted) > 1_000
    assert reachable(tmp_path, edges, root) == wanted
