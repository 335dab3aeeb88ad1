"""Where Spark cannot tell what a function gives, the range runs again with it in Python."""

from __future__ import annotations

import logging
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from hydro_core.analysis.infer import infer
from hydro_core.catalog.spec import functions_of
from hydro_core.cli.main import main
from hydro_core.engines import Options
from hydro_core.lang.resolve import parse
from hydro_core.plan.planner import plan
from hydro_core.running import run_json
from hydro_core.settings import Settings
from hydro_core.spark.executor import shell
from hydro_core.spark.functions import guards
from hydro_core.spark.functions.guards import runs_in_python
from hydro_core.spark.inputs.batches import Batch, batch_of
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.types.ddl import parse_ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def reruns() -> dict[str, int]:
    """How often ranges have run again in this process, by the functions."""
    return {guard.key: count for guard, count in guards._reruns.items()}


LARGE = 2**40
FORMS = {
    "map": "map(lambda r: r.v * r.v // 3 % 1000)",
    "filter": "filter(lambda r: r.v * r.v > 5)",
    "a fold of Spark": "fold(0, lambda s, r: s + r.v * r.v // r.v, commutative=True)",
    "a fold of an array": "fold(0, lambda s, r: (s + r.v * r.v) % 97, commutative=True)",
    "an argument": "aggregate(by='k', n=sum(lambda r: r.v * r.v % 1009))",
    "a history": "persist() -> aggregate(by='k', n=sum(lambda r: r.v * r.v % 2003)) -> changes()",
}


def _outputs(
    text: str, ticks: list[Any], spark: SparkSession, settings: Settings | None = None, **how: Any
) -> list[Any]:
    graph = parse(text)
    told = run_json(graph, {}, ticks, Options())
    on_spark = Options("spark", spark=spark, settings=settings or Settings(), **how)
    assert run_json(graph, {}, ticks, on_spark) == told
    return told


def _program(form: str) -> str:
    return f'rows = source("k string, v long")\nrows\n  -> {form} -> out'


def _ticks(*values: int | None) -> list[Any]:
    return [{"rows": [{"k": "a", "v": v}]} for v in values]


@pytest.mark.parametrize("form", FORMS)
def test_python_is_asked(spark: SparkSession, form: str, caplog: pytest.LogCaptureFixture) -> None:
    before = sum(reruns().values())
    with caplog.at_level(logging.WARNING, "hydro_core.spark.functions.guards"):
        _outputs(_program(FORMS[form]), _ticks(2, LARGE), spark, as_range=True)
    assert sum(reruns().values()) == before + 1
    assert [r.getMessage() for r in caplog.records if "Spark cannot tell" in r.getMessage()]


def test_within_a_cycle(spark: SparkSession) -> None:
    text = """
seeds = source("long")
steps = union()
seeds -> steps
steps -> map(lambda x: x * x // 7 % 101) -> unique() -> steps
steps -> unique() -> out
"""
    before = sum(reruns().values())
    _outputs(text, [{"seeds": [2**40]}, {"seeds": [5]}], spark)
    assert sum(reruns().values()) > before


def test_what_is_not_evaluated_asks_nobody(spark: SparkSession) -> None:
    before = reruns()
    lazy = [
        "10 // r.v if r.v else None",
        "r.v is not None and 10 // r.v > 1 if r.v != 0 else False",
        "[10 // x for x in [r.v, 1] if x]",
        "r.v is None or r.v == 0 or 10 // r.v > 2",
        "(r.v or 1) * 7 // (r.v or 1)",
    ]
    text = _program("map(lambda r: (" + ", ".join(lazy) + "))")
    _outputs(text, _ticks(0, 3, None), spark, as_range=True)
    assert reruns() == before


