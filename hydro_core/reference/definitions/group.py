"""Groups of items: what becomes of all items of a tick, or of a key."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce as fold_left
from typing import Any

from hydro_core.reference.bag import Bag
from hydro_core.reference.definitions.aggregates import aggregated
from hydro_core.reference.definitions.registry import SemiNaive, defines
from hydro_core.reference.keys import Columns, field, key_of, keyed_result
from hydro_core.reference.site import Site
from hydro_core.types.values import RowItem, Struct, sort_key


@defines("unique", growth=SemiNaive.ONCE, exact=True)
def unique(site: Site, a: Bag) -> Bag:
    """Each distinct item once, where it stands first."""
    return a.distinct()


@defines("fold")
def fold(site: Site, a: Bag) -> Bag:
    """One item each tick: `init` if nothing came."""
    return Bag([_folded(site, a)])


@defines("fold_keyed")
def fold_keyed(site: Site, a: Bag) -> Bag:
    """One item for each key."""
    key = key_of(site)
    return Bag(
        keyed_result(key, items[0], _folded(site, _values(key, items)))
        for items in a.by(key).values()
    )


def _folded(site: Site, items: Iterable[Any]) -> Any:
    fn = site.args["f"]
    return fold_left(lambda acc, x: site.accumulate(fn, acc, x), items, site.args["init"])


@defines("reduce")
def reduce(site: Site, a: Bag) -> Bag:
    """One item, none if nothing came."""
    return Bag([_reduced(site, a)]) if a.items else Bag()


@defines("reduce_keyed")
def reduce_keyed(site: Site, a: Bag) -> Bag:
    """One item for each key; of rows, the key columns stay the key."""
    key, found = key_of(site), []
    for items in a.by(key).values():
        result = _reduced(site, _values(key, items))
        kept = {name: field(items[0], name) for name in key.names}
        found.append(
            RowItem({**(result or {}), **kept})
            if key.names
            else Struct((field(items[0], 0), result))
        )
    return Bag(found)


def _reduced(site: Site, items: Iterable[Any]) -> Any:
    fn = site.args["f"]
    return fold_left(lambda x, y: site.combine(fn, x, y), items)


def _values(key: Columns, items: list[Any]) -> list[Any]:
    """What a keyed function gets of its key's items: rows whole, of tuples the value."""
    return items if key.names else [field(x, 1) for x in items]


@defines("latest", exact=True)
def latest(site: Site, a: Bag) -> Bag:
    """Of each key the row with the greatest order, ties by the greatest row."""
    order = site.args["order"]

    def rank(row: Any) -> Any:
        if isinstance(order, tuple):
            return [sort_key(field(row, name)) for name in order], sort_key(row)
        return sort_key(site.call(order, row)), sort_key(row)

    return Bag(max(rows, key=rank) for rows in a.by(key_of(site)).values())


@defines("aggregate")
def aggregate(site: Site, a: Bag) -> Bag:
    """A row for each key, or one of all; the key columns, then the aggregates."""
    key = key_of(site)
    if not key.names:
        return Bag([aggregated(site, a.items)])
    return Bag(
        RowItem({**{name: field(rows[0], name) for name in key.names}, **aggregated(site, rows)})
        for rows in a.by(key).values()
    )
