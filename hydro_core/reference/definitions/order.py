"""The order of a tick's items: made, observed, counted."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from hydro_core.reference.bag import Bag
from hydro_core.reference.definitions.keyed import keyed_result
from hydro_core.reference.definitions.registry import defines
from hydro_core.reference.keys import field, key_of, names
from hydro_core.reference.site import Site
from hydro_core.types.values import Struct, sort_key


@defines("sort", exact=True)
def sort(site: Site, a: Bag) -> Bag:
    """The items in ascending order."""
    return Bag(sorted(a, key=sort_key))


@defines("sort_by_key", exact=True)
def sort_by_key(site: Site, a: Bag) -> Bag:
    """The items by `f(x)`; ties by the item, ascending whatever the direction."""
    fn = site.args["f"]
    by_item = sorted(a, key=sort_key)
    keys = [sort_key(site.call(fn, x)) for x in by_item]
    places = sorted(range(len(keys)), key=keys.__getitem__, reverse=bool(site.args["descending"]))
    return Bag(by_item[place] for place in places)


@defines("limit", exact=True)
def limit(site: Site, a: Bag) -> Bag:
    """The first n items, or the first n of each key, in the input's order."""
    most = site.args["n"]
    if not names(site):
        return Bag(a.items[:most])
    key, taken, found = key_of(site), dict[Hashable, int](), []
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
