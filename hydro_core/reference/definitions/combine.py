"""Several streams into one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest as zip_padded
from typing import Any

from hydro_core.catalog.refusals import MANY_SINGLES
from hydro_core.catalog.spec import Args
from hydro_core.reference.bag import Bag
from hydro_core.reference.definitions.conditions import join_where
from hydro_core.reference.definitions.registry import SemiNaive, defines
from hydro_core.reference.keys import (
    Columns,
    Whole,
    columns_of,
    compared_as,
    field,
    key_type,
    names,
)
from hydro_core.reference.site import Site
from hydro_core.types.values import RowItem, Struct


@defines("union", "chain", growth=SemiNaive.TOGETHER, exact=True)
def union(site: Site, *inputs: Bag) -> Bag:
    """`a_t + b_t + …`, items as items of the common type; `chain` gives its first input's first."""
    parts = (
        bag if stream.item == site.output else (site.fit(x, site.output) for x in bag)
        for bag, stream in zip(inputs, site.inputs, strict=True)
    )
    return Bag(x for part in parts for x in part)


@defines("cross", growth=SemiNaive.EACH, exact=True)
def cross(site: Site, a: Bag, b: Bag) -> Bag:
    """All pairs."""
    return Bag(Struct((x, y)) for x in a for y in b)


@defines("cross_singleton", growth=SemiNaive.FIRST, exact=True)
def cross_singleton(site: Site, a: Bag, single: Bag) -> Bag:
    """Each item with the single item of the other side."""
    if len(single) > 1:
        site.fail(*MANY_SINGLES)
    return Bag(Struct((x, y)) for x in a for y in single)


@defines("zip", exact=True)
def zip_(site: Site, a: Bag, b: Bag) -> Bag:
    """Position by position, as long as both have items."""
    return Bag(Struct(pair) for pair in zip(a, b, strict=False))


@defines("zip_longest", exact=True)
def zip_longest(site: Site, a: Bag, b: Bag) -> Bag:
    """Position by position, the shorter side padded with null."""
    return Bag(Struct(pair) for pair in zip_padded(a, b))


@defines("anti_join", growth=SemiNaive.FIRST, exact=True)
def anti_join(site: Site, pos: Bag, neg: Bag) -> Bag:
    """The items of pos whose key is not in neg."""
    compared = compared_as(key_type(site.inputs[0].item, ()), site.inputs[1].item)
    return _without(pos, Columns(compared=compared), neg, Whole(compared))


@defines("difference", growth=SemiNaive.FIRST, exact=True)
def difference(site: Site, pos: Bag, neg: Bag) -> Bag:
    """The items of pos that are not in neg."""
    compared = compared_as(site.inputs[0].item, site.inputs[1].item)
    return _without(pos, Whole(compared), neg, Whole(compared))


def _without(pos: Bag, key: Columns | Whole, neg: Bag, neg_key: Whole) -> Bag:
    excluded = neg.by(neg_key)
    return Bag(x for x in pos if key(x) not in excluded)


Pairing = Callable[[Any, Any], Any]
"""The item that two make; None stands for a missing one, whose fields are null."""


def _join_growth(args: Args) -> SemiNaive:
    return SemiNaive.EACH if args["how"] == "inner" else SemiNaive.FIRST


@defines("join", growth=_join_growth, exact=True)
def join(site: Site, left: Bag, right: Bag) -> Bag:
    """The pairs of equal keys, and what `how` keeps of the items without a partner."""
    if site.args.get("where") is not None:
        return join_where(site, left, right)
    on = names(site, "on")
    key = Columns(on, compared_as(*(key_type(side.item, on) for side in site.inputs)))
    how = site.args["how"]
    if how in ("semi", "anti"):
        partners = right.by(key)
        return Bag(x for x in left if (key(x) in partners) == (how == "semi"))
    pair = _row_of(site, key) if on else _tuple_of(key)
    found = _matches(left, right, key, pair)
    if how in ("left", "outer"):
        partners = right.by(key)
        found += [pair(x, None) for x in left if key(x) not in partners]
    if how in ("right", "outer"):
        partners = left.by(key)
        found += [pair(None, y) for y in right if key(y) not in partners]
    return Bag(found)


def _matches(left: Bag, right: Bag, key: Columns, pair: Pairing) -> list[Any]:
    """The pairs of equal keys; the larger side is the one that is filed by key."""
    if len(left) <= len(right):
        partners = right.by(key)
        return [pair(x, y) for x in left for y in partners.get(key(x), ())]
    partners = left.by(key)
    return [pair(x, y) for y in right for x in partners.get(key(y), ())]


def _tuple_of(key: Columns) -> Pairing:
    """`(k, (v, w))`."""

    def pair(x: Any, y: Any) -> Struct:
        return Struct((key.common(y if x is None else x), Struct((field(x, 1), field(y, 1)))))

    return pair


def _row_of(site: Site, key: Columns) -> Pairing:
    """The key, then the left's other columns, then the right's, renamed where both have them."""
    on = key.names
    left, right = (
        [c.name for c in columns_of(side.item) if c.name not in on] for side in site.inputs
    )
    suffix = site.args["suffix"] or ""
    renamed = {name: name + suffix if name in left else name for name in right}

    def pair(x: Any, y: Any) -> RowItem:
        return RowItem(
            dict(zip(on, key.common(y if x is None else x), strict=True))
            | {name: field(x, name) for name in left}
            | {renamed[name]: field(y, name) for name in right}
        )

    return pair
