"""Operators by the order of a key's rows, by the definition alone: sort the rows and scan them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from hydro_core.catalog.ordered import hidden_parts
from hydro_core.catalog.over_functions import aggregate_of, argument, distance_of
from hydro_core.catalog.spec import OverFunction
from hydro_core.functions.tree import Fn
from hydro_core.reference.bag import Bag, NodePast
from hydro_core.reference.definitions.group import aggregate_of_rows, value_of
from hydro_core.reference.definitions.registry import OperatorOutput, defines, definition_of
from hydro_core.reference.site import Site, columns_of, field, key_of, keyed_result
from hydro_core.types.item import UNKNOWN, ItemType, Row
from hydro_core.types.values import RowItem, Struct, canonical, sort_key


@defines("over")
def over(site: Site, a: Bag) -> Bag:
    """Each row with columns, computed from its key's rows in their order."""
    names = [column.name for column in columns_of(site.inputs[0].item)]
    found = []
    for key in _keys(site, a):
        made = {name: _column(key, name, f) for name, f in site.args["functions"]}
        for i, row in enumerate(key.rows):
            own = {name: field(row, name) for name in names}
            found.append(RowItem({**own, **{name: column[i] for name, column in made.items()}}))
    return Bag(found)


@defines("running_over")
def running_over(site: Site, a: NodePast) -> Bag:
    """The same over all rows so far, with the columns that later rows continue from."""
    args, found = site.args, []
    parts = [(name, OverFunction("running", (one, False))) for name, one in hidden_parts(args)]
    beside = (*parts, (args["number"], OverFunction("row_number")))
    for key in _keys(site, a.earlier + a.now):
        made = {name: _column(key, name, f) for name, f in (*args["functions"], *beside)}
        for i, row in enumerate(key.rows):
            columns = {name: column[i] for name, column in made.items()}
            is_last = i >= len(key.rows) - args["keep"]
            tail = RowItem({k: field(row, k) for k in args["by"]}) if is_last else None
            own = {c.name: field(row, c.name) for c in columns_of(site.inputs[0].item)}
            found.append(RowItem({**own, **columns, args["tail"]: tail}))
    return Bag(found)


@defines("top", exact=True)
def top(site: Site, a: Bag) -> Bag:
    """The first n rows of each key, and the ties of the last of them if wanted."""
    n, ties = site.args["n"], site.args["ties"]
    return Bag(
        row
        for key in _keys(site, a)
        for i, row in enumerate(key.rows)
        if (key.first_peer(i) if ties else i) < n
    )


@dataclass(frozen=True)
class _Key:
    """The rows of a key in their order."""

    site: Site
    rows: Sequence[Any]
    orders: Sequence[tuple[Any, ...]]
    """The order of each row."""

    @cached_property
    def places(self) -> Sequence[Any]:
        """The place of each row: equal for ties."""
        return [[sort_key(part) for part in order] for order in self.orders]

    def first_peer(self, i: int) -> int:
        """The index of the first row that ties with one."""
        return self.places.index(self.places[i])

    def last_peer(self, i: int) -> int:
        """The index of the last row that ties with one."""
        return max(j for j, place in enumerate(self.places) if place == self.places[i])

    def within(self, i: int, distance: Any) -> list[int]:
        """The rows at most so far before one, and its ties."""
        own = self.orders[i][0]
        down = not self.site.args["descending"]
        return [
            j
            for j, (other,) in enumerate(self.orders)
            if _reaches((other, own) if down else (own, other), distance, down)
        ]


def _keys(site: Site, a: Bag) -> Iterator[_Key]:
    for rows in _groups(site, a):
        ranked = _ranked(site, rows)
        yield _Key(site, [row for row, _ in ranked], [order for _, order in ranked])


def _ranked(site: Site, items: Iterable[Any]) -> list[tuple[Any, tuple[Any, ...]]]:
    """The items in the order that is an argument, each with its order."""
    by_item = sorted(items, key=sort_key)
    orders = [_parts(site, "order", item) for item in by_item]
    places = [[sort_key(part) for part in order] for order in orders]
    ranked = sorted(
        range(len(by_item)), key=places.__getitem__, reverse=bool(site.args["descending"])
    )
    return [(by_item[i], orders[i]) for i in ranked]


