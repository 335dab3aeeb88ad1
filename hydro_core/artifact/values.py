"""Arguments of operators and constants as data that JSON can hold.

A value that JSON has no form for is an object with one key, which says what it is.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, get_args

from hydro_core.catalog.spec import Aggregate, OverFunction
from hydro_core.functions.tree import Fn
from hydro_core.types.item import ItemType
from hydro_core.types.values import RowItem, Struct


def write_value(tables: Any, value: Any) -> Any:
    """A value as it is written; functions and types are numbers of the tables."""
    match value:
        case None | bool() | str():
            return value
        case int() if abs(value) < 2**53:
            return value
        case float() if math.isfinite(value):
            return value
        case list():
            return [write_value(tables, one) for one in value]
        case _:
            found = next((kind for kind in _KINDS if isinstance(value, kind.of)), None)
            if found is None:
                raise TypeError(f"{type(value).__name__} is no argument of an operator")
            return {found.tag: found.write(tables, value)}


def read_value(tables: Any, record: Any) -> Any:
    """The value that was written."""
    match record:
        case list():
            return [read_value(tables, one) for one in record]
        case dict():
            ((tag, given),) = record.items()
            return _BY_TAG[tag].read(tables, given)
        case _:
            return record


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of values: its tag, its classes, and how it is written and read."""

    tag: str
    of: type | tuple[type, ...]
    write: Callable[[Any, Any], Any]
    read: Callable[[Any, Any], Any]


def _all(tables: Any, values: Iterable[Any]) -> list[Any]:
    return [write_value(tables, value) for value in values]


def _call(made: Callable[[str, tuple[Any, ...]], Any]) -> Callable[[Any, Any], Any]:
    return lambda tables, given: made(given[0], tuple(read_value(tables, given[1])))


def _write_call(tables: Any, call: Aggregate | OverFunction) -> list[Any]:
    return [call.function, _all(tables, call.arguments)]


def _write_pairs(tables: Any, values: Mapping[Any, Any]) -> list[Any]:
    return [_all(tables, pair) for pair in values.items()]


def _scalar(
    tag: str, of: type, text: Callable[[Any], Any], read: Callable[[Any], Any] | None = None
) -> _Kind:
    return _Kind(tag, of, lambda _, value: text(value), lambda _, given: (read or of)(given))


_KINDS = (
    _Kind("function", Fn, lambda to, fn: to.function(fn), lambda of, n: of.functions[n]),
    _Kind("type", get_args(ItemType), lambda to, item: to.type(item), lambda of, n: of.types[n]),
    _Kind("aggregate", Aggregate, _write_call, _call(Aggregate)),
    _Kind("over_function", OverFunction, _write_call, _call(OverFunction)),
    _Kind("struct", Struct, _all, lambda of, given: Struct(read_value(of, given))),
    _Kind("tuple", tuple, _all, lambda of, given: tuple(read_value(of, given))),
    _Kind("row", RowItem, _write_pairs, lambda of, given: RowItem(read_value(of, given))),
    _Kind("dict", Mapping, _write_pairs, lambda of, given: dict(read_value(of, given))),
    _scalar("integer", int, str),
    _scalar("float", float, repr),
    _scalar("bytes", bytes, lambda v: base64.b64encode(v).decode("ascii"), base64.b64decode),
    _scalar("decimal", Decimal, str),
    _scalar("datetime", datetime, datetime.isoformat, datetime.fromisoformat),
    _scalar("date", date, date.isoformat, date.fromisoformat),
    _scalar(
        "timedelta",
        timedelta,
        lambda v: [v.days, v.seconds, v.microseconds],
        lambda p: timedelta(*p),
    ),
    _Kind(
        "timezone",
        timezone,
        lambda to, zone: write_value(to, zone.utcoffset(None)),
        lambda of, given: timezone(read_value(of, given)),
    ),
)
"""The first whose class a value has is its kind."""
_BY_TAG = {kind.tag: kind for kind in _KINDS}
