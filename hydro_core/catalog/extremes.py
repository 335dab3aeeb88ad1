"""Results that are the least or the greatest value of a column.

Of all rows those decide that have it. Of a result that is stored, whose rows change by key, these
are among the rows of the keys that change, or the first by this column of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.spec import Args


@dataclass(frozen=True, slots=True)
class ExtremeValue:
    """The least, or the greatest, value of a column."""

    column: str
    greatest: bool


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
