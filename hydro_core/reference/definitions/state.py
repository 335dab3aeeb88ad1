"""Definitions of operators that read earlier ticks, and of those that occur in plans only."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NoReturn

from hydro_core.catalog.spec import NO_COMMAND, NO_KEYED_COMMAND, Aggregate, Refusal
from hydro_core.functions.call import CallAttempt, router, shown
from hydro_core.reference.bag import EMPTY, Bag, NodePast
from hydro_core.reference.definitions.group import aggregate, long_sum, mean_of, value_of
from hydro_core.reference.definitions.registry import (
    OperatorOutput,
    SemiNaive,
    defines,
    definition_of,
)
from hydro_core.reference.site import Site, field
from hydro_core.ticks.untimed import refuse_untimed
from hydro_core.types.item import LONG
from hydro_core.types.values import RowItem, Struct, canonical, in_utc

# Operators over ticks.


@defines(
    "persist",
    growth=lambda args: SemiNaive.INPUT if args.get("for_") is None else SemiNaive.ANEW,
    exact=True,
)
def persist(site: Site, a: NodePast) -> Bag:
    """`Σ_{s≤t} a_s`; with `for_`, only rows whose time is later than the tick's end minus
    `for_`.
    """
    everything = a.earlier + a.now
    if site.args.get("for_") is None:
        return everything
    end, column = site.moment.end, site.args["by"]
    if end is None:
        raise refuse_untimed(site.node, site.moment.tick)
    return Bag(row for row in everything if _stays(row, column, end, site.args["for_"]))


def _stays(row: Any, column: str, end: datetime, time: timedelta) -> bool:
    at = None if row is None else row[column]
    return at is not None and end - in_utc(at) < time


@defines("old", exact=True)
def old(site: Site, a: NodePast) -> Bag:
    """`Σ_{s<t} a_s`."""
    return a.earlier + EMPTY


@defines("window", growth=lambda args: SemiNaive.INPUT if args["n"] else SemiNaive.ANEW, exact=True)
def window(site: Site, a: NodePast) -> Bag:
    """`Σ_{t−n<s≤t} a_s`, which is empty for n = 0."""
    return a.recent + a.now if site.args["n"] else Bag()


@defines("prev", exact=True)
def prev(site: Site, a: NodePast) -> Bag:
    """`a_{t−1}`."""
    return a.before


@defines("delta", exact=True)
def delta(site: Site, a: NodePast) -> Bag:
    """`a_t ∸ a_{t−1}`."""
    return a.now.monus(a.before)


@defines("changes", exact=True)
def changes(site: Site, a: NodePast) -> Bag:
    """`(n, x)` where the number of copies of x has changed by n."""
    return changed(a.now, a.before)


def changed(pos: Bag, neg: Bag) -> Bag:
    """`(n, x)` for each x with n more copies in pos than in neg, n not 0."""
    now, before = pos.counts(), neg.counts()
    differences = (
        (now.get(canonical(x), 0) - before.get(canonical(x), 0), x) for x in (pos + neg).distinct()
    )
    return Bag(Struct((n, x)) for n, x in differences if n)


@defines("persist_mut", exact=True)
def persist_mut(site: Site, commands: NodePast) -> Bag:
    """The items that are persisted after all commands so far; a delete removes every copy."""
    state: dict[Any, list[Any]] = {}
    for x in commands.result_before:
        state.setdefault(canonical(x), []).append(x)
    for command in commands.now:
        match command:
            case ("persist", x):
                state.setdefault(canonical(x), []).append(x)
            case ("delete", x):
                state.pop(canonical(x), None)
            case _:
                _refuse(site, command, NO_COMMAND)
    return Bag(x for weighted in state.values() for x in weighted)


@defines("persist_mut_keyed", exact=True)
def persist_mut_keyed(site: Site, commands: NodePast) -> Bag:
    """The value of each key after all commands so far."""
    state = {canonical(pair[0]): pair for pair in commands.result_before}
    for command in commands.now:
        match command:
            case ("persist", k, v):
                state[canonical(k)] = Struct((k, v))
            case ("delete", k, _):
                state.pop(canonical(k), None)
            case _:
                _refuse(site, command, NO_KEYED_COMMAND)
    return Bag(state.values())


def _refuse(site: Site, command: Any, known: Refusal) -> NoReturn:
    site.fail(f"{shown(command)} {known.reason}", known.cure)


# Operators that occur in plans only: running results, parts of shards.


@defines("running_fold", "running_reduce", "running_fold_keyed", "running_reduce_keyed")
@defines("running_aggregate")
@defines("running_latest", "running_top", exact=True)
def running(site: Site, a: NodePast) -> OperatorOutput:
    """The operator over all items so far; this definition ignores stored results."""
    return definition_of(site.node.op.stands_for).function(site, a.earlier + a.now)


@defines("moving_aggregate", exact=True)
def moving_aggregate(site: Site, a: NodePast) -> Bag:
    """The aggregate over the items of the input; this definition ignores stored results."""
    return aggregate(site, a.now)


@defines("aggregate_result")
def aggregate_result(site: Site, a: Bag) -> Bag:
    """The results that are computed from the parts of a row."""
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
    """The other items, each with the function that fails on it and the reason."""
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
