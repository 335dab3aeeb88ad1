"""Joins: items match where their keys are equal, and where a condition over both is true.

`join_asof` pairs each left row with the nearest right row of its key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from hydro_core.catalog.combine import place_type
from hydro_core.catalog.spec import KEPT, sides_of_key
from hydro_core.reference.bag import Bag, KeyFunction
from hydro_core.reference.definitions.registry import SemiNaive, defines
from hydro_core.reference.site import Columns, Site, columns_of, compared_as, field, key_type
from hydro_core.types.item import BOOLEAN, TIMESTAMP, UNKNOWN, ItemType
from hydro_core.types.values import RowItem, Struct, conform, sort_key

KeyNames = tuple[tuple[str, ...], tuple[str, ...]]
"""The key columns of both sides."""
Pairing = Callable[[Any, Any], Any]
"""Combines two items into one; one of them may be `MISSING`."""
MISSING = RowItem()
"""The partner of an item without a match."""


@defines(
    "join",
    growth=lambda args: SemiNaive.EACH if args["how"] == "inner" else SemiNaive.FIRST,
    exact=True,
)
def join(site: Site, left: Bag, right: Bag) -> Bag:
    """The matching pairs, and the items without a match that `how` retains."""
    names, how = sides_of_key(site.args["on"] or ()), site.args["how"]
    condition, asked = site.args.get("where"), how in ("semi", "anti")
    of_rows = condition is not None or bool(names[0])
    mine, theirs = (join_key(site, names, i) if of_rows else _first(site) for i in (0, 1))
    if asked and condition is None:
        # For the existence of a match, one item of each key suffices.
        right = Bag(items[0] for items in right.by(theirs).values())
    if condition is not None or len(left) <= len(right):
        partners = right.by(theirs)
        pairs = [(x, y) for x in left for y in partners.get(mine(x), ())]
    else:
        partners = left.by(mine)
        pairs = [(x, y) for y in right for x in partners.get(theirs(y), ())]
    if condition is not None:
        pairs = [pair for pair in pairs if _is_true(site, *pair)]
    # An item that occurs several times is one object, so its copies match alike.
    matched = [{id(pair[side]) for pair in pairs} for side in (0, 1)]
    if asked:
        return Bag(x for x in left if (id(x) in matched[0]) == (how == "semi"))
    if 0 in KEPT[how]:
        pairs += [(x, MISSING) for x in left if id(x) not in matched[0]]
    if 1 in KEPT[how]:
        pairs += [(MISSING, y) for y in right if id(y) not in matched[1]]
    make = row_maker(site, names) if of_rows else _tuple_maker(_first(site))
    return Bag(make(x, y) for x, y in pairs)


def _is_true(site: Site, x: Any, y: Any) -> bool:
    condition = site.args["where"]
    return site.fit(site.combine(condition, x, y), BOOLEAN, condition) is True


def _first(site: Site) -> Columns:
    """The key of pairs."""
    return Columns(compared=_key_type(site, ((), ())))


def join_key(site: Site, names: KeyNames, i: int) -> KeyFunction:
    """The key of the rows of an input: equal for matching rows; without names all are equal."""
    return Columns(names[i], _key_type(site, names)) if names[i] else _all_alike


def _all_alike(_: Any) -> tuple[()]:
    return ()


def _key_type(site: Site, names: KeyNames) -> ItemType:
    sides = zip(site.inputs, names, strict=True)
    return compared_as(*(key_type(side.item, own) for side, own in sides))


def _tuple_maker(key: Columns) -> Pairing:
    """`(k, (v, w))`."""

    def make(x: Any, y: Any) -> Struct:
        values = Struct(None if item is MISSING else field(item, 1) for item in (x, y))
        return Struct((key.common(y if x is MISSING else x), values))

    return make


def row_maker(site: Site, names: KeyNames) -> Pairing:
    """Builds the row of a pair: the key under the left's names, the left's other columns, the
    right's, with the suffix where the left has a column of that name.
    """
    left, right = (
        [c.name for c in columns_of(side.item) if c.name not in own]
        for side, own in zip(site.inputs, names, strict=True)
    )
    keys = [Columns(own, _key_type(site, names)) for own in names]
    suffix, taken = site.args["suffix"] or "", {*names[0], *left}
    called = {name: name + suffix if name in taken else name for name in right}

    def key(x: Any, y: Any) -> Any:
        return keys[1].common(y) if x is MISSING else keys[0].common(x)

    def make(x: Any, y: Any) -> RowItem:
        found = dict(zip(names[0], key(x, y), strict=True)) if names[0] else {}
        found |= {name: None if x is MISSING else field(x, name) for name in left}
        found |= {called[name]: None if y is MISSING else field(y, name) for name in right}
        return RowItem(found)

    return make


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
    """A value as it is compared: a date compared with timestamps is its midnight."""
    if isinstance(value, date) and not isinstance(value, datetime) and str(to) != "date":
        return datetime(value.year, value.month, value.day, tzinfo=UTC if to == TIMESTAMP else None)
    return conform(value, to)


def _nearest(site: Site, at: Any, rows: Iterable[tuple[Any, Any]]) -> Any:
    """The nearest row among (since, row); `MISSING` if there is none."""
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
    """A rank that is least for the nearest rows."""
    is_after = sort_key(since) > sort_key(at)
    if direction == "nearest":
        # Of two rows at an infinite distance, or of NaN, the one that is nearer in the order.
        return _distance(at, since), is_after, _steps(since, is_after)
    return _steps(since, direction == "forward")


class _ReversedKey:
    """Reverses the order of a key."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _ReversedKey) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ReversedKey) and bool(self.key == other.key)

    __hash__ = None  # type: ignore[assignment]


def _steps(since: Any, forward: bool) -> Any:
    """A rank that is least for the first row in the direction of the search."""
    return sort_key(since) if forward else _ReversedKey(sort_key(since))


def _distance(at: Any, since: Any) -> Any:
    """The exact distance of two places; greater than all others if one is NaN."""
    if sort_key(at) == sort_key(since):
        return _measured(0)
    if isinstance(at, date):
        return _measured(abs(at - since))
    if isinstance(at, float):
        return (2, 0) if math.isnan(at) or math.isnan(since) else _measured(abs(at - since))
    return _measured(abs(Fraction(at) - Fraction(since)))


def _measured(distance: Any) -> tuple[int, Any]:
    """A distance in comparable form: exact numbers, then infinite ones."""
    if isinstance(distance, timedelta):
        return 0, Fraction(distance // timedelta(microseconds=1))
    if isinstance(distance, float) and math.isinf(distance):
        return 1, 0
    return 0, Fraction(distance)
