"""A sum must have 64 bits at the end of a tick; what it is made of need not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hydro_core.compile import compile_graph, optimized
from hydro_core.errors import HydroError
from hydro_core.lang.resolve import parse
from hydro_core.running import Options, run_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROGRAM = """
rows = source("k string, v long")
rows -> persist() -> aggregate(by="k", total=sum("v"), n=count()) -> keyed
rows -> persist() -> aggregate(total=sum("v"), most=max("v")) -> whole
rows -> persist() -> fold(0, lambda s, r: s + r.v, commutative=True) -> folded
"""
LEAST, HALF = -(2**63), 2**62
TICKS = [
    {"rows": [{"k": "a", "v": LEAST}]},
    {"rows": [{"k": "a", "v": HALF}, {"k": "a", "v": HALF}]},
    {},
]


@pytest.mark.parametrize("as_range", [False, True])
@pytest.mark.parametrize("engine", ["reference", "spark"])
def test_a_batch_beyond_64_bits_whose_total_has_them(
    spark: SparkSession, engine: str, as_range: bool
) -> None:
    graph = parse(PROGRAM)
    plan = optimized(compile_graph(graph)).graph
    assert any(node.op.name == "aggregate_from" for node in plan)
    options = Options(engine, as_range=as_range, spark=spark)  # type: ignore[arg-type]
    found = run_json(graph, {}, TICKS, options)
    totals = [LEAST, 0, 0]
    assert [t["folded"] for t in found] == [[total] for total in totals]
    assert [t["keyed"] for t in found] == [
        [{"k": "a", "total": total, "n": n}] for total, n in zip(totals, (1, 3, 3), strict=True)
    ]
    assert [t["whole"] for t in found] == [
        [{"total": total, "most": most}]
        for total, most in zip(totals, (LEAST, HALF, HALF), strict=True)
    ]


@pytest.mark.parametrize("engine", ["reference", "spark"])
@pytest.mark.parametrize("name", ["keyed", "whole", "folded"])
def test_a_total_beyond_64_bits_fails_the_tick(spark: SparkSession, engine: str, name: str) -> None:
    ticks = [{"rows": [{"k": "a", "v": HALF}]}, {"rows": [{"k": "a", "v": HALF}]}]
    lines = PROGRAM.strip().splitlines()
    text = "\n".join([lines[0], *(line for line in lines[1:] if line.endswith(name))])
    options = Options(engine, spark=spark)  # type: ignore[arg-type]
    with pytest.raises(HydroError, match="64 bits") as caught:
        run_json(parse(text), {}, ticks, options)
    assert caught.value.code == "runtime"
