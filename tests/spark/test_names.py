"""Names of outputs and paths that are no plain words: nothing is lost, on either engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from hydro_core import Flow
from hydro_core.analysis.infer import infer
from hydro_core.cli.main import main
from hydro_core.compile import compile_text, optimized
from hydro_core.plan.planner import plan as planned
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.types.values import RowItem
from tests.spark.pipelines import SETTINGS
from tests.support.selection import alternately_slow

pytestmark = pytest.mark.spark

NAMES = [
    *("out", "out_", "_out", "Out", "OUT", "totals", "_totals", "x!", "x?", "x*", "[x]", "{x,y}"),
    *("a/b", "..", "a\0b", "a b", "a%20b", "é", "e\u0301", "x" * 300, "outputs~1"),
]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


def named() -> Flow:
    """Every output has rows of its own: those of the input, and its number."""
    flow = Flow("names")
    numbers = flow.source("numbers", "v long")
    for number, name in enumerate(NAMES):
        numbers.persist().map(numbered(number)).sink(name)
    return flow


def numbered(number: int) -> Callable[[Any], Any]:
    return lambda r: (number, r.v)


@pytest.mark.parametrize("bound", [0, 100], ids=["files", "arrow"])
def test_no_output_is_lost_in_a_pipeline(tmp_path: Path, bound: int) -> None:
    typed = infer(named().graph())
    plan = planned(typed)
    pipeline = Pipeline(tmp_path / "p", plan, SETTINGS.with_(small_write_rows=bound))
    for tick in range(2):
        pipeline.run_tick(tick, {"numbers": pa.table({"v": [tick]})})
    again = Pipeline(tmp_path / "p", plan, SETTINGS)
    for number, name in enumerate(NAMES):
        rows = again.output(name).to_pylist()
        expected = {(number, 0), (number, 1)}
        assert {(row["_1"], row["_2"]) for row in rows} == expected, name
        assert {(row["_1"], row["_2"]) for row in again.output_frame(name).collect()} == expected


OUR_WORDS = (
    "Until",
    "until_2",
    "item",
    "count",
    "n",
    "ord",
    "at",
    "rows",
    "first",
    "__tick",
)
"""Names of columns that tables and frames of ours have, too."""


@pytest.mark.parametrize(
    ("others", "bound"),
    alternately_slow([(), ("copies",)], [0, 100]),
)
def test_columns_may_be_called_as_ours_are(
    tmp_path: Path, others: tuple[str, ...], bound: int
) -> None:
    names = ("k", *OUR_WORDS, *others)
    schema = ", ".join(f"`{name}` long" for name in names)
    text = f'a = source("{schema}")\na -> persist() -> latest(by="k", order="n") -> log'
    plan = planned(optimized(compile_text(text)).typed)
    pipeline = Pipeline(tmp_path / "p", plan, SETTINGS.with_(small_write_rows=bound))
    ticks = [{name: 1 if name == "k" else t * 10 for name in names} for t in range(3)]
    for tick, row in enumerate(ticks):
        pipeline.run_tick(tick, {"a": pa.Table.from_pylist([row])})
    assert pipeline.output_tables["log"].is_log is not bool(others)
    for tick, row in enumerate(ticks):
        assert pipeline.output("log", tick).drop_columns(["tick"]).to_pylist() == [row]
        (framed,) = pipeline.output_frame("log", tick).drop("tick").collect()
        assert framed.asDict() == row
    every = pipeline.output_frame("log", every=True).collect()
    assert sorted(found["n"] for found in every) == sorted(row["n"] for row in ticks)


def test_both_engines_give_every_output() -> None:
    ticks = [{"numbers": [RowItem(v=t)]} for t in range(2)]
    flow = named()
    reference = list(flow.run(ticks))
    assert set(reference[1]) == set(NAMES)
    for one, other in zip(reference, flow.run(ticks, engine="spark"), strict=True):
        assert {n: sorted(map(str, items)) for n, items in one.items()} == {
            n: sorted(map(str, items)) for n, items in other.items()
        }


PROGRAM = 'rows = source("v long")\nrows -> sink("[x]*")\nrows -> persist() -> sink("out_")\n'


@pytest.mark.parametrize(
    ("folder", "engine"),
    alternately_slow(["in[1]", "in*", "in{1,2}", "in?"], ["reference", "spark"]),
)
def test_paths_with_the_signs_of_patterns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str, folder: str
) -> None:
    """What is there by that name is read, and not what the name would match."""
    for name, value in ((folder, 1), ("in1", 2), ("in[1]", 1)):
        (tmp_path / name).mkdir(exist_ok=True)
        table = pa.table({"day": pa.array([0], pa.int32()), "v": [value]})
        pyarrow.parquet.write_table(table, tmp_path / name / "rows[1].parquet")
    (tmp_path / "p.hydro").write_text(PROGRAM)
    words = ["run", str(tmp_path / "p.hydro"), "--input", f"rows={tmp_path / folder}:day"]
    out = tmp_path / folder / "_out"
    assert main([*words, "--engine", engine, "--out", str(out), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ticks": [{"[x]*": 1, "out_": 1}]}
    assert sorted(place.name for place in out.iterdir()) == ["[x]*", "out_"]
    for name in ("[x]*", "out_"):
        files = [pyarrow.parquet.ParquetFile(file) for file in (out / name).glob("*.parquet")]
        (rows,) = [file.read() for file in files if file.metadata.num_rows]
        assert rows["v"].to_pylist() == [1]


@pytest.mark.parametrize("engine", ["reference", "spark"])
def test_a_row_too_early_is_named_in_such_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    folder = tmp_path / "in[1]*"
    folder.mkdir()
    table = pa.table({"day": pa.array([0, 3, -1], pa.int32()), "v": [1, 2, 3]})
    pyarrow.parquet.write_table(table, folder / "rows[1].parquet")
    (tmp_path / "p.hydro").write_text(PROGRAM)
    words = ["run", str(tmp_path / "p.hydro"), "--input", f"rows={folder}:day"]
    assert main([*words, "--engine", engine, "--format", "json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "input"
    assert "row 2" in error["message"]
