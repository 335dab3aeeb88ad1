"""Operators that make few items of many, over all or key by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hydro_core.catalog import column_rules, lineage_rules, type_rules
from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.classes import ByKey, Distinct, Positional
from hydro_core.catalog.inputs import BY, INIT, STEP
from hydro_core.catalog.spec import (
    Arg,
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
    TypeRule,
)
from hydro_core.catalog.variants import Places, Summary
from hydro_core.types.stream import Order

_WHOLE = Never("one result is made of all items")
_UNORDERED_CURE = "declare the function `commutative=True` if the order does not matter to it"
_LONGS = {"a": "long"}
_PAIRS = {"a": "(string, long)"}


def _blocking(needs: Order, cure: str = "") -> tuple[Port, ...]:
    return (Port("in", barrier=Barrier.STRATUM, needs=needs, aliases=("0",), cure=cure),)


def _order_of_function(args: Args) -> Mapping[str, Any]:
    """A function that does not care about the order makes an operator that does not."""
    needs = Order.NONE if args["f"].algebra.commutative else Order.TOTAL
    return {"inputs": _blocking(needs, _UNORDERED_CURE)}


UNIQUE = OpSpec(
    name="unique",
    family="group",
    cls=Distinct(),
    summary="each distinct item once",
    inputs=(Port("in", aliases=("0",)),),
    result=type_rules.first,
    idempotent=True,
    keeps_single=True,
    partition=OnAnyField(),
    example=Example("a -> unique() -> out", ({"a": [1, 1, 2]},), ({"out": [1, 2]},), _LONGS),
)

UNIQUE_KEYED = OpSpec(
    name="unique_keyed",
    family="group",
    cls=Positional(Places.FIRST_OF_KEY),
    summary="the first value of each key",
    inputs=_blocking(Order.TOTAL),
    args=(BY,),
    result=type_rules.unpaired,
    monotone=False,
    idempotent=True,
    keeps_single=True,
    partition=OnKey(),
    example=Example(
        "a -> sort() -> unique_keyed() -> out",
        ({"a": [["x", 2], ["x", 1], ["y", 3]]},),
        ({"out": [["x", 1], ["y", 3]]},),
        _PAIRS,
    ),
)


def _folded(
    name: str,
    cls: ByKey,
    summary: str,
    args: tuple[Arg, ...],
    result: TypeRule,
    example: Example,
) -> OpSpec:
    """What a function makes of all items, or of those of a key, going from one to the next."""
    return OpSpec(
        name=name,
        family="group",
        cls=cls,
        summary=summary,
        inputs=_blocking(Order.TOTAL, _UNORDERED_CURE),
        args=args,
        result=result,
        refine=_order_of_function,
        zero=cls != ByKey(Summary.FOLD, keyed=False),
        monotone=False,
        single=not cls.keyed,
        keeps_single=cls.keyed,
        order=OrderRule.LOSES,
        partition=OnKey() if cls.keyed else _WHOLE,
        lineage=lineage_rules.keyed if cls.keyed else lineage_rules.computed_from_all,
        example=example,
    )


FOLD = _folded(
    "fold",
    ByKey(Summary.FOLD, keyed=False),
    "exactly one item each tick: `f(acc, x)` over all items, `init` on no input",
    (INIT, STEP),
    type_rules.folded,
    Example(
        "a -> fold(0, lambda acc, x: acc + x, commutative=True) -> out",
        ({"a": [1, 2]}, {"a": []}),
        ({"out": [3]}, {"out": [0]}),
        _LONGS,
    ),
)

REDUCE = _folded(
    "reduce",
    ByKey(Summary.REDUCTION, keyed=False),
    "one item, `f` over all items; none on no input",
    (STEP,),
    type_rules.reduced,
    Example(
        "a -> reduce(lambda x, y: max(x, y), commutative=True) -> out",
        ({"a": [1, 3, 2]}, {"a": []}),
        ({"out": [3]}, {"out": []}),
        _LONGS,
    ),
)

FOLD_KEYED = _folded(
    "fold_keyed",
    ByKey(Summary.FOLD),
    "`fold` of the values of each key that is there",
    (INIT, STEP, BY),
    type_rules.folded_by_key,
    Example(
        "a -> fold_keyed(0, lambda acc, v: acc + v, commutative=True) -> out",
        ({"a": [["x", 1], ["x", 2], ["y", 3]]},),
        ({"out": [["x", 3], ["y", 3]]},),
        _PAIRS,
    ),
)

REDUCE_KEYED = _folded(
    "reduce_keyed",
    ByKey(Summary.REDUCTION),
    "`reduce` of the values of each key",
    (STEP, BY),
    type_rules.reduced_by_key,
    Example(
        "a -> reduce_keyed(lambda x, y: max(x, y), commutative=True) -> out",
        ({"a": [["x", 1], ["x", 2], ["y", 3]]},),
        ({"out": [["x", 2], ["y", 3]]},),
        _PAIRS,
    ),
)

LATEST = OpSpec(
    name="latest",
    family="group",
    cls=ByKey(Summary.LATEST),
    summary="of each key the row with the greatest `order`, nulls first; "
    "of a tie the greatest item",
    inputs=_blocking(Order.NONE),
    args=(
        replace(BY, required=True),
        Arg(
            "order",
            "order",
            required=True,
            positional=False,
            summary="what is greatest in the row that stays: a column, a list, or a function",
        ),
    ),
    result=type_rules.newest,
    monotone=False,
    idempotent=True,
    keeps_single=True,
    order=OrderRule.LOSES,
    partition=OnKey(),
    example=Example(
        'a -> latest(by="k", order="at") -> out',
        ({"a": [{"k": "x", "at": 1}, {"k": "x", "at": 3}, {"k": "y", "at": 2}]},),
        ({"out": [{"k": "x", "at": 3}, {"k": "y", "at": 2}]},),
        {"a": "k string, at long"},
    ),
)


def _aggregate_columns(args: Args) -> Mapping[str, Any]:
    ordered = [a.function for _, a in args["aggregates"] if AGGREGATES[a.function].needs_order]
    by_key = args["by"] is not None
    return {
        "cls": ByKey(Summary.AGGREGATES, keyed=by_key),
        "inputs": _blocking(
            Order.TOTAL if ordered else Order.NONE,
            "`any_value`, `min_by` and `max_by` do without" if ordered else "",
        ),
        "zero": by_key,
        "single": not by_key,
        "partition": OnKey() if by_key else _WHOLE,
    }


AGGREGATE = OpSpec(
    name="aggregate",
    family="group",
    cls=ByKey(Summary.AGGREGATES),
    summary="Spark's aggregates over columns or functions of the rows, of each key or of all",
    inputs=_blocking(Order.NONE),
    args=(
        BY,
        Arg(
            "aggregates",
            "aggregates",
            default=(),
            summary="columns by aggregates ([below](#aggregates))",
        ),
    ),
    result=column_rules.aggregated,
    refine=_aggregate_columns,
    monotone=False,
    fails=Fails.NEVER,
    keeps_single=True,
    order=OrderRule.LOSES,
    partition=OnKey(),
    lineage=lineage_rules.aggregated,
    example=Example(
        'a -> aggregate(by="k", n=count(), total=sum("v")) -> out',
        ({"a": [{"k": "x", "v": 1}, {"k": "x", "v": 2}, {"k": "y", "v": None}]},),
        ({"out": [{"k": "x", "n": 2, "total": 3}, {"k": "y", "n": 1, "total": None}]},),
        {"a": "k string, v long"},
    ),
)

ENTRIES = (
    UNIQUE,
    UNIQUE_KEYED,
    FOLD,
    REDUCE,
    FOLD_KEYED,
    REDUCE_KEYED,
    LATEST,
    AGGREGATE,
)
