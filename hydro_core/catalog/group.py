"""Aggregates of all items or of a key, running results, min/max with the rows that have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, assert_never

from hydro_core.catalog import column_rules, lineage_rules, type_rules
from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.classes import (
    ByKey,
    DistinctItems,
    ItemEffect,
    KeyMatch,
    Linear,
    MatchCondition,
    OpClass,
    OrderedByKey,
    OverTime,
    PairedItems,
    PerItem,
    PerKey,
    PerPosition,
    Places,
    PositionalOrder,
    Product,
    Projection,
    RunningResult,
    StreamEnd,
    Summary,
)
from hydro_core.catalog.spec import (
    BY,
    INIT,
    STEP,
    Arg,
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
    option,
)
from hydro_core.types.item import Order

# Operators that compute few items from many, globally or for each key.


_WHOLE = Never("one result is made of all items")
_UNORDERED_CURE = "declare the function `commutative=True` if the order does not matter to it"
_LONGS = {"a": "long"}
_PAIRS = {"a": "(string, long)"}


def _blocking(needs: Order, cure: str = "") -> tuple[Port, ...]:
    return (Port("in", barrier=Barrier.STRATUM, needs=needs, aliases=("0",), cure=cure),)


def _order_of_function(args: Args) -> Mapping[str, Any]:
    """A commutative function makes an operator that needs no order."""
    needs = Order.NONE if args["f"].algebra.commutative else Order.TOTAL
    return {"inputs": _blocking(needs, _UNORDERED_CURE)}


UNIQUE = OpSpec(
    name="unique",
    family="group",
    cls=DistinctItems(),
    summary="each distinct item once",
    inputs=(Port("in", aliases=("0",)),),
    idempotent=True,
    keeps_single=True,
    partition=OnAnyField(),
    example=Example.of("a -> unique() -> out", "long", [1, 1, 2], [1, 2]),
)

UNIQUE_KEYED = OpSpec(
    name="unique_keyed",
    family="group",
    cls=PositionalOrder(Places.FIRST_OF_KEY),
    summary="the first value of each key",
    inputs=_blocking(Order.TOTAL),
    args=(BY,),
    result=type_rules.unpaired,
    monotone=False,
    idempotent=True,
    keeps_single=True,
    partition=OnKey(),
    example=Example.of(
        "a -> sort() -> unique_keyed() -> out",
        "(string, long)",
        [["x", 2], ["x", 1], ["y", 3]],
        [["x", 1], ["y", 3]],
    ),
)


per_key = partial(
    OpSpec,
    family="group",
    monotone=False,
    keeps_single=True,
    order=OrderRule.LOSES,
    partition=OnKey(),
)
"""An operator that computes items from those of a key."""


def _folded(cls: ByKey, **columns: Any) -> OpSpec:
    """An operator that folds a function over all items, or over those of each key."""
    return per_key(
        cls=cls,
        inputs=_blocking(Order.TOTAL, _UNORDERED_CURE),
        refine=_order_of_function,
        zero=cls != ByKey(Summary.FOLD, keyed=False),
        single=not cls.keyed,
        keeps_single=cls.keyed,
        partition=OnKey() if cls.keyed else _WHOLE,
        lineage=lineage_rules.keyed if cls.keyed else lineage_rules.computed_from_all,
        **columns,
    )


FOLD = _folded(
    name="fold",
    cls=ByKey(Summary.FOLD, keyed=False),
    summary="exactly one item each tick: `f(acc, x)` over all items, `init` on no input",
    args=(INIT, STEP),
    result=type_rules.folded,
    example=Example(
        "a -> fold(0, lambda acc, x: acc + x, commutative=True) -> out",
        ({"a": [1, 2]}, {"a": []}),
        ({"out": [3]}, {"out": [0]}),
        _LONGS,
    ),
)

REDUCE = _folded(
    name="reduce",
    cls=ByKey(Summary.REDUCTION, keyed=False),
    summary="one item, `f` over all items; none on no input",
    args=(STEP,),
    result=type_rules.reduced,
    example=Example(
        "a -> reduce(lambda x, y: max(x, y), commutative=True) -> out",
        ({"a": [1, 3, 2]}, {"a": []}),
        ({"out": [3]}, {"out": []}),
        _LONGS,
    ),
)

FOLD_KEYED = _folded(
    name="fold_keyed",
    cls=ByKey(Summary.FOLD),
    summary="`fold` of the values of each key that is there",
    args=(INIT, STEP, BY),
    result=type_rules.folded_by_key,
    example=Example.of(
        "a -> fold_keyed(0, lambda acc, v: acc + v, commutative=True) -> out",
        "(string, long)",
        [["x", 1], ["x", 2], ["y", 3]],
        [["x", 3], ["y", 3]],
    ),
)

REDUCE_KEYED = _folded(
    name="reduce_keyed",
    cls=ByKey(Summary.REDUCTION),
    summary="`reduce` of the values of each key",
    args=(STEP, BY),
    result=type_rules.reduced_by_key,
    example=Example.of(
        "a -> reduce_keyed(lambda x, y: max(x, y), commutative=True) -> out",
        "(string, long)",
        [["x", 1], ["x", 2], ["y", 3]],
        [["x", 2], ["y", 3]],
    ),
)

LATEST = per_key(
    name="latest",
    cls=ByKey(Summary.LATEST),
    summary="of each key the row with the greatest `order`, nulls first; "
    "of a tie the greatest item",
    inputs=_blocking(Order.NONE),
    args=(
        replace(BY, required=True),
        option(
            "order",
            "order",
            "what is greatest in the row that stays: a column, a list, or a function",
            required=True,
        ),
    ),
    result=type_rules.chosen,
    idempotent=True,
    example=Example.of(
        'a -> latest(by="k", order="at") -> out',
        "k string, at long",
        [{"k": "x", "at": 1}, {"k": "x", "at": 3}, {"k": "y", "at": 2}],
        [{"k": "x", "at": 3}, {"k": "y", "at": 2}],
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


AGGREGATE = per_key(
    name="aggregate",
    cls=ByKey(Summary.AGGREGATES),
    summary="Spark's aggregates over columns or functions of the rows, of each key or of all",
    inputs=_blocking(Order.NONE),
    args=(
        BY,
        Arg("aggregates", "aggregates", "columns by aggregates ([below](#aggregates))", default=()),
    ),
    result=column_rules.aggregated,
    refine=_aggregate_columns,
    fails=FailureMode.NEVER,
    lineage=lineage_rules.aggregated,
    example=Example.of(
        'a -> aggregate(by="k", n=count(), total=sum("v")) -> out',
        "k string, v long",
        [{"k": "x", "v": 1}, {"k": "x", "v": 2}, {"k": "y", "v": None}],
        [{"k": "x", "n": 2, "total": 3}, {"k": "y", "n": 1, "total": None}],
    ),
)


# Operators that compute one result from the items of a key, now or from tick to tick.


def made_by_key(cls: OpClass) -> ByKey | None:
    """The keyed result that the operator computes, from all items or from new ones; None for
    others.
    """
    match cls:
        case ByKey():
            return cls
        case RunningResult(ByKey() as of):
            return of
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)


def over_items(cls: OpClass) -> ByKey | OrderedByKey | None:
    """The result that the operator computes from all items of a key; None for others."""
    match cls:
        case ByKey() | OrderedByKey():
            return cls
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)


def aggregates(cls: OpClass) -> bool:
    """True if the operator computes named aggregates, of all items or of new ones."""
    made = made_by_key(cls)
    return made is not None and made.summary is Summary.AGGREGATES


# Global minimums and maximums of a column, and the rows that have them.
#
# Only these rows decide. In a stored keyed result they are among the rows of changed keys, or the
# first of the other rows by this column.


class WithExtremes(Enum):
    """How an operator treats rows with a minimum or maximum."""

    VALUE = "gives the values of one or several of everything"
    FIRST = "gives the first rows of everything"
    PAIRS = "gives of two inputs the items with equal keys"
    PASSES = "gives of one input items, or columns of theirs"
    STORED = "stores a result by key"
    OTHER = "does something else"


GIVE_FEW = frozenset({WithExtremes.FIRST, WithExtremes.PAIRS})
"""Operators whose output has only rows with a minimum or maximum, once they are known to read
these.
"""


@dataclass(frozen=True, slots=True)
class ExtremeValue:
    """The minimum or the maximum of a column."""

    column: str
    greatest: bool
    count: int = 1
    """The number of values that are wanted, beginning with the minimum or maximum."""


def extremes_of(args: Args) -> Mapping[str, ExtremeValue] | None:
    """By output column of a global aggregate: the minimum or maximum that it is.

    None if some column is no minimum or maximum of an input column, or if the results are keyed.
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
    """The column that is greatest in the first rows of a global order; None if there is none.

    In an ascending order, rows with null come first, so they have no minimum.
    """
    if with_extremes(cls) is not WithExtremes.FIRST:
        return None
    order = args.get("order")
    if args.get("by") or not args.get("descending") or not isinstance(order, tuple) or not order:
        return None
    return ExtremeValue(order[0], greatest=True, count=args["n"]) if args["n"] > 0 else None


def with_extremes(cls: OpClass) -> WithExtremes:
    """How an operator of this class treats rows with a minimum or maximum."""
    match cls:
        case ByKey(keyed=False):
            return WithExtremes.VALUE
        case OrderedByKey(Places.FIRST, keyed=False):
            return WithExtremes.FIRST
        case Product(PairedItems.KEY, keeps) if not keeps:
            return WithExtremes.PAIRS
        case KeyMatch(wanted=True, compares=MatchCondition.KEYS):
            return WithExtremes.PAIRS
        case Projection() | PerItem(ItemEffect.SAME | ItemEffect.SOME):
            return WithExtremes.PASSES
        case RunningResult(ByKey(keyed=True)):
            return WithExtremes.STORED
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return WithExtremes.OTHER
        case _:
            assert_never(cls)
