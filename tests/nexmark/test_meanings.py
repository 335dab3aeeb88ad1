"""Nexmark's queries by the definitions alone, as written and by their plans: at each tick what
DuckDB says of all events so far. No Spark is needed, so events are few."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.judged import Ticks, differences
from benchmarks.nexmark.data import events
from benchmarks.nexmark.programs import NAMES, Judge, program, sql
from hydro_core.compile import compile_text, optimized
from tests.support.defined import answers


@pytest.fixture(scope="module")
def ticks() -> Ticks:
    return events(3000, 3)


@pytest.fixture(scope="module")
def judge(ticks: Ticks) -> Iterator[Judge]:
    with Judge(ticks) as found:
        yield found


@pytest.mark.parametrize("name", NAMES)
def test_the_definitions_say_what_sql_says(name: str, ticks: Ticks, judge: Judge) -> None:
    compiled = compile_text(program(name))
    wanted = [judge.rows(sql(name), tick) for tick in range(ticks.count)]
    assert any(wanted)
    for of in (compiled, optimized(compiled)):
        for rows, right in zip(answers(of, ticks), wanted, strict=True):
            assert differences(rows, right) is None
