"""Text programs reach nothing but their arguments."""

from __future__ import annotations

import ast
import contextlib
import time
from typing import Any

import pytest

from hydro_core.errors import TypeProblem
from hydro_core.functions.allowed import attribute, visible
from hydro_core.functions.call import call_item
from hydro_core.functions.read import constant
from hydro_core.types.values import RowItem, Struct, ValueProblem
from tests.support.functions import text

REFUSED = [
    # names
    ("lambda x: open('/etc/passwd')", "name"),
    ("lambda x: __import__('os')", "name"),
    ("lambda x: eval('1')", "name"),
    ("lambda x: exec('1')", "name"),
    ("lambda x: getattr(x, 'a')", "name"),
    ("lambda x: type(x)", "name"),
    ("lambda x: vars()", "name"),
    ("lambda x: globals()", "name"),
    ("lambda x: print(x)", "name"),
    ("lambda x: input()", "name"),
    ("lambda x: object", "name"),
    ("lambda x: memoryview(b'')", "name"),
    ("lambda x: __builtins__", "name"),
    ("lambda __builtins__: 1", "name"),
    ("lambda x: [0 for __builtins__ in x]", "name"),
    ("lambda x: hash(x)", "name"),
    ("lambda x: id(x)", "name"),
    ("lambda x: y", "name"),
    ("lambda x: (lambda y: 1)(2) + y", "name"),
    ("lambda x: [y for y in x] + [y]", "name"),
    # attributes that are hidden
    ("lambda x: x.__class__", "name"),
    ("lambda x: ().__class__.__bases__[0].__subclasses__()", "name"),
    ("lambda x: x.__init__.__globals__", "name"),
    ("lambda x: (lambda: 1).__code__", "name"),
    ("lambda x: len.__self__", "name"),
    ("lambda x: x._x", "name"),
    ("lambda x: x._0", "name"),
    ("lambda x: x._1_", "name"),
    ("lambda x: str.__mro__", "name"),
    ("lambda x: f'{x.__class__}'", "name"),
    ("lambda x: f'{x:{x.__class__}}'", "name"),
    ("lambda x: f'{x!r:>{().__class__}}'", "name"),
    ("lambda x: [y.__dict__ for y in x]", "name"),
    ("lambda x: sorted(x, key=lambda y: y.__class__)", "name"),
    ("lambda x: {**x.__dict__}", "name"),
    # methods that are not known, or change things, or depend on the moment
    ("lambda x: '{0.__class__}'.format(x)", "name"),
    ("lambda x: '{a.__class__}'.format_map(x)", "name"),
    ("lambda x: str.format('{0.__class__}', x)", "name"),
    ("lambda x: x.append(1)", "name"),
    ("lambda x: x.mro()", "name"),
    ("lambda x: (y for y in x).send(None)", "name"),
    ("lambda x: (y for y in x).throw(ValueError)", "name"),
    ("lambda x: datetime.now()", "name"),
    ("lambda x: date.today()", "name"),
    ("lambda x: datetime.utcnow()", "name"),
    ("lambda x: date.fromtimestamp(x)", "type"),
    ("lambda x: datetime.fromtimestamp(x)", "type"),
    ("lambda x: x.astimezone()", "type"),
    ("lambda x: sorted(x, key=str.format)", "name"),
    ("lambda x: max(x, key=datetime.now)", "name"),
    ("lambda x: int.__add__", "name"),
    ("lambda x: str.maketrans('a', 'b')", "name"),
    # forms
    ("lambda x: (yield x)", "syntax"),
    ("lambda x: (yield from x)", "syntax"),
    ("lambda x: await_(x)", "name"),
    ("lambda x: [0 for x[0] in x]", "syntax"),
    ("lambda x: [0 for x.a in x]", "syntax"),
    ("lambda x: ...", "syntax"),
    ("lambda x: 1j", "syntax"),
    ("lambda x=open: x", "type"),
    ("lambda *x: x", "type"),
    ("lambda **x: x", "type"),
    ("lambda *, x: x", "type"),
    ("lambda x, /: x", "type"),
    ("lambda x: (lambda y=x: y)()", "type"),
    ("lambda x: " + "- " * 300 + "x", "type"),
]


@pytest.mark.parametrize(("source", "code"), REFUSED)
def test_refused_when_read(source: str, code: str) -> None:
    with pytest.raises(TypeProblem) as caught:
        text(source)
    assert caught.value.code == code
    assert caught.value.place[0] >= 1


