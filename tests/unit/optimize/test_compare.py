"""Which streams of two programs are proved equal, and which must not be."""

from __future__ import annotations

from textwrap import dedent

import pytest

from hydro_core.analysis.infer import infer
from hydro_core.lang.resolve import parse
from hydro_core.optimize.compare import ComparedStream, compare, shared
from hydro_core.optimize.egraph import MIN_ITERATIONS

SOURCES = """
orders = source("user string, product string, amount long, at date")
users = source("user string, country string")
"""

SAME = {
    "names and order of statements": (
        """
        known = users -> persist()
        orders -> join(right=known, on='user') -> out
        """,
        """
        j = join(on='user')
        u -> [1]j
        orders -> [0]j
        u = users -> persist()
        j -> out
        """,
    ),
    "a filter before or after a join": (
        """
        known = users -> persist()
        orders -> join(right=known, on='user') -> filter(lambda r: r.country == 'DE') -> out
        """,
        """
        known = users -> filter(lambda u: u['country'] == 'DE') -> persist()
        orders -> join(right=known, on='user') -> out
        """,
    ),
    "incremental by hand": (
        """
        orders -> select('user') -> persist() -> unique() -> delta() -> out
        """,
        """
        seen = orders -> select('user') -> unique()
        news = seen -> difference(neg=before)
        before = news -> old()
        news -> out
        """,
    ),
    "the same cycle, turned": (
        """
        x = orders -> union(y)
        y = x -> prev() -> filter(lambda r: r.amount > 1)
        x -> out
        """,
        """
        b = a -> prev() -> filter(lambda q: q.amount > 1)
        a = b -> union(orders)
        a -> out
        """,
    ),
    "the same cycle within a tick": (
        """
        r = union() -> unique()
        orders -> select('user', 'product') -> r
        r -> map(lambda x: {'user': x.product, 'product': x.user}) -> r
        r -> out
        """,
        """
        all = union() -> unique()
        all -> map(lambda p: {'user': p.product, 'product': p.user})->all
        orders -> select('user', 'product') -> all
        all -> out
        """,
    ),
    "columns that nobody reads": (
        """
        orders -> window(3) -> aggregate(by='user', n=sum('amount')) -> out
        """,
        """
        orders -> select('user', 'amount') -> window(3) -> aggregate(by='user', n=sum('amount'))
          -> out
        """,
    ),
    "a column that is made and not read": (
        """
        orders -> persist() -> aggregate(by='user', n=sum('amount')) -> out
        """,
        """
        orders -> persist() -> with_columns(dead=lambda r: r.amount)
          -> aggregate(by='user', n=sum('amount')) -> out
        """,
    ),
    "tests in other words": (
        """
        orders -> filter(lambda r: not (r.user is None or r.amount > 1)) -> out
        """,
        """
        orders -> filter(lambda o: o.user != None) -> filter(lambda r: r.amount <= 1) -> out
        """,
    ),
    "columns that are tests in other words": (
        """
        orders -> with_columns(late=lambda r: 0 if r.at is None else 1) -> out
        """,
        """
        orders -> map(lambda r: {**r, 'late': 1 if not r.at == None else 0}) -> out
        """,
    ),
    "projections in other words": (
        """
        orders -> select('user', 'amount') -> out
        """,
        """
        orders -> drop('product', 'at') -> out
        """,
    ),
}

