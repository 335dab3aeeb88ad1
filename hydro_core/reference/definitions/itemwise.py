"""Definitions of row-wise operators, of unions, and of sources and sinks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest as zip_padded
from typing import Any

from hydro_core.catalog.spec import MANY_SINGLES, undeclared
from hydro_core.errors import DataError, Diagnostic
from hydro_core.functions.call import shown
from hydro_core.reference.bag import Bag, fits
from hydro_core.reference.definitions.registry import SemiNaive, defines
from hydro_core.reference.site import (
    Columns,
    Site,
    WholeItem,
    columns_of,
    compared_as,
    field,
    key_type,
    named,
)
from hydro_core.types.values import UNFIT, RowItem, Struct, ValueProblem, conform

# Sources and sinks.


@defines("source", exact=True)
def source(site: Site) -> Bag:
    """The tick's input batch."""
    found: list[Any] = []
    fit = fits(site.output)
    for position, item in enumerate(site.moment.batches.get(site.args["name"], ())):
        try:
            found.append(item if fit(item) else conform(item, site.output))
        except ValueProblem as problem:
            raise DataError(_unfit(site, position, str(problem))) from None
    return Bag(found)


def _unfit(site: Site, position: int, why: str) -> Diagnostic:
    name, tick = site.args["name"], site.moment.tick
    return Diagnostic(
        "input",
        f"item {position} of `{name}` in tick {tick} does not fit its schema {site.output}: {why}",
        site.node.span,
        site.node.op.name,
        help=UNFIT,
    )


@defines("source_iter")
def source_iter(site: Site) -> Bag:
    """The items at tick 0, nothing after."""
    return Bag(site.args["items"] if site.moment.tick == 0 else ())


@defines("tick", exact=True)
def tick(site: Site) -> Bag:
    """One row each tick: its number and its times."""
    now = site.moment
    return Bag([RowItem(tick=now.tick, start=now.start, end=now.end)])


@defines("sink", exact=True)
def sink(site: Site, a: Bag) -> Bag:
    """The input of the output; the interpreter adds up the sinks of one name."""
    return a


@defines("null", growth=SemiNaive.TOGETHER, exact=True)
def null(site: Site, *inputs: Bag) -> Bag:
    """Nothing."""
    return Bag()


# Stateless operators: `op(x + y) = op(x) + op(y)`, in the input's order.


@defines("identity", "tee", "next_stratum", growth=SemiNaive.TOGETHER, exact=True)
def identity(site: Site, a: Bag) -> Bag:
    """The items as they are."""
    return a


@defines("map", growth=SemiNaive.TOGETHER)
def map_(site: Site, a: Bag) -> Bag:
    """`f(x)` of each item; None is an item."""
    return Bag(site.call(site.args["f"], x) for x in a)


@defines("filter", growth=SemiNaive.TOGETHER, exact=True)
def filter_(site: Site, a: Bag) -> Bag:
    """The items for which `f(x)` is truthy in Python."""
    return Bag(x for x in a if site.call(site.args["f"], x))


@defines("filter_map", growth=SemiNaive.TOGETHER)
def filter_map(site: Site, a: Bag) -> Bag:
    """`f(x)` of each item, unless it is None."""
    results = (site.call(site.args["f"], x) for x in a)
    return Bag(y for y in results if y is not None)


@defines("inspect", growth=SemiNaive.TOGETHER, exact=True)
def inspect(site: Site, a: Bag) -> Bag:
    """The items as they are; `f` sees each."""
    for x in a:
        site.call(site.args["f"], x)
    return a


@defines("flat_map", growth=SemiNaive.TOGETHER)
def flat_map(site: Site, a: Bag) -> Bag:
    """The parts of `f(x)` of each item."""
    return Bag(part for x in a for part in _parts(site, site.call(site.args["f"], x)))


@defines("flatten", growth=SemiNaive.TOGETHER)
def flatten(site: Site, a: Bag) -> Bag:
    """The parts of each item."""
    return Bag(part for x in a for part in _parts(site, x))


