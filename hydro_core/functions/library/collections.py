"""Tuples, lists, ranges, rows, dicts and sets: construction, methods, and choices among values."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from hydro_core.functions.kinds import (
    ANY,
    NULL,
    DictOf,
    ExprType,
    MixedType,
    SetOf,
    computed_of,
    elements,
    is_open,
    join,
    joined,
    part,
)
from hydro_core.functions.library import entry
from hydro_core.functions.library.entry import (
    ANYTHING,
    MANY,
    WHOLE,
    Budget,
    CallSite,
    CallTyping,
    Library,
    Members,
    Operation,
    method,
    optional,
    read,
    same,
    several,
)
from hydro_core.functions.library.operators import binary, is_ordered
from hydro_core.functions.tree import Bind, Expr, Make, Op, constant_of
from hydro_core.types.item import BOOLEAN, LONG, Array, Row, Tuple
from hydro_core.types.values import canonical, sort_key

# Tuples, lists, ranges, rows, dicts and sets: functions of their parts, and their methods.


_PER_NUMBER = sys.getsizeof(0) + 16
_SETS = (optional(MANY),) * 100


# Bounds of results of constants.


def _sum(limits: Budget, args: list[Any]) -> None:
    # Python copies the sum for every sequence that it adds.
    if len(args) > 1 and isinstance(args[1], list | tuple) and isinstance(args[0], list | tuple):
        limits.charge(limits.weight(args[0]) * (len(args[0]) + 1) // 2)


def _sorted(limits: Budget, args: list[Any]) -> None:
    if isinstance(args[0], list | tuple | set | dict):
        limits.charge(limits.weight(args[0]) * int(math.log2(len(args[0]) + 1)))


_RANGE = entry.cost_of_size(lambda args: len(range(*args)), _PER_NUMBER)


# the types of calls


def _of_parts(gives: Callable[[ExprType], ExprType], least: int = 1) -> CallTyping:
    """Typing rule: the type of the result follows from the type of the value's parts."""

    def rule(site: CallSite) -> ExprType:
        site.count(least, 1)
        return gives(site.elements() if site.args else NULL)

    return rule


def _array_of(element: ExprType) -> ExprType:
    return Array(part(element))


def _of_tuple(site: CallSite) -> ExprType:
    site.count(0, 1)
    if not site.args:
        return Tuple(())
    element, kind = site.elements(), site.args[0]
    if isinstance(kind, Tuple):
        return kind
    length = _length(site.exprs[0])
    if length is None:
        return computed_of(kind)
    return Tuple((part(element),) * length)


def _length(expr: Expr) -> int | None:
    """The certain number of elements; None if it depends on the item."""
    match expr:
        case _ if isinstance(expr.type, Tuple):
            return len(expr.type.fields)
        case Op("sorted" | "list" | "reversed" | "enumerate", (source, *_)):
            return _length(source)
        case Op("zip", (_, *_) as sources):
            lengths = [_length(source) for source in sources]
            return None if None in lengths else min(n for n in lengths if n is not None)
        case Make("list") if expr.fields is not None:
            return len(expr.fields)
        case Bind("list" | "generator", value=source, conditions=()):
            return _length(source)
        case _:
            return None


def _of_dict(site: CallSite) -> ExprType:
    site.count(0, 1)
    kind = site.args[0] if site.args else Row(())
    if isinstance(kind, Row | DictOf) or is_open(kind):
        return computed_of(kind) if is_open(kind) else kind
    pair = site.elements()
    match pair:
        case Tuple((key, value)):
            return DictOf(key, value)
        case Array(element):
            return DictOf(element, element)
        case _ if is_open(pair):
            return computed_of(pair)
        case _:
            raise site.problem(f"`dict` takes pairs, not {pair}")


def _of_enumerate(site: CallSite) -> ExprType:
    site.count(1, 2)
    return Array(Tuple((LONG, part(site.elements()))))


def _of_zip(site: CallSite) -> ExprType:
    parts = tuple(part(site.elements(i)) for i in range(len(site.args)))
    return Array(Tuple(parts)) if parts else Array(NULL)


def of_extreme(site: CallSite) -> ExprType:
    """`min` and `max`."""
    site.some()
    kinds = site.args if len(site.args) > 1 else (site.elements(),)
    result = joined(kinds, site.place)
    ordered = kinds if len(kinds) > 1 else kinds * 2
    if "key" in site.keywords:
        ordered = (site.apply("key", (result,)),) * 2
    _check_order(site, ordered)
    return join(result, site.keywords.get("default", NULL), site.place)


def _check_order(site: CallSite, kinds: tuple[ExprType, ...]) -> None:
    for kind in kinds:
        if not is_ordered(kinds[0], kind):
            both = f"{kinds[0]} and {kind} have" if kinds[0] != kind else f"{kind} has"
            raise site.problem(f"`{site.name}` compares, but {both} no order")


def _of_sorted(site: CallSite) -> ExprType:
    site.count(1, 1)
    element = site.elements()
    key = site.apply("key", (element,)) if "key" in site.keywords else element
    _check_order(site, (key, key))
    return Array(part(element))


