"""The methods of tuples, lists, ranges, rows, dicts and sets."""

from __future__ import annotations

from typing import Any

from hydro_core.functions.kinds import (
    ANY,
    NULL,
    DictOf,
    ExprType,
    SetOf,
    elements,
    join,
    joined,
    part,
)
from hydro_core.functions.library.entry import (
    ANYTHING,
    MANY,
    WHOLE,
    CallSite,
    members,
    method,
    methods,
    optional,
    read,
    same,
)
from hydro_core.functions.tree import constant_of
from hydro_core.types.item import BOOLEAN, LONG, STRING, Array, Row, Tuple

_MOST_SETS = 100


def _got(base: ExprType, site: CallSite) -> ExprType:
    default = site.args[1] if len(site.args) > 1 else NULL
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


def _keys(base: ExprType, _: CallSite) -> ExprType:
    return Array(part(base.key) if isinstance(base, DictOf) else STRING)


def _list_of_values(base: ExprType, _: CallSite) -> ExprType:
    return Array(part(_values(base)))


def _pairs(base: ExprType, _: CallSite) -> ExprType:
    return Array(Tuple((part(elements(base) or ANY), part(_values(base)))))


def _union(base: ExprType, site: CallSite) -> ExprType:
    kind: Any = elements(base) or ANY
    for i in range(len(site.args)):
        kind = join(kind, site.elements(i), site.place)
    return SetOf(kind)


_FOUND = (
    method("count", ANYTHING, gives=LONG),
    method("index", ANYTHING, optional(WHOLE), optional(WHOLE), gives=LONG),
)
TUPLE_MEMBERS = members(*_FOUND)
LIST_MEMBERS = members(*_FOUND, method("copy", gives=same))
RANGE_MEMBERS = members(*_FOUND, read("start", LONG), read("stop", LONG), read("step", LONG))
ROW_MEMBERS = members(
    method("copy", gives=same),
    method("get", ANYTHING, optional(ANYTHING), gives=_got),
    method("items", gives=_pairs),
    method("keys", gives=_keys),
    method("values", gives=_list_of_values),
)
SET_MEMBERS = members(
    method("copy", gives=same),
    *methods("difference intersection", *(optional(MANY),) * _MOST_SETS, gives=same),
    *methods("isdisjoint issubset issuperset", MANY, gives=BOOLEAN),
    method("symmetric_difference", MANY, gives=_union),
    method("union", *(optional(MANY),) * _MOST_SETS, gives=_union),
)
