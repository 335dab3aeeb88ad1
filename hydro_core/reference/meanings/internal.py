"""Operators that only plans have: running results, parts of shards."""

from __future__ import annotations

from decimal import localcontext
from typing import Any

from hydro_core.catalog.spec import Aggregate
from hydro_core.functions.routed import router
from hydro_core.reference.bag import EMPTY, Bag
from hydro_core.reference.keys import field, key_of
from hydro_core.reference.meanings.aggregates import DIGITS, aggregated, long_sum, mean_of, value_of
from hydro_core.reference.meanings.registry import SemiNaive, meaning_of, means
from hydro_core.reference.meanings.state import changed
from hydro_core.reference.past import NodePast
from hydro_core.reference.site import Site
from hydro_core.types.item import LONG
from hydro_core.types.values import RowItem


@means("running_fold", "running_reduce", "running_fold_keyed", "running_reduce_keyed")
@means("running_aggregate")
@means("running_latest", exact=True)
def running(site: Site, a: NodePast) -> Bag:
    """The operator over all items so far, whatever is stored of its result elsewhere."""
    found = meaning_of(site.node.op.stands_for).function(site, a.earlier + a.now)
    return found if isinstance(found, Bag) else Bag()


@means("moving_aggregate", exact=True)
def moving_aggregate(site: Site, came: NodePast, left: Bag) -> Bag:
    """Counts and totals with those of what came and without those of what left."""
    key = key_of(site)
    names = [name for name, _ in site.args["aggregates"]]
    rows = names[0]

    def moved(stored: Any, new: list[Any], gone: list[Any]) -> RowItem:
        of = next(iter((*new, *gone)), stored)
        plus, minus = aggregated(site, new), aggregated(site, gone)
        known = {n: 0 if stored is None else field(stored, n) for n in names}
        with localcontext(prec=DIGITS):
            now = {n: known[n] + plus[n] - minus[n] for n in names}
        return RowItem({**{n: field(of, n) for n in key.names}, **now})

    before = came.result_before
    if not key.names:
        return Bag([moved(next(iter(before), None), list(came.now), list(left))])
    stored = {key(row): row for row in before}
    new, gone = came.now.by(key), left.by(key)
    for found in dict.fromkeys((*new, *gone)):
        stored[found] = moved(stored.get(found), new.get(found, []), gone.get(found, []))
    return Bag(row for row in stored.values() if field(row, rows))


@means("aggregate_result")
def aggregate_result(site: Site, a: Bag) -> Bag:
    """The results that the parts of a row make."""
    return Bag(_result(site, row) for row in a)


def _result(site: Site, row: Any) -> RowItem:
    keys = {name: field(row, name) for name in site.args["by"] or ()}
    made = {name: _made(site, name, a, row) for name, a in site.args["aggregates"]}
    return RowItem({**keys, **made})


def _made(site: Site, name: str, aggregate: Aggregate, row: Any) -> Any:
    parts = [value_of(site, argument, row) for argument in aggregate.arguments]
    if aggregate.function == "any_value":
        return parts[0]
    total, count = parts
    if not count or total is None:
        return None
    result = site.args["schema"].column(name)
    if aggregate.function == "avg":
        return mean_of(total, count, result)
    return long_sum(site, int(total)) if result == LONG else total


@means("of_shard", growth=SemiNaive.TOGETHER, exact=True)
def of_shard(site: Site, a: Bag) -> Bag:
    """The items that are routed to one shard."""
    args = site.args
    shard = router(args["by"], args["f"], site.inputs[0].item, args["shards"])
    return Bag(x for x in a if shard(x) == args["shard"])


@means("leaving", exact=True)
def leaving(site: Site, a: NodePast) -> Bag:
    """`a_{t−n}`."""
    return a.oldest


@means("minus", exact=True)
def minus(site: Site, pos: Bag, neg: Bag) -> Bag:
    """`a ∸ b`."""
    return pos.monus(neg)


@means("changes_between", exact=True)
def changes_between(site: Site, pos: Bag, neg: Bag) -> Bag:
    """`(n, x)` where there are n more copies of x in pos than in neg."""
    return changed(pos, neg)


@means("counted", exact=True)
def counted(site: Site, a: Bag) -> Bag:
    """`(n, x)` where there are n copies of x."""
    return changed(a, EMPTY)
