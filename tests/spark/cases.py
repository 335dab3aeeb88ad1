"""Functions and the adversarial items they are tried on, by the type of the item."""

# ruff: noqa: RUF001 - the letters are ambiguous on purpose

from __future__ import annotations

import datetime as dt
import itertools
import random
from decimal import Decimal
from typing import Any, NamedTuple

from hydro_core.types.values import RowItem, Struct

_RANDOM = random.Random(4)
UTC = dt.UTC
_LONGS = [0, 1, -1, 2, -2, 3, 7, -7, 10, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, -(2**62)]
LONGS = [*_LONGS, 2**63 - 1, -(2**63), 2**63 - 2, 123456789, None]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    2.5,
    -2.5,
    3.5,
    1e16,
    9007199254740993.0,
    1e300,
    -1e300,
    5e-324,
]
FLOATS = [
    *FLOATS,
    2.0**63,
    -(2.0**63),
    2.0**62,
    float("inf"),
    float("-inf"),
    float("nan"),
    7.25,
    -7.25,
    None,
]
TEXTS = [
    "",
    "a",
    "abc",
    "ABC",
    " a b ",
    "\t x\n",
    "ß",
    "İ",
    "ΑΣ",
    "ΑΣ Σ",
    "Σ",
    "ǅ",
    "ﬁ",
    "𝒳y𝒳",
    "é",
    "e\u0301",
]
TEXTS += [
    "a,b,,c",
    ",",
    ",,",
    "a.b",
    "1",
    "-12",
    " +7 ",
    "1_000",
    "_1",
    "１２",
    "٣",
    "1.5",
    "9223372036854775807",
]
TEXTS += [
    "9223372036854775808",
    "0x1",
    "None",
    "true",
    "a\x00b",
    "x" * 50,
    "\u1680x\u3000",
    "\x1c a",
    "A\u0295Z",
    "\ua7cbx",
]
TEXTS += [
    "日本語",
    "a\nb",
    "b'",
    '"',
    "\\d",
    "%",
    "ab" * 3,
    "aXbXc",
    "00042",
    "+5",
    "-",
    "\u10d50Σ",
    "ΣΣ\u0301",
]


class Case(NamedTuple):
    """A type, items of it, functions that must compile, and some that must run in Python."""

    ddl: str
    items: list[Any]
    compiled: str
    python: str = ""


def _pairs(values: list[Any], more: int = 0) -> list[Any]:
    pairs = list(itertools.product(values, values))
    for _ in range(more):
        small = _RANDOM.randint(0, 2 ** _RANDOM.randint(0, 62))
        pairs.append((_RANDOM.randint(-(2**63), 2**63 - 1), _RANDOM.choice([-1, 1]) * small))
    return pairs


