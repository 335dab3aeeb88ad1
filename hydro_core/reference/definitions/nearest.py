"""`join_asof`: each left row with the nearest right row of its key."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from hydro_core.catalog.inputs import sides_of_key
from hydro_core.catalog.nearest import place_type
from hydro_core.reference.bag import Bag
from hydro_core.reference.definitions.joins import MISSING, join_key, row_maker
from hydro_core.reference.definitions.registry import SemiNaive, defines
from hydro_core.reference.keys import columns_of, field
from hydro_core.reference.site import Site
from hydro_core.types.item import TIMESTAMP, UNKNOWN, ItemType
from hydro_core.types.values import conform, sort_key


@defines("join_asof", growth=SemiNaive.FIRST, exact=True)
def join_asof(site: Site, left: Bag, right: Bag) -> Bag:
    """Each left row with the right row of its key that is nearest to it in `direction`."""
    keys = sides_of_key(site.args["on"] or ())
    mine, theirs = (join_key(site, keys, i) for i in (0, 1))
    make, to = row_maker(site, keys), _places(site)
    by_key: dict[Any, list[tuple[Any, Any]]] = {}
    for y in right:
        since = _place(field(y, site.args["since"]), to)
        if since is not None:
            by_key.setdefault(theirs(y), []).append((since, y))
    found = []
    for x in left:
        at = _place(field(x, site.args["at"]), to)
        rows = by_key.get(mine(x), []) if at is not None else []
        nearest = _nearest(site, at, rows)
        if nearest is not MISSING or site.args["how"] == "left":
            found.append(make(x, nearest))
    return Bag(found)


def _places(site: Site) -> ItemType:
    """The type in which `at` and `since` are compared."""
    types = [
        next((c.type for c in columns_of(side.item) if c.name == site.args[name]), UNKNOWN)
        for side, name in zip(site.inputs, ("at", "since"), strict=True)
    ]
    return place_type(*types) or UNKNOWN


def _place(value: Any, to: ItemType) -> Any:
    """A value as it is compared: a date beside timestamps is its midnight."""
    if isinstance(value, date) and not isinstance(value, datetime) and str(to) != "date":
        return datetime(value.year, value.month, value.day, tzinfo=UTC if to == TIMESTAMP else None)
    return conform(value, to)


def _nearest(site: Site, at: Any, rows: Iterable[tuple[Any, Any]]) -> Any:
    """The row that is found among (since, row); `MISSING` where there is none."""
    direction, within = site.args["direction"], site.args["within"]
    here = sort_key(at)
    near = [
        (since, y)
        for since, y in rows
        if (direction != "backward" or sort_key(since) <= here)
        and (direction != "forward" or sort_key(since) >= here)
        and (within is None or _distance(at, since) <= _measured(within))
    ]
    if not near:
        return MISSING
    least = min(_rank(direction, at, since) for since, _ in near)
    best = [y for since, y in near if _rank(direction, at, since) == least]
    return max(best, key=sort_key)


def _rank(direction: str, at: Any, since: Any) -> Any:
    """Is least for the rows that are found."""
    is_after = sort_key(since) > sort_key(at)
    if direction == "nearest":
        # of two that are infinitely far, or not a number, the nearer in the order
        return _distance(at, since), is_after, _steps(since, is_after)
    return _steps(since, direction == "forward")


class _Reversed:
    """Is less than another where what it holds is greater."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.key == other.key)

    __hash__ = None  # type: ignore[assignment]


def _steps(since: Any, forward: bool) -> Any:
    """Is least for what comes first on the way forward, or on the way back."""
    return sort_key(since) if forward else _Reversed(sort_key(since))


def _distance(at: Any, since: Any) -> Any:
    """How far two places are from each other, exactly; what is not a number is beyond all."""
    if sort_key(at) == sort_key(since):
        return _measured(0)
    if isinstance(at, date):
        return _measured(abs(at - since))
    if isinstance(at, float):
        return (2, 0) if math.isnan(at) or math.isnan(since) else _measured(abs(at - since))
    return _measured(abs(Fraction(at) - Fraction(since)))


def _measured(distance: Any) -> tuple[int, Any]:
    """A distance as what is compared: numbers exactly, then the infinite."""
    if isinstance(distance, timedelta):
        return 0, Fraction(distance // timedelta(microseconds=1))
    if isinstance(distance, float) and math.isinf(distance):
        return 1, 0
    return 0, Fraction(distance)
