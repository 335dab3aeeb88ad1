"""The normal form of a function, and functions that are made from trees."""

from __future__ import annotations

import ast
from decimal import Decimal
from typing import Any

import pytest

from hydro_core.functions.forms import stored_form
from hydro_core.functions.from_tree import function_of, is_complete, text_of
from hydro_core.functions.read import read_function
from hydro_core.functions.tree import Bind, Const, Fn, Op, Param, Part
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import RowItem, Struct
from tests.support.functions import live

PAIR = "(long, string)"
ROW = "user string, n long, tags array<(long, string)>"


def _fn(text: str, **bindings: Any) -> Fn:
    return read_function(ast.parse(text, mode="eval").body, bindings)


def _form(text: str, *types: str) -> object:
    return stored_form(_fn(text), tuple(map(parse_ddl, types)))


@pytest.mark.parametrize(
    ("one", "other", "types"),
    [
        ("lambda x: x[0]", "lambda item: item[0]", [PAIR]),
        ("lambda x: x[0]", "lambda x: x._1", [PAIR]),
        ("lambda x: x[-1]", "lambda x: x[1]", [PAIR]),
        ("lambda x: x[1]", "lambda k, v: v", [PAIR]),
        ("lambda r: r.user", "lambda r: r['user']", [ROW]),
        ("lambda r: r.n", "lambda user, n, tags: n", [ROW]),
        ("lambda r: [t[0] for t in r.tags]", "lambda q: [u._1 for u in q['tags']]", [ROW]),
        ("lambda r: [a for a, b in r.tags]", "lambda r: [c for c, d in r.tags]", [ROW]),
        ("lambda r: max(r.tags, key=lambda t: 1)", "lambda r: max(r.tags, key=lambda q: 1)", [ROW]),
        ("lambda r: (y := r.n) + y", "lambda r: r.n + r.n", [ROW]),
        ("lambda r: (r.n and r.user) and r.tags", "lambda r: r.n and r.user and r.tags", [ROW]),
        ("lambda s, x: s + x[0]", "lambda acc, p: acc + p._1", ["long", PAIR]),
        ("lambda s, x: s + x[0]", "lambda s, k, v: s + k", ["long", PAIR]),
        ("lambda x: 0x10", "lambda x: 16", [PAIR]),
    ],
)  # fmt: skip
def test_what_does_the_same_has_one_form(one: str, other: str, types: list[str]) -> None:
    assert _form(one, *types) == _form(other, *types)


@pytest.mark.parametrize(
    ("one", "other", "types"),
    [
        ("lambda x: x[0]", "lambda x: x[1]", [PAIR]),
        ("lambda x: 1", "lambda x: True", [PAIR]),
        ("lambda x: 1", "lambda x: 1.0", [PAIR]),
        ("lambda x: 0.0", "lambda x: -0.0", [PAIR]),
        ("lambda x: [1]", "lambda x: (1,)", [PAIR]),
        ("lambda x: '1'", "lambda x: 1", [PAIR]),
        ("lambda x: x[0] in (1, 2)", "lambda x: x[0] in (1, True)", [PAIR]),
        ("lambda x: 'a' + x[1]", "lambda x: x[1] + 'a'", [PAIR]),
        ("lambda r: {'a': r.n, 'b': 1}", "lambda r: {'b': 1, 'a': r.n}", [ROW]),
        ("lambda r: [(a, b) for a, b in r.tags]", "lambda r: [(b, a) for a, b in r.tags]", [ROW]),
        ("lambda s, x: s", "lambda s, x: x", ["long", "long"]),
    ],
)
def test_what_does_something_else_has_another(one: str, other: str, types: list[str]) -> None:
    assert _form(one, *types) != _form(other, *types)


def test_what_an_index_means_depends_on_the_type() -> None:
    assert _form("lambda x: x[0]", "string") != _form("lambda x: x[0]", PAIR)


def test_what_is_declared_counts() -> None:
    plain = _fn("lambda x: x[0]")
    said = Fn(
        plain.name, plain.source, plain.params, plain.call, plain.tree, returns=parse_ddl("int")
    )
    assert stored_form(plain, (parse_ddl(PAIR),)) != stored_form(said, (parse_ddl(PAIR),))


def test_constants_that_are_closed_over_count() -> None:
    one, other = _fn("lambda x: x[0] + k", k=1), _fn("lambda x: x[0] + k", k=2)
    same = _fn("lambda y: y._1 + limit", limit=1)
    pair = (parse_ddl(PAIR),)
    assert stored_form(one, pair) != stored_form(other, pair)
    assert stored_form(one, pair) == stored_form(same, pair)


def test_what_cannot_be_read_is_known_by_its_name() -> None:
    def one(x: Any) -> Any:
        return eval("x")

    first = live("def f(x):\n    return hidden(x)\n", hidden=one)
    form = stored_form(first, (parse_ddl(PAIR),))
    assert form[0] == "source"
    assert form != stored_form(live("def f(x):\n    return hidden(x)\n", hidden=len), ())