@defines("sorted_fold_keyed", "sorted_reduce_keyed", "sorted_scan_keyed")
def in_order_of_its_own(site: Site, a: Bag) -> OperatorOutput:
    """The operator without the order, on the items sorted by it."""
    items = Bag(item for item, _ in _ranked(site, a))
    return definition_of(site.node.op.stands_for).function(site, items)


def _groups(site: Site, a: Bag) -> Iterator[list[Any]]:
    found: dict[Hashable, list[Any]] = {}
    for row in a:
        found.setdefault(canonical(Struct(_parts(site, "by", row))), []).append(row)
    yield from found.values()


def _parts(site: Site, name: str, row: Any) -> tuple[Any, ...]:
    """The values of the columns, or of the function, of an argument for a row."""
    named = site.args[name]
    if isinstance(named, Fn):
        return (site.call(named, row),)
    return tuple(field(row, column) for column in named or ())


def _column(key: _Key, name: str, function: OverFunction) -> list[Any]:
    """A column for the rows of a key, in their order."""
    asked = _COLUMNS.get(function.function)
    if asked is not None:
        return asked(key, function)
    row = key.site.output
    item = (row.column(name) if isinstance(row, Row) else None) or UNKNOWN
    return [
        _aggregated(key, function, item, frame)
        for frame in _FRAMES[function.function](key, function)
    ]


def _aggregated(key: _Key, function: OverFunction, item: ItemType, frame: Sequence[int]) -> Any:
    aggregate = aggregate_of(function)
    assert aggregate is not None
    ordered = key.site.args["order"] is not None
    rows = [key.rows[j] for j in frame]
    return aggregate_of_rows(key.site, aggregate, rows, item, ordered=ordered)


def _rank(key: _Key, _: OverFunction) -> list[int]:
    return [key.first_peer(i) + 1 for i in range(len(key.rows))]


def _dense_rank(key: _Key, _: OverFunction) -> list[int]:
    different = [place for i, place in enumerate(key.places) if key.first_peer(i) == i]
    return [different.index(place) + 1 for place in key.places]


def _percent_rank(key: _Key, function: OverFunction) -> list[float]:
    others = len(key.rows) - 1
    return [(rank - 1) / others if others else 0.0 for rank in _rank(key, function)]


def _ntile(key: _Key, function: OverFunction) -> list[int]:
    """The first rows % n parts have one more than the others."""
    parts = argument(function, "n")
    size, longer = divmod(len(key.rows), parts)
    rows_of_longer = longer * (size + 1)
    return [
        i // (size + 1) + 1 if i < rows_of_longer else longer + (i - rows_of_longer) // size + 1
        for i in range(len(key.rows))
    ]


def _shifted(back: int) -> Callable[[_Key, OverFunction], list[Any]]:
    def column(key: _Key, function: OverFunction) -> list[Any]:
        values = [value_of(key.site, argument(function, "v"), row) for row in key.rows]
        by, default = back * argument(function, "n"), argument(function, "default")
        there = range(len(values))
        return [values[i - by] if i - by in there else default for i in there]

    return column


def _session(key: _Key, function: OverFunction) -> list[Any]:
    gap, found = distance_of(function), list[Any]()
    for i, (order,) in enumerate(key.orders):
        resumes = i > 0 and _near(key.orders[i - 1][0], order, gap)
        found.append(found[-1] if resumes else order)
    return found


def _running(key: _Key, function: OverFunction) -> Iterator[Sequence[int]]:
    for i in range(len(key.rows)):
        last = key.last_peer(i) if argument(function, "peers") else i
        yield range(last + 1)


def _rolling(key: _Key, function: OverFunction) -> Iterator[Sequence[int]]:
    rows, within = argument(function, "rows"), argument(function, "within")
    for i in range(len(key.rows)):
        yield key.within(i, within) if rows is None else range(max(0, i + 1 - rows), i + 1)


def _reaches(pair: tuple[Any, Any], distance: Any, down: bool) -> bool:
    """True if the lesser of two places is at most so far below the greater, or equal to it; NaN and
    null are near themselves only.
    """
    less, greater = pair
    if not (_is_place(less) and _is_place(greater)):
        return bool(sort_key(less) == sort_key(greater))
    low, high, far = _measured(less), _measured(greater), _measured(distance)
    if isinstance(low, float) or isinstance(high, float):
        low, high, far = float(low), float(high), float(far)
    # The distance is added to, or subtracted from, the row's own place.
    return bool(low <= high and (high - far <= low if down else high <= low + far))


