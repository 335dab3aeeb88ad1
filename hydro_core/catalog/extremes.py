"""Results that are the least or the greatest value of a column, and the rows that have them.

Of all rows those decide that have it. Of a result that is stored, whose rows change by key, these
are among the rows of the keys that change, or the first by this column of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.classes import OpClass, OrderedByKey
from hydro_core.catalog.spec import Args
from hydro_core.catalog.variants import Places


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
    if not isinstance(cls, OrderedByKey) or cls.gives is not Places.FIRST or cls.keyed:
        return None
    order = args.get("order")
    if args.get("by") or not args.get("descending") or not isinstance(order, tuple) or not order:
        return None
    return ExtremeValue(order[0], greatest=True, count=args["n"]) if args["n"] > 0 else None
