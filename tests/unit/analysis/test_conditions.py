"""What is read off the conditions of joins, and what joins with a condition are made of."""

from __future__ import annotations

import pytest

from hydro_core import Flow
from hydro_core.analysis.conditions import (
    bounds_of,
    equal_columns,
    shared_parts,
    without_conditions,
)
from hydro_core.compile import best_plan, compile_text
from hydro_core.functions.tree import Fn
from hydro_core.optimize.report import as_text
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.values import RowItem

LEFT, RIGHT = "a long, t timestamp, d date, x double, s string", "b long, t timestamp, d date"


def _of(condition: str) -> tuple[Fn, ItemType, ItemType]:
    sources = f'l = source("{LEFT}"); r = source("{RIGHT}")'
    program = f'{sources}; l -> join(right=r, suffix="_r", where={condition}) -> out'
    [node] = compile_text(program).graph.named("join")
    return node.args["where"], parse_ddl(LEFT), parse_ddl(RIGHT)


HOUR = "timedelta(hours=1)"


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("l.a <= r.b and r.b <= l.a + 5", ["0 <= r.b - l.a <= 5"]),
        ("l.a < r.b < l.a + 5", ["0 <= r.b - l.a <= 5"]),
        ("abs(l.a - r.b) <= 3", ["-3 <= r.b - l.a <= 3"]),
        ("3 >= abs(r.b - l.a)", ["-3 <= r.b - l.a <= 3"]),
        ("r.b - l.a >= -2 and l['a'] + 2 * 2 > r.b", ["-2 <= r.b - l.a <= 4"]),
        ("l.a == r.b + 1", ["-1 <= r.b - l.a <= -1"]),
        ("l.a <= r.b + 2.5", ["-3 <= r.b - l.a"]),
        ("l.a <= r.b and l.a <= r.b - 1 and l.s == 'x'", ["1 <= r.b - l.a"]),
        (f"r.t - {HOUR} <= l.t and l.t <= r.t", ["0:00:00 <= r.t - l.t <= 1:00:00"]),
        ("l.d <= r.d + timedelta(days=2)", ["-2 days, 0:00:00 <= r.d - l.d"]),
        ("-l.a <= -r.b", ["r.b - l.a <= 0"]),
        ("l.a <= r.b or l.a == 3", []),
        ("not l.a <= r.b", []),
        ("l.a + r.b <= 3", []),
        ("l.a <= l.a + 1 and r.b <= 3", []),
        ("l.x <= r.b and r.b <= l.x + 1", []),
        ("2 * l.a <= r.b", []),
    ],
)
def test_bounds(condition: str, said: list[str]) -> None:
    assert [str(bounds) for bounds in bounds_of(*_of(f"lambda l, r: {condition}"))] == said


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("l.a == r.b and l.t <= r.t", [("a", "b")]),
        ("r.b == l.x", [("x", "b")]),
        ("r.b == l.s", []),
        ("l.a == r.b + 1", []),
        ("l.a == r.b or l.t == r.t", []),
        ("abs(l.a) == r.b", []),
        ("l.a == 1 and r.b == 1", []),
    ],
)
def test_equal_columns(condition: str, columns: list[tuple[str, str]]) -> None:
    assert list(equal_columns(*_of(f"lambda l, r: {condition}"))) == columns


@pytest.mark.parametrize(
    "condition",
    [
        "0 <= r.b - l.a <= 5", "abs(l.a - r.b) <= 1", "l.a == r.b + 7", "-9 < r.b - l.a < -3",
        "0 <= r.b - l.a <= 0", "r.b - l.a <= -1 and r.b - l.a >= 4", "l.a == r.b",
    ],
)  # fmt: skip
def test_rows_that_match_have_one_part_in_common(condition: str) -> None:
    fn, left, right = _of(f"lambda l, r: {condition}")
    [bounds] = bounds_of(fn, left, right)
    parts = shared_parts(bounds, left)
    assert parts is not None
    [right_part] = parts.right
    extreme = [2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1]
    numbers = [*range(-25, 25), *extreme]

    for a in numbers:
        for b in numbers:
            x, y = RowItem(a=a), RowItem(b=b)
            met = [f.call(x) for f in parts.left].count(right_part.call(y))
            assert met <= 1, "a pair comes once"
            assert met or not fn.call(x, y), (a, b)


def test_far_bounds_and_open_ones_have_no_parts() -> None:
    for condition in ("l.a <= r.b", "l.a + 2 ** 62 <= r.b and r.b <= l.a + 2 ** 62 + 1"):
        fn, left, right = _of(f"lambda l, r: {condition}")
        [bounds] = bounds_of(fn, left, right)
        assert shared_parts(bounds, left) is None


def test_pairs_of_an_interval_are_not_made_of_all_pairs() -> None:
    program = """l = source("a long, n long"); r = source("b long")
    l -> join(right=r, how="outer", where=lambda l, r: l.a <= r.b and r.b <= l.a + 5) -> out"""
    made = without_conditions(compile_text(program).typed).graph
    [pairs] = [n for n in made if n.op.name == "join" and n.args["how"] == "inner"]
    keys = {end.node for end in pairs.inputs}
    assert not any(
        fn.tree is None or fn.source == "lambda x: 0"
        for node in made
        if node.id in keys
        for _, fn in node.args.get("computed", ())
    )


def test_optimize_says_which_bounds_it_saw() -> None:
    program = """l = source("k long, at timestamp"); r = source("k long, at timestamp")
    j = l -> join(right=r, on="k", suffix="_r",
        where=lambda l, r: l.at <= r.at and r.at <= l.at + timedelta(hours=1)) -> out"""
    found = best_plan(compile_text(program))
    assert found.bounds == ("`j` brings together rows with 0:00:00 <= r.at - l.at <= 1:00:00",)
    assert found.bounds[0] in as_text(found)


def test_a_function_that_cannot_be_read() -> None:
    flow = Flow()
    left, right = flow.source("l", "a long, k long"), flow.source("r", "b long, k double")
    near = eval("lambda x, y: abs(x.a - y.b) < 2")
    from hydro_core import typed

    left.join(right, on="k", how="left", where=typed("boolean", near), suffix="_r").sink("out")
    ticks = [{"l": [{"a": 1, "k": 1}, {"a": 5, "k": 1}], "r": [{"b": 2, "k": 1.0}]}]
    [tick] = flow.run(ticks)
    assert sorted(map(str, tick["out"])) == [
        "{'k': 1.0, 'a': 1, 'b': 2}",
        "{'k': 1.0, 'a': 5, 'b': None}",
    ]
