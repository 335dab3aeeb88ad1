"""What is equal in a program once functions and projections are settled."""

from __future__ import annotations

import pytest

from hydro_core.analysis.identity import with_typed_functions
from hydro_core.compile import compile_text, optimized

ROWS = 'a = source("k long, v long"); b = source("v long, k long")\n'


def _equal(one: str, other: str, source: str = "a") -> bool:
    text = f"{ROWS} one = a -> {one}; other = {source} -> {other}\none -> out; other -> more"
    graph = with_typed_functions(compile_text(text).typed).graph
    return (graph["one"].op, graph["one"].args) == (graph["other"].op, graph["other"].args)


@pytest.mark.parametrize(
    "spelled",
    [
        'select("v", w=lambda r: r.k + 1)',
        'map(lambda r: {"v": r.v, "w": r.k + 1})',
        'map(lambda row: {"v": row["v"], "w": row["k"] + 1})',
        'map(lambda k, v: {"v": v, "w": k + 1})',
        "select(v=lambda k, v: v, w=lambda r: r.k + 1)",
    ],
)
def test_a_projection_is_one_however_it_is_spelled(spelled: str) -> None:
    assert _equal('select("v", w=lambda r: r.k + 1)', spelled)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('rename(w="v")', 'select("k", w=lambda r: r.v)'),
        ('drop("v")', 'select("k")'),
        ("with_columns(v=lambda r: 1)", 'map(lambda r: {**r, "v": 1})'),
        ("with_columns(w=lambda r: r.v)", 'map(lambda r: {"k": r.k, "v": r.v, "w": r.v})'),
    ],
)
def test_projections_of_other_names(one: str, other: str) -> None:
    assert _equal(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('select("k", "v")', 'select("v", "k")'),
        ('rename(w="v")', 'rename(w="k")'),
        ("with_columns(v=lambda r: 1)", "with_columns(v=lambda r: 1.0)"),
        ('select(w=lambda r: r.v)', 'map(lambda r: {"w": r.v}, returns="w double")'),
        ("filter(lambda r: r.v == 1)", "filter(lambda r: r.v == True)"),
    ],
)  # fmt: skip
def test_what_is_another(one: str, other: str) -> None:
    assert not _equal(one, other)


def test_one_text_over_other_rows_is_another_function() -> None:
    text = "filter(lambda r: r.v == 1)"
    assert _equal(text, text)
    assert not _equal(text, text, source="b")


def test_functions_of_one_meaning_are_computed_once() -> None:
    plan = optimized(
        compile_text(
            ROWS
            + "a -> map(lambda r: (r.k, r.v)) -> filter(lambda x: x[0] == 1) -> unique() -> out\n"
            + "a -> map(lambda s: (s['k'], s.v)) -> filter(lambda y: y._1 == 1) -> unique() -> more"
        )
    )
    assert len(plan.graph.named("unique")) == 1


def test_steps_of_folds_keep_their_number_of_parameters() -> None:
    text = """
    a = source("(long, long)")
    a -> persist() -> sort() -> fold((0, 0), lambda s, x, y: (s[0] + x, s[1] + y)) -> out
    a -> persist() -> sort() -> reduce(lambda s, p: (s[0] + p[0], s[1] + p[1])) -> more
    a -> persist() -> sort() -> fold((0, 0), lambda s, p: (s[0] + p[0], s[1] + p[1])) -> third
    """
    graph = with_typed_functions(compile_text(text).typed).graph
    assert [len(n.args["f"].params) for n in graph if "f" in n.args] == [3, 2, 2]
