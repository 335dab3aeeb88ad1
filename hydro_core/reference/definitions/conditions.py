"""Joins with a condition: rows match where their keys are equal and the condition is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydro_core.catalog.inputs import KEPT, sides_of_key
from hydro_core.reference.bag import Bag
from hydro_core.reference.keys import Columns, columns_of, compared_as, field, key_type
from hydro_core.reference.site import Site
from hydro_core.types.item import BOOLEAN
from hydro_core.types.values import RowItem


def join_where(site: Site, left: Bag, right: Bag) -> Bag:
    """The pairs that match, and what `how` keeps of the rows without a match."""
    on = sides_of_key(site.args["on"] or ())
    to = compared_as(*(key_type(s.item, names) for s, names in zip(site.inputs, on, strict=True)))
    keys = tuple(Columns(names, to) for names in on)
    lefts, rights = list(left), list(right)
    pairs = _matches(site, lefts, rights, keys)
    how = site.args["how"]
    if how in ("semi", "anti"):
        matched = {i for i, _ in pairs}
        return Bag(x for i, x in enumerate(lefts) if (i in matched) == (how == "semi"))
    found = [(lefts[i], rights[j]) for i, j in pairs]
    if 0 in KEPT[how]:
        alone = set(range(len(lefts))) - {i for i, _ in pairs}
        found += [(lefts[i], _MISSING) for i in sorted(alone)]
    if 1 in KEPT[how]:
        alone = set(range(len(rights))) - {j for _, j in pairs}
        found += [(_MISSING, rights[j]) for j in sorted(alone)]
    return Bag(_row(site, keys, x, y) for x, y in found)


_MISSING = RowItem()
"""What a row that found no match is paired with."""


def _matches(
    site: Site, lefts: Sequence[Any], rights: Sequence[Any], keys: tuple[Columns, ...]
) -> list[tuple[int, int]]:
    """The positions of the rows that match."""
    by_key: dict[Any, list[int]] = {}
    for j, y in enumerate(rights):
        by_key.setdefault(_key(keys[1], y), []).append(j)
    return [
        (i, j)
        for i, x in enumerate(lefts)
        for j in by_key.get(_key(keys[0], x), ())
        if _is_true(site, x, rights[j])
    ]


def _key(key: Columns, row: Any) -> Any:
    return key(row) if key.names else ()


def _is_true(site: Site, x: Any, y: Any) -> bool:
    condition = site.args["where"]
    return site.fit(site.combine(condition, x, y), BOOLEAN, condition) is True


def _row(site: Site, keys: tuple[Columns, ...], x: Any, y: Any) -> RowItem:
    """The key under the left's names, then the left's other columns, then the right's."""
    left, right = (
        [c.name for c in columns_of(side.item) if c.name not in key.names]
        for side, key in zip(site.inputs, keys, strict=True)
    )
    suffix, of_left = site.args["suffix"] or "", {*keys[0].names, *left}
    mine, theirs = (x is not _MISSING, y is not _MISSING)
    of = (keys[0].common(x) if mine else keys[1].common(y)) if keys[0].names else ()
    found = dict(zip(keys[0].names, of, strict=True))
    found |= {name: field(x, name) if mine else None for name in left}
    return RowItem(
        found
        | {
            (name + suffix if name in of_left else name): field(y, name) if theirs else None
            for name in right
        }
    )