INTEGERS = Case(
    "(long, long)",
    _pairs(LONGS, 300),
    """lambda a, b: a + b
lambda a, b: a - b
lambda a, b: a * b
lambda a, b: a / b
lambda a, b: a // b
lambda a, b: a % b
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
lambda x: all(v > 0 for v in x)""",
    """lambda a, b: a * b - a * b
lambda a, b: f"{a:>5}"
lambda a, b: a ** b
lambda a, b: a << b
lambda a, b: a * 1.5 // 2""",
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
lambda f, n: [f, n]""",
    """lambda f, n: f // 2
lambda f, n: f ** 2
lambda f, n: str(f)
lambda f, n: round(f, 1)
lambda f, n: (f, n) == (1.0, 2)""",
)

STRINGS = Case(
    "(string, long)",
    [(s, n) for s in (*TEXTS, None) for n in (0, 1, -1, 3, -3, 100, -100, None)],
    """lambda s, n: len(s)
lambda s, n: s + "x"
lambda s, n: s * 2
lambda s, n: s * n
lambda s, n: s[0]
lambda s, n: s[-1]
lambda s, n: s[2]
lambda s, n: s[-2]
lambda s, n: s[n]
lambda s, n: s[:2]
lambda s, n: s[1:]
lambda s, n: s[-2:]
lambda s, n: s[:-1]
lambda s, n: s[1:-1]
lambda s, n: s[n:]
lambda s, n: s[:n]
lambda s, n: s[n:n + 2]
lambda s, n: s[::-1]
lambda s, n: s[:]
lambda s, n: s.upper()
lambda s, n: s.lower()
lambda s, n: s.strip()
lambda s, n: s.lstrip()
lambda s, n: s.rstrip()
lambda s, n: s.strip("ab")
lambda s, n: s.strip(" ,")
lambda s, n: s.split(",")
lambda s, n: s.split(".")
lambda s, n: s.split()
lambda s, n: s.split(",", 1)
lambda s, n: s.split("X")[0]
lambda s, n: s.lower().split()
lambda s, n: s.startswith("a")
lambda s, n: s.endswith("c")
lambda s, n: s.replace("a", "bb")
lambda s, n: s.replace(",", "")
lambda s, n: s.find("b")
lambda s, n: s.count("a")
lambda s, n: s.count("ab")
lambda s, n: s.isdigit()
lambda s, n: s.isalpha()
lambda s, n: s.isalnum()
lambda s, n: s.isspace()
lambda s, n: s.isnumeric()
lambda s, n: s.isdecimal()
lambda s, n: s.isascii()
lambda s, n: s.removeprefix("a")
lambda s, n: s.removesuffix("c")
lambda s, n: s.zfill(5)
lambda s, n: s.rjust(5)
lambda s, n: s.ljust(5, "*")
lambda s, n: "-".join(s.split(","))
lambda s, n: "".join([s, "x"])
lambda s, n: "a" in s
lambda s, n: s in "abcabc"
lambda s, n: s in ("a", "abc")
lambda s, n: s not in {"a", "abc"}
lambda s, n: s == "abc"
lambda s, n: s < "b"
lambda s, n: s >= "é"
lambda s, n: s > "𝒳"
lambda s, n: s or "none"
lambda s, n: bool(s)
lambda s, n: int(s)
lambda s, n: int(s) if s and s.isdigit() and s.isascii() else -1
lambda s, n: str(s)
lambda s, n: f"<{s}|{n}|{s!s}>"
lambda s, n: f"{n > 1}"
lambda s, n: {"a": 1, "abc": 2}[s]
lambda s, n: {"a": 1, "abc": None}.get(s, 7)
lambda s, n: {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "abc": 9}.get(s)
lambda s, n: (s, n) == ("a", 1)
lambda s, n: (s, n) < ("b", 1)
lambda s, n: len(s.split(","))
lambda s, n: [w.upper() for w in s.split(",") if w]
lambda s, n: [len(w) for w in s.split()]
lambda s, n: any(w == "b" for w in s.split(","))
lambda s, n: sorted(s.split(","))
lambda s, n: max(s, "b")
lambda s, n: s if n else None
lambda s, n: s == n
lambda s, n: {"s": s, "n": n, **{"k": 1}}""",
    """lambda s, n: s.title()
lambda s, n: s.capitalize()
lambda s, n: s.casefold()
lambda s, n: f"{n:03d}"
lambda s, n: f"{s!r}"
lambda s, n: s[::2]
lambda s, n: s.partition(",")
lambda s, n: len({c for c in s})""",
)

_DATES = [
    dt.date(1, 1, 1),
    dt.date(1, 1, 2),
    dt.date(1582, 10, 10),
    dt.date(1969, 12, 31),
    dt.date(1970, 1, 1),
]
_DATES += [dt.date(2000, 2, 29), dt.date(2024, 12, 31), dt.date(9999, 12, 31), None]
_TIMES = [
    dt.datetime(1, 1, 1),
    dt.datetime(1582, 10, 10, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
]
_TIMES += [
    dt.datetime(1970, 1, 1),
    dt.datetime(2024, 2, 29, 12, 30, 15, 123456),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
]
MOMENTS = Case(
    "d date, t timestamp, u timestamp_ntz, n long",
    [
        RowItem(d=d, t=t and t.replace(tzinfo=UTC), u=t, n=n)
        for d, t, n in zip(
            itertools.cycle(_DATES),
            itertools.cycle([*_TIMES, None]),
            [0, 1, -1, 365, -365, 10**7, 2**40, -(2**62), 2**63 - 1, None] * 13,
            strict=False,
        )
    ],
    """lambda r: r.d.year
lambda r: r.d.month
lambda r: r.d.day
lambda r: r.d.weekday()
lambda r: r.d.isoweekday()
lambda r: r.d.toordinal()
lambda r: r.d.isoformat()
lambda r: str(r.d)
lambda r: f"{r.d}"
lambda r: r.d + timedelta(days=1)
lambda r: r.d - timedelta(days=1)
lambda r: r.d + timedelta(hours=-1)
lambda r: r.d - timedelta(hours=1)
lambda r: r.d + timedelta(hours=25)
lambda r: r.d + timedelta(days=r.n)
lambda r: r.t + timedelta(days=1)
lambda r: r.t - timedelta(microseconds=1)
lambda r: r.u + timedelta(hours=1, minutes=30)
lambda r: r.t + timedelta(seconds=r.n)
lambda r: timedelta(days=1) + r.t
lambda r: (r.d - date(2000, 1, 1)).days
lambda r: (r.t - datetime(2000, 1, 1, tzinfo=timezone.utc)).total_seconds()
lambda r: (r.t - datetime(2000, 1, 1, tzinfo=timezone.utc)).days
lambda r: (r.t - datetime(2000, 1, 1, tzinfo=timezone.utc)).seconds
lambda r: (r.u - datetime(2000, 1, 1)).microseconds
lambda r: r.t - datetime(2000, 1, 1, tzinfo=timezone.utc) > timedelta(days=1)
lambda r: r.t.year
lambda r: (r.t.month, r.t.day, r.t.hour, r.t.minute, r.t.second, r.t.microsecond)
lambda r: (r.u.year, r.u.hour, r.u.microsecond)
lambda r: r.t.date()
lambda r: r.u.date()
lambda r: r.t.weekday()
lambda r: r.t.timestamp()
lambda r: r.d < date(2000, 1, 1)
lambda r: r.d == date(1970, 1, 1)
lambda r: r.t >= datetime(1970, 1, 1, tzinfo=timezone.utc)
lambda r: r.u == datetime(1970, 1, 1)
lambda r: r.d == r.t
lambda r: r.t == r.u
lambda r: date(2024, 2, 29)
lambda r: datetime(2024, 2, 29, 1, 2, 3, 4)
lambda r: datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=timezone.utc)
lambda r: r.d or date(2024, 1, 1)
lambda r: {**r, "n": 1}
lambda r: {"k": r.n, **r}
lambda r: r["n"]
lambda r: r.get("n")
lambda r: r == r
lambda r: (r.d, r.n) == (date(1970, 1, 1), 1)""",
    """lambda r: r.t.isoformat()