@pytest.mark.parametrize(
    "source",
    [
        "lambda x: (y for y in [1]).gi_frame",
        "lambda x: (y for y in [1]).gi_code",
        "lambda x: (lambda: 1).func_globals",
        "lambda x: (lambda: 1).f_globals",
        "lambda x: x.upper.im_func",
        "lambda x: len.im_self",
        "lambda x: timezone.tzname",
        "lambda x: [].append",
        "lambda x: ''.format",
        "lambda x: (1).from_bytes",
        "lambda x: x.mro",
        "lambda x: zip.mro",
        "lambda x: ''.join.fget",
    ],
)
def test_what_is_seen_at_run_time_only(source: str) -> None:
    try:
        fn = text(source)
    except TypeProblem:
        return
    with pytest.raises((AttributeError, ValueProblem)):
        call_item(fn, RowItem(a=1))


@pytest.mark.parametrize(
    "value", [object(), type, len, (x for x in ()), text, ast, [].append, lambda: 1, Exception()]
)
@pytest.mark.parametrize("name", ["gi_frame", "append", "mro", "args", "__class__", "read", "copy"])
def test_the_guard_knows_no_other_kinds(value: Any, name: str) -> None:
    with pytest.raises(AttributeError):
        attribute(value, name)


def test_the_guard_lets_fields_win() -> None:
    row = RowItem(keys=1, gi_frame=2)
    assert attribute(row, "keys") == 1
    assert attribute(row, "gi_frame") == 2
    assert attribute({"upper": 3}, "upper") == 3
    assert attribute(Struct((4,)), "_1") == 4
    assert visible("_12")
    assert not visible("_")


def test_a_bound_object_is_not_opened() -> None:
    with pytest.raises(TypeProblem, match=r"`os.path` cannot be read"):
        text("lambda x: os.path", os=__import__("os"))


def test_nothing_runs_while_it_is_read() -> None:
    called = []
    text("lambda x: spy(x)", spy=called.append)
    text("lambda x: 1 // 0 + 10 ** 10 ** 10")
    with pytest.raises(TypeProblem):
        constant(ast.parse("[spy(1)]", mode="eval").body, {"spy": called.append})
    assert called == []


@pytest.mark.parametrize(
    "source",
    [
        "10 ** 10 ** 10",
        "2 ** 100_000_000",
        "1 << 10 ** 12",
        "'a' * 10 ** 12",
        "10 ** 12 * [0]",
        "[0] * 10 ** 6 * 10 ** 6",
        "(0,) * 10 ** 9",
        "range(10 ** 15)",
        "list(range(10 ** 9))",
        "[x for x in range(10 ** 6) for y in range(10 ** 6)]",
        "sum(x for x in range(10 ** 6) for y in range(10 ** 3))",
        "'x'.rjust(10 ** 12)",
        "'x'.zfill(10 ** 12)",
        "f'{1:>1000000000000}'",
        "f'{1:.1000000000}'",
        "('a' * 10 ** 6).replace('a', 'a' * 10 ** 6)",
        "('a' * 10 ** 5).join(['b'] * 10 ** 5)",
        "int('9' * 10 ** 5)",
        "str(2 ** 500_000)",
        "f'{2 ** 500_000}'",
        "Decimal(10) ** 10 ** 9",
        "Decimal('1E+999999999999')",
        "[[[[0] * 1000] * 1000] * 1000] * 1000 == [[[[0] * 1000] * 1000] * 1000] * 999",
        "sorted([0] * 10 ** 6, key=lambda x: sum(range(10 ** 6)))",
        "(lambda f: f(f))(lambda f: f(f))",
        "(2 ** 900_000) ** 2 % 7",
        "2 ** 900_000 * 2 ** 900_000 * 2 ** 900_000",
        "''.join(str(x) for x in range(10 ** 7))",
        "list(reversed(range(10 ** 8)))",
        "list(zip(range(10 ** 8)))",
        "'%1000000000d' % 1",
        "b'a' * 10 ** 10",
        "(5).to_bytes(10 ** 10, 'big')",
        "Decimal(1).scaleb(10 ** 9)",
        "round(2 ** 900_000, -10 ** 6)",
    ],
)
def test_constants_take_a_moment_at_most(source: str) -> None:
    start = time.process_time()
    with contextlib.suppress(TypeProblem):
        constant(ast.parse(source, mode="eval").body, {})
    assert time.process_time() - start < 8
