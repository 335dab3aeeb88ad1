"""Rows that equal a single item are those that have a match in it: plans agree with their programs,
and where functions and keys take other values for equal, nothing is made a join.
"""

from __future__ import annotations

from random import Random

import pytest

from hydro_core.compile import best_plan, compile_graph, compile_text
from hydro_core.optimize.optimizer import optimize
from hydro_core.validation.random_ticks import validate_randomly
from tests.laws.test_filters import _fired
from tests.laws.test_model import check_model

BY_KEY = 'aggregate(by="k", v=max("v"))'


def program(
    of: str = "long",
    equal: str = "r.v == one.v",
    single: str = 'v=max("v")',
    then: str = "r",
    rows: str = BY_KEY,
) -> str:
    return f"""
a = source("k long, v {of}, at long")
rows = a -> persist() -> {rows}
one = rows -> aggregate({single})
rows
  -> cross_singleton(single=one)
  -> filter(lambda r, one: {equal})
  -> map(lambda r, one: {then})
  -> out
"""


CASES = {
    ("equal-to-single", "integers, nulls among them"): program(),
    ("equal-to-single", "the other way round"): program(equal="one.v == r.v"),
    ("equal-to-single", "texts"): program("string", single='v=min("v")'),
    ("equal-to-single", "decimals"): program("decimal(6,2)"),
    ("equal-to-single-renamed", "a column of another name"): program(
        equal="r.v == one.most", single='most=max("v")'
    ),
}
SILENT = {
    "no number equals NaN": program("double"),
    "two types": program("int", single="v=max(lambda r: r.v + 1)", equal="r.v == one.v"),
    "another comparison": program(equal="r.v <= one.v"),
    "a column of that name is there": program(
        equal="r.v == one.w", single='w=max("v"), v=min("v")'
    ),
    "rows that may be null": program(rows='latest(by="k", order="at")'),
    "what is made of both": program(then="(r.k, one.v)"),
}


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for (rule, _), text in CASES.items()])
def test_what_equals_the_item_has_a_match_in_it(rule: str, text: str) -> None:
    compiled = compile_text(text)
    assert rule in _fired(compiled)
    found = best_plan(compiled)
    assert found.notes == ()
    assert not [n for n in found.graph if n.op.name == "cross_singleton"]
    assert validate_randomly(compile_graph(found.graph), compiled, 60) is None


@pytest.mark.parametrize("text", CASES.values(), ids=[name for _, name in CASES])
def test_plans_compute_the_same(text: str) -> None:
    for seed in range(3):
        assert not check_model(compile_text(text), Random(seed))


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_other_pairs_stay(text: str) -> None:
    compiled = compile_text(text)
    assert not [name for name in _fired(compiled) if name.startswith("equal-to-single")]
    plan = compile_graph(optimize(compiled.typed).graph)
    assert validate_randomly(plan, compiled, 30) is None
