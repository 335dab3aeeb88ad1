"""Operators that make an order or depend on one: `over`, `top`, and sorts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from hydro_core.catalog import lineage_rules, type_rules
from hydro_core.catalog.aggregates import (
    AGGREGATES,
    Named,
    aggregate_type,
    argument_type,
    merging,
    running_parts,
)
from hydro_core.catalog.classes import (
    ItemEffect,
    OrderedByKey,
    Ordering,
    PerItem,
    Places,
    PositionalOrder,
)
from hydro_core.catalog.column_rules import once
from hydro_core.catalog.group import per_key
from hydro_core.catalog.over_functions import (
    OverCall,
    aggregate_of,
    argument,
    looks_of,
    needs_order,
    over_type,
)
from hydro_core.catalog.spec import (
    BY,
    INIT,
    ORDERED,
    STEP,
    WHOLE,
    Aggregate,
    Arg,
    Args,
    Barrier,
    Example,
    FailureMode,
    Never,
    OnKey,
    OpSpec,
    OrderRule,
    OverFunction,
    Port,
    TypeProblem,
    option,
)
from hydro_core.catalog.type_rules import Types, chosen, columns_of, part_of, row_of
from hydro_core.types.item import LONG, OPEN, Decimal, Field, ItemType, Row, Unknown

# Operators that use the order of the rows of a key: `over` and `top`.


_OF_ALL = Never("the order is that of all rows")
_OF_FUNCTION = Never("the key is what a function gives: make it a column first, `with_columns`")

KEY = option("by", "order", "the key: a column, a list of columns, or a function of the row")
DESCENDING = option(
    "descending",
    "flag",
    "whether the greatest comes first; ties by the item, ascending",
    default=False,
)
_ORDER = "what the rows are ordered by: a column, a list, or a function"
ORDER = option("order", "order", _ORDER, required=True)


def _columns(gives: Any, args: Args) -> Mapping[str, Any]:
    by = args["by"]
    by_columns = isinstance(by, tuple)
    partition = OnKey() if by_columns else _OF_ALL if by is None else _OF_FUNCTION
    return {"cls": OrderedByKey(gives, keyed=by_columns), "partition": partition}


def _overlaid(args: Args, types: Types) -> ItemType:
    """The row, then the columns of the functions."""
    item = types[0]
    part_of(args["by"], "by", types)
    order = part_of(args["order"], "order", types)
    functions: tuple[tuple[str, OverFunction], ...] = args["functions"]
    for name, function in functions:
        if args["order"] is None and needs_order(function):
            raise TypeProblem(
                f"`{function.function}` of {name!r} goes by the order of rows, and there is none",
                'say what they are ordered by: `order="at"`',
                code="arity",
            )
    if item == OPEN:
        return OPEN
    own = () if isinstance(item, Unknown) else row_of(item).fields
    made = tuple(Field(name, over_type(OverCall(f, item, order))) for name, f in functions)
    if isinstance(item, Unknown):
        return item
    return once(
        (*own, *made),
        "`over` adds columns: give this one another name, or drop the other one first",
    )


OVER = per_key(
    name="over",
    cls=OrderedByKey(Places.EACH),
    summary="each row with more columns, computed from the rows of its key in their order",
    inputs=WHOLE,
    args=(
        KEY,
        option("order", "order", _ORDER),
        DESCENDING,
        Arg(
            "functions",
            "over_functions",
            "columns by functions ([below](#functions-of-over))",
            required=True,
            default=(),
        ),
    ),
    result=_overlaid,
    refine=partial(_columns, Places.EACH),
    fails=FailureMode.NEVER,
    lineage=lineage_rules.overlaid,
    example=Example.of(
        'a -> over(by="k", order="at", n=row_number(), total=running(sum("v"))) -> out',
        "k string, at long, v long",
        [{"k": "x", "at": 2, "v": 5}, {"k": "x", "at": 1, "v": 1}],
        [
            {"k": "x", "at": 1, "v": 1, "n": 1, "total": 1},
            {"k": "x", "at": 2, "v": 5, "n": 2, "total": 6},
        ],
    ),
)

TOP = per_key(
    name="top",
    cls=OrderedByKey(Places.FIRST),
    summary="the first n rows of each key, or of all, by `order`; with `ties` also those that are "
    "equal to the n-th in it",
    inputs=WHOLE,
    args=(
        Arg("n", "integer", "how many", required=True),
        KEY,
        ORDER,
        DESCENDING,
        option(
            "ties", "flag", "whether rows equal to the last one in `order` stay, too", default=False
        ),
    ),
    result=chosen,
    refine=partial(_columns, Places.FIRST),
    fails=FailureMode.NEVER,
    example=Example.of(
        'a -> top(1, by="k", order="v", descending=True) -> out',
        "k string, v long",
        [{"k": "x", "v": 1}, {"k": "x", "v": 3}, {"k": "y", "v": 2}],
        [{"k": "x", "v": 3}, {"k": "y", "v": 2}],
    ),
)


# Operators that make an order or depend on one.


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
    cls=PositionalOrder(Places.FIRST),
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
    cls=PositionalOrder(Places.EACH),
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
    cls=PositionalOrder(Places.EACH),
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
    cls=PositionalOrder(Places.EACH),
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
    cls=PerItem(ItemEffect.SAME),
    summary="the item itself, once the stratum has ended",
    inputs=(Port("in", barrier=Barrier.STRATUM, linear=True, aliases=("0",)),),
    keeps_single=True,
    example=Example.of("a -> next_stratum() -> out", "long", [1], [1]),
)


# `over` of a history, updated from the last rows of each key: its tail.
#
# The functions' values for a row behind all stored rows of its key follow from the tail: as many
# last rows of the output as functions look back at, and the aggregates so far, in parts that merge.
# Every stored row has these. So for a late row, the rows behind it are recomputed from those before
# it. A function that looks at following rows is recomputed for as many rows before a new one as it
# looks ahead; one that looks at rows equal in the order, from the first row equal to the new one.


MOST_ROWS = 1000
"""The most rows of a tail; if a function looks back farther, the whole key is recomputed."""
EXACT = 28
"""The largest precision of decimals whose sums need no check for the number of rows."""


def hidden_parts(args: Args) -> Sequence[Named]:
    """The aggregates so far that are stored in addition to the columns of a program."""
    shown = {name for name, _ in args["functions"]}
    return [(name, one) for name, one in args["parts"] if name not in shown]


def kept(args: Args, types: Types) -> ItemType:
    """The columns of `over`, the parts, the row's number, and in the last rows their key."""
    shown = OVER.result(args, types)
    if not isinstance(shown, Row):
        return shown
    parts = [Field(name, aggregate_type(one, types[0])) for name, one in hidden_parts(args)]
    key = Row(columns_of(types[0], args["by"]))
    return Row((*shown.fields, *parts, Field(args["number"], LONG), Field(args["tail"], key)))


