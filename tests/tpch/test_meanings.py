"""TPC-H's queries by the definitions alone, as written and by their plans: at each tick what DuckDB
says of all rows so far. No Spark is needed, so data are few."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.judged import Ticks, differences
from benchmarks.tpch.judge import Judge
from benchmarks.tpch.programs import NAMES, program, sql
from hydro_core.compile import compile_text, optimized
from tests.support.defined import answers
from tests.tpch.answers import small_ticks

SCALE = 0.002
TICKS = 3


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Ticks:
    return small_ticks(SCALE, TICKS, tmp_path_factory.mktemp("tpch") / "data")


@pytest.fixture(scope="module")
def judge(ticks: Ticks) -> Iterator[Judge]:
    with Judge(ticks) as found:
        yield found


@pytest.mark.parametrize("name", NAMES)
def test_the_definitions_say_what_sql_says(name: str, ticks: Ticks, judge: Judge) -> None:
    compiled = compile_text(program(name, small=True))
    wanted = [judge.rows(sql(name, small=True), tick) for tick in range(ticks.count)]
    for of in (compiled, optimized(compiled)):
        for rows, right in zip(answers(of, ticks), wanted, strict=True):
            assert differences(rows, right) is None
