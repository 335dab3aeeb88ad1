"""Operators that go by the order of the rows of a key: `over` and `top`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hydro_core.catalog import lineage_rules
from hydro_core.catalog.classes import OrderedByKey
from hydro_core.catalog.column_rules import once
from hydro_core.catalog.group import per_key
from hydro_core.catalog.inputs import WHOLE
from hydro_core.catalog.over_functions import OverCall, needs_order, over_type
from hydro_core.catalog.spec import (
    Arg,
    Args,
    Example,
    Fails,
    Never,
    OnKey,
    OverFunction,
    TypeProblem,
    option,
)
from hydro_core.catalog.type_rules import Types, chosen, part_of, row_of
from hydro_core.catalog.variants import Places
from hydro_core.types.item import OPEN, Field, ItemType, Unknown

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
    fails=Fails.NEVER,
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
    fails=Fails.NEVER,
    example=Example.of(
        'a -> top(1, by="k", order="v", descending=True) -> out',
        "k string, v long",
        [{"k": "x", "v": 1}, {"k": "x", "v": 3}, {"k": "y", "v": 2}],
        [{"k": "x", "v": 3}, {"k": "y", "v": 2}],
    ),
)
