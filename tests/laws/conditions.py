"""Joins of rows `k, m, v` with a condition, and in time, as the steps of random programs."""

from __future__ import annotations

HOWS = ("inner", "left", "right", "outer", "semi", "anti")
WHERES = (
    "l.v is not None and r.v is not None and l.v <= r.v",
    "(l.m or 0) != (r.m or 0)",
    "l.v == r.v or None",
    "l.v is not None and r.m is not None and l.v - 1 <= r.m <= l.v",
    "l.m == r.v and l.k != r.k",
)
KEYS = ('on="k", ', 'on=["k", "m"], ', 'on={{"m": "v"}}, ', "")
"""The keys, in braces that are doubled."""
CONDITIONS = tuple(
    f'join(right={{b}}, {on}how="{how}", suffix="_r", where=lambda l, r: {WHERES[n % len(WHERES)]})'
    for n, (on, how) in enumerate((on, how) for on in KEYS for how in HOWS)
)

WAYS = ("", ', direction="forward"', ', direction="nearest"', ", within=1")
NEAREST = tuple(
    f'join_asof(right={{b}}, {on}at="v", since="{since}", how="{how}", suffix="_r"{way})'
    for on in ('on="k", ', 'on={{"k": "k", "m": "v"}}, ', "")
    for since, how in (("v", "left"), ("m", "left"), ("m", "inner"), ("v", "inner"))
    for way in WAYS
)
"""Nearest rows, in braces that are doubled; the numbers are times."""
