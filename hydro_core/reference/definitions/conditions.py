"""Joins with a condition: rows match where their keys are equal and the condition is true."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from hydro_core.catalog.inputs import KEPT, sides_of_key
from hydro_core.reference.bag import Bag
from hydro_core.reference.keys import Columns, columns_of, compared_as, field, key_type
from hydro_core.reference.site import Site
from hydro_core.types.item import BOOLEAN, ItemType
from hydro_core.types.values import RowItem

KeyNames = tuple[tuple[str, ...], tuple[str, ...]]
"""The key columns of both sides."""


def join_where(site: Site, left: Bag, right: Bag) -> Bag:
    """The pairs that match, and what `how` keeps of the rows without a match."""
    names, how = sides_of_key(site.args["on"] or ()), site.args["how"]
    lefts, rights = list(left), list(right)
    pairs = _matches(site, lefts, rights, names)
    if how in ("semi", "anti"):
        matched = {i for i, _ in pairs}
        return Bag(x for i, x in enumerate(lefts) if (i in matched) == (how == "semi"))
    found = [(lefts[i], rights[j]) for i, j in pairs]
    if 0 in KEPT[how]:
        alone = set(range(len(lefts))) - {i for i, _ in pairs}
        found += [(lefts[i], MISSING) for i in sorted(alone)]
    if 1 in KEPT[how]:
        alone = set(range(len(rights))) - {j for _, j in pairs}
        found += [(MISSING, rights[j]) for j in sorted(alone)]
    make = row_maker(site, names)
    return Bag(make(x, y) for x, y in found)


def _matches(
    site: Site, lefts: Sequence[Any], rights: Sequence[Any], names: KeyNames
) -> list[tuple[int, int]]:
    """The positions of the rows that match."""
    mine, theirs = (join_key(site, names, i) for i in (0, 1))
    by_key: dict[Any, list[int]] = {}
    for j, y in enumerate(rights):
        by_key.setdefault(theirs(y), []).append(j)
    return [
        (i, j)
        for i, x in enumerate(lefts)
        for j in by_key.get(mine(x), ())
        if _is_true(site, x, rights[j])
    ]


def _is_true(site: Site, x: Any, y: Any) -> bool:
    condition = site.args["where"]
    return site.fit(site.combine(condition, x, y), BOOLEAN, condition) is True


MISSING = RowItem()
"""What a row that found no match is paired with."""


def join_key(site: Site, names: KeyNames, i: int) -> Callable[[Any], Hashable]:
    """The key of the rows of an input: equal for rows that meet; without names all do."""
    if not names[i]:
        return lambda _: ()
    return Columns(names[i], _key_type(site, names))


def _key_type(site: Site, names: KeyNames) -> ItemType:
    sides = zip(site.inputs, names, strict=True)
    return compared_as(*(key_type(side.item, own) for side, own in sides))


def row_maker(site: Site, names: KeyNames) -> Callable[[Any, Any], RowItem]:
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
