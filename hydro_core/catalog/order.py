"""Operators that make an order or depend on one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hydro_core.catalog import lineage_rules, type_rules
from hydro_core.catalog.classes import Ordering, PerItem, Positional
from hydro_core.catalog.inputs import BY, INIT, ORDERED, STEP, WHOLE
from hydro_core.catalog.spec import (
    Arg,
    Args,
    Barrier,
    Example,
    Never,
    OnKey,
    OpSpec,
    OrderRule,
    Port,
)
from hydro_core.catalog.variants import Gives, Places

_COUNTED = Never("positions are counted over the whole stream")
_LONGS = {"a": "long"}

SORT = OpSpec(
    name="sort",
    family="order",
    cls=Ordering(),
    summary="the tick's items, ascending",
    inputs=WHOLE,
    result=type_rules.first,
    keeps_single=True,
    order=OrderRule.GIVES,
    example=Example("a -> sort() -> out", ({"a": [2, 1]},), ({"out": [1, 2]},), _LONGS),
)

SORT_BY_KEY = OpSpec(
    name="sort_by_key",
    family="order",
    cls=Ordering(),
    summary="the tick's items by `f(x)`; ties by the item, ascending",
    inputs=WHOLE,
    args=(
        Arg("f", "function", required=True, summary="what the items are sorted by"),
        Arg("descending", "flag", default=False, summary="whether the greatest comes first"),
    ),
    result=type_rules.ranked,
    keeps_single=True,
    order=OrderRule.GIVES,
    example=Example(
        "a -> sort_by_key(lambda x: x % 2, descending=True) -> out",
        ({"a": [1, 2, 3]},),
        ({"out": [1, 3, 2]},),
        _LONGS,
    ),
)


def _limit_columns(args: Args) -> Mapping[str, Any]:
    return {"partition": OnKey()} if args["by"] is not None else {"single": args["n"] <= 1}


LIMIT = OpSpec(
    name="limit",
    family="order",
    cls=Positional(Places.FIRST),
    summary="the first n items of the tick, or of each key",
    inputs=ORDERED,
    args=(Arg("n", "integer", required=True, summary="how many"), BY),
    result=type_rules.limited,
    refine=_limit_columns,
    monotone=False,
    keeps_single=True,
    partition=_COUNTED,
    example=Example(
        "a -> sort() -> limit(2) -> out", ({"a": [3, 1, 2]},), ({"out": [1, 2]},), _LONGS
    ),
)

ENUMERATE = OpSpec(
    name="enumerate",
    family="order",
    cls=Positional(Places.EACH),
    summary="each item with its position in this tick, from 0",
    inputs=ORDERED,
    result=type_rules.enumerated,
    monotone=False,
    keeps_single=True,
    partition=_COUNTED,
    lineage=lineage_rules.numbered,
    example=Example(
        "a -> sort() -> enumerate() -> out",
        ({"a": [8, 7]},),
        ({"out": [[0, 7], [1, 8]]},),
        _LONGS,
    ),
)

_STEP = (replace(INIT, summary="the accumulator before the first item"), STEP)

SCAN = OpSpec(
    name="scan",
    family="order",
    cls=Positional(Places.EACH),
    summary="`f(acc, x)` after each item",
    inputs=ORDERED,
    args=_STEP,
    result=type_rules.folded,
    monotone=False,
    keeps_single=True,
    partition=Never("every result depends on all items before"),
    lineage=lineage_rules.computed_from_all,
    example=Example(
        "a -> sort() -> scan(0, lambda acc, x: acc + x) -> out",
        ({"a": [1, 2, 3]},),
        ({"out": [1, 3, 6]},),
        _LONGS,
    ),
)

SCAN_KEYED = OpSpec(
    name="scan_keyed",
    family="order",
    cls=Positional(Places.EACH),
    summary="`f(acc, v)` after each item of a key",
    inputs=ORDERED,
    args=(*_STEP, BY),
    result=type_rules.folded_by_key,
    monotone=False,
    keeps_single=True,
    partition=OnKey(),
    lineage=lineage_rules.keyed,
    example=Example(
        "a -> sort() -> scan_keyed(0, lambda acc, v: acc + v) -> out",
        ({"a": [["x", 1], ["y", 5], ["x", 2]]},),
        ({"out": [["x", 1], ["x", 3], ["y", 5]]},),
        {"a": "(string, long)"},
    ),
)

NEXT_STRATUM = OpSpec(
    name="next_stratum",
    family="order",
    cls=PerItem(Gives.SAME),
    summary="the item itself, once the stratum has ended",
    inputs=(Port("in", barrier=Barrier.STRATUM, linear=True, aliases=("0",)),),
    result=type_rules.first,
    keeps_single=True,
    example=Example("a -> next_stratum() -> out", ({"a": [1]},), ({"out": [1]},), _LONGS),
)

ENTRIES = (SORT, SORT_BY_KEY, LIMIT, ENUMERATE, SCAN, SCAN_KEYED, NEXT_STRATUM)
