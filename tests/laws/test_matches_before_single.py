"""Matches that are asked for before rows are compared with a single item: plans agree with their
programs, and where rows may be there twice, or are changed on the way, nothing is moved.
"""

from __future__ import annotations

from random import Random

import pytest

from hydro_core.compile import compile_graph, compile_text
from hydro_core.ir.graph import behind
from hydro_core.optimize.optimizer import optimize
from hydro_core.validation.random_ticks import validate_randomly
from tests.laws.test_filters import _fired
from tests.laws.test_model import check_model

INPUTS = """
a = source("k long, v long, at long"); b = source("k long")
ever = b -> persist()
known = a -> persist() -> latest(by="k", order="at")
"""
COMPARED = """
mean = rows -> aggregate(m=max("v"))
rows
  -> cross_singleton(single=mean)
  -> filter(lambda r, mean: r.v < mean.m)
  -> map(lambda r, mean: r)
"""
AFTER = '-> join(right=ever, on="k", how="anti") -> out'


def program(rows: str = "rows = known", compared: str = COMPARED, after: str = AFTER) -> str:
    return INPUTS + rows + compared + after


CASES = {
    ("anti-before-single", "anti"): program(),
    ("semi-before-single", "semi"): program(after=AFTER.replace("anti", "semi")),
    ("anti-before-single", "counted behind it"): program(
        after='-> join(right=ever, on="k", how="anti") -> aggregate(by="v", n=count()) -> out'
    ),
    ("anti-before-single", "columns and filters before it"): program(
        rows='rows = known -> with_columns(w=lambda r: r.k) -> rename(key="k")'
        " -> filter(lambda r: r.v != 3)",
        after='-> join(right=ever, on={"key": "k"}, how="anti") -> out',
    ),
    ("anti-before-single", "a column of that name"): program(
        rows='rows = known -> rename(rows="at")',
    ),
    ("semi-before-single", "aggregates by key"): program(
        rows='rows = a -> persist() -> aggregate(by="k", v=sum("v"))',
        after=AFTER.replace("anti", "semi"),
    ),
}
SILENT = {
    ("anti-before-single", "rows that may be there twice"): program(
        rows="rows = a -> persist()",
    ),
    ("anti-before-single", "a key that is left out"): program(
        rows='rows = known -> select("v", k=lambda r: r.v)',
    ),
    ("semi-before-single", "rows that are made behind it"): program(
        compared=COMPARED.replace(
            "map(lambda r, mean: r)", "map(lambda r, mean: {'k': r.k, 'v': mean.m})"
        ),
        after=AFTER.replace("anti", "semi"),
    ),
}


@pytest.mark.parametrize(("rule", "text"), [(r, t) for (r, _), t in CASES.items()])
def test_matches_come_first(rule: str, text: str) -> None:
    compiled = compile_text(text)
    assert rule in _fired(compiled)
    found = optimize(compiled.typed)
    [pairs] = [n for n in found.graph if n.op.name == "cross_singleton"]
    before = [found.graph[n] for n in behind(found.graph, [pairs.inputs[0].node])]
    assert [n.args["how"] for n in before if n.op.name == "join"] == [rule[:4]]
    assert validate_randomly(compile_graph(found.graph), compiled, 60) is None


@pytest.mark.parametrize("text", CASES.values(), ids=[name for _, name in CASES])
def test_plans_compute_the_same(text: str) -> None:
    for seed in range(3):
        assert not check_model(compile_text(text), Random(seed))


@pytest.mark.parametrize(("rule", "text"), [(r, t) for (r, _), t in SILENT.items()])
def test_matches_stay(rule: str, text: str) -> None:
    compiled = compile_text(text)
    assert rule not in _fired(compiled)
    plan = compile_graph(optimize(compiled.typed).graph)
    assert validate_randomly(plan, compiled, 30) is None
