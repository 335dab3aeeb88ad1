"""Operators that bring streams together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hydro_core.catalog import column_rules, lineage_rules, type_rules
from hydro_core.catalog.classes import Matching, Positional, Product, Sum
from hydro_core.catalog.inputs import KEPT
from hydro_core.catalog.spec import (
    Args,
    Barrier,
    Example,
    Fails,
    Never,
    OnAnyField,
    OnKey,
    OpSpec,
    OrderRule,
    Port,
    Replicated,
    option,
)
from hydro_core.catalog.variants import Compares, Meets, Places
from hydro_core.types.stream import Order

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
    cls=Product(Meets.ALL),
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
    cls=Product(Meets.SINGLE),
    summary="each item with the single item of the other side; "
    "a second one fails the tick, none gives nothing",
    inputs=(
        Port("input", linear=True, aliases=("0",), elided=True),
        Port("single", barrier=Barrier.STRATUM, keyword="single"),
    ),
    result=type_rules.paired,
    monotone=False,
    fails=Fails.ON_ITEMS,
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
    """A side is linear unless its items decide on padding or are only asked for.

    A padded row waits for the other side; where a condition says what matches, for the pairs.
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
    matching = Matching(how == "semi", Compares.NOTHING if keyless else Compares.KEYS)
    return {
        "cls": matching if asked else Product(Meets.ALL if keyless else Meets.KEY, kept),
        "inputs": (left, right),
        "monotone": how in ("inner", "semi"),
        "partition": Never(_ALL_PAIRS) if keyless else OnKey(),
    }


_ALL_PAIRS = "without `on` the condition judges every row of one side with every row of the other"


JOIN = _combining(
    name="join",
    cls=Product(Meets.KEY),
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
        cls=Positional(places),
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
    cls=Matching(wanted=False, compares=Compares.BARE_KEYS),
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
    cls=Matching(wanted=False, compares=Compares.ITEMS),
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