def _of_sum(site: CallSite) -> ExprType:
    site.count(1, 2)
    element = site.elements()
    start = site.args[1] if len(site.args) > 1 else site.keywords.get("start", LONG)
    if is_open(element):
        return ANY if element == ANY else start
    total = start
    for _ in range(40):
        wider = join(
            total, binary("+", total, element, (site.exprs[0],) * 2, site.place), site.place
        )
        if wider == total:
            break
        total = wider
    return total


def _got(site: CallSite) -> ExprType:
    base, default = site.base, site.args[1] if len(site.args) > 1 else NULL
    if isinstance(base, DictOf):
        return join(base.value, default, site.place)
    assert isinstance(base, Row)
    name = constant_of(site.exprs[0])
    if isinstance(name, str):
        return base.column(name) or default
    return join(joined((f.type for f in base.fields), site.place), default, site.place)


def _values(base: ExprType) -> ExprType:
    if isinstance(base, DictOf):
        return base.value
    return joined(f.type for f in base.fields) if isinstance(base, Row) else ANY


def _pairs(site: CallSite) -> ExprType:
    return Array(Tuple((part(elements(site.base) or ANY), part(_values(site.base)))))


def _union(site: CallSite) -> ExprType:
    kind: Any = elements(site.base) or ANY
    for i in range(len(site.args)):
        kind = join(kind, site.elements(i), site.place)
    return SetOf(kind)


_FOUND: Members = {
    "count": method(LONG, ANYTHING),
    "index": method(LONG, ANYTHING, optional(WHOLE), optional(WHOLE)),
}
TUPLE_MEMBERS = _FOUND
LIST_MEMBERS: Members = {**_FOUND, "copy": method(same, column=lambda _, found: found)}
RANGE_MEMBERS: Members = {**_FOUND, **several("start stop step", read(LONG))}
ROW_MEMBERS: Members = {
    "copy": method(same),
    "get": method(_got, ANYTHING, optional(ANYTHING)),
    "items": method(_pairs),
    "keys": method(lambda site: Array(part(elements(site.base) or ANY))),
    "values": method(lambda site: Array(part(_values(site.base)))),
}
SET_MEMBERS: Members = {
    "copy": method(same),
    **several("difference intersection", method(same, *_SETS)),
    **several("isdisjoint issubset issuperset", method(BOOLEAN, MANY)),
    "symmetric_difference": method(_union, MANY),
    "union": method(_union, *_SETS),
}
_KEY = frozenset({"key"})
OF_PARTS: Members = {
    "all": Operation(_of_parts(lambda _: BOOLEAN), None, all),
    "any": Operation(_of_parts(lambda _: BOOLEAN), None, any),
    "dict": Operation(_of_dict, None, dict),
    "enumerate": Operation(_of_enumerate, None, enumerate),
    "len": Operation(_of_parts(lambda _: LONG), None, len),
    "list": Operation(_of_parts(_array_of, 0), None, list),
    "max": Operation(of_extreme, None, max, functions=_KEY, step="greatest"),
    "min": Operation(of_extreme, None, min, functions=_KEY, step="least"),
    "range": Operation(Array(LONG), (WHOLE, optional(WHOLE), optional(WHOLE)), range, cost=_RANGE),
    "reversed": Operation(_of_parts(_array_of), None, reversed),
    "set": Operation(_of_parts(SetOf, 0), None, set),
    "sorted": Operation(_of_sorted, None, sorted, cost=_sorted, functions=_KEY),
    "sum": Operation(_of_sum, None, sum, cost=_sum),
    "tuple": Operation(_of_tuple, None, tuple),
    "zip": Operation(_of_zip, None, zip),
}
OF_DICTS: Members = {"dict.fromkeys": Operation(ANY, (ANYTHING, optional(ANYTHING)), dict.fromkeys)}


# Choices among values that may be null: these functions define their results for nulls.


DATA = Library()


# the types of calls


def _common(site: CallSite) -> ExprType:
    site.some()
    return joined(site.args, site.place)


def _extreme(site: CallSite) -> ExprType:
    site.count(2, 1000)
    return of_extreme(site)


def _first(site: CallSite) -> ExprType:
    site.count(2, 2)
    value, other = site.args
    if isinstance(joined(site.args, site.place), MixedType):
        raise site.problem(f"{value} and {other} are never equal")
    return value


# Functions that programs call.


@DATA.own(_common)
def coalesce(*values: Any) -> Any:
    """The first value that is not null."""
    return next((value for value in values if value is not None), None)


@DATA.own(_extreme)
def greatest(*values: Any) -> Any:
    """The greatest of the values that are not null, NaN above all numbers."""
    return max((v for v in values if v is not None), key=sort_key, default=None)


@DATA.own(_extreme)
def least(*values: Any) -> Any:
    """The least of the values that are not null."""
    return min((v for v in values if v is not None), key=sort_key, default=None)


@DATA.own(_first)
def nullif(value: Any, other: Any) -> Any:
    """The value; null if it is equal to another, NaN to NaN."""
    return None if canonical(value) == canonical(other) else value
