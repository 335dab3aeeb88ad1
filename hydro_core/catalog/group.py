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

# Operators that make few items of many, over all or key by key.


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
"""An operator that makes items of those of a key."""


def _folded(cls: ByKey, **columns: Any) -> OpSpec:
    """What a function makes of all items, or of those of a key, going from one to the next."""
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


# Operators that make one result of the items of a key, now or from tick to tick.


def made_by_key(cls: OpClass) -> ByKey | None:
    """What the operator makes of the items of a key, of all of them or of what is new."""
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
    """What the operator makes of all items of a key, if it is that."""
    match cls:
        case ByKey() | OrderedByKey():
            return cls
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)


def aggregates(cls: OpClass) -> bool:
    """Whether the operator makes named aggregates, of items or of what is new."""
    made = made_by_key(cls)
    return made is not None and made.summary is Summary.AGGREGATES


# Results that are the least or the greatest value of a column, and the rows that have them.
#
# Of all rows those decide that have it. Of a result that is stored, whose rows change by key,
# these are among the rows of the keys that change, or the first by this column of the others.


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
