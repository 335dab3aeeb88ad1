"""The common type of two types, and the type of a value.

The common type is the smallest in which every item of both can be written: numbers are coerced (a
long and a double are doubles), the unknown fits any other, tuples and rows go field by field.
Booleans are not numbers, and dates are not timestamps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal as DecimalValue
from typing import Any

from hydro_core.types.item import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGERS,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
    Unknown,
    is_integer,
    is_numeric,
)
from hydro_core.types.values import ValueProblem, no_item

MAX_PRECISION = 38
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}


def common_type(a: ItemType, b: ItemType) -> ItemType | None:
    """The smallest type for the items of both, None if there is none.

    The fields of a row have the order of `a`.

    >>> from hydro_core.types.ddl import parse_ddl, to_ddl
    >>> to_ddl(common_type(parse_ddl("(int, array<void>)"), parse_ddl("(double, array<string>)")))
    '(double, array<string>)'
    """
    if a is b or b == UNKNOWN:
        return a
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return b if isinstance(a, Unknown) else a
    if is_numeric(a) and is_numeric(b):
        return _common_number(a, b)
    if isinstance(a, Row) and isinstance(b, Row):
        return _common_row(a, b)
    return _by_parts(a, b, common_type)


def _by_parts(
    a: ItemType, b: ItemType, common: Callable[[ItemType, ItemType], ItemType | None]
) -> ItemType | None:
    """The type whose parts are common to those of both, of tuples and arrays."""
    match a, b:
        case Tuple(xs), Tuple(ys) if len(xs) == len(ys):
            fields = [common(x, y) for x, y in zip(xs, ys, strict=True)]
            return None if None in fields else Tuple(tuple(f for f in fields if f is not None))
        case Array(x), Array(y):
            element = common(x, y)
            return None if element is None else Array(element)
        case _:
            return a if a == b else None


def common_types(types: Iterable[ItemType]) -> ItemType | None:
    """The common type of several; unknown of none."""
    result: ItemType | None = UNKNOWN
    for t in types:
        result = None if result is None else common_type(result, t)
    return result


def _common_number(a: ItemType, b: ItemType) -> ItemType:
    if is_integer(a) and is_integer(b):
        return max(a, b, key=lambda t: INTEGERS.index(str(t)))
    exact = [as_decimal(t) for t in (a, b) if isinstance(t, Decimal) or is_integer(t)]
    if len(exact) < 2:
        return DOUBLE
    (p1, s1), (p2, s2) = ((d.precision, d.scale) for d in exact)
    return fit_decimal(max(p1 - s1, p2 - s2), max(s1, s2))


def as_decimal(t: ItemType) -> Decimal:
    """The decimal type that holds an exact number."""
    return t if isinstance(t, Decimal) else Decimal(_DIGITS[str(t)], 0)


def fit_decimal(whole: int, scale: int, keep: int = 0) -> Decimal:
    """A decimal type with so many digits before and after the point.

    Of too many, those after the point go first, until `keep` are left, then those before it.

    >>> fit_decimal(30, 10), fit_decimal(40, 10, 6)
    (Decimal(precision=38, scale=8), Decimal(precision=38, scale=6))
    """
    scale = max(min(scale, MAX_PRECISION - whole), min(scale, keep), 0)
    return Decimal(max(1, min(MAX_PRECISION, whole + scale)), scale)


def _common_row(a: Row, b: Row) -> Row | None:
    if len(a.fields) != len(b.fields):
        return None
    fields = []
    for field in a.fields:
        other = b.column(field.name)
        both = None if other is None else common_type(field.type, other)
        if both is None:
            return None
        nullable = field.nullable or b.by_name[field.name].nullable
        fields.append(Field(field.name, both, nullable))
    return Row(tuple(fields))


def type_of(item: Any) -> ItemType:
    """The type of one Python value: a tuple is a tuple, a dict a row, a list an array.

    >>> str(type_of((1, {"a": [None, 2.5]})))
    '(long, row<a array<double>>)'
    """
    match item:
        case None:
            return UNKNOWN
        case bool() | int() | float() | str() | bytes() | DecimalValue() | date():
            return _scalar_of(item)
        case tuple():
            return Tuple(tuple(map(type_of, item)))
        case dict():
            return Row(tuple(Field(name, type_of(value)) for name, value in dict.items(item)))
        case list():
            return Array(type_of_all(item))
        case _:
            raise no_item(item)


def _scalar_of(item: Any) -> ItemType:
    match item:
        case bool():
            return BOOLEAN
        case DecimalValue():
            exponent = item.as_tuple().exponent
            scale = max(0, -exponent) if isinstance(exponent, int) else 0
            return fit_decimal(max(1, item.adjusted() + 1), scale)
        case datetime():
            return TIMESTAMP if item.tzinfo else TIMESTAMP_NTZ
        case _:
            scalars: dict[type, Scalar] = {
                int: LONG,
                float: DOUBLE,
                str: STRING,
                bytes: BINARY,
                date: DATE,
            }
            return next(scalar for kind, scalar in scalars.items() if isinstance(item, kind))


def type_of_all(items: Iterable[Any]) -> ItemType:
    """The common type of several Python values; `ValueProblem` where they have none.

    >>> str(type_of_all([(1, None), (2.5, "x")]))
    '(double, string)'
    """
    return merge(map(type_of, items))


def merge(types: Iterable[ItemType]) -> ItemType:
    """The common type of values of one input, where rows may lack columns (they are null there)."""
    result: ItemType = UNKNOWN
    for t in types:
        both = _merged(result, t)
        if both is None:
            raise ValueProblem(f"the items have no common type: {result} and {t}")
        result = both
    return result


def _merged(a: ItemType, b: ItemType) -> ItemType | None:
    match a, b:
        case Row(), Row():
            names = dict.fromkeys(a.names + b.names)
            pairs = [(n, _merged(a.column(n) or UNKNOWN, b.column(n) or UNKNOWN)) for n in names]
            if any(t is None for _, t in pairs):
                return None
            return Row(tuple(Field(n, t) for n, t in pairs if t is not None))
        case (Tuple(), Tuple()) | (Array(), Array()):
            return _by_parts(a, b, _merged)
        case _:
            return common_type(a, b)