def _near(before: Any, after: Any, gap: Any) -> bool:
    """True if two consecutive rows belong to one session."""
    if sort_key(before) == sort_key(after):
        return True
    if not (_is_place(before) and _is_place(after)):
        return False
    one, other, far = _measured(before), _measured(after), _measured(gap)
    if isinstance(one, float):
        far = float(far)
    return bool(abs(other - one) <= far)


def _is_place(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _measured(value: Any) -> Any:
    """A place, or a distance, as a number that is exact where the place is."""
    match value:
        case timedelta():
            return Fraction(value // timedelta(microseconds=1))
        case datetime():
            start = datetime(1970, 1, 1, tzinfo=UTC if value.tzinfo else None)
            return Fraction((value - start) // timedelta(microseconds=1))
        case date():
            return Fraction(value.toordinal() * 86_400_000_000)
        case int() | Decimal():
            return Fraction(value)
        case _:
            return float(value)


_COLUMNS: Mapping[str, Callable[[_Key, OverFunction], list[Any]]] = {
    "row_number": lambda key, _: list(range(1, len(key.rows) + 1)),
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": lambda key, _: [
        (key.last_peer(i) + 1) / len(key.rows) for i in range(len(key.rows))
    ],
    "ntile": _ntile,
    "lag": _shifted(1),
    "lead": _shifted(-1),
    "session": _session,
}
_FRAMES: Mapping[str, Callable[[_Key, OverFunction], Iterator[Sequence[int]]]] = {
    "running": _running,
    "rolling": _rolling,
    "whole": lambda key, _: (range(len(key.rows)) for _row in key.rows),
}
"""The rows of each aggregate, for each row of a key."""


@defines("sort", exact=True)
def sort(site: Site, a: Bag) -> Bag:
    """The items in ascending order."""
    return Bag(sorted(a, key=sort_key))


@defines("sort_by_key", exact=True)
def sort_by_key(site: Site, a: Bag) -> Bag:
    """The items by `f(x)`; ties by the item, ascending in either direction."""
    fn = site.args["f"]
    by_item = sorted(a, key=sort_key)
    keys = [sort_key(site.call(fn, x)) for x in by_item]
    places = sorted(range(len(keys)), key=keys.__getitem__, reverse=bool(site.args["descending"]))
    return Bag(by_item[place] for place in places)


@defines("limit", exact=True)
def limit(site: Site, a: Bag) -> Bag:
    """The first n items, or the first n of each key, in the input's order."""
    most, key = site.args["n"], key_of(site)
    if not key.names:
        return Bag(a.items[:most])
    taken, found = dict[Hashable, int](), []
    for x in a:
        form = key(x)
        taken[form] = taken.get(form, 0) + 1
        if taken[form] <= most:
            found.append(x)
    return Bag(found)


@defines("enumerate", exact=True)
def enumerate_(site: Site, a: Bag) -> Bag:
    """Each item with its position in this tick, from 0."""
    return Bag(Struct((position, x)) for position, x in enumerate(a))


@defines("scan")
def scan(site: Site, a: Bag) -> Bag:
    """The accumulator after each item."""
    acc, found = site.args["init"], []
    for x in a:
        acc = site.accumulate(site.args["f"], acc, x)
        found.append(acc)
    return Bag(found)


@defines("scan_keyed")
def scan_keyed(site: Site, a: Bag) -> Bag:
    """The accumulator of its key after each item, in the input's order."""
    key, accs, found = key_of(site), dict[Hashable, Any](), []
    for x in a:
        form, value = key(x), x if key.names else field(x, 1)
        acc = accs[form] if form in accs else site.args["init"]
        accs[form] = site.accumulate(site.args["f"], acc, value)
        found.append(keyed_result(key, x, accs[form]))
    return Bag(found)


@defines("unique_keyed", exact=True)
def unique_keyed(site: Site, a: Bag) -> Bag:
    """The first item of each key."""
    return Bag(items[0] for items in a.by(key_of(site)).values())
