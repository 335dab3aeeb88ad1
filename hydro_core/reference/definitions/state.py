"""What reaches over ticks."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NoReturn

from hydro_core.catalog.refusals import NO_COMMAND, NO_KEYED_COMMAND, Refusal
from hydro_core.functions.call import shown
from hydro_core.reference.bag import EMPTY, Bag
from hydro_core.reference.definitions.registry import SemiNaive, defines
from hydro_core.reference.past import NodePast
from hydro_core.reference.site import Site
from hydro_core.ticks.untimed import refuse_untimed
from hydro_core.types.moments import in_utc
from hydro_core.types.values import Struct, canonical


@defines(
    "persist",
    growth=lambda args: SemiNaive.INPUT if args.get("for_") is None else SemiNaive.ANEW,
    exact=True,
)
def persist(site: Site, a: NodePast) -> Bag:
    """`Σ_{s≤t} a_s`; with `for_`, of these the rows whose time is later than the end less that."""
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
    """`(n, x)` for each x of which there are n more in pos than in neg, n not 0."""
    now, before = pos.counts(), neg.counts()
    differences = (
        (now.get(canonical(x), 0) - before.get(canonical(x), 0), x) for x in (pos + neg).distinct()
    )
    return Bag(Struct((n, x)) for n, x in differences if n)


@defines("persist_mut", exact=True)
def persist_mut(site: Site, commands: NodePast) -> Bag:
    """What is persisted after all commands so far; a delete takes every copy."""
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
