"""The functions of `Stream.over`, by their names in the language.

>>> from hydro_core import agg, over
>>> over.running(agg.sum("amount")).function
'running'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hydro_core.catalog.over_functions import Distance
from hydro_core.catalog.spec import Aggregate, OverFunction

OverValue = str | Callable[..., Any]
"""A column, or a function of the row."""


def row_number() -> OverFunction:
    """The row's place, from 1."""
    return OverFunction("row_number")


def rank() -> OverFunction:
    """The place of the first of the rows that are equal in the order."""
    return OverFunction("rank")


def dense_rank() -> OverFunction:
    """How many different values of the order there are up to this one."""
    return OverFunction("dense_rank")


def percent_rank() -> OverFunction:
    """`rank` less 1, of the rows less 1; 0.0 of one row."""
    return OverFunction("percent_rank")


def cume_dist() -> OverFunction:
    """How many of the rows stand up to the last that is equal in the order."""
    return OverFunction("cume_dist")


def ntile(n: int) -> OverFunction:
    """Which of n parts the row is in, from 1."""
    return OverFunction("ntile", (n,))


def lag(v: OverValue, n: int = 1, default: Any = None) -> OverFunction:
    """The value n rows before, the default where there is no such row."""
    return OverFunction("lag", (v, n, default))


def lead(v: OverValue, n: int = 1, default: Any = None) -> OverFunction:
    """The value n rows after, the default where there is no such row."""
    return OverFunction("lead", (v, n, default))


def running(agg: Aggregate, peers: bool = False) -> OverFunction:
    """The aggregate from the first row to this one; with `peers` to its last equal."""
    return OverFunction("running", (agg, peers))


def rolling(
    agg: Aggregate, *, rows: int | None = None, within: Distance | None = None
) -> OverFunction:
    """The aggregate of the last `rows`, or of those `within` a distance before this one."""
    return OverFunction("rolling", (agg, rows, within))


def whole(agg: Aggregate) -> OverFunction:
    """The aggregate of all rows of the key."""
    return OverFunction("whole", (agg,))


def session(gap: Distance) -> OverFunction:
    """The order of the first row of this row's session, which a longer gap ends."""
    return OverFunction("session", (gap,))
