"""Shards on Spark: they are cut as in Python, and together they give what the whole gives."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest

from hydro_core.cli.main import main
from hydro_core.compile import compile_graph
from hydro_core.engines import Options
from hydro_core.errors import HydroError
from hydro_core.functions.call import router
from hydro_core.lang.resolve import parse
from hydro_core.running import given_types, read_ticks, run_items
from hydro_core.shards.program import sharded
from hydro_core.shards.together import run_shards
from hydro_core.ticks.tick import TickInput
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import leaves
from hydro_core.types.values import RowItem, Struct, conform
from tests.golden.test_shards import PROGRAMS
from tests.golden.vectors import vectors
from tests.spark.coverage import of_every_operator
from tests.support.selection import mostly_slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = """
    flag boolean, small byte, n integer, big long, real float, x double, name string, raw binary,
    day date, at timestamp, local timestamp_ntz, price decimal(10,2), huge decimal(38,10),
    tags array<string>, prices array<decimal(20,2)>, inner struct<k: long, name: string>
"""
ROWS: list[dict[str, Any]] = [
    {},
    {"flag": True, "small": -1, "n": 1, "big": 1, "real": 0.5, "x": 0.5, "name": "", "raw": b""},
    {"flag": False, "n": -(2**31), "big": -(2**63), "x": -0.0, "name": "ann", "raw": b"\xff\x00"},
    {"big": 2**63 - 1, "real": -2.25, "x": float("nan"), "name": "äöü€😀", "raw": b"x" * 31},
    {"x": float("-inf"), "name": "abcdefgh" * 4, "raw": b"abcdefghi" * 11},
    {"day": date(1960, 2, 29), "at": datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)},
    {"day": date(2024, 2, 29), "at": datetime(1960, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)},
    {
        "local": datetime(2024, 5, 6, 7, 8, 9, 1),
        "price": Decimal("-1.50"),
        "huge": Decimal("-12.8"),
    },
    {"local": datetime(1960, 5, 6), "price": Decimal("99999999.99"), "huge": Decimal(10**20)},
    *({"huge": Decimal(n).scaleb(-10)} for n in (0, 127, 128, 255, 256, -127, -128, -129, -256)),
    {"tags": [], "prices": [], "inner": RowItem(k=None, name=None)},
    {"tags": ["a", None, "b"], "prices": [None, Decimal("1.10")], "inner": RowItem(k=1, name="k")},
]


def test_spark_routes_as_python_does(spark: SparkSession) -> None:
    item = parse_ddl(SCHEMA)
    names = [path[0] for path, _ in leaves(item)]
    items = [conform(RowItem(dict.fromkeys(names) | row), item) for row in ROWS]
    paths = [path for path, _ in leaves(item)]
    for by in [(path,) for path in paths] + [tuple(paths)]:
        program = compile_graph(parse("a -> out"), {"a": item})
        on = {"a": [".".join(path) for path in by]}
        shards = sharded(program, 5, on)
        for number in (1, 4):
            found = list(run_items(shards.of(number), [TickInput({"a": items})], _on(spark)))
            shard = router(by, None, item, 5)
            wanted = [x for x in items if shard(x) == number]
            assert sorted(map(repr, found[0]["out"])) == sorted(map(repr, wanted)), by


def _on(spark: SparkSession, *, as_range: bool = False) -> Options:
    return Options("spark", optimized=False, as_range=as_range, spark=spark)


def test_a_function_routes_alike_and_may_fail(spark: SparkSession) -> None:
    total = "fold_keyed(0, lambda s, v: s + v, commutative=True)"
    text = 'a = source("(long, long)")\n'
    text += f"a -> filter(lambda k, v: k > 0) -> map(lambda k, v: (12 // k, v)) -> {total} -> x\n"
    text += f"a -> {total} -> y"
    graph = parse(text)
    program = compile_graph(graph)
    ticks = [TickInput({"a": [Struct((k, 1)) for k in (0, 0, None, 1, 2, 5, 6, 0)]})]
    program = compile_graph(parse(text.replace("k > 0", "k is not None and k > 0")))
    shards = sharded(program, 3)
    assert "12 // " in shards.described
    for number in range(3):
        on_spark = list(run_items(shards.of(number), ticks, _on(spark)))
        assert on_spark == list(run_items(shards.of(number), ticks, Options(optimized=False)))


VECTORS = [v for v in vectors("dfir", "fuzz", "ordered") if "error" not in v]
QUICK = [v["name"] for v in of_every_operator(VECTORS)]


@pytest.mark.parametrize("name", mostly_slow([v["name"] for v in VECTORS], QUICK))
def test_shards_give_what_the_whole_gives(name: str, spark: SparkSession) -> None:
    text, schemas, ticks, calendar = PROGRAMS[name]
    graph = parse(text)
    program = compile_graph(graph, given_types(graph, schemas, ticks))
    items = list(read_ticks(program.typed, ticks, calendar))
    try:
        whole = list(run_items(program, items, Options(optimized=False)))
        shards = sharded(program, 2)
    except HydroError:
        return
    assert list(run_shards(shards, items, _on(spark, as_range=len(name) % 2 == 0))) == whole


PROGRAM = """
orders = source("user long, amount long")
limits = source_iter([{"user": 1, "cap": 5}, {"user": 2, "cap": 50}])
orders -> persist() -> aggregate(by="user", n=count(), total=sum("amount")) -> delta() -> per_user
orders -> sort_by_key(lambda r: r.amount) -> limit(3, by="user") -> least
limits -> names
"""


def test_files_in_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.hydro").write_text(PROGRAM)
    lines = [f"{n * 7 % 11},{n * 13 % 40},{n // 20}" for n in range(60)]
    Path("orders.csv").write_text("\n".join(["user,amount,t", *lines]))
    run = ["run", "p.hydro", "--input", "orders=orders.csv:t", "--engine"]
    assert main([*run, "reference", "--out", "whole"]) == 0
    assert main([*run, "spark", "--shards", "2", "--out", "cut"]) == 0
    assert main([*run, "spark", "--shards", "2", "--ticks-at-once", "1", "--out", "ticks"]) == 0
    for name in ("per_user", "least", "names"):
        whole, cut, ticks = (_rows(Path(folder) / name) for folder in ("whole", "cut", "ticks"))
        assert whole
        assert whole == cut == ticks


def _rows(folder: Path) -> list[str]:
    return sorted(map(repr, pyarrow.parquet.read_table(folder).to_pylist()))
