"""Item by item: `op(x + y) = op(x) + op(y)`, in the input's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hydro_core.catalog.refusals import undeclared
from hydro_core.functions.call import shown
from hydro_core.reference.bag import Bag
from hydro_core.reference.definitions.registry import SemiNaive, defines
from hydro_core.reference.keys import columns_of, field
from hydro_core.reference.site import Site, named
from hydro_core.types.values import RowItem, Struct


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
    """The items of which `f(x)` is true as Python sees it."""
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
    """The row with columns replaced in their place, new ones last."""
    return Bag(RowItem({**_columns(site, row), **_computed(site, row)}) for row in a)


def _computed(site: Site, row: Any) -> Mapping[str, Any]:
    return {name: site.call(fn, row) for name, fn in site.args["computed"]}


def _columns(site: Site, row: Any) -> Mapping[str, Any]:
    """The row's columns; where nothing is known of its type, those that it has."""
    known = columns_of(site.inputs[0].item)
    return {c.name: field(row, c.name) for c in known} if known else dict(row or {})


@defines("rename", growth=SemiNaive.TOGETHER, exact=True)
def rename(site: Site, a: Bag) -> Bag:
    """The row with other names, each column in its place."""
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
    """The name of a port: a number stands for its digits."""
    if isinstance(port, bool) or not isinstance(port, str | int):
        return None
    return str(port)
