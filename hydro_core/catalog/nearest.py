"""`join_asof`: each row with the row of its key that is nearest in time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hydro_core.catalog import lineage_rules
from hydro_core.catalog.classes import AsOf
from hydro_core.catalog.column_rules import joined_rows
from hydro_core.catalog.spec import (
    Args,
    Barrier,
    Example,
    Never,
    OnKey,
    OpSpec,
    OrderRule,
    Port,
    TypeProblem,
    option,
)
from hydro_core.catalog.type_rules import Types, columns_of
from hydro_core.types.common import common_type
from hydro_core.types.item import (
    DATE,
    DOUBLE,
    FLOATS,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ItemType,
    Scalar,
    Unknown,
    is_numeric,
)

TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def place_type(left: ItemType, right: ItemType) -> ItemType | None:
    """The type in which two columns are compared by their order; None where there is none.

    A date beside a timestamp is its midnight.

    >>> str(place_type(DATE, TIMESTAMP))
    'timestamp'
    """
    if DATE in (left, right) and left in TIMES and right in TIMES:
        return right if left == DATE else left
    found = common_type(left, right)
    if isinstance(found, Scalar) and found.name in FLOATS:
        return DOUBLE
    ordered = isinstance(found, Scalar | Unknown) or (found is not None and is_numeric(found))
    return found if ordered else None


def joined_asof(args: Args, types: Types) -> ItemType:
    """The columns of `join`, once both sides have what is compared."""
    (at,), (since,) = (
        columns_of(item, (args[name],), name)
        for item, name in zip(types, ("at", "since"), strict=True)
    )
    found = place_type(at.type, since.type)
    if found is None:
        raise TypeProblem(
            f"{at.name!r} is {at.type} and {since.name!r} on the right is {since.type}: "
            "neither is before the other",
            "compare times with times, or numbers with numbers",
        )
    _check_distance(args, found)
    return joined_rows(args, *types)


def _check_distance(args: Args, item: ItemType) -> None:
    """Refuses distances between what has none, or of another kind."""
    within, nearest = args["within"], args["direction"] == "nearest"
    if isinstance(item, Unknown) or (within is None and not nearest):
        return
    if item not in TIMES and not is_numeric(item):
        what = 'direction="nearest"' if nearest else "within"
        raise TypeProblem(
            f"`{what}` needs distances, and there are none between items of type {item}",
            "take a time or a number, or go `backward` or `forward`",
        )
    if within is not None and (item in TIMES) != isinstance(within, timedelta):
        wanted = "`within=timedelta(hours=1)`" if item in TIMES else "a number, as in `within=5`"
        raise TypeProblem(f"`within` is no distance between items of type {item}", f"give {wanted}")


def _sides(args: Args) -> Mapping[str, Any]:
    keyed = args["on"] is not None
    return {"cls": AsOf(keyed), "partition": OnKey() if keyed else Never(_ONE_KEY)}


_ONE_KEY = "without `on` every row of one side may be the nearest of every row of the other"

JOIN_ASOF = OpSpec(
    name="join_asof",
    family="combine",
    cls=AsOf(),
    summary="each left row with the one right row of its key whose `since` is nearest to its `at`",
    inputs=(
        Port("0", linear=True),
        Port("1", barrier=Barrier.STRATUM, keyword="right"),
    ),
    args=(
        option(
            "on",
            "key",
            "a column of both rows, a list, or `{left: right}` where names differ; "
            "without it all rows have one key",
        ),
        option("at", "name", "the left's time, or number", default="at"),
        option("since", "name", "that of the right", default="since"),
        option(
            "direction",
            "choice",
            "`backward` finds the greatest `since` that is not after `at`, `forward` the "
            "least that is not before it, `nearest` the one of least distance, backward on a tie; "
            "of several rows with that `since` the greatest",
            default="backward",
            choices=("backward", "forward", "nearest"),
        ),
        option(
            "within",
            "distance",
            "how far it may be, this distance included: a timedelta, or a number",
        ),
        option(
            "how",
            "choice",
            "whether rows that find none stay, padded",
            default="left",
            choices=("left", "inner"),
        ),
        option("suffix", "name", "is added to the right's columns whose names the left has too"),
    ),
    result=joined_asof,
    refine=_sides,
    monotone=False,
    order=OrderRule.LOSES,
    partition=OnKey(),
    lineage=lineage_rules.joined,
    example=Example(
        'trades -> join_asof(right=quotes, on="k") -> out',
        (
            {
                "trades": [{"k": "x", "at": 5}, {"k": "x", "at": 1}],
                "quotes": [{"k": "x", "since": 2, "price": 10}, {"k": "x", "since": 5, "price": 9}],
            },
        ),
        (
            {
                "out": [
                    {"k": "x", "at": 1, "since": None, "price": None},
                    {"k": "x", "at": 5, "since": 5, "price": 9},
                ]
            },
        ),
        {"trades": "k string, at long", "quotes": "k string, since long, price long"},
    ),
)