DIFFERENT = {
    "a column that is made and read": (
        "aggregate(by='user', n=sum('amount'))",
        "with_columns(amount=lambda r: 1) -> aggregate(by='user', n=sum('amount'))",
    ),
    "another constant": ("filter(lambda r: r.amount > 1)", "filter(lambda r: r.amount > 2)"),
    "a test that fails on None, asked of fewer rows": (
        "filter(lambda r: not (r.user is None or r.amount > 1))",
        "filter(lambda r: r.amount <= 1) -> filter(lambda o: o.user != None)",
    ),
    "an order that NaN is not in": (
        "filter(lambda r: not (r.amount * 1.5 < 2))",
        "filter(lambda r: r.amount * 1.5 >= 2)",
    ),
    "another type of constant": ("map(lambda r: 1)", "map(lambda r: 1.0)"),
    "a tick later": ("prev()", "prev() -> prev()"),
    "history with and without the tick": ("persist()", "old()"),
    "a longer window": ("window(2)", "window(3)"),
    "another aggregate": (
        "persist() -> aggregate(by='user', n=sum('amount'))",
        "persist() -> aggregate(by='user', n=max('amount'))",
    ),
    "another start of a fold": (
        "persist() -> fold(0, lambda a, r: a + r.amount, commutative=True)",
        "persist() -> fold(1, lambda a, r: a + r.amount, commutative=True)",
    ),
    "once or as often as it comes": ("persist()", "persist() -> unique()"),
    **{
        f"where it fails: {title}": case
        for title, case in {
            "a test turned round": (
                "filter(lambda r: r.amount != 0 and 6 // r.amount > 1)",
                "filter(lambda r: 6 // r.amount > 1 and r.amount != 0)",
            ),
            "filters turned round": (
                "filter(lambda r: r.amount != 0) -> filter(lambda r: 6 // r.amount > 1)",
                "filter(lambda r: 6 // r.amount > 1) -> filter(lambda r: r.amount != 0)",
            ),
            "one of two tests first": (
                "filter(lambda r: r.amount != 0 and 6 // r.amount > 1)",
                "filter(lambda r: 6 // r.amount > 1) -> filter(lambda r: r.amount != 0)",
            ),
            "an alternative turned round": (
                "filter(lambda r: r.amount == 0 or 6 // r.amount > 1)",
                "filter(lambda r: 6 // r.amount > 1 or r.amount == 0)",
            ),
            "a column that nobody reads": (
                "with_columns(x=lambda r: 6 // r.amount) -> select('user')",
                "select('user')",
            ),
            "a column that no aggregate reads": (
                "with_columns(x=lambda r: 6 // r.amount) -> aggregate(by='user', n=count())",
                "aggregate(by='user', n=count())",
            ),
            "a filter before a column": (
                "with_columns(x=lambda r: 6 // r.amount) -> filter(lambda r: r.amount != 0)",
                "filter(lambda r: r.amount != 0) -> with_columns(x=lambda r: 6 // r.amount)",
            ),
            "a tick later": (
                "prev() -> map(lambda r: 6 // r.amount)",
                "map(lambda r: 6 // r.amount) -> prev()",
            ),
            "what is new alone": (
                "unique() -> delta() -> map(lambda r: 6 // r.amount)",
                "unique() -> map(lambda r: 6 // r.amount) -> delta()",
            ),
            "sums of fewer keys": (
                "aggregate(by='user', n=sum('amount')) -> filter(lambda r: r.user == 'ann')",
                "filter(lambda r: r.user == 'ann') -> aggregate(by='user', n=sum('amount'))",
            ),
            "before a join that drops rows": (
                "filter(lambda r: 6 // r.amount > 1) -> join(right=users, on='user', how='semi')",
                "join(right=users, on='user', how='semi') -> filter(lambda r: 6 // r.amount > 1)",
            ),
            "what is not there asked": (
                "map(lambda r: r if r.at else None) -> map(lambda r: None if r is None else r.at)",
                "map(lambda r: r if r.at else None) -> map(lambda r: r.at)",
            ),
        }.items()
    },
}
FAIL_ALIKE = {
    "a test apart": (
        "filter(lambda r: r.amount != 0 and 6 // r.amount > 1)",
        "filter(lambda r: r.amount != 0) -> filter(lambda o: 6 // o.amount > 1)",
    ),
    "a test that never fails, turned round": (
        "filter(lambda r: r.user == 'ann' and r.amount != 0)",
        "filter(lambda r: r.amount != 0) -> filter(lambda r: r.user == 'ann')",
    ),
    "over all of history, and at once": (
        "persist() -> filter(lambda r: 6 // r.amount > 1)",
        "filter(lambda r: 6 // r.amount > 1) -> persist()",
    ),
    "the same, of rows that are narrowed": (
        "persist() -> aggregate(by='user', n=sum('amount'))",
        "select('user', 'amount') -> persist() -> aggregate(by='user', n=sum('amount'))",
    ),
}


def same(one: str, other: str) -> bool:
    programs = [infer(parse(SOURCES + dedent(text))) for text in (one, other)]
    ends = [typed.graph.sinks["out"][0].inputs[0] for typed in programs]
    found, pair = compare(programs), [ComparedStream(i, end) for i, end in enumerate(ends)]
    return found.same(*pair) and found.fail_alike(*pair)


@pytest.mark.parametrize("case", SAME.values(), ids=SAME)
def test_the_same_in_other_words(case: tuple[str, str]) -> None:
    assert same(*case)


@pytest.mark.parametrize("case", DIFFERENT.values(), ids=DIFFERENT)
def test_something_else_that_looks_alike(case: tuple[str, str]) -> None:
    one, other = (f"orders -> {text} -> out" for text in case)
    assert same(one, one)
    assert not same(one, other)


@pytest.mark.parametrize("case", FAIL_ALIKE.values(), ids=FAIL_ALIKE)
def test_what_fails_in_the_same_ticks_is_the_same(case: tuple[str, str]) -> None:
    assert same(*(f"orders -> {text} -> out" for text in case))


def test_cycles_that_start_from_something_else_are_different() -> None:
    """What each tick adds to itself is the same equation, of other inputs."""
    cycle = "x = {} -> union(y)\ny = x -> prev()\nx -> out"
    assert not same(
        cycle.format("orders -> select('user')"), cycle.format("users -> select('user')")
    )


def test_a_cycle_within_a_tick_is_its_least_solution() -> None:
    """`x = unique(x)` has many; that of a cycle into which nothing flows is empty."""
    fed = """
    r = union() -> unique()
    orders -> r
    r -> filter(lambda x: True) -> r
    r -> out
    """
    assert same(fed, fed)
    assert not same(fed, fed.replace("orders -> r", "orders -> filter(lambda x: False) -> r"))


def test_an_input_of_another_type_is_another_input() -> None:
    programs = [
        infer(parse(f'a = source("{schema}")\na -> persist() -> out')) for schema in ("int", "long")
    ]
    ends = [typed.graph.sinks["out"][0].inputs[0] for typed in programs]
    assert not compare(programs).same(ComparedStream(0, ends[0]), ComparedStream(1, ends[1]))


def test_a_comparison_takes_as_many_rounds_as_the_longer_program() -> None:
    """A window of what feeds itself is split into ever earlier ticks."""
    endless = """
    x = orders -> union(y)
    y = x -> prev() -> filter(lambda r: r.amount == 1)
    x -> window(2) -> out
    """
    assert same(endless, endless)
    of = shared(dict(enumerate([infer(parse(SOURCES + dedent(endless)))] * 4)))
    saturation = next(of.turns()).saturation
    assert not saturation.saturated
    assert saturation.iterations == MIN_ITERATIONS
