"""Functions of text, moments, arrays and everything else, with values."""

# ruff: noqa: RUF001 - the letters are ambiguous on purpose

from __future__ import annotations

import datetime as dt
import itertools

from hydro_core.types.values import RowItem, Struct
from tests.spark.cases_values import TEXTS, UTC, Case

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
lambda s, n: {"s": s, "n": n, **{"k": 1}}
lambda s, n: int(s) % 7
lambda s, n: int(s) // 10 + 1
lambda s, n: float(s)
lambda s, n: f"{n:03d}"
lambda s, n: s.partition(",")
lambda s, n: s.partition("ab")[2]
lambda s, n: s.index("b")
lambda s, n: s.startswith(("a", "H", " "))
lambda s, n: s.endswith(("o", ""))
lambda s, n: s.title()
lambda s, n: s.capitalize()
lambda s, n: s.casefold()
lambda s, n: f"{n:>5}"
lambda s, n: f"{s:<6}|{n:<8}|"
lambda s, n: f"{s:*>4}{s!s:>3}{n:_<3d}"
lambda s, n: [c for c in s if c in "aeiou"]
lambda s, n: list(s)
lambda s, n: sum(1 for c in s if c.isdigit())
lambda s, n: all(c.isalpha() for c in s)
lambda s, n: len(set(s))
lambda s, n: "".join(reversed(s))
lambda s, n: len({c for c in s})""",
    """lambda s, n: f"{s!r}"
lambda s, n: s[::2]
lambda s, n: s.partition(s)
lambda s, n: f"{s:^5}" + s""",
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
lambda r: (r.d, r.n) == (date(1970, 1, 1), 1)
lambda r: timedelta(days=r.n).days
lambda r: r.t.isoformat()
lambda r: r.u.isoformat()
lambda r: str(r.t)
lambda r: f"{r.u} {r.d}"
lambda r: r.d.strftime("%Y")
lambda r: r.d.strftime("%d.%m.%y it's 100%%, %H")
lambda r: r.t.strftime("%Y-%m-%dT%H:%M:%S.%f %j")
lambda r: f"{r.u:%Y%m%d}-{r.d:%m/%Y}"
lambda r: r.d.replace(day=1)
lambda r: r.d.replace(day=1, month=1)
lambda r: r.t.replace(microsecond=0)
lambda r: r.t.replace(minute=0, second=0, microsecond=0)
lambda r: r.u.replace(hour=0, minute=0, second=0, microsecond=0)
lambda r: r.t.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0)""",
    """lambda r: r.d.strftime("%A")
lambda r: r.d.replace(day=2)
lambda r: r.d.replace(month=1)
lambda r: r.t.replace(second=0)
lambda r: r.d.replace(year=r.n)""",
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
lambda r: r.i + 1 if r.i is not None else 0
lambda r: r.i is None or r.i > 3
lambda r: r.s > 2 if r.s and r.t is not None else r.t
lambda r: not (r.i is None or r.s is None) and r.i > r.s
lambda r: 0 if r.user is None or r.user.age is None else -r.user.age
lambda r: [r.i // 2] if r.i else []
lambda r: [x.age for x in [r.user] if x is not None and x.age is not None and x.age > 2]
lambda r: r.i if r.t else r.s
lambda r: "x" if r.t else None
lambda r: (r.i, "a") if r.t else (r.s, None)
lambda r: r.user if r.t else None
lambda r: r.b.hex()""",
    """lambda r: r.b + b"x"
lambda r: str(r.f)""",
)
