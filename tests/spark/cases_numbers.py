"""Functions of numbers, and the values that they are tried on."""

from __future__ import annotations

import itertools
import sys
from decimal import Decimal
from math import inf, nextafter
from random import Random

from hydro_core.types.values import RowItem
from tests.spark.cases_values import FLOATS, LONGS, Case, pairs

ADDS_PLAINLY = sys.version_info < (3, 12)
"""From then on Python's `sum` of floats makes up for roundings, which no column does."""


def of_plain_sums(source: str) -> str:
    """The function, where sums are compiled; nothing where they are left to Python."""
    return f"\n{source}" if ADDS_PLAINLY else ""


def of_exact_sums(source: str) -> str:
    """The function, where sums are left to Python."""
    return "" if ADDS_PLAINLY else f"\n{source}"


INTEGERS = Case(
    "(long, long)",
    pairs(LONGS, 300),
    """lambda a, b: a + b
lambda a, b: a - b
lambda a, b: a * b
lambda a, b: a / b
lambda a, b: a // b
lambda a, b: a % b
lambda a, b: a // b * b + a % b
lambda a, b: (a // b) * 3 - a
lambda a, b: a ** 1
lambda a, b: (a ** 1) + b
lambda a, b: a / 7
lambda a, b: a / -4
lambda a, b: 1 / b
lambda a, b: a // 10
lambda a, b: a // -10
lambda a, b: a // -1
lambda a, b: a % 10
lambda a, b: a % -10
lambda a, b: 100 // b
lambda a, b: 100 % b
lambda a, b: (a * b) % 1000003
lambda a, b: (a * b) // 1000003
lambda a, b: (a * 31 + b) % 97
lambda a, b: a + b - b
lambda a, b: (a * 100) / 7
lambda a, b: (a * b) // b
lambda a, b: (a + b) % b
lambda a, b: (a + b) / 2
lambda a, b: (a + b) // 2
lambda a, b: (a + b) // 7
lambda a, b: (a - b) // -9
lambda a, b: -a
lambda a, b: -(-a)
lambda a, b: abs(a)
lambda a, b: abs(a) % 7
lambda a, b: a ** 2
lambda a, b: a ** 3
lambda a, b: a * b * a
lambda a, b: a * a - 1
lambda a, b: a + b + 1
lambda a, b: a & b
lambda a, b: a | b
lambda a, b: a ^ b
lambda a, b: a >> 3
lambda a, b: a << 3
lambda a, b: a < b
lambda a, b: a == b
lambda a, b: a != b
lambda a, b: a * b > a
lambda a, b: a + 1 > b
lambda a, b: (a + b) == (b + a)
lambda a, b: a * 1.5
lambda a, b: a * b * 1.5
lambda a, b: a * b + 0.0
lambda a, b: 0 < a < b
lambda a, b: a if a is not None else 0
lambda a, b: (a or 0) + (b or 0)
lambda a, b: a and b
lambda a, b: a or b
lambda a, b: not a
lambda a, b: 1 if a else 2
lambda a, b: a // b if b else None
lambda a, b: None if not b else a % b
lambda a, b: b != 0 and a / b > 2
lambda a, b: b is None or b == 0 or a is None or a / b > 2
lambda a, b: str(a)
lambda a, b: str(a * b)
lambda a, b: f"{a}-{b}"
lambda a, b: min(a, b)
lambda a, b: max(a, b, 5)
lambda a, b: float(a)
lambda a, b: int(a)
lambda a, b: bool(a)
lambda a, b: (a, b)
lambda a, b: (a + b, {"x": a, "y": [a, b]})
lambda a, b: a in (1, 2, b)
lambda a, b: a in [None, 3]
lambda a, b: a not in {1, 2, 3}
lambda a, b: {1: "one", 2: "two"}[a]
lambda a, b: {1: "one", 2: "two"}.get(a)
lambda a, b: {1: "one", 2: "two"}.get(a, "many")
lambda a, b: a if b is None else 1.5
lambda a, b: (a, b) < (b, a)
lambda a, b: (a, b) == (b, a)
lambda a, b: a == 1.0
lambda a, b: a < 9007199254740993.0
lambda a, b: a > 1e18
lambda a, b: a == None
lambda a, b: round(a)
lambda a, b: a == "x"
lambda a, b: a + True
lambda a, b: (a > 0) + (b > 0)
lambda a, b: [a, b][0]
lambda a, b: sum([a, b])
lambda a, b: sum((a, b)) % 7
lambda a, b: max([a, b])
lambda a, b: sorted([a, b])
lambda a, b: len([a, b])
lambda a, b: [x for x in (a, b) if x is not None]
lambda a, b: [x * 2 for x in (a, b)]
lambda a, b: a * 2 if a > 5 else a
lambda a, b: a * b if a * b < 10 else 0
lambda a, b: (x := a) + x * 2
lambda a, b: (a or 0) * 1.5 if b else 0
lambda x: x[0]
lambda x: x[-1]
lambda x: x._2
lambda x: (x, x[0])
lambda x: x[::-1]
lambda x: x[1:] + x[:1]
lambda x: [*x, 3]
lambda x: (*x, 1)
lambda x: len(x)
lambda x: x == (1, 2)
lambda x: 3 in x
lambda x: sum(x)
lambda x: any(v is None for v in x)
lambda x: all(v > 0 for v in x)
lambda a, b: a * b - a * b
lambda a, b: a * 1.5 // 2
lambda a, b: round(a, 2)
lambda a, b: round(a / b, 2)
lambda a, b: f"{a:05d} {b:,}"
lambda a, b: f"{a:22}{b:d}"
lambda a, b: a % 2**61""",
    """lambda a, b: f"{a:^5}"
lambda a, b: a ** b
lambda a, b: a << b""",
)

