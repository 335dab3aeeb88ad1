"""Random functions of rows of every kind: as columns exactly what Python gives, signs of zero too.

What does not compile runs in Python and is nothing to compare; enough of them must compile.
"""

from __future__ import annotations

from random import Random

import pytest
from pyspark.sql import SparkSession

from hydro_core.errors import TypeProblem
from hydro_core.spark.lower.explained import runtime
from hydro_core.types.ddl import parse_ddl
from tests.spark.differential import compare, function
from tests.support.random_expressions import DDL, random_expression, random_rows

pytestmark = pytest.mark.spark

FUNCTIONS, ROWS = 40, 300
SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 20))]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_functions_as_columns(spark: SparkSession, seed: int) -> None:
    random = Random(seed)
    item, rows = parse_ddl(DDL), random_rows(random, ROWS)
    sources: list[str] = []
    tried = 0
    while len(sources) < FUNCTIONS:
        tried += 1
        source = f"lambda r: {random_expression(random)}"
        fn = function(source)
        try:
            if runtime(fn, (item,)).how != "column":
                continue
        except TypeProblem:
            continue
        sources.append(source)
    problems, compared = compare(spark, DDL, rows, sources)
    assert problems == []
    assert tried < 3 * FUNCTIONS, "too few functions compile to say that columns are tried"
    assert compared > FUNCTIONS * ROWS // 2, "too few values were compared"
