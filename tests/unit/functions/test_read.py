"""Functions are read as trees, from text and from live Python."""

from __future__ import annotations

import ast
import functools
import math
import pickle
from typing import Any

import pytest

from hydro_core.errors import TypeProblem
from hydro_core.functions.call import call_accumulate, call_item, call_pair
from hydro_core.functions.read import constant, read_callable, read_function
from hydro_core.functions.tree import Algebra, Const, Op, Param
from hydro_core.types.item import LONG, STRING
from hydro_core.types.values import RowItem, Struct, ValueProblem
from tests.support.functions import live, text

LIMIT = 3
NAMES = {"a": 1}


def helper(x: int) -> int:
    return x + LIMIT


def unread(x: int, *, more: int = 1) -> int:
    return x + more


class TestText:
    def test_is_told_apart_by_its_text_and_what_it_closes_over(self) -> None:
        assert text("lambda x: x+1") == text("lambda x:  (x + 1)")
        assert text("lambda x: x + 1") != text("lambda y: y + 1")
        assert text("lambda x: x + n", n=1) != text("lambda x: x + n", n=2)
        assert text("lambda x: x + n", n=1) == text("lambda x: x + n", n=1, m=3)
        assert text("lambda x: h(x)", h=helper) == text("lambda x: h(x)", h=helper)

    def test_keeps_what_its_author_says(self) -> None:
        tree = ast.parse("lambda a, b: a + b", mode="eval").body
        fn = read_function(tree, {}, algebra=Algebra(commutative=True), returns=LONG)
        assert fn.algebra.commutative
        assert fn.returns == LONG
        assert fn.params == ("a", "b")

    def test_places_come_from_the_program(self) -> None:
        tree = ast.parse("lambda x: nope", mode="eval").body
        with pytest.raises(TypeProblem) as caught:
            read_function(tree, {}, locate=lambda node: (7, getattr(node, "col_offset", 0) + 30))
        assert caught.value.place == (7, 40)
        assert caught.value.code == "name"

    @pytest.mark.parametrize(
        ("source", "near"), [("lambda x: srt(x)", "`str`"), ("lambda x: x.uper()", "`.upper`")]
    )
    def test_suggests_what_was_meant(self, source: str, near: str) -> None:
        with pytest.raises(TypeProblem) as caught:
            text(source)
        assert near in (caught.value.help or "")

    def test_bound_functions_and_builtins(self) -> None:
        assert text("f", f=helper).call(1) == 4
        assert text("len").tree == Op("len", (Param("x"),))
        assert call_item(text("str"), 5) == "5"
        assert text("f", f=text("lambda x: x")).params == ("x",)
        assert call_item(text("lambda x: f(x) + 1", f=text("lambda x: x")), 1) == 2

    @pytest.mark.parametrize("source", ["3", "f()", "x", "[lambda x: x]", "n"])
    def test_what_is_no_function(self, source: str) -> None:
        with pytest.raises(TypeProblem):
            text(source, f=helper, n=4)

    def test_a_bound_function_is_called_as_it_is(self) -> None:
        calls = []
        fn = text("lambda x: spy(x)", spy=lambda x: calls.append(x) or x)
        assert not fn.pure or fn.tree is not None
        assert call_item(fn, 1) == 1
        assert calls == [1]

    def test_can_be_pickled(self) -> None:
        fn = text("lambda r: (r.keys, n, r.name.upper())", n=3)
        call = pickle.loads(pickle.dumps(fn.call))
        assert call(RowItem(keys=1, name="a")) == (1, 3, "A")

    def test_shadows(self) -> None:
        assert call_item(text("lambda len: len + 1"), 1) == 2
        assert call_item(text("lambda x: [max for max in x]"), [1]) == [1]
        assert call_item(text("lambda x: sum(x)", sum=len), [5, 6]) == 2


