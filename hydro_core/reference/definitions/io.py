"""Where streams begin and end."""

from __future__ import annotations

from typing import Any

from hydro_core.errors import DataError, Diagnostic
from hydro_core.reference.bag import Bag
from hydro_core.reference.definitions.registry import SemiNaive, defines
from hydro_core.reference.fit import fits
from hydro_core.reference.site import Site
from hydro_core.types.values import UNFIT, RowItem, ValueProblem, conform


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
    """What reaches the output; the interpreter adds up the sinks of one name."""
    return a


@defines("null", growth=SemiNaive.TOGETHER, exact=True)
def null(site: Site, *inputs: Bag) -> Bag:
    """Nothing."""
    return Bag()