def _parts(site: Site, whole: Any) -> Iterable[Any]:
    """The elements of an array, the fields of a tuple; null has none, as in Spark's `explode`."""
    if whole is not None and not isinstance(whole, list | Struct):
        site.fail(
            f"only arrays and tuples can be spread, not {shown(whole)}",
            "let it be a list or a tuple, or drop such items before",
        )
    return whole or ()


@defines("select", growth=SemiNaive.TOGETHER)
def select(site: Site, a: Bag) -> Bag:
    """The named columns, then the computed ones."""

    def selected(row: Any) -> RowItem:
        kept = {name: field(row, name) for name in site.args["columns"]}
        return RowItem({**kept, **_computed(site, row)})

    return Bag(map(selected, a))


@defines("with_columns", growth=SemiNaive.TOGETHER)
def with_columns(site: Site, a: Bag) -> Bag:
    """The row with columns replaced in their position, new ones last."""
    return Bag(RowItem({**_columns(site, row), **_computed(site, row)}) for row in a)


def _computed(site: Site, row: Any) -> Mapping[str, Any]:
    return {name: site.call(fn, row) for name, fn in site.args["computed"]}


def _columns(site: Site, row: Any) -> Mapping[str, Any]:
    """The row's columns by its type; of an open type, those of the row itself."""
    known = columns_of(site.inputs[0].item)
    return {c.name: field(row, c.name) for c in known} if known else dict(row or {})


@defines("rename", growth=SemiNaive.TOGETHER, exact=True)
def rename(site: Site, a: Bag) -> Bag:
    """The row with other names, each column in its position."""
    new = {old: name for name, old in site.args["renames"]}
    return Bag(
        RowItem({new.get(name, name): value for name, value in _columns(site, row).items()})
        for row in a
    )


@defines("drop", growth=SemiNaive.TOGETHER, exact=True)
def drop(site: Site, a: Bag) -> Bag:
    """The row without the named columns."""
    gone = frozenset(site.args["columns"])
    return Bag(
        RowItem({name: value for name, value in _columns(site, row).items() if name not in gone})
        for row in a
    )


@defines("partition", growth=SemiNaive.TOGETHER, exact=True)
def partition(site: Site, a: Bag) -> Mapping[str, Bag]:
    """Each item at the port that `f` names."""
    ports: dict[str, list[Any]] = {port: [] for port in site.args["ports"]}
    fn = site.args["f"]
    for x in a:
        port = site.call(fn, x)
        label = _label(port)
        if label is None or label not in ports:
            reason, cure = undeclared(ports)
            site.fail(f"{named(fn)} on {shown(x)} {reason}", cure, fn)
        ports[label].append(x)
    return {port: Bag(items) for port, items in ports.items()}


def _label(port: Any) -> str | None:
    """The name of a port; a number is written as its digits."""
    if isinstance(port, bool) or not isinstance(port, str | int):
        return None
    return str(port)


# Several streams into one.


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
    """Pairs of items with equal positions, up to the end of the shorter side."""
    return Bag(Struct(pair) for pair in zip(a, b, strict=False))


@defines("zip_longest", exact=True)
def zip_longest(site: Site, a: Bag, b: Bag) -> Bag:
    """Pairs of items with equal positions, the shorter side padded with null."""
    return Bag(Struct(pair) for pair in zip_padded(a, b))


@defines("anti_join", growth=SemiNaive.FIRST, exact=True)
def anti_join(site: Site, pos: Bag, neg: Bag) -> Bag:
    """The items of pos whose key is not in neg."""
    compared = compared_as(key_type(site.inputs[0].item, ()), site.inputs[1].item)
    return _without(pos, Columns(compared=compared), neg, WholeItem(compared))


@defines("difference", growth=SemiNaive.FIRST, exact=True)
def difference(site: Site, pos: Bag, neg: Bag) -> Bag:
    """The items of pos that are not in neg."""
    compared = compared_as(site.inputs[0].item, site.inputs[1].item)
    return _without(pos, WholeItem(compared), neg, WholeItem(compared))


def _without(pos: Bag, key: Columns | WholeItem, neg: Bag, neg_key: WholeItem) -> Bag:
    excluded = neg.by(neg_key)
    return Bag(x for x in pos if key(x) not in excluded)