class TestLive:
    def test_lambdas_of_one_line_are_told_apart(self) -> None:
        # fmt: off
        one, other = read_callable(lambda x: x + 1), read_callable(lambda x: x + 2)
        same, again = read_callable(lambda x: x), read_callable(lambda x: x)
        # fmt: on
        assert one.source == "lambda x: x + 1"
        assert other.source == "lambda x: x + 2"
        assert same == again

    def test_closes_over_constants(self) -> None:
        n = 5
        fn = read_callable(lambda x: x + n + LIMIT)
        assert fn.tree is not None
        assert fn.source == "lambda x: x + n + LIMIT"
        assert fn.closed == (("LIMIT", "3"), ("n", "5"))
        assert fn.whole == "lambda x: x + n + LIMIT\nwhere LIMIT = 3\nwhere n = 5"
        assert Const(5) in _parts(fn.tree)

    def test_what_it_closes_over_tells_it_apart(self) -> None:
        def make(n: int) -> Any:
            return read_callable(lambda x: x + n)

        assert make(1) != make(2)
        assert make(1) == make(1)

    def test_functions_within_are_read_in_place(self) -> None:
        fn = read_callable(lambda x: helper(x) * 2)
        assert fn.pure
        assert not any(isinstance(p, Op) and p.family == "unread" for p in _parts(fn.tree))
        assert "helper" in dict(fn.closed)
        assert "def helper" in fn.whole

    def test_recursion_is_not_followed(self) -> None:
        fn = live("def f(n):\n    return 1 if n < 2 else n * f(n - 1)\n")
        assert fn.tree is not None
        assert call_item(fn, 5) == 120

    def test_what_cannot_be_read_is_called(self) -> None:
        exec("f = lambda x: x + 1", scope := {})  # type: ignore[var-annotated]
        fn = read_callable(scope["f"], returns=LONG)
        assert fn.tree is None
        assert fn.returns == LONG
        assert call_item(fn, 1) == 2

    @pytest.mark.parametrize("f", [math.sqrt, functools.partial(max, 3), [1].index, dict, Struct])
    def test_other_callables(self, f: Any) -> None:
        fn = read_callable(f, name="f")
        assert fn.params == ("x",) or fn.tree is None

    def test_modules_are_read_through(self) -> None:
        fn = read_callable(lambda x: math.floor(x) + math.gamma(x) + math.pi)
        assert Const(math.pi) in _parts(fn.tree)
        assert any(isinstance(p, Op) and p.name == "math.floor" for p in _parts(fn.tree))
        assert any(isinstance(p, Op) and p.name == "?math.gamma" for p in _parts(fn.tree))

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ("lambda x, n=1: x", "default for `n`"),
            ("lambda *x: x", r"takes `\*x`"),
            ("lambda **x: x", "fixed number"),
            ("async def f(x): return x", "asynchronous"),
        ],
    )
    def test_refused(self, source: str, said: str) -> None:
        with pytest.raises(TypeProblem, match=said):
            live(source)

    def test_annotations_are_types(self) -> None:
        assert read_callable(helper).returns == LONG
        assert live("def f(x) -> str:\n    return x\n").returns == STRING
        assert live("def f(x) -> list:\n    return x\n").returns is None

    def test_a_generator_gives_an_array(self) -> None:
        fn = live("def f(x):\n    yield x\n    yield x + 1\n")
        assert fn.tree is None
        assert call_item(fn, 1) == [1, 2]

    def test_names_that_are_bound_later(self) -> None:
        fn = live("lambda x: not_yet_there(x)")
        assert fn.tree is not None
        assert not fn.pure

    def test_a_source_that_changed_is_not_believed(self) -> None:
        import linecache

        source = "f = lambda x: x + 1\n"
        scope: dict[str, Any] = {}
        exec(compile(source, "<changed>", "exec"), scope)
        changed = "f = lambda x: x + 2\n"
        linecache.cache["<changed>"] = (len(changed), None, [changed], "<changed>")
        assert read_callable(scope["f"]).tree is None

    @pytest.mark.parametrize(
        "body",
        [
            "    for y in x:\n        pass\n    return y\n",
            "    while x:\n        x = x - 1\n    return x\n",
            "    try:\n        return 1\n    except Exception as e:\n        return e\n",
            "    try:\n        y = 1\n    finally:\n        z = 2\n    return y, z\n",
            "    with x as y:\n        return y\n",
            "    import math\n    return math.pi\n",
            "    x.a = 1\n    x[0] = 2\n    del x\n    return 1\n",
            "    global z\n    z = 1\n    return z\n",
            "    class A: pass\n    return A\n",
            "    def g(y):\n        nonlocal x\n        x = y\n    g(1)\n    return x\n",
            "    def g(y=1, *z):\n        return y\n    return g()\n",
            "    return {k: v for k, v in x}\n",
            "    return [*x, *x], {**x}, f'{x:{x}}', x @ x, x[1:2, 3], ..., 1j\n",
            "    return (lambda *a: a)(*x, **x)\n",
            "    a = b, *c = x\n    (d, (e, *f_)), [g, h] = x\n    return a, b, c, d, e, f_\n",
            "    match x:\n        case {'a': 1, **r}: return r\n        case int(y): return y\n",
            "    match x:\n        case 1 | None: return 0\n        case [y, *z] as w: return w\n",
            "    if x:\n        y = 1\n    return y\n",
            "    x: int = 3\n    y: int\n    return x\n",
            "    'doc'\n    ...\n    pass\n",
            "    assert x, 'no'\n    raise ValueError(x)\n",
            "    return (y := 1) and (z := y) or z\n",
            "    x += 1; x *= 2; x @= 3\n    return x\n",
        ],
    )
    def test_anything_is_read_or_left(self, body: str) -> None:
        live(f"def f(x):\n{body}")


