"""Functions of arrays, and the arrays that they are tried on."""

from __future__ import annotations

import itertools
from typing import Any

from hydro_core.types.values import RowItem, Struct
from tests.spark.cases_values import Case

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
lambda r: sum(x for x in r.xs if x is not None)
lambda r: sum(k for k, v in r.ps if k and v)
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
lambda r: [r.n, None]
lambda r: sum(x * x for x in r.xs) % 7
lambda r: (1 // r.n, 2)[1]
lambda r: r.n in (0, 1 // r.n)
lambda r: r.xs.index(1)
lambda r: r.xs.count(r.n)
lambda r: r.xs.copy()
lambda r: sorted(r.ps, key=lambda p: p[1])
lambda r: sorted(r.xs, key=lambda x: x % 3, reverse=True)
lambda r: sorted(r.xs, key=lambda x: (x % 2, -x))
lambda r: max(r.xs, key=lambda x: -x)
lambda r: min(r.xs, key=lambda x: x % 5, default=7)
lambda r: max(r.ps, key=lambda p: p[0])
lambda r: list(zip(r.xs, r.xs))
lambda r: [a + b for a, b in zip(r.xs, r.xs[1:])]
lambda r: list(enumerate(r.xs, 1))
lambda r: [i for i, x in enumerate(r.xs) if x > 1]
lambda r: sum(i * x for i, x in enumerate(r.xs, start=1))
lambda r: any(i > 0 and x == r.n for i, x in enumerate(r.xs))
lambda r: list(reversed(r.xs))
lambda r: r.xs * 2
lambda r: 3 * r.xs
lambda r: r.xs * r.n
lambda r: sum(r.xs, 5)
lambda r: sum(r.xs, start=r.n)
lambda r: len({x % 3 for x in r.xs})
lambda r: sorted({x for x in r.xs if x > 0})
lambda r: r.n in {x + 1 for x in r.xs}
lambda r: len({r.n, 1, 2})""",
    """lambda r: str(r.xs)""",
)
