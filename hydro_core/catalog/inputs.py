"""Inputs and arguments that many operators have, and what a join keeps of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hydro_core.catalog.spec import Arg, Barrier, Port, option
from hydro_core.types.stream import Order

LINEAR = (Port("in", linear=True, aliases=("0",)),)
WHOLE = (Port("in", barrier=Barrier.STRATUM, aliases=("0",)),)
ORDERED = (Port("in", barrier=Barrier.STRATUM, needs=Order.TOTAL, aliases=("0",)),)

BY = option("by", "columns", "the key: a column of the rows, or a list of columns")
INIT = Arg("init", "value", "the accumulator over no item", required=True)
STEP = Arg(
    "f", "function", "the next accumulator, of the one before and an item", required=True, leading=1
)
KEPT: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        "inner": frozenset(),
        "left": frozenset({0}),
        "right": frozenset({1}),
        "outer": frozenset({0, 1}),
        "semi": frozenset(),
        "anti": frozenset(),
    }
)
"""The sides of a join, by its `how`, of which items without a match stay, padded."""


def sides_of_key(
    on: tuple[str, ...] | tuple[tuple[str, str], ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of a join's key columns on the left, and on the right.

    >>> sides_of_key(("k",)), sides_of_key((("id", "ref"),))
    ((('k',), ('k',)), (('id',), ('ref',)))
    """
    pairs = [(name, name) if isinstance(name, str) else name for name in on]
    return tuple(left for left, _ in pairs), tuple(right for _, right in pairs)


COMPUTED = Arg("computed", "computed", "columns by functions of the row that came in", default=())