def test_a_function_that_keeps_asking_stays_in_python(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    before = sum(reruns().values())
    settings = Settings().with_(guard_reruns=2)
    text = _program("map(lambda r: r.v * r.v // 11 % 501)")
    with caplog.at_level(logging.WARNING, "hydro_core.spark.functions.guards"):
        _outputs(text, _ticks(LARGE, LARGE, LARGE, 3), spark, settings)
    assert sum(reruns().values()) == before + 2
    assert "from now on in Python" in caplog.text


def test_a_range_runs_three_times_however_many_functions_ask(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, run = list[object](), shell.run_range
    monkeypatch.setattr(shell, "run_range", lambda job: jobs.append(job) or run(job))
    before = sum(reruns().values())
    asks = [f"  -> map(lambda x: x * x // {n} % 2**50 + 2**45)" for n in (13, 17, 19, 23)]
    asks.insert(2, "  -> filter(lambda x: x * x % 3 >= 0)")
    asks.insert(2, "  -> map(lambda x: x + 1)")
    lines = ["map(lambda r: r.v)", *asks]
    with caplog.at_level(logging.WARNING, "hydro_core.spark.functions.guards"):
        _outputs(_program("\n".join(lines)), _ticks(LARGE), spark)
    assert len(jobs) == 3
    assert sum(reruns().values()) == before + 5
    # All at once, in the order of the program; line 6 asks nobody.
    (told,) = [r.getMessage() for r in caplog.records if "Spark cannot tell" in r.getMessage()]
    assert re.findall("line ([0-9]+)", told) == ["4", "5", "7", "8", "9"]


STORED = """
rows = source("k string, v long")
steps = union()
rows -> map(lambda r: r.v) -> steps
steps -> map(lambda x: x * x // 2**40 // 2**30) -> unique() -> steps
steps -> unique() -> reached
rows -> persist() -> aggregate(by="k", n=sum(lambda r: r.v * r.v % 2011)) -> totals
"""


def test_a_range_of_a_pipeline_runs_again_and_is_committed_once(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [5, LARGE, 3, LARGE, LARGE + 1]
    graph = parse(STORED)
    told = run_json(graph, {}, [{"rows": [{"k": "a", "v": v}]} for v in values], Options())
    made = plan(infer(graph))
    item = parse_ddl("k string, v long")

    def opened(few_rows: int = 100_000) -> Pipeline:
        """As a process of its own."""
        monkeypatch.setattr(guards, "_reruns", Counter())
        monkeypatch.setattr(guards, "_stays", set())
        settings = Settings().with_(guard_reruns=2, few_rows=few_rows)
        return Pipeline(tmp_path, made, settings, spark)

    def batches(first: int, last: int) -> dict[str, Batch]:
        numbers = pa.array(range(first, last + 1), pa.int64())
        v = pa.array(values[first : last + 1], pa.int64())
        return {"rows": batch_of("rows", pa.table({"k": ["a"] * len(v), "v": v}), item, numbers)}

    whole = opened(few_rows=0).run_range(0, 2, batches(0, 2))
    again = opened().run_range(3, 3, batches(3, 3))
    known = opened().run_range(4, 4, batches(4, 4))
    assert [sorted(r.function.line or 0 for r in c.ran_again) for c in (whole, again, known)] == [
        [5, 7],
        [5, 7],
        [],
    ]
    assert {(r.times, r.commit, r.first, r.last) for r in known.reruns} == {(2, 1, 3, 3)}
    staying = [fn for node in graph for fn in functions_of(node.args) if runs_in_python(fn)]
    assert sorted(fn.span.line for fn in staying if fn.span) == [5, 7]
    # A function that a deployment has changed is another one: Spark is tried again.
    changed = parse(STORED.replace("% 2011", "% 2017"))
    others = [fn for node in changed for fn in functions_of(node.args) if runs_in_python(fn)]
    assert [fn.span.line for fn in others if fn.span] == [5]
    stored = opened()
    assert [(c.first, c.last) for c in stored.ledger.commits()] == [(0, 2), (3, 3), (4, 4)]
    assert not verify(tmp_path).problems
    for tick, outputs in enumerate(told):
        reached = stored.output("reached", tick).to_pylist()
        assert sorted(row["item"] for row in reached) == sorted(outputs["reached"])
        rows = [{"k": r["k"], "n": r["n"]} for r in stored.output("totals", tick).to_pylist()]
        assert rows == outputs["totals"]


def test_files_are_written_once(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.hydro").write_text("rows -> map(lambda r: r.v * r.v // 29 % 1021) -> out")
    values = pa.array([3, LARGE, 4, LARGE + 7], pa.int64())
    pa.parquet.write_table(pa.table({"t": [0, 1, 1, 2], "v": values}), tmp_path / "rows.parquet")
    before, found = sum(reruns().values()), []
    for engine in ("reference", "spark"):
        out = tmp_path / engine
        words = ["run", str(tmp_path / "p.hydro"), "--input", f"rows={tmp_path}/rows.parquet:t"]
        assert main([*words, "--out", str(out), "--engine", engine]) == 0
        files = sorted(out.rglob("*.parquet"))
        rows = [row for file in files for row in pa.parquet.read_table(file).to_pylist()]
        found.append(sorted(map(repr, rows)))
    assert len(found[0]) == 4
    assert found[0] == found[1]
    assert sum(reruns().values()) == before + 1