NUMBERS = Case(
    "(double, long)",
    [(f, n) for f in FLOATS for n in (*LONGS,)],
    """lambda f, n: f + n
lambda f, n: f - n
lambda f, n: f * n
lambda f, n: f / n
lambda f, n: n / f
lambda f, n: f % 3
lambda f, n: f % n
lambda f, n: f % -2.5
lambda f, n: f + 1
lambda f, n: f * f
lambda f, n: -f
lambda f, n: abs(f)
lambda f, n: f == n
lambda f, n: n == f
lambda f, n: f != n
lambda f, n: f < n
lambda f, n: f <= n
lambda f, n: f > n
lambda f, n: n >= f
lambda f, n: f == f
lambda f, n: f < f
lambda f, n: f <= f
lambda f, n: f > 2.5
lambda f, n: not f > 2.5
lambda f, n: f != 0.0
lambda f, n: bool(f)
lambda f, n: 1 if f else 2
lambda f, n: f or 1.5
lambda f, n: int(f)
lambda f, n: round(f)
lambda f, n: float(n) + f
lambda f, n: max(f, 1.0)
lambda f, n: min(f, 1.0)
lambda f, n: max(1.0, f)
lambda f, n: f if f is not None else 0
lambda f, n: (f if n else 0) + 1.5
lambda f, n: (f if n else 0) * 2
lambda f, n: 0.0 < f < 10.0
lambda f, n: f is None
lambda f, n: (f, n, None)
lambda f, n: f // 2
lambda f, n: f // n
lambda f, n: n // f
lambda f, n: f // -0.1
lambda f, n: round(f, 0)
lambda f, n: round(f, 1)
lambda f, n: round(f, 10)
lambda f, n: f"{f:.3f}"
lambda f, n: f in (0.0, 1, 1.5)
lambda f, n: n in (0.0, 1, 9007199254740992.0)
lambda f, n: f in [f, 0.0]
lambda f, n: f in [x * 1.0 for x in [n, 1]]
lambda f, n: n in [f, -f]
lambda f, n: [f, 0.0] == [0.0, f]
lambda f, n: [f, n]"""
    + of_plain_sums("lambda f, n: sum([f, f * 0.1, f])"),
    """lambda f, n: f ** 2
lambda f, n: str(f)
lambda f, n: round(f, 11)
lambda f, n: round(f, -1)
lambda f, n: round(f, n)
lambda f, n: (f, n) == (1.0, 2)"""
    + of_exact_sums("lambda f, n: sum([f, f * 0.1, f])"),
)

