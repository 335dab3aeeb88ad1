"""Operators that only plans have: results that go on from the tick before, parts of shards."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from decimal import localcontext
from functools import reduce as fold_left
from typing import Any

from hydro_core.catalog.parts import merging
from hydro_core.catalog.spec import Aggregate, Args
from hydro_core.functions.routed import router
from hydro_core.reference.bag import EMPTY, Bag
from hydro_core.reference.keys import Columns, field, key_of
from hydro_core.reference.meanings.aggregates import DIGITS, aggregated, long_sum, mean_of
from hydro_core.reference.meanings.group import latest
from hydro_core.reference.meanings.keyed import VALUE, keyed_result
from hydro_core.reference.meanings.registry import Growth, means
from hydro_core.reference.meanings.state import changed
from hydro_core.reference.past import Past
from hydro_core.reference.site import Site
from hydro_core.types.item import LONG
from hydro_core.types.values import RowItem, Struct

Going = Callable[[Any, list[Any]], Any]
"""From what is stored of a key (None: nothing) and its new items to what is stored next."""


@means("fold_from")
def fold_from(site: Site, state: Bag, new: Bag) -> Bag:
    """`f(acc, x)` over the new items, from the state's item or `init`."""
    start = state.items[0] if state.items else site.args["init"]
    return Bag([_folded(site, start, new)])


@means("reduce_from")
def reduce_from(site: Site, state: Bag, new: Bag) -> Bag:
    """`f` over the state's item and then the new ones."""
    items = [*state.items, *new.items]
    return Bag([_reduced(site, items)]) if items else Bag()


@means("fold_keyed_from")
def fold_keyed_from(site: Site, state: Bag, new: Bag) -> Bag:
    """Every key's fold goes on; keys without new items stay."""
    key = key_of(site)
    init = site.args["init"]

    def go_on(stored: Any, items: list[Any]) -> Any:
        known = stored is not _NOTHING
        acc = _accumulator(key, stored, init) if known else init
        of = stored if known else items[0]
        return keyed_result(key, of, _folded(site, acc, _values(key, items)))

    return _by_key(key, state, new, go_on)


@means("reduce_keyed_from")
def reduce_keyed_from(site: Site, state: Bag, new: Bag) -> Bag:
    """Every key's reduction goes on; keys without new items stay."""
    key = key_of(site)

    def go_on(stored: Any, items: list[Any]) -> Any:
        there = items if stored is _NOTHING else [stored, *items]
        result = _reduced(site, _values(key, there))
        if not key.names:
            return Struct((field(there[0], 0), result))
        return RowItem({**result, **{name: field(there[0], name) for name in key.names}})

    return _by_key(key, state, new, go_on)


@means("latest_from", exact=True)
def latest_from(site: Site, state: Bag, new: Bag) -> Bag:
    """Of each key the latest of the state's row and the new ones."""
    found = latest(site, state + new)
    return found if isinstance(found, Bag) else Bag()


@means("aggregate_from")
def aggregate_from(site: Site, state: Bag, new: Bag) -> Bag:
    """The state's aggregates and those of the new rows, merged."""
    key = key_of(site)
    merging = replace(site, node=site.node.with_(args=_merging(site.args)))

    def go_on(stored: Any, items: list[Any]) -> Any:
        if stored is _NOTHING:
            result = aggregated(site, items)
        else:
            # item by item: the sum of the new ones alone may be beyond 64 bits, the whole not
            result = aggregated(merging, [stored, *(_as_result(site, x) for x in items)])
        of = next(iter(items), None) if stored is _NOTHING else stored
        return RowItem({**{name: field(of, name) for name in key.names}, **result})

    if not key.names:
        return Bag([go_on(state.items[0] if state.items else _NOTHING, list(new.items))])
    return _by_key(key, state, new, go_on)


@means("aggregate_moved", exact=True)
def aggregate_moved(site: Site, state: Bag, came: Bag, left: Bag) -> Bag:
    """Counts and totals with those of what came and without those of what left."""
    key = key_of(site)
    names = [name for name, _ in site.args["aggregates"]]
    rows = names[0]

    def moved(stored: Any, new: list[Any], gone: list[Any]) -> RowItem:
        of = next(iter((*new, *gone)), stored)
        plus, minus = aggregated(site, new), aggregated(site, gone)
        before = {n: 0 if stored is None else field(stored, n) for n in names}
        with localcontext(prec=DIGITS):
            now = {n: before[n] + plus[n] - minus[n] for n in names}
        return RowItem({**{n: field(of, n) for n in key.names}, **now})

    if not key.names:
        return Bag([moved(next(iter(state), None), list(came), list(left))])
    stored = {key(row): row for row in state}
    new, gone = came.by(key), left.by(key)
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
    parts = [field(row, part) for part in aggregate.arguments if isinstance(part, str)]
    if aggregate.function == "any_value":
        return parts[0]
    total, count = parts
    if not count or total is None:
        return None
    result = site.args["schema"].column(name)
    if aggregate.function == "avg":
        return mean_of(total, count, result)
    return long_sum(site, int(total)) if result == LONG else total


@means("of_shard", growth=Growth.TOGETHER, exact=True)
def of_shard(site: Site, a: Bag) -> Bag:
    """The items that are routed to one shard."""
    args = site.args
    shard = router(args["by"], args["f"], site.inputs[0].item, args["shards"])
    return Bag(x for x in a if shard(x) == args["shard"])


@means("leaving", exact=True)
def leaving(site: Site, a: Past) -> Bag:
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


def _as_result(site: Site, row: Any) -> RowItem:
    """The aggregates of a single row."""
    return RowItem({name: _of_one(site, a, row) for name, a in site.args["aggregates"]})


def _of_one(site: Site, aggregate: Aggregate, row: Any) -> Any:
    if not aggregate.arguments:
        return 1
    of = aggregate.arguments[0]
    value = field(row, of) if isinstance(of, str) else site.call(of, row)
    match aggregate.function:
        case "count":
            return int(value is not None)
        case "count_if":
            return int(value is True)
        case _:
            return value


def _merging(args: Args) -> Args:
    """The arguments of the aggregate that merges results."""
    return args.with_(aggregates=merging(args["aggregates"]))


_NOTHING: Any = object()


def _by_key(key: Columns, state: Bag, new: Bag, go_on: Going) -> Bag:
    """The state with the keys of the new items gone on; a second item of a key is an error of the
    plan.
    """
    stored: dict[Hashable, Any] = {}
    for item in state.items:
        if stored.setdefault(key(item), item) is not item:
            raise ValueError(f"the state has the key of {item!r} twice")
    for found, items in new.by(key).items():
        stored[found] = go_on(stored.get(found, _NOTHING), items)
    return Bag(stored.values())


def _accumulator(key: Columns, stored: Any, init: Any) -> Any:
    """What the fold made so far, out of the item that is stored of it."""
    if not key.names:
        return field(stored, 1)
    if isinstance(init, dict):
        return RowItem({n: v for n, v in dict.items(stored) if n not in key.names})
    return field(stored, VALUE)


def _folded(site: Site, start: Any, items: Iterable[Any]) -> Any:
    fn = site.args["f"]
    return fold_left(lambda acc, x: site.accumulate(fn, acc, x), items, start)


def _reduced(site: Site, items: Iterable[Any]) -> Any:
    fn = site.args["f"]
    return fold_left(lambda x, y: site.combine(fn, x, y), items)


def _values(key: Columns, items: list[Any]) -> list[Any]:
    return items if key.names else [field(x, 1) for x in items]
