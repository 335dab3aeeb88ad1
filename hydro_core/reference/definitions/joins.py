"""Joins: items match where their keys are equal, and where a condition over both is true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hydro_core.catalog.inputs import KEPT, sides_of_key
from hydro_core.reference.bag import Bag, KeyFunction
from hydro_core.reference.definitions.registry import SemiNaive, defines
from hydro_core.reference.keys import Columns, columns_of, compared_as, field, key_type
from hydro_core.reference.site import Site
from hydro_core.types.item import BOOLEAN, ItemType
from hydro_core.types.values import RowItem, Struct

KeyNames = tuple[tuple[str, ...], tuple[str, ...]]
"""The key columns of both sides."""
Pairing = Callable[[Any, Any], Any]
"""The item that two make, of which one may be `MISSING`."""
MISSING = RowItem()
"""What an item that found no match is paired with."""


@defines(
    "join",
    growth=lambda args: SemiNaive.EACH if args["how"] == "inner" else SemiNaive.FIRST,
    exact=True,
)
def join(site: Site, left: Bag, right: Bag) -> Bag:
    """The pairs that match, and what `how` keeps of the items without a match."""
    names, how = sides_of_key(site.args["on"] or ()), site.args["how"]
    condition, asked = site.args.get("where"), how in ("semi", "anti")
    of_rows = condition is not None or bool(names[0])
    mine, theirs = (join_key(site, names, i) if of_rows else _first(site) for i in (0, 1))
    if asked and condition is None:
        # Whether there is a match, one item of each key says.
        right = Bag(items[0] for items in right.by(theirs).values())
    if condition is not None or len(left) <= len(right):
        partners = right.by(theirs)
        pairs = [(x, y) for x in left for y in partners.get(mine(x), ())]
    else:
        partners = left.by(mine)
        pairs = [(x, y) for y in right for x in partners.get(theirs(y), ())]
    if condition is not None:
        pairs = [pair for pair in pairs if _is_true(site, *pair)]
    # Items that are one object are equal, and so match alike.
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
    """The key of the rows of an input: equal for rows that meet; without names all do."""
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
    """Makes the row of a pair: the key under the left's names, the left's other columns, the
    right's, with the suffix where the left has one of that name.
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
