"""Equal text over differently shaped rows is not one function."""

from __future__ import annotations

from random import Random

import pytest

from hydro_core.compile import compile_text, optimized
from hydro_core.validation.random_ticks import validate_randomly
from tests.support.selection import mostly_slow

SOURCES = """
a = source("k long, v long, w long")
b = source("k long, v long")
c = source("k long, v long")
d = source("k long, v long, w long")
"""
PROGRAMS = {
    "another column of the joined side": """
        x = source("k long, z long"); y = source("k long, v_r long")
        a -> join(right=b, on="k", suffix="_r") -> filter(P) -> one
        x -> join(right=y, on="k") -> filter(P) -> two
    """,
    "kept by how": """
        x = source("k long, z long"); y = source("k long, v_r long")
        a -> join(right=b, on="k", suffix="_r", how="right") -> filter(P) -> one
        x -> join(right=y, on="k", how="right") -> filter(P) -> two
        x -> join(right=y, on="k") -> filter(P) -> three
    """,
    "parts after a join": """
        x = source("k long, z long"); y = source("k long, v_r long")
        a -> join(right=b, on="k", suffix="_r") -> filter(lambda r: r.v_r == 1 and r.v == 2) -> one
        x -> join(right=y, on="k") -> with_columns(v=lambda r: r.z)
            -> filter(lambda r: r.v_r == 1 and r.v == 2) -> two
    """,
    "a column of either side": """
        a -> join(right=b, on="k", suffix="_r") -> filter(P) -> one
        c -> join(right=d, on="k", suffix="_r") -> filter(P) -> two
    """,
    "a column of the other side": """
        x = source("k long, v_r long"); y = source("k long, v long")
        x -> join(right=y, on="k") -> filter(P) -> one
        y -> join(right=x, on="k") -> filter(P) -> two
    """,
    "conjuncts of pairs": """
        x = source("k long, v_r long"); y = source("k long, v long")
        p = x -> join(right=y, on="k")
        q = y -> join(right=a, on="k", suffix="_r")
        p -> filter(lambda r: r.v_r == 1 and r.k == 2) -> one
        q -> filter(lambda r: r.v_r == 1 and r.k == 2) -> two
    """,
    "renamed": """
        a -> rename(v_r="v") -> filter(P) -> one
        a -> rename(v_r="w") -> filter(P) -> two
    """,
    "selected": """
        a -> select("k", v_r=lambda r: r.v) -> filter(P) -> one
        a -> select("k", v_r=lambda r: r.w) -> filter(P) -> two
    """,
    "computed": """
        a -> with_columns(v_r=lambda r: r.v) -> filter(P) -> one
        a -> with_columns(v_r=lambda r: r.w) -> filter(P) -> two
    """,
    "mapped": """
        a -> map(lambda r: {"k": r.k, "v_r": r.v}) -> filter(P) -> one
        a -> map(lambda r: {"k": r.k, "v_r": r.w}) -> filter(P) -> two
    """,
    "by position": """
        x = source("k long, v long"); y = source("v long, k long")
        x -> unique() -> filter(lambda k, v: k is not None and k > 1) -> one
        y -> unique() -> filter(lambda k, v: k is not None and k > 1) -> two
    """,
    "windows": """
        a -> window(2) -> join(right=b, on="k", suffix="_r") -> filter(P) -> one
        c -> window(2) -> join(right=d, on="k", suffix="_r") -> filter(P) -> two
    """,
    "aggregated": """
        x = source("k long, v_r long"); y = source("v_r long, k long")
        x -> persist() -> aggregate(by="k", n=count_if(P)) -> one
        y -> persist() -> aggregate(by="k", n=count_if(P)) -> two
        x -> persist() -> aggregate(by="k", s=sum(lambda k, v: v)) -> three
        y -> persist() -> aggregate(by="k", s=sum(lambda k, v: v)) -> four
    """,
    "keys": """
        x = source("k long, v_r long"); y = source("v_r long, k long, z long")
        x -> persist() -> aggregate(by=("v_r", "k"), n=count()) -> filter(P) -> one
        y -> persist() -> aggregate(by=("v_r", "k"), n=count()) -> filter(P) -> two
        y -> persist() -> aggregate(by=("v_r", "k"), n=sum("z")) -> filter(P) -> three
    """,
}
WHEN = (
    "lambda r: r.v_r is not None and r.v_r > 1",
    "lambda r: r.v_r == 1",
    "lambda r: r.v_r == 1 and r.k == 2",
    "lambda r: r.v_r in (1, 2) and r.k is not None",
)


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_plan_gives_what_the_program_gives(name: str, when: str) -> None:
    program = compile_text(SOURCES + PROGRAMS[name].replace("P", when))
    assert validate_randomly(optimized(program), program, 30) is None