lambda r: r.d.strftime("%Y")
lambda r: str(r.t)
lambda r: r.d.replace(day=1)
lambda r: timedelta(days=r.n).days""",
)

_ARRAYS: list[Any] = [
    [],
    [1],
    [None],
    [1, 2, 3],
    [3, None, 1],
    [2**63 - 1, 1],
    [-(2**63), -1, 1],
    [0, 0],
    None,
]
_ARRAYS += [[5, 4, 3, 2, 1, 0], [1, 1, 2, 2], [2**62, 2**62, -(2**62)]]
_NESTED: list[Any] = [
    [],
    [(1, "a"), (2, None)],
    None,
    [(None, "b")],
    [(3, "c"), None],
    [(2, "a"), (2, "b")],
]
_NESTED = [*_NESTED, [(2**63 - 1, "x"), (2**63 - 1, "y")], [(0, "")]]
ARRAYS = Case(
    "xs array<long>, ps array<struct<_1: long, _2: string>>, n long",
    [
        RowItem(xs=xs, ps=ps and [p and Struct(p) for p in ps], n=n)
        for (xs, n), ps in zip(
            itertools.product(_ARRAYS, [0, 1, -1, 2, -2, 5, -5, 2**40, None]),
            itertools.cycle(_NESTED),
            strict=False,
        )
    ],
    """lambda r: len(r.xs)