class TestCalls:
    def test_spread(self) -> None:
        assert call_item(text("lambda a, b: (b, a)"), Struct((1, 2))) == (2, 1)
        assert call_item(text("lambda a, b: b"), RowItem(x=1, y=2)) == 2
        assert call_item(text("lambda x: x"), Struct((1, 2))) == (1, 2)
        assert call_accumulate(text("lambda acc, x: acc + x[0]"), 1, Struct((2, 3))) == 3
        assert call_accumulate(text("lambda acc, a, b: acc + a * b"), 1, Struct((2, 3))) == 7
        assert call_pair(text("lambda a, b: (a, b)"), Struct((1,)), Struct((2,))) == ((1,), (2,))

    @pytest.mark.parametrize(
        "item", [Struct((1,)), Struct((1, 2, 3)), RowItem(a=1), 5, None, [1, 2], "ab"]
    )
    def test_items_that_do_not_spread(self, item: Any) -> None:
        with pytest.raises(ValueProblem):
            call_item(text("lambda a, b: a"), item)

    def test_results_are_items(self) -> None:
        found = call_item(text("lambda x: {'a': (x, [x])}"), 1)
        assert found.a._2 == [1]
        with pytest.raises(ValueProblem, match="beyond 64 bits"):
            call_item(text("lambda x: x * x"), 2**40)

    def test_a_function_gets_arrays_of_its_own(self) -> None:
        item = Struct(([1], RowItem(a=[2])))
        fn = live("def f(t):\n    t[0].append(9)\n    t[1].a.append(9)\n    return t\n")
        assert call_item(fn, item) == ([1, 9], {"a": [2, 9]})
        assert item == ([1], {"a": [2]})

    @pytest.mark.parametrize(
        ("source", "item", "expected"),
        [
            ("lambda r: {**r, 'n': r.keys}", RowItem(keys=1), {"keys": 1, "n": 1}),
            ("lambda r: r.get('a', r.items)", RowItem(items=2), 2),
            ("lambda t: (t._2, t[-1])", Struct((1, 2)), (2, 2)),
            ("lambda x: [y for y in x if y > 1]", [1, 2, 3], [2, 3]),
            ("lambda x: sorted(x, key=lambda y: -y)", [1, 3, 2], [3, 2, 1]),
            ("lambda s: f'{s!r:>5}|{s:{len(s)}}'", "ab", " 'ab'|ab"),
            ("lambda x: (y := x + 1) * y", 2, 9),
            ("lambda s: {'a': 1}[s]", "a", 1),
            ("lambda x: max(x, key=lambda p: p[1])._1", [Struct((1, 2)), Struct((3, 1))], 1),
            ("lambda x: date(2024, 1, x).isoformat()", 2, "2024-01-02"),
            ("lambda s: list(map_)", "a", [1]),
            ("lambda xs: sum(x.v for x in xs)", [RowItem(v=1), RowItem(v=2)], 3),
            ("lambda x: (lambda y: y + x)(1)", 2, 3),
            ("lambda s: str.upper(s)", "a", "A"),
            ("lambda s: sorted(s, key=str.lower)", "bA", ["A", "b"]),
            ("lambda t: dict(a=t, b=1)", 0, {"a": 0, "b": 1}),
            ("lambda x: {'a': x}.a", 4, 4),
        ],
    )
    def test_what_they_give(self, source: str, item: Any, expected: Any) -> None:
        assert call_item(text(source, map_=[1]), item) == expected


