"""Tests of one form give the same value, or both fail; other words do not change the form."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Hashable, Sequence
from datetime import date
from random import Random
from typing import Any

import pytest

from hydro_core.functions.forms import known_by
from hydro_core.functions.read import read_function
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import RowItem
from tests.support.selection import mostly_slow

ROW = parse_ddl("n long, m long, f double, s string, p boolean, d date, xs array<double>")
VALUES: dict[str, list[Any]] = {
    "n": [None, 0, 1, 2, -1],
    "m": [None, 0, 1, 2],
    "f": [None, 0.0, -0.0, 1.0, math.nan, math.inf],
    "s": [None, "", "a", "b"],
    "p": [None, True, False],
    "d": [None, date(2024, 1, 1), date(2024, 1, 2)],
    "xs": [None, [], [0.0], [math.nan, None], [1.0, 2.0]],
}
CALLS = ["len(r.s)", "r.n + 1", "r.n / 2", "r.s.upper()", "round(r.f)", "int(r.p)", "max(r.n, r.f)"]
"""Of what is computed the types are known to the equations."""
LEAVES = [*(f"r.{c}" for c in VALUES), "None", "0", "1", "1.0", "'a'", "True", "False"]
ROWS = 40


def random_test(random: Random, depth: int, leaves: Sequence[str] = LEAVES) -> ast.expr:
    """An expression of few kinds, so that many are the same in other words."""
    if depth == 0 or random.random() < 0.15:
        return _read(random.choice(leaves))
    part: Callable[[], ast.expr] = lambda: random_test(random, depth - 1, leaves)  # noqa: E731
    leaf: Callable[[], ast.expr] = lambda: _read(random.choice(leaves))  # noqa: E731
    match random.randint(0, 9):
        case 0 | 1 | 2:
            return ast.UnaryOp(ast.Not(), part())
        case 3 | 4:
            ops = [random.choice(COMPARISONS)() for _ in range(random.choice((1, 1, 1, 2)))]
            return ast.Compare(leaf(), ops, [leaf() for _ in ops])
        case 5 | 6 | 7:
            op = random.choice((ast.And, ast.Or))()
            return ast.BoolOp(op, [part() for _ in range(random.randint(2, 3))])
        case 8:
            return ast.IfExp(part(), part(), part())
        case _:
            return _bool(part())


COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In)


def _read(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _bool(test: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("bool", ast.Load()), [test], [])


class InOtherWords(ast.NodeTransformer):
    """Says some parts of an expression in another way that Python gives the same value for."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        match node.operand:
            case _ if self.random.random() < 0.3:
                return ast.UnaryOp(ast.Not(), _bool(node.operand))
            case ast.BoolOp(op, values):
                other = ast.Or() if isinstance(op, ast.And) else ast.And()
                return ast.BoolOp(other, [ast.UnaryOp(ast.Not(), v) for v in values])
            case ast.Compare(left, [ast.Is()], [right]):
                return ast.Compare(right, [ast.IsNot()], [left])
            case ast.Compare(left, [ast.Eq()], [right]):
                return ast.Compare(left, [ast.NotEq()], [right])
            case _:
                return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if self.random.random() < 0.3:
            return ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), node))
        match node:
            case ast.Compare(left, [ast.Lt()], [right]):
                return ast.Compare(right, [ast.Gt()], [left])
            case ast.Compare(left, [first, second], [middle, right]):
                parts = ast.Compare(left, [first], [middle]), ast.Compare(middle, [second], [right])
                return ast.BoolOp(ast.And(), list(parts))
            case ast.Compare(left, [ast.NotEq()], [right]):
                return ast.UnaryOp(ast.Not(), ast.Compare(right, [ast.Eq()], [left]))
            case _:
                return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if self.random.random() < 0.5:
            return ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)
        return ast.IfExp(_bool(node.test), node.body, node.orelse)


def form_of(text: str) -> Hashable:
    fn = read_function(_read(f"lambda r: {text}"), {})
    return known_by(fn, (ROW,))


def random_row(random: Random) -> RowItem:
    return RowItem({name: random.choice(values) for name, values in VALUES.items()})


def value_of(text: str, row: RowItem) -> object:
    """What the test gives, with its type; a failure is one value, and so is NaN."""
    try:
        found = eval(compile(f"({text})", "test", "eval"), {"r": row})
    except (AttributeError, TypeError, ValueError, OverflowError):
        return "fails"
    if isinstance(found, float) and math.isnan(found):
        return "nan"
    return type(found).__name__, repr(found)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", mostly_slow(range(2), 1))
def test_what_has_one_form_does_the_same(seed: int) -> None:
    random = Random(f"boolean {seed}")
    leaves = [*LEAVES, *CALLS]
    classes: dict[Hashable, dict[str, None]] = {}
    for _ in range(5_000):
        test = random_test(random, random.randint(1, 3), leaves)
        text = ast.unparse(test)
        classes.setdefault(form_of(text), {})[text] = None
    rows = [random_row(random) for _ in range(ROWS)]
    compared = 0
    for first, *others in classes.values():
        wanted = [value_of(first, row) for row in rows] if others else []
        for other in others:
            compared += 1
            assert [value_of(other, row) for row in rows] == wanted, f"{first}, {other}"
    assert compared > 150


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", mostly_slow(range(2), 1))
def test_other_words_have_the_same_form(seed: int) -> None:
    random = Random(f"other words {seed}")
    changed = 0
    for _ in range(700):
        test = random_test(random, 4)
        text = ast.unparse(test)
        other = ast.unparse(InOtherWords(random).visit(_read(text)))
        changed += other != text
        assert form_of(text) == form_of(other), f"{text}, {other}"
    assert changed > 400