def with_tails(args: Args, item: ItemType, output: ItemType) -> tuple[Args, Args] | None:
    """The arguments of the incremental `over`, and the `select` of the columns that a program has.

    None if a function needs other rows than those before, a few following ones, and equal ones.
    """
    if not isinstance(item, Row) or not isinstance(output, Row):
        return None
    functions: Sequence[tuple[str, OverFunction]] = args["functions"]
    by_columns = isinstance(args["by"], tuple) and isinstance(args["order"], tuple)
    if not by_columns or not all(_resumes(function) for _, function in functions):
        return None
    keep = rows_ahead(args) + max(_looks_back(function) for _, function in functions)
    parts = _parts(args, item, output)
    if parts is None or keep > MOST_ROWS:
        return None
    given, made = parts
    names = {name for name, _ in given} - {name for name, _ in functions}
    taken = {*output.names, *names}
    if names & {*output.names}:
        return None
    number = _free("number", taken)
    tail = _free("tail", {*taken, number})
    beside = {"parts": given, "made": made, "number": number, "tail": tail, "keep": keep}
    return args.with_(**beside), Args((("columns", output.names), ("computed", ())))


def rows_ahead(args: Args) -> int:
    """The number of rows before a new one that are recomputed."""
    return max(
        argument(function, "n") if looks_of(function) == "next" else 0
        for _, function in args["functions"]
    )


def given_to_peers(args: Args) -> frozenset[str]:
    """The columns whose values are the same for all rows equal in the order."""
    return frozenset(name for name, function in args["functions"] if _by_peers(function))


def so_far(name: str, args: Args) -> str:
    """The name of the running aggregate of each row, where the shown value is the same for equal
    rows.
    """
    return _free(f"{name}_so_far", {shown for shown, _ in args["functions"]})


def _by_peers(function: OverFunction) -> bool:
    return bool(argument(function, "peers"))


def _resumes(function: OverFunction) -> bool:
    """True if the values follow from a few rows around a new one and from stored parts."""
    looks = looks_of(function)
    if looks != "peers":
        return looks != "all"
    of = aggregate_of(function)
    # Rows equal in the order have no order among themselves, so the aggregate must not need one.
    return of is not None and _by_peers(function) and not AGGREGATES[of.function].needs_order


def _looks_back(function: OverFunction) -> int:
    """The number of rows before a recomputed one that are needed."""
    rows = argument(function, "rows")
    back = argument(function, "n") if rows is None else rows - 1
    return max(1, 0 if looks_of(function) == "next" else back or 0)


def _parts(
    args: Args, item: Row, output: Row
) -> tuple[tuple[Named, ...], tuple[Named, ...]] | None:
    """The stored aggregates so far, and the aggregates that compute the running ones from them."""
    running = tuple(
        (so_far(name, args) if _by_peers(function) else name, one)
        for name, function in args["functions"]
        if (one := aggregate_of(function)) is not None and argument(function, "rows") is None
    )
    if any(_may_lose_digits(one, item) for _, one in running):
        return None
    if not running:
        return (), ()
    found = Args((("by", args["by"]), ("aggregates", running)))
    if merging(running) is not None:
        return running, ()
    beside = [Field(name, aggregate_type(one, item)) for name, one in running]
    wider = [*output.fields, *(field for field in beside if field.name not in output.names)]
    parts = running_parts(found, item, Row(tuple(wider)))
    if parts is None or merging(parts.given["aggregates"]) is None:
        return None
    return parts.given["aggregates"], parts.made["aggregates"]


def _may_lose_digits(aggregate: Aggregate, item: Row) -> bool:
    types = [argument_type(a, item) for a in aggregate.arguments]
    return any(isinstance(t, Decimal) and t.precision > EXACT for t in types)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