def test_two_joins_with_flags_do_not_fail() -> None:
    program = compile_text(
        """
        users = source("id long, active boolean, country string")
        seen = source("id long, active boolean")
        lands = source("id long, country string")
        shops = source("id long, country string, active boolean, open boolean")
        visits = source("id long, page string")
        sales = source("id long, amount long")
        visits -> join(right=users, on="id")
            -> filter(lambda r: r.active == True and r.country == "NL") -> one
        sales -> join(right=shops, on="id", suffix="_shop")
            -> filter(lambda r: r.active == True and r.country == "NL") -> two
        seen -> join(right=lands, on="id", how="left")
            -> filter(lambda r: r.active == True and r.country == "NL") -> three
        lands -> join(right=seen, on="id", how="right")
            -> filter(lambda r: r.active == True and r.country == "NL") -> four
        """
    )
    assert validate_randomly(optimized(program), program, 60) is None


TESTS = (
    "lambda r: r.a == 1",
    "lambda r: r.a is not None and r.a > 1",
    "lambda r: r.a == 1 and r.b_r == 2",
    "lambda r: r.b_r in (1, 2) or r.a is None",
    "lambda r: r.b_r == 1 and r.k != 2 and r.a != r.b_r",
    "lambda r: (r.b_r or 0) > 0 and r.a != r.b_r",
)
SIDES = (
    ("k, a", "k, b_r", ""),
    ("k, b_r", "k, a", ""),
    ("k, a, b", "k, b", ', suffix="_r"'),
    ("k, b, a", "k, b", ', suffix="_r"'),
    ("k, b_r, c", "k, a", ""),
    ("k, a", "k, c, b_r", ""),
    ("k, c, b", "k, b, a", ', suffix="_r"'),
)
"""Two sides of a join that together have the columns k, a and b_r."""
MADE = (
    'select("k", a=lambda r: r.C, b_r=lambda r: r.D)',
    'map(lambda r: {"k": r.k, "a": r.C, "b_r": r.D})',
    'select("k", x=lambda r: r.C) -> rename(a="x") -> with_columns(b_r=lambda r: r.a)',
    "with_columns(a=lambda r: r.C, b_r=lambda r: r.D)",
)
KEPT = (
    "filter(T)",
    "window(2) -> filter(T)",
    "persist() -> unique() -> filter(T)",
    'persist() -> latest(by=("k", "a"), order="b_r") -> filter(lambda r: r.a == 1)',
    'persist() -> aggregate(by=("k", "a"), b_r=max("b_r")) -> filter(T)',
    'persist() -> aggregate(by="k", n=count_if(T), m=max(lambda r: r.b_r))',
    "filter(T) -> filter(lambda r: r.b_r == 1) -> unique()",
)


def _line(random: Random, number: int, test: str) -> str:
    """Rows with the columns k, a and b_r, which come from anywhere, and the test of them."""
    kept = random.choice(KEPT).replace("T", test)
    if random.random() < 0.4:
        made = random.choice(MADE)
        for letter in "CD":
            made = made.replace(letter, random.choice("abc"))
        return f"{random.choice('xyz')} -> {made} -> {kept} -> out{number}"
    left, right, suffix = random.choice(SIDES)
    how = random.choice(["inner", "left", "right"])
    sides = [_side(random, f"{side}{number}", s) for side, s in (("l", left), ("r", right))]
    joined = f'l{number} -> join(right=r{number}, on="k", how="{how}"{suffix})'
    return "\n".join((*sides, f"{joined} -> {kept} -> out{number}"))


def _side(random: Random, name: str, columns: str) -> str:
    made = ", ".join(f"{c}=lambda r: r.{random.choice('abc')}" for c in columns.split(", ")[1:])
    return f'{name} = {random.choice("xyz")} -> select("k", {made})'


def _program(random: Random) -> str:
    lines = [
        f'{name} = source("k long, {", ".join(f"{c} long" for c in random.sample("abc", 3))}")'
        for name in "xyz"
    ]
    test = random.choice(TESTS)
    lines += [_line(random, i, test) for i in range(random.randint(2, 4))]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", mostly_slow([*range(6), *range(1000, 1100)]))
def test_random_programs_in_which_one_text_meets_rows_of_many_shapes(seed: int) -> None:
    random = Random(f"identity {seed}")
    for _ in range(4):
        text = _program(random)
        program = compile_text(text)
        assert validate_randomly(optimized(program), program, 4) is None, text
