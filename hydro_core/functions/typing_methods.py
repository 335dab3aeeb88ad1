"""The kinds that methods give, by the kind of the value they are called on."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal as DecimalValue
from typing import Any

from hydro_core.functions.allowed import METHODS
from hydro_core.functions.kinds import (
    ANY,
    NULL,
    TIMEDELTA,
    ZONE,
    DictOf,
    ExprType,
    SetOf,
    computed_of,
    constant_of,
    elements,
    is_open,
    join,
    joined,
    number,
    part,
)
from hydro_core.functions.typing_calls import CallSite
from hydro_core.types.common import fit_decimal
from hydro_core.types.item import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
    Row,
    Tuple,
)

MethodTyping = Callable[[ExprType, CallSite], ExprType]


def method(base: ExprType, site: CallSite) -> ExprType:
    """The kind of `base.name(…)`; the site's arguments are those in the parentheses."""
    if is_open(base):
        return computed_of(base)
    if isinstance(base, Row) and base.column(site.name) is not None:
        raise site.problem(
            f"the column `{site.name}` is not a method", "read it without parentheses"
        )
    table = _table(base)
    if site.name in table:
        found = table[site.name]
        return found(base, site) if callable(found) else found
    near = difflib.get_close_matches(site.name, table, 1)
    raise site.problem(
        f"{base} has no method `{site.name}`", f"did you mean `.{near[0]}`?" if near else None
    )


def _table(base: ExprType) -> Mapping[str, ExprType | MethodTyping]:
    match base:
        case Row() | DictOf():
            return _ROW
        case Tuple() | Array():
            return _SEQUENCE
        case SetOf():
            return _SET
        case Decimal():
            return _DECIMAL
        case _ if number(base) in (LONG, DOUBLE):
            return _LONG if number(base) == LONG else _DOUBLE
        case _:
            return _SCALARS.get(base, {})


def _fill(
    kind: type, groups: Mapping[str, ExprType | MethodTyping], default: ExprType | MethodTyping
) -> dict[str, Any]:
    """A rule for every allowed method of a kind; those that are not listed give the default."""
    listed = {name: rule for names, rule in groups.items() for name in names.split()}
    return {name: listed.get(name, default) for name in METHODS[kind]}


def _join_text(_: ExprType, site: CallSite) -> ExprType:
    site.count(1, 1)
    element = site.elements()
    if not is_open(element) and element != STRING:
        raise site.problem(
            f"`join` takes strings, not {element}", "make them strings: `str(x) for x in …`"
        )
    return STRING


def _same(base: ExprType, _: CallSite) -> ExprType:
    return base


def _get(base: ExprType, site: CallSite) -> ExprType:
    site.count(1, 2)
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


def _replace_moment(base: ExprType, site: CallSite) -> ExprType:
    zone = site.keywords.get("tzinfo")
    if zone is None or base == DATE:
        return base
    return TIMESTAMP if zone == ZONE else TIMESTAMP_NTZ if zone == NULL else ANY


def _zoned(kind: ExprType) -> MethodTyping:
    """The machine has a zone for a timestamp that names none: another on each machine."""

    def rule(base: ExprType, site: CallSite) -> ExprType:
        if base == TIMESTAMP_NTZ:
            raise site.problem(
                f"a timestamp without a zone has no `{site.name}`",
                "`.replace(tzinfo=timezone.utc)` gives it one",
            )
        return kind

    return rule


def _quantize(base: ExprType, site: CallSite) -> ExprType:
    exponent = constant_of(site.exprs[0]) if site.exprs else ...
    to = site.args[0] if site.args else ANY
    if not isinstance(base, Decimal) or not isinstance(to, Decimal):
        return Decimal(38, 18)
    scale = to.scale
    if exponent is not ... and hasattr(exponent, "as_tuple"):
        scale = max(0, -int(exponent.as_tuple().exponent))
    return fit_decimal(base.precision - base.scale + 1, scale)


def _whole(base: ExprType, _: CallSite) -> ExprType:
    return fit_decimal(base.precision - base.scale + 1, 0) if isinstance(base, Decimal) else ANY


def _union(base: ExprType, site: CallSite) -> ExprType:
    kind: ExprType = elements(base) or ANY
    for i in range(len(site.args)):
        kind = join(kind, site.elements(i), site.place)
    return SetOf(kind)


_STRING_RULES: Mapping[str, ExprType | MethodTyping] = {
    "count find index rfind rindex": LONG,
    "endswith isalnum isalpha isascii isdecimal isdigit isidentifier": BOOLEAN,
    "islower isnumeric isprintable isspace istitle isupper startswith": BOOLEAN,
    "encode": BINARY,
    "join": _join_text,
    "partition rpartition": Tuple((STRING,) * 3),
    "split rsplit splitlines": Array(STRING),
}
_STRING = _fill(str, _STRING_RULES, STRING)
_BYTES = _fill(bytes, {"decode hex": STRING, "endswith startswith": BOOLEAN}, LONG)
_ROW: Mapping[str, ExprType | MethodTyping] = {
    "get": _get,
    "keys": Array(STRING),
    "values": lambda base, _: Array(part(_values(base))),
    "items": lambda base, _: Array(Tuple((part(elements(base) or ANY), part(_values(base))))),
    "copy": _same,
}
_SEQUENCE: Mapping[str, ExprType | MethodTyping] = {"count": LONG, "index": LONG, "copy": _same}
_SET = _fill(
    set, {"isdisjoint issubset issuperset": BOOLEAN, "difference intersection copy": _same}, _union
)
_LONG = _fill(int, {"to_bytes": BINARY}, LONG)
_DOUBLE = _fill(float, {"hex": STRING, "is_integer": BOOLEAN}, ANY)
_DECIMAL = _fill(
    DecimalValue,
    {
        "adjusted": LONG,
        "is_nan is_signed is_zero": BOOLEAN,
        "quantize": _quantize,
        "to_integral_value": _whole,
        "copy_abs copy_negate normalize": _same,
    },
    Decimal(38, 18),
)
_DATES: Mapping[str, ExprType | MethodTyping] = {
    "isoformat strftime ctime": STRING,
    "isocalendar": Tuple((LONG,) * 3),
    "weekday isoweekday toordinal": LONG,
    "replace": _replace_moment,
    "date": DATE,
    "timestamp": _zoned(DOUBLE),
    "astimezone": _zoned(TIMESTAMP),
    "utcoffset": TIMEDELTA,
}
_SCALARS: Mapping[Any, Mapping[str, ExprType | MethodTyping]] = {
    STRING: _STRING,
    BINARY: _BYTES,
    DATE: _fill(date, _DATES, ANY),
    TIMESTAMP: _fill(datetime, _DATES, ANY),
    TIMESTAMP_NTZ: _fill(datetime, _DATES, ANY),
    TIMEDELTA: {"total_seconds": DOUBLE},
}
