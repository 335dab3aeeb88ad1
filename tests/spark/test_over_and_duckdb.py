"""`over` and `top` beside DuckDB's window functions, which share nothing with either engine."""

from __future__ import annotations

from random import Random

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hydro_core.engines import Engine, Options
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json

pytestmark = pytest.mark.spark

SCHEMAS = {"a": "k string, at long, v long, id long"}
COLUMNS = {
    "n": ("row_number()", "row_number() over by_row"),
    "r": ("rank()", "rank() over by_peer"),
    "d": ("dense_rank()", "dense_rank() over by_peer"),
    "p": ("percent_rank()", "percent_rank() over by_peer"),
    "c": ("cume_dist()", "cume_dist() over by_peer"),
    "q": ("ntile(3)", "ntile(3) over by_row"),
    "b": ('lag("v", 2, default=-1)', "lag(v, 2, -1) over by_row"),
    "e": ('lead("v")', "lead(v) over by_row"),
    "t": ('running(sum("v"))', "sum(v) over (by_row rows unbounded preceding)"),
    "u": ('running(count("v"), peers=True)', "count(v) over by_peer"),
    "w": (
        'rolling(max("v"), rows=3)',
        "max(v) over (by_row rows between 2 preceding and current row)",
    ),
    "y": (
        'rolling(sum("v"), within=2)',
        "sum(v) over (by_peer range between 2 preceding and current row)",
    ),
    "z": ('whole(min("v"))', "min(v) over (partition by k)"),
}
WINDOWS = (
    'by_row as (partition by k order by "at" nulls first, v nulls first, id),'
    ' by_peer as (partition by k order by "at" nulls first)'
)


@pytest.mark.parametrize("engine", ["reference", "spark"])
def test_all_functions(engine: Engine, spark: SparkSession) -> None:
    rng = Random(26)
    rows = [
        {
            "k": rng.choice(("x", "y", None)),
            "at": rng.choice((None, 1, 2, 3, 5, 8)),
            "v": rng.choice((None, 1, 2, 3)),
            "id": i,
        }
        for i in range(60)
    ]
    columns = ", ".join(f"{name}={ours}" for name, (ours, _) in COLUMNS.items())
    text = f'a -> over(by="k", order="at", {columns}) -> out\n'
    session = spark if engine == "spark" else None
    [tick] = run_json(parse(text), SCHEMAS, [{"a": rows}], Options(engine=engine, spark=session))
    made = ", ".join(f"{theirs} as {name}" for name, (_, theirs) in COLUMNS.items())
    with duckdb.connect() as judge:
        judge.register("a", pa.Table.from_pylist(rows))
        wanted = judge.sql(f"select *, {made} from a window {WINDOWS}").to_arrow_table()
    ours = sorted(tick["out"], key=lambda row: row["id"])
    theirs = sorted(wanted.to_pylist(), key=lambda row: row["id"])
    assert ours == theirs