@pytest.mark.parametrize(
    ("text", "item", "gives"),
    [
        ("lambda k, v: (v, k + 1)", Struct((1, "a")), ("a", 2)),
        ("lambda r: r.keys + r['n']", RowItem(keys=1, n=2), 3),
        ("lambda r: {**r, 'm': f'{r.n!r:>4}|{{}}'}", RowItem(n=2), {"n": 2, "m": "   2|{}"}),
        ("lambda x: [a * 2 for a in x if a > 1 if a < 9][::-1]", [1, 2, 3, 9], [6, 4]),
        ("lambda x: sum(b for a in x for b in a)", [[1], [2, 3]], 6),
        ("lambda x: len({*x, 5})", [5, 6, 6], 2),
        ("lambda x: sorted(x, key=lambda y: -y, reverse=True)", [2, 1, 3], [1, 2, 3]),
        ("lambda x: max(x, key=lambda t: t[1])", [(1, 2), (0, 3)], (0, 3)),
        ("lambda x: (y := x + 1) * y if not x < 0 <= 1 else ~x", 2, 9),
        ("lambda x: (lambda a, b: a - b)(x * 2, x)", 5, 5),
        ("lambda x: [a for a, *b in [(1, 2, 3), (x, 4)]]", 7, [1, 7]),
        ("lambda x: str(Decimal('1.50') + x)", 1, "2.50"),
        ("lambda x: date.fromisoformat(x).year", "2024-02-03", 2024),
        ("lambda x: {1: 'a', 2: 'b'}[x]", 2, "b"),
        ("lambda x: x.upper().split(',')[0]", "a,b", "A"),
        ("lambda len: len + 1", 1, 2),
    ],
)
def test_a_function_is_made_from_its_tree(text: str, item: Any, gives: Any) -> None:
    fn = _fn(text)
    assert fn.tree is not None
    assert is_complete(fn.tree)
    arguments = tuple(item) if len(fn.params) > 1 else (item,)
    assert fn.call(*arguments) == gives
    assert function_of(fn.tree, fn.params).call(*arguments) == gives


def test_a_list_in_a_function_is_another_one_each_time() -> None:
    made = function_of(_fn("lambda x: [1, 2]").tree, ("x",))  # type: ignore[arg-type]
    assert made.call(0) is not made.call(0)


@pytest.mark.parametrize("name", ["__class__", "format", "_x", "__globals__", "gi_frame"])
def test_a_made_function_reaches_nothing_else(name: str) -> None:
    with pytest.raises(AttributeError):
        function_of(Part(Param("x"), name, True), ("x",)).call("text")


@pytest.mark.parametrize("name", ["open", "eval", "__import__", "getattr", "os.system"])
def test_a_made_function_calls_nothing_else(name: str) -> None:
    tree = Op(name, (Const("x"),))
    assert not is_complete(tree)
    with pytest.raises(NameError):
        function_of(tree, ("x",)).call("text")


def test_shown_names_do_not_run_into_each_other() -> None:
    loop = Bind("list", ("x.1",), Param("y"), Op("+", (Param("x.1"), Param("x_1"))))
    other = Bind("list", ("x_1",), Param("y"), Op("+", (Param("x_1"), Param("x_1"))))
    assert text_of(loop, ("y", "x_1")) != text_of(other, ("y", "x_1"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-1, "-1 + x"), (-1.5, "-1.5 + x"), (float("inf"), "inf + x"), ((-1, [2]), "(-1, [2]) + x")],
)
def test_a_constant_is_shown_as_python_writes_it(value: Any, shown: str) -> None:
    assert function_of(Op("+", (Const(value), Param("x"))), ("x",)).source == f"lambda x: {shown}"


def test_a_negative_base_is_shown_in_parentheses() -> None:
    made = function_of(Op("**", (Const(-2), Param("x"))), ("x",))
    assert made.source == "lambda x: (-2) ** x"
    assert made.call(2) == 4


def test_constants_are_equal_by_type_and_value() -> None:
    nan = float("nan")
    different = [1, 1.0, True, "1", Decimal(1), Decimal("1.0"), 0.0, -0.0, [1], (1,), (True,), None]
    trees = {Op("[]", (Param("x"), Const(value))) for value in different}
    assert len(trees) == len(different)
    assert Const(nan) == Const(float("nan"))
    assert Const({"a": [1, (nan,)]}) == Const({"a": [1, (nan,)]})
    assert hash(Const({"a": [1]})) == hash(Const({"a": [1]}))
    assert Const({"a": 1, "b": 2}) != Const({"b": 2, "a": 1})


def test_a_decimal_is_shown_as_it_is_written() -> None:
    made = function_of(_fn("lambda x: x + limit", limit=Decimal("1.50")).tree, ("x",))  # type: ignore[arg-type]
    assert made.source == "lambda x: x + Decimal('1.50')"
    assert made.call(Decimal(1)) == Decimal("2.5")
