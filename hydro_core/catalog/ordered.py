"""Operators that go by the order of the rows of a key: `over` and `top`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hydro_core.catalog import lineage_rules
from hydro_core.catalog.classes import OrderedByKey
from hydro_core.catalog.column_rules import once
from hydro_core.catalog.inputs import WHOLE
from hydro_core.catalog.over_functions import OverCall, needs_order, over_type
from hydro_core.catalog.spec import (
    Arg,
    Args,
    Example,
    Fails,
    Never,
    OnKey,
    OpSpec,
    OrderRule,
    OverFunction,
    TypeProblem,
)
from hydro_core.catalog.type_rules import Types, columns_of, given_by, row_of
from hydro_core.catalog.variants import Places
from hydro_core.functions.fn import Fn
from hydro_core.types.item import OPEN, Field, ItemType, Unknown

_OF_ALL = Never("the order is that of all rows")
_OF_FUNCTION = Never("the key is what a function gives: make it a column first, `with_columns`")

KEY = Arg(
    "by",
    "order",
    positional=False,
    summary="the key: a column, a list of columns, or a function of the row",
)
DESCENDING = Arg(
    "descending",
    "flag",
    default=False,
    positional=False,
    summary="whether the greatest comes first; ties by the item, ascending",
)
_ORDER = "what the rows are ordered by: a column, a list, or a function"
ORDER = Arg("order", "order", required=True, positional=False, summary=_ORDER)


def _columns(gives: Any) -> Any:
    def refined(args: Args) -> Mapping[str, Any]:
        by = args["by"]
        by_columns = isinstance(by, tuple)
        partition = OnKey() if by_columns else _OF_ALL if by is None else _OF_FUNCTION
        return {"cls": OrderedByKey(gives, keyed=by_columns), "partition": partition}

    return refined


def _check(named: tuple[str, ...] | Fn | None, argument: str, types: Types) -> ItemType | None:
    """The type of a key or an order of one part; it is complained of what does not exist."""
    if named is None:
        return None
    if isinstance(named, Fn):
        return given_by(named, types)
    found = columns_of(types[0], named, argument)
    return found[0].type if len(found) == 1 else None


def _overlaid(args: Args, types: Types) -> ItemType:
    """The row, then the columns of the functions."""
    item = types[0]
    _check(args["by"], "by", types)
    order = _check(args["order"], "order", types)
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


def _first_rows(args: Args, types: Types) -> ItemType:
    _check(args["by"], "by", types)
    _check(args["order"], "order", types)
    return types[0]


OVER = OpSpec(
    name="over",
    family="group",
    cls=OrderedByKey(Places.EACH),
    summary="each row with more columns, computed from the rows of its key in their order",
    inputs=WHOLE,
    args=(
        KEY,
        Arg("order", "order", positional=False, summary=_ORDER),
        DESCENDING,
        Arg(
            "functions",
            "over_functions",
            required=True,
            default=(),
            summary="columns by functions ([below](#functions-of-over))",
        ),
    ),
    result=_overlaid,
    refine=_columns(Places.EACH),
    monotone=False,
    fails=Fails.NEVER,
    keeps_single=True,
    order=OrderRule.LOSES,
    partition=OnKey(),
    lineage=lineage_rules.overlaid,
    example=Example(
        'a -> over(by="k", order="at", n=row_number(), total=running(sum("v"))) -> out',
        ({"a": [{"k": "x", "at": 2, "v": 5}, {"k": "x", "at": 1, "v": 1}]},),
        (
            {
                "out": [
                    {"k": "x", "at": 1, "v": 1, "n": 1, "total": 1},
                    {"k": "x", "at": 2, "v": 5, "n": 2, "total": 6},
                ]
            },
        ),
        {"a": "k string, at long, v long"},
    ),
)

TOP = OpSpec(
    name="top",
    family="group",
    cls=OrderedByKey(Places.FIRST),
    summary="the first n rows of each key, or of all, by `order`; with `ties` also those that are "
    "equal to the n-th in it",
    inputs=WHOLE,
    args=(
        Arg("n", "integer", required=True, summary="how many"),
        KEY,
        ORDER,
        DESCENDING,
        Arg(
            "ties",
            "flag",
            default=False,
            positional=False,
            summary="whether rows equal to the last one in `order` stay, too",
        ),
    ),
    result=_first_rows,
    refine=_columns(Places.FIRST),
    monotone=False,
    fails=Fails.NEVER,
    keeps_single=True,
    order=OrderRule.LOSES,
    partition=OnKey(),
    example=Example(
        'a -> top(1, by="k", order="v", descending=True) -> out',
        ({"a": [{"k": "x", "v": 1}, {"k": "x", "v": 3}, {"k": "y", "v": 2}]},),
        ({"out": [{"k": "x", "v": 3}, {"k": "y", "v": 2}]},),
        {"a": "k string, v long"},
    ),
)

ENTRIES = (OVER, TOP)