class TestConstants:
    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("-1", -1),
            ("[(1, 'a', None), (2, 'b', True)]", [(1, "a", None), (2, "b", True)]),
            ("{'n': 0, **{'m': [1.5]}}", {"n": 0, "m": [1.5]}),
            ("[i * 2 for i in range(5) if i % 2]", [2, 6]),
            ("[(i, j) for i in range(2) for j in 'ab']", [(0, "a"), (0, "b"), (1, "a"), (1, "b")]),
            ("1 if LIMIT > 2 else 0", 1),
            ("0 or 5 and 6", 6),
            ("1 < 2 < 3 > 2", True),
            ("'ab'.upper()[::-1]", "BA"),
            ("f'{1 + 1:>3}{None!r}'", "  2None"),
            ("sorted({3, 1, 2})", [1, 2, 3]),
            ("sorted(['b', 'A'], key=str.lower)", ["A", "b"]),
            ("max([1, 2], key=lambda x: -x)", 1),
            ("(1, *[2, 3])", (1, 2, 3)),
            ("timedelta(days=1).total_seconds()", 86400.0),
            ("NAMES['a']", 1),
            ("lambda: 4", 4),
            ("(x := 2) + x", 4),
            ("{1: 'a', 2: 'b'}[2]", "b"),
            ("dict(a=1)", {"a": 1}),
            ("list({'a': 1}.items())", [("a", 1)]),
            ("min(3, 2, *())", 2) if False else ("min(3, 2)", 2),
        ],
    )
    def test_values(self, source: str, expected: Any) -> None:
        bindings = {"LIMIT": LIMIT, "NAMES": NAMES}
        assert constant(ast.parse(source, mode="eval").body, bindings) == expected

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ("1 // 0", "ZeroDivisionError"),
            ("[1][5]", "IndexError"),
            ("'a' + 1", "TypeError"),
            ("helper(1) and spy(1)", "`spy` is not computed"),
            ("lambda x: x", "no value"),
            ("nope", "there is no name `nope`"),
        ],
    )
    def test_problems(self, source: str, said: str) -> None:
        bindings = {"helper": helper, "spy": functools.partial(print)}
        with pytest.raises(TypeProblem, match=said):
            constant(ast.parse(source, mode="eval").body, bindings)


def _parts(tree: Any) -> list[Any]:
    found, todo = [], [tree]
    while todo:
        part = todo.pop()
        if isinstance(part, tuple):
            todo.extend(part)
        elif hasattr(part, "__dataclass_fields__"):
            found.append(part)
            todo.extend(getattr(part, slot) for slot in part.__slots__)
    return found
