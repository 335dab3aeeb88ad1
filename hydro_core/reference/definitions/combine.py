"""Several streams into one."""

from __future__ import annotations

from itertools import zip_longest as zip_padded

from hydro_core.catalog.refusals import MANY_SINGLES
from hydro_core.reference.bag import Bag
from hydro_core.reference.definitions.registry import SemiNaive, defines
from hydro_core.reference.keys import Columns, Whole, compared_as, key_type
from hydro_core.reference.site import Site
from hydro_core.types.values import Struct


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
