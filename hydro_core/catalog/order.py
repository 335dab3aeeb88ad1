"""Operators that make an order or depend on one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hydro_core.catalog import lineage_rules, type_rules
from hydro_core.catalog.classes import Ordering, PerItem, Positional
from hydro_core.catalog.inputs import BY, INIT, ORDERED, STEP, WHOLE
from hydro_core.catalog.spec import (
    Arg,
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

_ordering = partial(OpSpec, family="order")

SORT = _ordering(
    name="sort",
    cls=Ordering(),
    summary="the tick's items, ascending",
    inputs=WHOLE,
    keeps_single=True,
    order=OrderRule.GIVES,
    example=Example.of("a -> sort() -> out", "long", [2, 1], [1, 2]),
)

SORT_BY_KEY = _ordering(
    name="sort_by_key",
    cls=Ordering(),
    summary="the tick's items by `f(x)`; ties by the item, ascending",
    inputs=WHOLE,
    args=(
        Arg("f", "function", "what the items are sorted by", required=True),
        Arg("descending", "flag", "whether the greatest comes first", default=False),
    ),
    result=type_rules.ranked,
    keeps_single=True,
    order=OrderRule.GIVES,
    example=Example.of(
        "a -> sort_by_key(lambda x: x % 2, descending=True) -> out", "long", [1, 2, 3], [1, 3, 2]
    ),
)


LIMIT = _ordering(
    name="limit",
    cls=Positional(Places.FIRST),
    summary="the first n items of the tick, or of each key",
    inputs=ORDERED,
    args=(Arg("n", "integer", "how many", required=True), BY),
    result=type_rules.chosen,
    refine=lambda args: (
        {"single": args["n"] <= 1} if args["by"] is None else {"partition": OnKey()}
    ),
    monotone=False,
    keeps_single=True,
    partition=_COUNTED,
    example=Example.of("a -> sort() -> limit(2) -> out", "long", [3, 1, 2], [1, 2]),
)

ENUMERATE = _ordering(
    name="enumerate",
    cls=Positional(Places.EACH),
    summary="each item with its position in this tick, from 0",
    inputs=ORDERED,
    result=type_rules.counted,
    monotone=False,
    keeps_single=True,
    partition=_COUNTED,
    lineage=lineage_rules.numbered,
    example=Example.of("a -> sort() -> enumerate() -> out", "long", [8, 7], [[0, 7], [1, 8]]),
)

_STEP = (replace(INIT, summary="the accumulator before the first item"), STEP)

SCAN = _ordering(
    name="scan",
    cls=Positional(Places.EACH),
    summary="`f(acc, x)` after each item",
    inputs=ORDERED,
    args=_STEP,
    result=type_rules.folded,
    monotone=False,
    keeps_single=True,
    partition=Never("every result depends on all items before"),
    lineage=lineage_rules.computed_from_all,
    example=Example.of(
        "a -> sort() -> scan(0, lambda acc, x: acc + x) -> out", "long", [1, 2, 3], [1, 3, 6]
    ),
)

SCAN_KEYED = _ordering(
    name="scan_keyed",
    cls=Positional(Places.EACH),
    summary="`f(acc, v)` after each item of a key",
    inputs=ORDERED,
    args=(*_STEP, BY),
    result=type_rules.folded_by_key,
    monotone=False,
    keeps_single=True,
    partition=OnKey(),
    lineage=lineage_rules.keyed,
    example=Example.of(
        "a -> sort() -> scan_keyed(0, lambda acc, v: acc + v) -> out",
        "(string, long)",
        [["x", 1], ["y", 5], ["x", 2]],
        [["x", 1], ["x", 3], ["y", 5]],
    ),
)

NEXT_STRATUM = _ordering(
    name="next_stratum",
    cls=PerItem(Gives.SAME),
    summary="the item itself, once the stratum has ended",
    inputs=(Port("in", barrier=Barrier.STRATUM, linear=True, aliases=("0",)),),
    keeps_single=True,
    example=Example.of("a -> next_stratum() -> out", "long", [1], [1]),
)
