"""Results that are the least or the greatest value of a column, and the rows that have them.

Of all rows those decide that have it. Of a result that is stored, whose rows change by key, these
are among the rows of the keys that change, or the first by this column of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.classes import (
    ByKey,
    Ends,
    Linear,
    Matching,
    OpClass,
    OrderedByKey,
    OverTime,
    PerItem,
    PerKey,
    PerPosition,
    Product,
    Projection,
    Running,
)
from hydro_core.catalog.spec import Args
from hydro_core.catalog.variants import Compares, Gives, Meets, Places


class WithExtremes(Enum):
    """What an operator does to rows with an extreme."""

    VALUE = "gives the values of one or several of everything"
    FIRST = "gives the first rows of everything"
    PAIRS = "gives of two inputs the items with equal keys"
    PASSES = "gives of one input items, or columns of theirs"
    STORED = "stores a result by key"
    OTHER = "does something else"


GIVE_FEW = frozenset({WithExtremes.FIRST, WithExtremes.PAIRS})
"""What gives rows with extremes alone, where it is known that it looks at them."""


@dataclass(frozen=True, slots=True)
class ExtremeValue:
    """The least, or the greatest, value of a column."""

    column: str
    greatest: bool
    count: int = 1
    """Rows with the first so many values are wanted."""


def extremes_of(args: Args) -> Mapping[str, ExtremeValue] | None:
    """What stands in each column of an aggregate of everything.

    None where not all of that are extremes of columns, or it has results by key.
    """
    if args.get("by") or not args.get("aggregates"):
        return None
    found = {}
    for name, aggregate in args["aggregates"]:
        extreme = AGGREGATES[aggregate.function].extreme
        if not extreme or not all(isinstance(one, str) for one in aggregate.arguments):
            return None
        [column] = aggregate.arguments
        found[name] = ExtremeValue(column, extreme == "greatest")
    return found


def first_of(cls: OpClass, args: Args) -> ExtremeValue | None:
    """By which column the first rows of everything have the greatest values.

    None where an operator gives others. Where the order ascends, rows without a value come first.
    """
    if with_extremes(cls) is not WithExtremes.FIRST:
        return None
    order = args.get("order")
    if args.get("by") or not args.get("descending") or not isinstance(order, tuple) or not order:
        return None
    return ExtremeValue(order[0], greatest=True, count=args["n"]) if args["n"] > 0 else None


def with_extremes(cls: OpClass) -> WithExtremes:
    """What an operator does to rows with an extreme, as far as its class says."""
    match cls:
        case ByKey(keyed=False):
            return WithExtremes.VALUE
        case OrderedByKey(Places.FIRST, keyed=False):
            return WithExtremes.FIRST
        case Product(Meets.KEY, keeps) if not keeps:
            return WithExtremes.PAIRS
        case Matching(wanted=True, compares=Compares.KEYS):
            return WithExtremes.PAIRS
        case Projection() | PerItem(Gives.SAME | Gives.SOME):
            return WithExtremes.PASSES
        case Running(ByKey(keyed=True)):
            return WithExtremes.STORED
        case Ends() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return WithExtremes.OTHER
        case _:
            assert_never(cls)
