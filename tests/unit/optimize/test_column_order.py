"""Programs whose named parts stand in another order are the same, unless order means something."""

from __future__ import annotations

import pytest

from hydro_core.analysis.infer import infer
from hydro_core.lang.resolve import parse
from hydro_core.optimize.columns import ranks_of, with_columns_in_order
from hydro_core.optimize.compare import ComparedStream, compare

SOURCES = """
o = source("user string, product string, amount long, at long")
u = source("user string, product string, country string")
"""
BACK = ' -> select("user", "product", "n", "total") -> out'
SAME = {
    "aggregates behind a select": (
        'o -> persist() -> aggregate(by="product", total=sum("amount"), n=count()) -> out',
        (
            'o -> select("product", "amount") -> persist()'
            ' -> aggregate(by="product", n=count(), total=sum("amount"))'
            ' -> select("product", "total", "n") -> out'
        ),
    ),
    "aggregates and their key": (
        (
            'o -> persist() -> aggregate(by=["user", "product"], n=count(), total=sum("amount"))'
            f"{BACK}"
        ),
        (
            'o -> persist() -> aggregate(by=["product", "user"], total=sum("amount"), n=count())'
            f"{BACK}"
        ),
    ),
    "aggregates that are told by their changes": (
        (
            'o -> window(3) -> aggregate(by="user", a=count(), m=avg("amount"))'
            ' -> delta() -> select("m") -> out'
        ),
        (
            'o -> window(3) -> aggregate(by="user", m=avg("amount"), a=count())'
            ' -> delta() -> select("m") -> out'
        ),
    ),
    "columns whose distinct rows are counted": (
        'o -> persist() -> aggregate(by="user", n=count_distinct("product", "at")) -> out',
        'o -> persist() -> aggregate(by="user", n=count_distinct("at", "product")) -> out',
    ),
    "columns that are selected": (
        (
            'o -> select("user", "amount") -> persist() -> filter(lambda r: r.amount == 1)'
            ' -> aggregate(by="user", n=count()) -> out'
        ),
        (
            'o -> select("amount", "user") -> persist() -> filter(lambda r: r.amount == 1)'
            ' -> aggregate(by="user", n=count()) -> out'
        ),
    ),
    "columns that are made": (
        (
            "o -> with_columns(a=lambda r: 1, b=lambda r: r.amount) -> persist()"
            ' -> aggregate(by="b", s=sum("a")) -> out'
        ),
        (
            "o -> with_columns(b=lambda r: r.amount, a=lambda r: 1) -> persist()"
            ' -> aggregate(by="b", s=sum("a")) -> out'
        ),
    ),
    "columns that are made and selected": (
        (
            'o -> select("user", a=lambda r: 1, b=lambda r: r.amount) -> unique()'
            ' -> select("user", "b", "a") -> out'
        ),
        'o -> select("user", b=lambda r: r.amount, a=lambda r: 1) -> unique() -> out',
    ),
    "columns of a row that a function makes": (
        "o -> map(lambda r: {'a': r.user, 'b': r.amount}) -> persist() -> unique() -> out",
        (
            "o -> map(lambda r: {'b': r.amount, 'a': r.user}) -> persist() -> unique()"
            ' -> select("a", "b") -> out'
        ),
    ),
    "columns that are renamed and dropped": (
        'o -> rename(u="user", p="product") -> drop("at", "amount") -> unique() -> out',
        'o -> rename(p="product", u="user") -> drop("amount", "at") -> unique() -> out',
    ),
    "columns of an input": (
        SOURCES + "o -> persist() -> unique() -> out",
        SOURCES.replace(
            "user string, product string, amount", "product string, user string, amount"
        )
        + 'o -> persist() -> unique() -> select("user", "product", "amount", "at") -> out',
    ),
    "inputs of a union": (
        (
            "x = o -> filter(lambda r: r.amount == 1)\n"
            'o -> union(x) -> persist() -> aggregate(by="user", n=count()) -> out'
        ),
        (
            "x = o -> filter(lambda r: r.amount == 1)\n"
            'x -> union(o) -> persist() -> aggregate(by="user", n=count()) -> out'
        ),
    ),
    "inputs of a union with columns in another order": (
        (
            'a = o -> select("user", "product"); b = u -> select("user", "product")\n'
            "a -> union(b) -> persist() -> unique() -> out"
        ),
        (
            'a = o -> select("user", "product"); b = u -> select("product", "user")\n'
            "a -> union(b) -> persist() -> unique() -> out"
        ),
    ),
    "what is taken out, with columns in another order": (
        (
            'a = o -> select("user", "product"); b = u -> select("user", "product")\n'
            "a -> difference(neg=b) -> out"
        ),
        (
            'a = o -> select("user", "product"); b = u -> select("product", "user")\n'
            "a -> difference(neg=b) -> out"
        ),
    ),
    "keys of a join": (
        (
            'k = u -> persist(); o -> join(right=k, on=["user", "product"])'
            ' -> select("user", "amount", "country") -> out'
        ),
        (
            'k = u -> persist(); o -> join(right=k, on=["product", "user"])'
            ' -> select("user", "amount", "country") -> out'
        ),
    ),
    "keys of a join that keeps rows": (
        'k = u -> persist(); o -> join(right=k, on=["user", "product"], how="anti") -> out',
        'k = u -> persist(); o -> join(right=k, on=["product", "user"], how="anti") -> out',
    ),
    "columns of a side of a join": (
        (
            'k = u -> select("user", "product") -> persist()\n'
            'o -> join(right=k, on="user", suffix="_r", how="left") -> out'
        ),
        (
            'k = u -> select("product", "user") -> persist()\n'
            'o -> join(right=k, on="user", suffix="_r", how="left") -> out'
        ),
    ),
    "columns of which some feed a partition": (
        (
            'p = o -> select("user", "amount") -> partition(lambda r: str(r.amount), ["1", "2"])\n'
            'p[1] -> null(); p[2] -> aggregate(by="user", n=count()) -> out'
        ),
        (
            'p = o -> select("amount", "user") -> partition(lambda r: str(r.amount), ["1", "2"])\n'
            'p[1] -> null(); p[2] -> aggregate(by="user", n=count()) -> out'
        ),
    ),
}
DIFFERENT = {
    "rows in the order of their columns": (
        'o -> select("user", "amount") -> sort() -> limit(1) -> out',
        'o -> select("amount", "user") -> sort() -> limit(1) -> select("user", "amount") -> out',
    ),
    "ties by the order of columns": (
        (
            'o -> select("user", "product", "amount") -> persist()'
            ' -> latest(by="user", order="amount") -> out'
        ),
        (
            'o -> select("amount", "product", "user") -> persist()'
            ' -> latest(by="user", order="amount") -> select("user", "product", "amount") -> out'
        ),
    ),
    "what an order goes by first": (
        'o -> persist() -> latest(by="user", order=["amount", "at"]) -> out',
        'o -> persist() -> latest(by="user", order=["at", "amount"]) -> out',
    ),
    "fields of a tuple": (
        "o -> map(lambda r: (r.amount, r.at)) -> out",
        "o -> map(lambda r: (r.at, r.amount)) -> out",
    ),
    "a row as its function's arguments": (
        'o -> select("amount", "at") -> filter(lambda a, b: a == 1) -> out',
        (
            'o -> select("at", "amount") -> filter(lambda a, b: a == 1)'
            ' -> select("amount", "at") -> out'
        ),
    ),
    "which column a value is in": (
        'o -> persist() -> aggregate(by="user", a=min("at"), b=max("at")) -> out',
        'o -> persist() -> aggregate(by="user", a=max("at"), b=min("at")) -> out',
    ),
    "names that change places": (
        'o -> rename(a="at", b="amount") -> select("a", "b") -> out',
        'o -> rename(b="at", a="amount") -> select("a", "b") -> out',
    ),
    "who is taken out of whom": (
        'a = o -> select("user"); b = u -> select("user"); a -> difference(neg=b) -> out',
        'a = o -> select("user"); b = u -> select("user"); b -> difference(neg=a) -> out',
    ),
    "a greatest value by another": (
        'o -> aggregate(by="user", m=max_by("amount", "at")) -> out',
        'o -> aggregate(by="user", m=max_by("at", "amount")) -> out',
    ),
}


def same(one: str, other: str) -> bool:
    texts = (text if "source(" in text else SOURCES + text for text in (one, other))
    programs = [infer(parse(text)) for text in texts]
    ends = [typed.graph.sinks["out"][0].inputs[0] for typed in programs]
    assert programs[0].types[ends[0]] == programs[1].types[ends[1]]
    return compare(programs).same(ComparedStream(0, ends[0]), ComparedStream(1, ends[1]))


@pytest.mark.parametrize("case", SAME.values(), ids=SAME)
def test_another_order_of_named_parts_is_the_same(case: tuple[str, str]) -> None:
    assert same(*case)
    assert same(*reversed(case))


@pytest.mark.parametrize("case", DIFFERENT.values(), ids=DIFFERENT)
def test_an_order_that_means_something_is_another(case: tuple[str, str]) -> None:
    assert same(case[0], case[0])
    assert not same(*case)


def test_a_program_that_names_things_in_their_order_is_not_copied() -> None:
    typed = infer(parse(SOURCES + SAME["aggregates behind a select"][0]))
    assert with_columns_in_order(typed, ranks_of([typed])) is None