_RANDOM = Random(7)
HALVES = Case(
    "(double, double)",
    [
        (_RANDOM.choice([x, nextafter(x, 0.0), nextafter(x, inf), -x]), y)
        for _ in range(600)
        for digits in (_RANDOM.randrange(4),)
        for x in ((2 * _RANDOM.randrange(10 ** _RANDOM.randrange(1, 9)) + 1) / 2 / 10**digits,)
        for y in (
            _RANDOM.choice([0.1, -0.1, 0.25, 3.0, -7.0, 0.01, x, -x, x / 3, 1e-300, 2.0**51]),
        )
    ],
    """lambda f, g: round(f, 0)
lambda f, g: round(f, 1)
lambda f, g: round(f, 2)
lambda f, g: round(f, 3)
lambda f, g: round(f / g, 2)
lambda f, g: round(f)
lambda f, g: f // g
lambda f, g: g // f
lambda f, g: f % g
lambda f, g: f"{f:.2f} {g:.0f}"
lambda f, g: f"{f:,.1f}"
lambda f, g: f"{f:.1%}"
lambda f, g: f - f // g * g"""
    + of_plain_sums("lambda f, g: sum([f, g, -f])"),
    """lambda f, g: f"{f:.11f}"
lambda f, g: f"{f:8.2f}"
lambda f, g: f"{f:g}" + 'x'"""
    + of_exact_sums("lambda f, g: sum([f, g, -f])"),
)

WRITTEN = Case(
    "string",
    [
        *(
            "1",
            "-1.5",
            ".5",
            "5.",
            "+0.1",
            "-0",
            "1e5",
            "1E-7",
            "1e400",
            "-1e400",
            "1e-400",
            "4.9e-324",
        ),
        *(
            "2.2250738585072011e-308",
            "9007199254740993",
            "0.1e1",
            " 1.5\t",
            "1_0.5",
            "nan",
            "-inf",
            "1e",
        ),
        *(
            "",
            " ",
            ".",
            "e5",
            "1.5d",
            "0x1p3",
            "1,5",
            "\u0663.5",
            "1 2",
            "123456789012345678901234567890",
        ),
        *(repr(_RANDOM.random() * 10 ** _RANDOM.randrange(-30, 30)) for _ in range(50)),
        None,
    ],
    """lambda t: float(t)
lambda t: float(t.strip()) * 2""",
    "",
)

_DECIMALS = [
    Decimal("0.00"),
    Decimal("1.50"),
    Decimal("-1.50"),
    Decimal("99999999.99"),
    Decimal("-0.01"),
    None,
]
DECIMALS = Case(
    "a decimal(10,2), b decimal(10,2), n long, w decimal(38,0)",
    [
        RowItem(a=a, b=b, n=n, w=w)
        for (a, b), n, w in zip(
            itertools.product(_DECIMALS, _DECIMALS),
            itertools.cycle([0, 1, -3, 10**6, None]),
            itertools.cycle([Decimal(10**37), Decimal(-5), None]),
            strict=False,
        )
    ],
    """lambda r: r.a + r.b
lambda r: r.a - r.b
lambda r: r.a * r.b
lambda r: -r.a
lambda r: abs(r.a)
lambda r: r.a + r.n
lambda r: r.a * 2
lambda r: r.a < r.b
lambda r: r.a == r.b
lambda r: r.a > 1
lambda r: r.a == r.n
lambda r: r.a >= Decimal("1.5")
lambda r: r.a + Decimal("0.125")
lambda r: bool(r.a)
lambda r: r.a or r.b
lambda r: str(r.a)
lambda r: int(r.a)
lambda r: max(r.a, r.b)
lambda r: r.a if r.a is not None else Decimal("0.00")
lambda r: (r.a, r.w)
lambda r: round(r.a, 1)
lambda r: round(r.a, 0)
lambda r: round(r.a * r.b, 2)
lambda r: round(-r.a * 0, 1)
lambda r: float(r.a)
lambda r: float(r.w)
lambda r: float(r.a * r.b)
lambda r: float(r.a - r.b)""",
    """lambda r: r.a / r.b
lambda r: str(r.a * r.b)
lambda r: str(-r.a)
lambda r: f"{r.a * 0}"
lambda r: r.w + r.a
lambda r: r.a == 1.5
lambda r: r.a % 2
lambda r: round(r.a)
lambda r: round(r.a, 3)""",
)
