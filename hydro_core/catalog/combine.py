"""Operators with several inputs: unions, differences, and joins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from hydro_core.catalog import column_rules, lineage_rules, type_rules
from hydro_core.catalog.classes import (
    AsOf,
    KeyMatch,
    MatchCondition,
    PairedItems,
    Places,
    PositionalOrder,
    Product,
    Sum,
)
from hydro_core.catalog.column_rules import joined_rows
from hydro_core.catalog.spec import (
    KEPT,
    Args,
    Barrier,
    Example,
    FailureMode,
    Never,
    OnAnyField,
    OnKey,
    OpSpec,
    OrderRule,
    Port,
    Replicated,
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
    Order,
    Scalar,
    Unknown,
    is_numeric,
)

# Operators that combine streams.


_AB = {"a": "long", "b": "long"}
_PAIRS = {"a": "(string, long)", "b": "(string, long)"}


def _right(*, barrier: Barrier = Barrier.NONE, linear: bool = False) -> Port:
    return Port("1", barrier=barrier, linear=linear, keyword="right")


_combining = partial(OpSpec, family="combine")

UNION = _combining(
    name="union",
    cls=Sum(),
    summary="`a_t + b_t + …`",
    inputs=(Port("in", linear=True),),
    variadic=True,
    result=type_rules.united,
    order=OrderRule.LOSES,
    example=Example("a -> union(b) -> out", ({"a": [1], "b": [1, 2]},), ({"out": [1, 1, 2]},), _AB),
)

CHAIN = _combining(
    name="chain",
    cls=Sum(),
    summary="`a_t`, then `b_t`",
    inputs=(Port("0", linear=True), _right(linear=True)),
    result=type_rules.united,
    order=OrderRule.KEEPS_IF_ALL,
    example=Example(
        "first = a -> sort(); then = b -> sort(); first -> chain(right=then) -> out",
        ({"a": [2, 1], "b": [0]},),
        ({"out": [1, 2, 0]},),
        _AB,
    ),
)

CROSS = _combining(
    name="cross",
    cls=Product(PairedItems.ALL),
    summary="all pairs",
    inputs=(Port("0", linear=True), _right(linear=True)),
    result=type_rules.paired,
    order=OrderRule.LOSES,
    partition=Never("every item of one side meets every item of the other"),
    keeps_single=True,
    lineage=lineage_rules.pair_of_inputs,
    example=Example(
        "a -> cross(right=b) -> out",
        ({"a": [1, 2], "b": [3]},),
        ({"out": [[1, 3], [2, 3]]},),
        _AB,
    ),
)

CROSS_SINGLETON = _combining(
    name="cross_singleton",
    cls=Product(PairedItems.SINGLE),
    summary="each item with the single item of the other side; "
    "a second one fails the tick, none gives nothing",
    inputs=(
        Port("input", linear=True, aliases=("0",), elided=True),
        Port("single", barrier=Barrier.STRATUM, keyword="single"),
    ),
    result=type_rules.paired,
    monotone=False,
    fails=FailureMode.ON_ITEMS,
    partition=Replicated("single"),
    keeps_single=True,
    lineage=lineage_rules.pair_of_inputs,
    example=Example(
        "a -> cross_singleton(single=b) -> out",
        ({"a": [1, 2], "b": [7]}, {"a": [1], "b": []}),
        ({"out": [[1, 7], [2, 7]]}, {"out": []}),
        _AB,
    ),
)


def _join_sides(args: Args) -> Mapping[str, Any]:
    """A side is linear unless its items decide on padding or are only matched.

    A padded row needs the other side complete; with a condition, it needs all pairs.
    """
    how, condition = args["how"], args.get("where")
    kept, asked = KEPT[how], how in ("semi", "anti")
    keyless = condition is not None and args["on"] is None
    waits = {True: Barrier.STRATUM, False: Barrier.NONE}
    alone = 0 in kept or how == "anti"
    left = Port(
        "0", linear=1 not in kept, barrier=waits[1 in kept or (alone and condition is not None)]
    )
    right = _right(linear=not asked and 0 not in kept, barrier=waits[alone])
    matching = KeyMatch(how == "semi", MatchCondition.NOTHING if keyless else MatchCondition.KEYS)
    return {
        "cls": matching
        if asked
        else Product(PairedItems.ALL if keyless else PairedItems.KEY, kept),
        "inputs": (left, right),
        "monotone": how in ("inner", "semi"),
        "partition": Never(_ALL_PAIRS) if keyless else OnKey(),
    }


_ALL_PAIRS = "without `on` the condition judges every row of one side with every row of the other"


JOIN = _combining(
    name="join",
    cls=Product(PairedItems.KEY),
    summary="equi-join on the first field of pairs, or with `on` on columns of rows",
    inputs=(Port("0", linear=True), _right(linear=True)),
    args=(
        option(
            "on",
            "key",
            "a column of both rows, a list, or `{left: right}` where names differ, of "
            "which the left's stay; without it items are pairs (key, value)",
        ),
        option(
            "how",
            "choice",
            "what becomes of items that find no other",
            default="inner",
            choices=tuple(KEPT),
        ),
        option("suffix", "name", "is added to the right's columns whose names the left has too"),
        option(
            "where",
            "condition",
            "a condition over both rows, without which no pair matches: true, false or "
            "null; without `on` it judges all pairs of rows",
        ),
    ),
    result=column_rules.joined,
    refine=_join_sides,
    order=OrderRule.LOSES,
    partition=OnKey(),
    lineage=lineage_rules.joined,
    example=Example(
        "a -> join(right=b) -> out",
        ({"a": [["x", 1], ["y", 2]], "b": [["x", 3], ["x", 4]]},),
        ({"out": [["x", [1, 3]], ["x", [1, 4]]]},),
        _PAIRS,
    ),
)


def _zip(name: str, places: Places, summary: str, program: str, gives: list[Any]) -> OpSpec:
    needs = Order.TOTAL
    return OpSpec(
        name=name,
        family="combine",
        cls=PositionalOrder(places),
        summary=summary,
        inputs=(
            Port("0", barrier=Barrier.STRATUM, needs=needs),
            Port("1", barrier=Barrier.STRATUM, needs=needs, keyword="right"),
        ),
        result=type_rules.paired,
        monotone=False,
        order=OrderRule.GIVES,
        partition=Never("positions are counted over the whole stream"),
        keeps_single=True,
        lineage=lineage_rules.padded_pair
        if places is Places.PADDED_PAIRS
        else lineage_rules.pair_of_inputs,
        example=Example(program, ({"a": [2, 1], "b": [3]},), ({"out": gives},), _AB),
    )


ZIP = _zip(
    "zip",
    Places.PAIRS,
    "pairs of the items at equal positions",
    "x = a -> sort(); y = b -> sort(); x -> zip(right=y) -> out",
    [[1, 3]],
)
ZIP_LONGEST = _zip(
    "zip_longest",
    Places.PADDED_PAIRS,
    "pairs of the items at equal positions, null where one side has ended",
    "x = a -> sort(); y = b -> sort(); x -> zip_longest(right=y) -> out",
    [[1, 3], [2, None]],
)

ANTI_JOIN = _combining(
    name="anti_join",
    cls=KeyMatch(wanted=False, compares=MatchCondition.BARE_KEYS),
    summary="pos items whose key is not in neg; duplicates of pos are kept",
    inputs=(Port("pos", linear=True), Port("neg", barrier=Barrier.STRATUM, keyword="neg")),
    result=type_rules.without_keys,
    monotone=False,
    partition=OnKey(at=(("0",), ())),
    lineage=lineage_rules.of_first,
    example=Example(
        "a -> anti_join(neg=b) -> out",
        ({"a": [["x", 1], ["y", 2], ["y", 2]], "b": ["x"]},),
        ({"out": [["y", 2], ["y", 2]]},),
        {"a": "(string, long)", "b": "string"},
    ),
)

DIFFERENCE = _combining(
    name="difference",
    cls=KeyMatch(wanted=False, compares=MatchCondition.ITEMS),
    summary="pos items that are not in neg; duplicates of pos are kept",
    inputs=(Port("pos", linear=True), Port("neg", barrier=Barrier.STRATUM, keyword="neg")),
    result=type_rules.subtracted,
    monotone=False,
    partition=OnAnyField(),
    lineage=lineage_rules.of_first,
    example=Example(
        "a -> difference(neg=b) -> out",
        ({"a": [1, 2, 2], "b": [1]},),
        ({"out": [2, 2]},),
        _AB,
    ),
)


# `join_asof`: each row with the row of its key that is nearest in time.


TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def place_type(left: ItemType, right: ItemType) -> ItemType | None:
    """The type in which two columns are compared by their order; None if there is none.

    A date compared with a timestamp is its midnight.

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
    """The columns of `join`, if both sides have the compared columns."""
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
    """Refuses distances for types that have none, and distances of another kind."""
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
