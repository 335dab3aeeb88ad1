"""Random expressions over a row of every kind of value, and rows of values at the edges."""

from __future__ import annotations

import ast
import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

DDL = (
    "a long, b long, s short, f double, g double, t string, u string, m decimal(10,2), "
    "n decimal(20,4), p boolean, d date, w timestamp, xs array<long>, ys array<double>, "
    "zs array<string>, q struct<x: long, y: string>, r struct<_1: double, _2: long>"
)
LONGS = [
    *(0, 1, -1, 2, -2, 3, 7, -5, 10, 255, 2**31, -(2**31), 2**53, 2**53 + 1, -(2**53) - 1),
    *(2**62, -(2**62), 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 1_000_003, None),
]
FLOATS = [
    *(
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.1,
        1e16,
        -1e16,
        2.0**53,
        2.0**63,
        -(2.0**63),
    ),
    *(1e308, -1e308, 5e-324, -5e-324, 1e-7, 1e22, 123456.789),
    *(math.nan, math.inf, -math.inf, None),
]
TEXTS = [
    *("", "a", "A", "ab", "hello", "Hello World", " x ", "12", "-7", "+3", " 42 ", "1_000", "0x1"),
    *(
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "12345678901234567890123",
    ),
    *(
        "\u0663",
        "1.5",
        "nan",
        "True",
        "\u00e9",
        "e\u0301",
        "\u00df",
        "\u0130",
        "\u0131",
        "\u03a3",
        "\u039f\u03a3",
    ),
    *(
        "\U00010d70hello",
        "\U0001f600x",
        "a\U00010400B",
        "x\u0000y",
        "\u2028",
        "a,b,c",
        "aXbX",
        "\ufb01",
        None,
    ),
    *("\t\n", "\u1e9e", "\u01c5", "\u0345a", "\U0001e900Z", "\ua7dcQ", "\u019bq"),
]
SMALL = [Decimal(x) for x in ("0", "0.01", "-0.01", "1.50", "-1.50", "99999999.99", "-99999999.99")]
LARGE = [Decimal(x) for x in ("0", "0.0001", "-2.5000", "9999999999999999.9999", "-7", "0.05")]
DATES = [date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31), None]
MOMENTS = [
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 30, 1, 1, tzinfo=UTC),
    datetime(1583, 1, 1, 1, tzinfo=UTC),
    None,
]


def random_rows(random: Random, count: int) -> list[dict[str, Any]]:
    """Rows in which None is rare enough for most functions to have a value."""

    def one(values: list[Any]) -> Any:
        found = random.choice(values)
        return random.choice(values) if found is None else found

    def some(values: list[Any]) -> list[Any] | None:
        return (
            None
            if random.random() < 0.05
            else [one(values) for _ in range(random.choice([0, 1, 1, 2, 3]))]
        )

    return [
        {
            **{name: one(LONGS) for name in "ab"},
            "s": one([0, 1, -1, 5, 32767, -32768, None]),
            **{name: one(FLOATS) for name in "fg"},
            **{name: one(TEXTS) for name in "tu"},
            "m": one([*SMALL, None]),
            "n": one([*LARGE, None]),
            "p": one([True, False, None]),
            "d": one(DATES),
            "w": one(MOMENTS),
            "xs": some(LONGS),
            "ys": some(FLOATS),
            "zs": some(TEXTS),
            "q": None if random.random() < 0.1 else {"x": one(LONGS), "y": one(TEXTS)},
            "r": None if random.random() < 0.1 else (one(FLOATS), one(LONGS)),
        }
        for _ in range(count)
    ]


