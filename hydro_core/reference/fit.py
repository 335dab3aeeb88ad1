"""Whether an item is of a type as it stands: most are, and then nothing has to be made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import cache
from operator import call
from typing import Any

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
    ItemType,
    Row,
    Scalar,
    Tuple,
)
from hydro_core.types.values import LONG_MAX, LONG_MIN, RowItem, Struct

Fits = Callable[[Any], bool]

_SCALARS: Mapping[Scalar, Fits] = {
    BOOLEAN: lambda x: type(x) is bool,
    LONG: lambda x: type(x) is int and LONG_MIN <= x <= LONG_MAX,
    DOUBLE: lambda x: type(x) is float,
    STRING: lambda x: type(x) is str and x.isascii(),
    BINARY: lambda x: type(x) is bytes,
    DATE: lambda x: type(x) is date,
    TIMESTAMP: lambda x: type(x) is datetime and x.tzinfo is UTC,
    TIMESTAMP_NTZ: lambda x: type(x) is datetime and x.tzinfo is None,
}


@cache
def fits(of: ItemType) -> Fits:
    """A quick test that is true only of items that `conform` would leave as they are.

    >>> fits(LONG)(1), fits(LONG)(1.0), fits(LONG)(None)
    (True, False, True)
    """
    test = _test(of)
    return lambda x: x is None or test(x)


def _test(of: ItemType) -> Fits:
    match of:
        case Scalar() if of in _SCALARS:
            return _SCALARS[of]
        case Tuple(fields):
            return _struct(tuple(map(fits, fields)))
        case Row(fields):
            return _row(of.names, tuple(fits(field.type) for field in fields))
        case Array(element):
            return _array(fits(element))
        case _:
            return lambda _: False


def _struct(tests: tuple[Fits, ...]) -> Fits:
    def test(x: Any) -> bool:
        if type(x) is not Struct or len(x) != len(tests):
            return False
        return all(map(call, tests, x))

    return test


def _row(names: tuple[str, ...], tests: tuple[Fits, ...]) -> Fits:
    def test(x: Any) -> bool:
        if type(x) is not RowItem or tuple(x) != names:
            return False
        return all(map(call, tests, dict.values(x)))

    return test


def _array(element: Fits) -> Fits:
    return lambda x: type(x) is list and all(map(element, x))
