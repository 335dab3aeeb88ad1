"""Operators that only plans have: running results, parts of shards."""

from __future__ import annotations

from typing import Any

from hydro_core.catalog.spec import Aggregate
from hydro_core.functions.call import CallAttempt, router
from hydro_core.reference.bag import Bag
from hydro_core.reference.definitions.aggregates import long_sum, mean_of, value_of
from hydro_core.reference.definitions.group import aggregate
from hydro_core.reference.definitions.registry import (
    OperatorOutput,
    SemiNaive,
    defines,
    definition_of,
)
from hydro_core.reference.keys import field
from hydro_core.reference.past import NodePast
from hydro_core.reference.site import Site
from hydro_core.types.item import LONG
from hydro_core.types.values import RowItem


@defines("running_fold", "running_reduce", "running_fold_keyed", "running_reduce_keyed")
@defines("running_aggregate")
@defines("running_latest", "running_top", exact=True)
def running(site: Site, a: NodePast) -> OperatorOutput:
    """The operator over all items so far, whatever is stored of its result elsewhere."""
    return definition_of(site.node.op.stands_for).function(site, a.earlier + a.now)


@defines("moving_aggregate", exact=True)
def moving_aggregate(site: Site, a: NodePast) -> Bag:
    """The aggregate of what is there, whatever is stored of its result elsewhere."""
    return aggregate(site, a.now)


@defines("aggregate_result")
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


@defines("of_shard", growth=SemiNaive.TOGETHER, exact=True)
def of_shard(site: Site, a: Bag) -> Bag:
    """The items that are routed to one shard."""
    args = site.args
    shard = router(args["by"], args["f"], site.inputs[0].item, args["shards"])
    return Bag(x for x in a if shard(x) == args["shard"])


@defines("fitting", growth=SemiNaive.TOGETHER, exact=True)
def fitting(site: Site, a: Bag) -> Bag:
    """The items on which no function fails."""
    attempt = CallAttempt.of(site.args, site.inputs[0].item)
    return Bag(x for x in a if attempt.on(x) is None)


@defines("failing", growth=SemiNaive.TOGETHER)
def failing(site: Site, a: Bag) -> Bag:
    """The other items, each with which function fails on it and why."""
    attempt = CallAttempt.of(site.args, site.inputs[0].item)
    found = ((x, failed) for x in a if (failed := attempt.on(x)) is not None)
    return Bag(
        RowItem(
            source=site.args["source"],
            place=site.args["place"],
            reason=failed.reason,
            row=attempt.row(x),
        )
        for x, failed in found
    )
