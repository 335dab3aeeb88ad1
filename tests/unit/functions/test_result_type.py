"""Types of functions."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from hydro_core.errors import TypeProblem
from hydro_core.functions.bind import bind
from hydro_core.functions.call import call_item
from hydro_core.functions.constant import value_of
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Op
from hydro_core.types.ddl import parse_ddl, to_ddl
from hydro_core.types.item import LONG, OPEN, STRING, UNKNOWN, Scalar
from hydro_core.types.values import RowItem, Struct, canonical, conform, to_item
from tests.support.functions import live, text

ROW = (
    "s string, n long, i integer, x double, f float, b boolean, p decimal(10,2), d date,"
    " at timestamp, ntz timestamp_ntz, bin binary, xs array<long>, ss array<string>,"
    " t (long, string), r struct<a: long, keys: string>, rs array<struct<a: long>>"
)
ITEM = RowItem(
    s="ab,c",
    n=7,
    i=3,
    x=2.5,
    f=1.5,
    b=True,
    p=Decimal("12.34"),
    d=date(2024, 2, 29),
    at=datetime(2024, 1, 1, 12, tzinfo=UTC),
    ntz=datetime(2024, 1, 1, 12),
    bin=b"hi",
    xs=[3, 1, 2],
    ss=["b", "a"],
    t=Struct((1, "one")),
    r=RowItem(a=1, keys="k"),
    rs=[RowItem(a=5), RowItem(a=6)],
)

# A function of the row, and the type of what it gives; it is called, and computed from its tree.
TYPED = [
    # numbers
    ("r.n + r.i", "long"),
    ("r.i + r.i", "long"),
    ("r.n + r.b", "long"),
    ("r.n + r.x", "double"),
    ("r.f * 2", "double"),
    ("r.n / 2", "double"),
    ("r.n // 2", "long"),
    ("r.n % 3", "long"),
    ("-r.n % 3", "long"),
    ("r.x // 1", "double"),
    ("r.n ** 2", "long"),
    ("r.n ** -1", "double"),
    ("2 ** r.n", "double"),
    ("r.n << 2 | 1", "long"),
    ("~r.n", "long"),
    ("-r.b", "long"),
    ("r.b & True", "boolean"),
    ("abs(-r.n)", "long"),
    ("round(r.x)", "long"),
    ("round(r.x, 1)", "double"),
    ("int(r.s[3:] == 'c')", "long"),
    ("float(r.n)", "double"),
    ("max(r.n, r.x)", "double"),
    ("min(r.xs)", "long"),
    ("sum(r.xs)", "long"),
    ("sum(x / 2 for x in r.xs)", "double"),
    ("len(r.s) + len(r.xs) + len(r.r) + len(r.t)", "long"),
    # decimals
    ("r.p + r.p", "decimal(11,2)"),
    ("r.p * r.p", "decimal(20,4)"),
    ("r.p * 3", "decimal(11,2)"),
    ("r.p * r.n", "decimal(30,2)"),
    ("r.p - 1", "decimal(11,2)"),
    ("r.p / 7", "decimal(14,6)"),
    ("r.p // 5", "decimal(8,0)"),
    ("r.p % 5", "decimal(10,2)"),
    ("-r.p", "decimal(10,2)"),
    ("abs(r.p)", "decimal(10,2)"),
    ("round(r.p, 1)", "decimal(10,1)"),
    ("round(r.p)", "long"),
    ("Decimal('1.5') * r.n", "decimal(22,1)"),
    ("Decimal(r.n)", "decimal(20,0)"),
    ("r.p.quantize(Decimal('0.1'))", "decimal(10,1)"),
    ("sum([r.p, r.p])", "decimal(38,2)"),
    ("max(r.p, 3)", "decimal(22,2)"),
    ("float(r.p)", "double"),
    # strings
    ("r.s.upper() + 'x' * r.n", "string"),
    ("r.s.split(',')", "array<string>"),
    ("','.join(r.ss)", "string"),
    ("','.join(str(x) for x in r.xs)", "string"),
    ("r.s.startswith('a')", "boolean"),
    ("r.s.find('c')", "long"),
    ("r.s.partition(',')", "(string, string, string)"),
    ("r.s.encode()", "binary"),
    ("r.bin.decode()", "string"),
    ("r.bin[0]", "long"),
    ("r.s[0] + r.s[-1] + r.s[1:]", "string"),
    ("f'{r.n:03d} {r.s!r}'", "string"),
    ("str(r.n)", "string"),
    ("'%s' % r.s", "string"),
    ("'a' in r.s", "boolean"),
    # times
    ("r.d.year", "long"),
    ("r.d.isoformat()", "string"),
    ("r.d + timedelta(days=1)", "date"),
    ("(r.d - r.d).days", "long"),
    ("(r.at - r.at).total_seconds()", "double"),
    ("r.at + timedelta(hours=1) * 2", "timestamp"),
    ("r.ntz - timedelta(1)", "timestamp_ntz"),
    ("timedelta(1) / timedelta(hours=1)", "double"),
    ("r.at.date()", "date"),
    ("r.at.timestamp()", "double"),
    ("r.at.replace(tzinfo=None)", "timestamp_ntz"),
    ("r.ntz.replace(tzinfo=timezone.utc)", "timestamp"),
    ("r.at.weekday()", "long"),
    ("date(2024, 1, 1) < r.d", "boolean"),
    ("date.fromisoformat('2024-01-01')", "date"),
    ("datetime(2024, 1, 1)", "timestamp_ntz"),
    ("datetime(2024, 1, 1, tzinfo=timezone.utc)", "timestamp"),
    ("datetime.strptime('2024', '%Y')", "timestamp_ntz"),
    ("datetime.fromisoformat('2024-01-01T00:00:00Z')", "timestamp"),
    ("r.d.isocalendar()[1]", "long"),
    # parts
    ("r.t", "(long, string)"),
    ("r.t[1]", "string"),
    ("r.t._1", "long"),
    ("r.t[-2]", "long"),
    ("r.t[1:]", "(string)"),
    ("r.r.keys", "string"),
    ("r['r']['a']", "long"),
    ("r.xs[0]", "long"),
    ("r.xs[1:]", "array<long>"),
    ("r.rs[0].a", "long"),
    ("r.r.get('a', 0)", "long"),
    ("r.r.get('zz')", "void"),
    ("r.at.strftime('%Y') + f'{r.d:%m}'", "string"),
    ("r.ss[::-1]", "array<string>"),
    # displays
    ("(r.n, r.s)", "(long, string)"),
    ("(r.n,)", "(long)"),
    ("(1, *r.t)", "(long, long, string)"),
    ("r.t + (1.5,)", "(long, string, double)"),
    ("(1, 'a') * 2", "(long, string, long, string)"),
    ("{'a': r.n, 'b': None}", "a long, b void"),
    ("{**r.r, 'a': 'x', 'c': 1}", "a string, keys string, c long"),
    ("dict(a=r.n, b=1)", "a long, b long"),
    ("r.r | {'z': 1}", "a long, keys string, z long"),
    ("[r.n, None, 1.5]", "array<double>"),
    ("r.xs + [1]", "array<long>"),
    ("[*r.xs, 2.5]", "array<double>"),
    ("[]", "array<void>"),
    ("[0] * r.n", "array<long>"),
    ("[(x, y) for x in r.xs for y in r.ss if x > 1]", "array<(long, string)>"),
    ("[a for a, b in [r.t]]", "array<long>"),
    ("[k + str(v) for k, v in zip(r.ss, r.xs)]", "array<string>"),
    ("list(enumerate(r.ss))", "array<(long, string)>"),
    ("list(range(3))", "array<long>"),
    ("list(reversed(r.xs))", "array<long>"),
    ("sorted(set(r.xs))", "array<long>"),
    ("sorted(r.rs, key=lambda q: -q.a)", "array<struct<a: long>>"),
    ("max(r.rs, key=lambda q: q.a).a", "long"),
    ("max([x for x in r.xs if x > 9], default=0)", "long"),
    ("{'a': 1, 'b': 2}[r.s[0]]", "long"),
    ("{1: 'a', 7: 'b'}[r.n]", "string"),
    ("{1: 'a'}.get(r.n, 'z')", "string"),
    ("list(r.r.items())[0][0]", "string"),
    ("[k for k in r.r]", "array<string>"),
    ("len({1, 2} | {r.n})", "long"),
    # choice
    ("r.n if r.b else None", "long"),
    ("None if r.b else r.x", "double"),
    ("(r.n or 0) + 1", "long"),
    ("r.b and r.n > 1", "boolean"),
    ("r.n or r.x", "double"),
    ("str(1 if r.b else 'a')", "string"),
    ("not r.s", "boolean"),
    ("1 < r.n <= 9 and r.s in ('a', 'b')", "boolean"),
    ("r.n is None", "boolean"),
    ("r.n == 'a'", "boolean"),
    ("(y := r.n + 1) * y", "long"),
    ("None", "void"),
]


@pytest.mark.parametrize(("source", "ddl"), TYPED)
def test_types_are_those_of_the_values(source: str, ddl: str) -> None:
    fn = text(f"lambda r: {source}")
    found = result_type(fn, (parse_ddl(ROW),))
    assert to_ddl(found) == ddl
    called = call_item(fn, ITEM)
    fitted = conform(called, found)
    if "decimal" not in ddl:
        assert canonical(fitted) == canonical(called)
    assert fn.tree is not None
    computed = to_item(value_of(fn.tree, {"r": ITEM}))
    assert canonical(computed) == canonical(called)


PROBLEMS = [
    ("r.nn", "no column `nn`", "`n`"),
    ("r.S", "no column `S`", "`s`"),
    ("r['att']", "no column `att`", "`at`"),
    ("r.r.b", "no column `b`", None),
    ("r[0]", "the columns of a row have names", '["s"]'),
    ("r.t[2]", "no field 3: it has 2", None),
    ("r.t._3", "no field 3", None),
    ("r.t.a", "has no `a`", None),
    ("r.n.a", "long has no `a`", None),
    ("r.d.yeer", "has no `yeer`", "`year`"),
    ("r.s + r.n", "no `string + long`", "str(x)"),
    ("r.n + r.s", "no `long + string`", "str(x)"),
    ("r.p + r.x", "no `decimal", "Decimal(x)"),
    ("r.n + r.xs", "no `long + array<long>`", None),
    ("r.xs + r.t", "no `array<long>", None),
    ("r.x & 1", "no `double & long`", None),
    ("-r.s", "no `- string`", None),
    ("~r.x", "no `~ double`", None),
    ("r.at - r.ntz", "no `timestamp - timestamp_ntz`", None),
    ("r.d - r.at", "no `date - timestamp`", None),
    ("r.d + 1", "no `date + long`", None),
    ("r.n < r.s", "long and string have no order", None),
    ("r.d < r.at", "have no order", None),
    ("r.r < r.r", "have no order", None),
    ("1 in r.s", "no `long in string`", "str(x)"),
    ("r.n in 5", "no `long in long`", None),
    ("r.n.upper()", "long has no method `upper`", None),
    ("r.s.upper().weekday()", "string has no method `weekday`", None),
    ("r.s.keys()", "string has no method `keys`", None),
    ("r.r.keys()", "the column `keys` is not a method", None),
    ("r.n[0]", "long has no parts", None),
    ("r.n[1:]", "long has no parts", None),
    ("r.xs['a']", "indexed by whole numbers", None),
    ("[x for x in r.n]", "nothing to go through in long", None),
    ("len(r.n)", "`len` goes through", None),
    ("sum(r.ss)", "no `long + string`", None),
    ("max(r.n, r.s)", "long and string have no order", None),
    ("sorted(r.rs)", "no order", None),
    ("sorted(r.xs, key=lambda x: x.a)", "long has no `a`", None),
    ("','.join(r.xs)", "`join` takes strings, not long", "str(x)"),
    ("abs(r.s)", "`abs` takes a number", None),
    ("int(r.xs)", "`int` takes a number or a string", None),
    ("date(2024, 1)", "a year, a month and a day", None),
    ("Decimal('x')", "not a decimal number", None),
    ("[a for a, b in r.rs]", "is not unpacked", "r.a"),
    ("[a for a, b, c in [r.t]]", "2 fields, and 3 names", None),
    ("{**r.n}", "spreads a row, not long", None),
    ("r.n if r.b else r.s", "may be long or string", "one type"),
    ("[r.n, r.s]", "may be long or string", None),
    ("{'a': 1, 'b': 'x'}[r.s]", "may be long or string", None),
    ("r.n or 'none'", "may be long or string", None),
    ("(1, {2, 3})", "a set is not an item", "sorted"),
    ("r.at - r.at", "timedelta is not an item", None),
    ("{1: 2}", "is not an item", None),
    ("timezone.utc", "a time zone is not an item", None),
    ("lambda: 1", "there is a function, where a value is meant", None),
    ("len(1, 2)", "takes 1 argument, not 2", None),
]


@pytest.mark.parametrize(("source", "said", "cure"), PROBLEMS)
def test_problems(source: str, said: str, cure: str | None) -> None:
    with pytest.raises(TypeProblem, match=re.escape(said)) as caught:
        result_type(text(f"lambda r: {source}"), (parse_ddl(ROW),))
    assert caught.value.code == "type"
    assert caught.value.place[0] == 1
    assert caught.value.place[1] > 1
    if cure is not None:
        assert cure in (caught.value.help or "")


class TestParameters:
    def test_fields_are_spread(self) -> None:
        pair = parse_ddl("(long, string)")
        assert result_type(text("lambda a, b: b"), (pair,)) == STRING
        assert result_type(text("lambda t: t[1]"), (pair,)) == STRING
        assert result_type(text("lambda acc, a, b: acc + a"), (LONG, pair)) == LONG
        assert result_type(text("lambda a, b: b"), (parse_ddl("x long, y string"),)) == STRING
        assert result_type(text("lambda a, b: a"), (UNKNOWN,)) == UNKNOWN

    @pytest.mark.parametrize(
        ("source", "inputs", "spread", "said"),
        [
            (
                "lambda a, b, c: a",
                ("(long, long)",),
                True,
                "3 of them stand for the item's 2 fields",
            ),
            ("lambda a, b: a", ("long",), True, "the item has no fields: it is long"),
            ("lambda a, b: a", ("(long, long)",), False, "2 parameters, and is given 1"),
            ("lambda: 1", ("long",), True, "0 parameters, and is given 1"),
            ("lambda a: a", ("long", "long"), True, "1 parameters, and is given 2"),
        ],
    )
    def test_numbers_that_do_not_fit(
        self, source: str, inputs: tuple[str, ...], spread: bool, said: str
    ) -> None:
        with pytest.raises(TypeProblem, match=said):
            result_type(text(source), tuple(map(parse_ddl, inputs)), spread)


class TestUnknown:
    @pytest.mark.parametrize(
        "source",
        ["g(r)", "g(r) if r.b else 1", "g(r) + 1", "[g(r)][0]", "g(r).a[0].upper()", "g(r) or 'x'"],
    )
    def test_is_never_a_wrong_type(self, source: str) -> None:
        fn = text(f"lambda r: {source}", g=print)
        assert result_type(fn, (parse_ddl(ROW),)) == OPEN

    def test_parts_of_the_result_may_be_known(self) -> None:
        fn = text("lambda r: (r.n, g(r), len([g(r)]))", g=print)
        assert to_ddl(result_type(fn, (parse_ddl(ROW),))) == "(long, void, long)"

    def test_an_unknown_item(self) -> None:
        assert result_type(text("lambda x: x if x else 1"), (OPEN,)) == OPEN
        assert result_type(text("lambda x: x > 1"), (OPEN,)) == Scalar("boolean")

    @pytest.mark.parametrize(
        ("source", "wanted"),
        [
            ("x if x else 1", "long"),
            ("1 + (0 if x is None else x)", "long"),
            ("0 if x is None else x.a", "long"),
            ("x.a", "void"),
            ("x[0] + 1", "void"),
            ("[x]", "array<void>"),
            ("{**x, 'a': 1}", "void"),
            ("x.upper()", "void"),
        ],
    )
    def test_an_item_that_is_nothing_but_null(self, source: str, wanted: str) -> None:
        assert to_ddl(result_type(text(f"lambda x: {source}"), (UNKNOWN,))) == wanted

    def test_a_declared_result_is_believed(self) -> None:
        fn = live("def f(x) -> int:\n    y = 0\n    for z in x:\n        y += z\n    return y\n")
        assert result_type(fn, (parse_ddl("array<long>"),)) == LONG

    def test_a_column_that_is_missing_is_said_all_the_same(self) -> None:
        fn = text("lambda r: g(r.nope)", g=print)
        with pytest.raises(TypeProblem, match="no column `nope`"):
            result_type(fn, (parse_ddl(ROW),))


class TestDefinitions:
    @pytest.mark.parametrize(
        ("body", "ddl"),
        [
            ("    a, b = t\n    if b:\n        a = a + 1\n    return (b, a)\n", "(string, long)"),
            ("    n = t[0]\n    if n > 1:\n        return n\n    return None\n", "long"),
            ("    if t[0]:\n        return t[1]\n", "string"),
            (
                "    assert t[0]\n    if not t[1]:\n        raise ValueError\n    return t[0]\n",
                "long",
            ),
            ("    a, *b = t\n    return b\n", "array<string>"),
            (
                "    match t:\n        case (1, b):\n            return b\n    return 'x'\n",
                "string",
            ),
            ("    def g(x):\n        return [x]\n    return g(t[0]) + g(1)\n", "array<long>"),
            (
                "    n = 0\n    for x in [1]:\n        n = n + x\n    return (n, t[0])\n",
                "(void, long)",
            ),
        ],
    )
    def test_bodies(self, body: str, ddl: str) -> None:
        fn = live(f"def f(t):\n{body}")
        assert to_ddl(result_type(fn, (parse_ddl("(long, string)"),))) == ddl

    def test_every_expression_has_a_type(self) -> None:
        fn = text("lambda a, b: a + 1")
        typing = bind(fn, (parse_ddl("(long, string)"),))
        assert isinstance(typing.tree, Op)
        assert typing.tree == fn.tree, "types are not what trees differ in"
        assert typing.tree.type == typing.tree.args[1].type == LONG

    def test_differences_of_times_are_marked(self) -> None:
        fn = text("lambda r: (r.at - r.at).days")
        typing = bind(fn, (parse_ddl("at timestamp"),))
        assert typing.tree.base.type == Scalar("timedelta")  # type: ignore[union-attr]