# `I` is an integer, `F` a float, `T` a text, `M` a decimal, `B` a test, `X` `Y` `Z` arrays of
# integers, floats and texts; `R` is any of them. Two blanks stand between forms.
FORMS = {
    "I": """
        I + I  I - I  I * I  I // I  I % I  -I  abs(I)  I ** 1  I ** 2  I ** 3  I // 7
        I % 7  I % -7  I // -3  I & I  I | I  I ^ I  I >> 3  I << 2  I // I * I + I % I
        (I if B else I)  (I or I)  (I and I)  min(I, I)  max(I, I)  int(T)  int(F)  int(M)
        int(I)  int(B)  round(F)  round(I)  round(I, 1)  len(T)  len(X)  len(Z)  len(r.q)
        len(r.r)  len(r)  sum(X)  min(X)  max(X)  X[0]  X[-1]  X[I % 3]  T.find(T)
        T.count('a')  len(set(X))  sorted(X)[0]  r.d.year  r.d.weekday()  r.w.hour
        r.w.second  (r.d.month)  sum(x for x in X)  len([x for x in X if x > I])
        (lambda x: x + x)(I)  (I if I > I else I)  (0 if I is None else I)  T.index(T)
        sum([I, I, I])  X.count(I)  X.index(I)  (I if X is None else len(X))
    """,
    "F": """
        F + F  F - F  F * F  F / F  F % F  -F  abs(F)  I / I  I / 2  F * I  F + I  F % 1
        F % -1  I % 2.5  F % 2.5  F // F  F // 2  I % F  F / I  float(I)  float(T)  float(B)
        (F if B else F)  (F or F)  min(F, F)  max(F, F)  sum(Y)  Y[0]  Y[-1]  min(Y)  max(Y)
        round(F, 1)  round(F, 0)  +F  F ** 2  r.r[0]  (0.0 if F is None else F)  F - F % 1
        sorted(Y)[0]  float(M)  F * 0  0 - F  -F * 0
    """,
    "M": """
        M + M  M - M  M * M  -M  abs(M)  M + I  M * 0  M * -1  M * 2  (M if B else M)
        round(M, 1)  round(M, 0)  min(M, M)  max(M, M)  Decimal('1.50')  Decimal(I)  M / M
        M % M  M // M  M.quantize(Decimal('0.1'))  (M or M)  M % 1  Decimal('-0')
        M.copy_abs()  sum([M, M])  M.normalize()  +M
    """,
    "T": """
        T + T  T.upper()  T.lower()  T.strip()  T[0]  T[-1]  T[1:]  T[:2]  T[::-1]  str(I)
        str(B)  str(M)  str(F)  str(r.d)  f'{T}-{I}'  f'{M}'  f'{F}'  T * 2
        T.replace('a', 'b')  T.replace(T, '-')  T.lstrip()  T.rstrip('x')  T.title()
        T.capitalize()  T.swapcase()  T.zfill(5)  ','.join(Z)  (T or T)  (T if B else T)
        min(T, T)  max(T, T)  Z[0]  T.split(',')[0]  T.split()[0]  f'{I:>5}'  f'{B}'
        T[I % 3]  T[I:I]  T.casefold()  T.center(5)  T.ljust(4, '.')  f'{r.d}'  str(T)
        T.removeprefix('a')  T.partition(',')[0]  str(X)  f'{F!s}'  f'{T!r}'  str(Y)
    """,
    "B": """
        I < I  I == I  F < F  F == F  F != F  T == T  T < T  M < M  M == M  I == F  I < F
        M == I  M < I  B and B  B or B  not B  I in X  T in T  T in Z  F in Y  X == X
        Y == Y  I is None  F is None  T is not None  T.startswith('a')  T.isdigit()
        T.isalpha()  T.isupper()  all(X)  any(Y)  bool(I)  bool(F)  bool(T)  bool(X)
        bool(M)  0 < I < 10  T.endswith(T)  any(x > 1 for x in X)  all(y == y for y in Y)
        (I, T) == (I, T)  (F, I) < (F, I)  r.r == r.r  r.q == r.q  r.d < r.d  T.isspace()
        T in ('a', 'b')  I in (1, 2, None)  F in (0.0, 1.0)  r.d is None  T.isalnum()
        B == I  sorted(X) == X  r.q is None  (r.w < r.w)  T.isdecimal()  T.isidentifier()
        [F] == [F]
    """,
    "X": """
        [I, I]  [x + 1 for x in X]  [x for x in X if x > 0]  X + X  X[1:]  X[:1]  sorted(X)
        list(X)  [I]  (X or X)  [x for x in X if x]  X[::-1]  sorted(X, reverse=True)  X * 2
        list(reversed(X))  [len(z) for z in Z]  sorted(set(X))  list(range(3))
    """,
    "Y": """
        [F, F]  [y * 2 for y in Y]  [-y for y in Y]  Y + Y  sorted(Y)  Y[1:]  [y for y in Y]
        sorted(Y, reverse=True)  [y % 1 for y in Y]  [abs(y) for y in Y]  sorted(set(Y))
    """,
    "Z": """
        [T, T]  T.split(',')  T.split()  [z.upper() for z in Z]  sorted(Z)  Z + [T]  list(T)
        [str(x) for x in X]  Z[1:]  sorted(set(Z))  [z for z in Z if z]
    """,
    "R": """
        I  I  I  F  F  F  T  T  M  M  B  B  X  Y  Z  (I, F)  (R, R)  {"x": I, "y": F}
        {**r.q, 'x': I}  (M, T)  [(I, F), (I, F)]  (R if B else None)
    """,
}
LEAVES = {
    "I": [
        "r.a",
        "r.b",
        "r.a",
        "r.b",
        "r.s",
        "r.q.x",
        "r.r[1]",
        "0",
        "1",
        "-1",
        "3",
        "2**62",
        "r.p",
    ],
    "F": ["r.f", "r.g", "r.f", "r.g", "r.r[0]", "0.0", "-0.0", "1.0", "2.5", "-1.5"],
    "M": ["r.m", "r.n", "r.m", "r.n"],
    "T": ["r.t", "r.u", "r.t", "r.u", "r.q.y", "''", "'a'", "'b,c'"],
    "B": ["r.p", "r.p", "r.a > 0", "r.f > r.g", "True"],
    "X": ["r.xs", "r.xs", "[1, 2]", "[r.a, r.b]"],
    "Y": ["r.ys", "r.ys", "[r.f, r.g]"],
    "Z": ["r.zs", "r.zs", "[r.t, r.u]"],
}


def random_expression(random: Random, depth: int = 3) -> str:
    """The body of a function of the row `r`."""
    while True:
        source = _filled(random, random.choice(_forms("R")), depth)
        try:
            ast.parse(source, mode="eval")
        except SyntaxError:
            # Before Python 3.12, the quotes of an f-string must not occur in it.
            continue
        return source


def _forms(letter: str) -> list[str]:
    return [form for form in re.split(r"\n|  +", FORMS[letter]) if form]


def _filled(random: Random, form: str, depth: int) -> str:
    parts = []
    for at, letter in enumerate(form):
        alone = not (form[at - 1 : at].isalnum() or form[at + 1 : at + 2].isalnum())
        if letter not in FORMS or not alone or form[at - 1 : at] in ("'", "."):
            parts.append(letter)
        elif letter in LEAVES and (depth <= 0 or random.random() < 0.4):
            parts.append(random.choice(LEAVES[letter]))
        else:
            parts.append(f"({_filled(random, random.choice(_forms(letter)), depth - 1)})")
    return "".join(parts)