lambda r: r.xs[0]
lambda r: r.xs[-1]
lambda r: r.xs[r.n]
lambda r: r.xs[1:]
lambda r: r.xs[:2]
lambda r: r.xs[-2:]
lambda r: r.xs[:-1]
lambda r: r.xs[r.n:]
lambda r: r.xs[:r.n]
lambda r: r.xs[::-1]
lambda r: r.xs + [r.n]
lambda r: [0] + r.xs
lambda r: r.xs + r.xs
lambda r: sum(r.xs)
lambda r: sum(r.xs) % 10
lambda r: min(r.xs)
lambda r: max(r.xs)
lambda r: max(r.xs, default=0)
lambda r: sorted(r.xs)
lambda r: sorted(r.xs, reverse=True)
lambda r: sorted(set(r.xs))
lambda r: len(set(r.xs))
lambda r: any(r.xs)
lambda r: all(r.xs)
lambda r: r.n in r.xs
lambda r: 1 in r.xs
lambda r: None in r.xs
lambda r: r.n not in r.xs
lambda r: bool(r.xs)
lambda r: 1 if r.xs else 2
lambda r: not r.xs
lambda r: [x + 1 for x in r.xs]
lambda r: [x * 2 for x in r.xs if x is not None and x > 1]
lambda r: [x for x in r.xs if x]
lambda r: [x for x in r.xs if x > 0 if x < 3]
lambda r: [(i, x) for i, x in enumerate(r.xs)]
lambda r: [k for k, v in r.ps]
lambda r: [v for k, v in r.ps if k > 1]
lambda r: [p[1] for p in r.ps]
lambda r: [{"k": p._1, "n": r.n} for p in r.ps]
lambda r: sum(k for k, v in r.ps)
lambda r: sum(x * x for x in r.xs)
lambda r: sum(k * 2 for k, v in r.ps if v)
lambda r: any(x > 2 for x in r.xs)
lambda r: all(x > 0 for x in r.xs)
lambda r: any(10 // x > 1 for x in r.xs if x)
lambda r: any(10 // x > 1 for x in r.xs)
lambda r: [10 // x if x else None for x in r.xs]
lambda r: [i for i in range(r.n) if i < 3] if r.n is not None and r.n < 10 else []
lambda r: list(range(3))
lambda r: [x + y for x in [1, 2] for y in [10, 20]]
lambda r: [x for x in r.xs][:1]
lambda r: list(r.xs)
lambda r: r.xs == [1, 2, 3]
lambda r: r.xs == r.xs
lambda r: r.xs != []
lambda r: r.xs is None
lambda r: r.xs or [1]
lambda r: r.ps[0][1]
lambda r: r.ps[0] == (1, "a")
lambda r: len(r.ps) + len(r.xs)
lambda r: ",".join([str(x) for x in r.xs])
lambda r: ",".join(v for k, v in r.ps)
lambda r: (r.xs, r.ps)
lambda r: [[x, x] for x in r.xs]
lambda r: []
lambda r: [None, 1]
lambda r: [r.n, None]""",
    """lambda r: sum(x * x for x in r.xs) % 7
lambda r: (1 // r.n, 2)[1]
lambda r: r.n in (0, 1 // r.n)
lambda r: sorted(r.ps, key=lambda p: p[1])
lambda r: max(r.xs, key=lambda x: -x)
lambda r: r.xs.index(1)
lambda r: list(zip(r.xs, r.xs))""",
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
lambda r: (r.a, r.w)""",
    """lambda r: r.a / r.b
lambda r: r.w + r.a
lambda r: r.a == 1.5
lambda r: r.a % 2
lambda r: round(r.a, 1)""",
)

OTHERS = Case(
    "t boolean, u boolean, i int, s short, f float, b binary, user struct<name: string, age: long>,"
    " p struct<_1: long, _2: struct<_1: string, _2: long>>",
    [
        None,
        *(
            RowItem(t=t, u=u, i=i, s=s, f=f, b=b, user=user, p=p)
            for (t, u), (i, s), f, b, user, p in zip(
                [
                    (True, False),
                    (False, None),
                    (None, None),
                    (True, True),
                    (False, False),
                    (None, True),
                ]
                * 3,
                [(0, 1), (2**31 - 1, 2**15 - 1), (-(2**31), -(2**15)), (None, None), (5, 7)] * 4,
                [0.5, float("nan"), None, 0.10000000149011612, -0.0] * 4,
                [b"", b"ab", b"\x00\xff", None] * 5,
                [None, RowItem(name="ann", age=3), RowItem(name=None, age=None)] * 6,
                [Struct((1, Struct(("x", 2)))), None, Struct((1, None))] * 6,
                strict=False,
            )
        ),
    ],
    """lambda r: r.t and r.u
lambda r: r.t or r.u
lambda r: not r.t
lambda r: r.t == r.u
lambda r: r.t is True
lambda r: r.t is not None
lambda r: r.t + 1
lambda r: r.t & r.u
lambda r: r.t | r.u
lambda r: r.t ^ r.u
lambda r: r.t < r.u
lambda r: r.t == 1
lambda r: str(r.t)
lambda r: f"{r.t} {r.i}"
lambda r: r.i + r.s
lambda r: r.i * r.i
lambda r: r.i // r.s
lambda r: r.i / r.s
lambda r: (r.i * r.i * r.s) % 1000
lambda r: r.s == r.i
lambda r: r.f + 1
lambda r: r.f == 0.5
lambda r: r.f > r.i
lambda r: r.b == b"ab"
lambda r: r.b < b"b"
lambda r: bool(r.b)
lambda r: r.user.name
lambda r: r.user.age + 1
lambda r: r["user"]["name"]
lambda r: r.user.name if r.user is not None else None
lambda r: r.user is None or r.user.age == 3
lambda r: {**r.user, "n": 1}
lambda r: r.user == r.user
lambda r: r.p[1][0]
lambda r: r.p[0] + r.p[1][1]
lambda r: r.p == (1, ("x", 2))
lambda r: r.p is not None and r.p[1] is not None and r.p[1]._2 > 1
lambda r: {"user": r.user, "p": r.p}
lambda r: r
lambda r: None
lambda r: (None, 1)
lambda r: (r.t, (r.i, [r.s]))
lambda r: r is None
lambda r: 1 if r is None else 2
lambda r: r is not None and r.i is not None and r.i > 3
lambda r: r.i if r.t else r.s
lambda r: "x" if r.t else None
lambda r: (r.i, "a") if r.t else (r.s, None)
lambda r: r.user if r.t else None""",
    """lambda r: r.b + b"x"
lambda r: str(r.f)
lambda r: r.b.hex()""",
)

CASES = {
    "integers": INTEGERS,
    "numbers": NUMBERS,
    "strings": STRINGS,
    "moments": MOMENTS,
    "arrays": ARRAYS,
    "decimals": DECIMALS,
    "others": OTHERS,
}
