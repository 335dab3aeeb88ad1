"""Items as Python values: tuples, rows, equality, order, and conformance to a type.

None, bool, int, float, str, bytes, `Decimal`, `date` and `datetime` are themselves; a tuple is a
`Struct`, a row a `RowItem`, an array a list. Items are never changed once they flow: an operator
that needs another item builds one.
"""

from __future__ import annotations

import ctypes
import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from functools import partial
from types import GeneratorType, UnionType
from typing import Any, NoReturn, Self, assert_never, cast

from hydro_core.types.item import Array, ItemType, Row, Scalar, Tuple, Unknown
from hydro_core.types.item import Decimal as DecimalType

# Dates and timestamps: read from ISO 8601, stored in UTC, and printed.
#
# A `timestamp` is a moment in UTC; text or a datetime without a zone is read as UTC. A
# `timestamp_ntz` has no zone, and a value with a zone is none. Text finer than a microsecond is
# refused, unless its other digits are zeros: Python's own reader drops them.


MICROSECOND = timedelta(microseconds=1)
_FRACTION = re.compile(r"([.,][0-9]{6})([0-9]+)")
"""The digits of a second, and those behind the microsecond; a zone's offset may have some, too."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_date(value: Any) -> date:
    """The date of a value; raises `ValueProblem` if it is none.

    >>> to_date("2024-02-29")
    datetime.date(2024, 2, 29)
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and len(value) == 10:
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise ValueProblem(f"{describe(value)} is not a date such as 2024-01-31")


def to_timestamp(value: Any, *, zone: bool) -> datetime:
    """The timestamp of a value: in UTC if `zone`, else without one; raises `ValueProblem` if it is
    none.

    >>> to_timestamp("2024-01-01T01:00:00+01:00", zone=True)
    datetime.datetime(2024, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """
    found = iso_moment(value)
    if found is None:
        if isinstance(value, str) and is_finer(value) and iso_moment(cut_to_micros(value)):
            raise ValueProblem(f"{describe(value)} is finer than a microsecond")
        raise ValueProblem(f"{describe(value)} is not a timestamp such as 2024-01-31T12:00:00Z")
    if not zone:
        if found.tzinfo is not None:
            raise ValueProblem(f"{describe(value)} names a zone, but a timestamp_ntz has none")
        return found
    if found.tzinfo is None:
        return found.replace(tzinfo=UTC)
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise ValueProblem(f"{describe(value)} is not within the years 1 to 9999 in UTC") from None


def in_utc(value: date) -> datetime:
    """The moment of a date, which is its midnight, or of a timestamp; in UTC without a zone.

    >>> in_utc(date(2024, 1, 31)).isoformat()
    '2024-01-31T00:00:00+00:00'
    """
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value


def since_epoch(moment: datetime) -> int:
    return (moment - _EPOCH) // MICROSECOND


def iso_moment(value: Any) -> datetime | None:
    """The time of a datetime or a text in ISO 8601; None if it is none, or finer than a
    microsecond.
    """
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        return None
    try:
        return None if is_finer(value) else datetime.fromisoformat(value)
    except ValueError:
        return None


def is_finer(text: str) -> bool:
    """True if the text has digits behind the microsecond that are not zero."""
    return any(digits.strip("0") for _, digits in _FRACTION.findall(text))


def cut_to_micros(text: str) -> str:
    """ISO 8601 without digits behind the microsecond.

    >>> cut_to_micros("2024-01-01T00:00:00.1234567Z")
    '2024-01-01T00:00:00.123456Z'
    """
    return _FRACTION.sub(r"\1", text)


def print_moment(value: date | datetime) -> str:
    """ISO 8601, with `Z` for UTC.

    >>> print_moment(datetime(2024, 1, 1, tzinfo=UTC)), print_moment(date(2024, 1, 1))
    ('2024-01-01T00:00:00Z', '2024-01-01')
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    return value.isoformat()


def is_distance(value: Any) -> bool:
    """True if a value can be the distance of two times or two numbers; it is not negative.

    >>> is_distance(timedelta(hours=1)), is_distance(2.5), is_distance(-1), is_distance(True)
    (True, True, False, False)
    """
    if isinstance(value, timedelta):
        return value >= timedelta()
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= 0


# Tuples, rows and written numbers as Python values.
#
# Inside a function a `Struct` is a Python tuple and a `RowItem` a Python dict: they compare, hash
# and unpack as these do.


_POSITION = re.compile(r"_([1-9][0-9]*)")


class ValueProblem(Exception):  # noqa: N818 - it becomes a Diagnostic, it is not one
    """The reason why a Python value is not an item, or not one of the expected type."""


def no_item(value: object) -> ValueProblem:
    """The problem of a value that is not an item of any type."""
    return ValueProblem(f"{describe(value)} is not an item")


class WrittenFloat(float):
    """A float with the digits as written, for a declared type with more digits than a float.

    >>> WrittenFloat("12345678901234567.89")
    12345678901234567.89
    """

    _digits: str

    def __new__(cls, digits: str) -> Self:
        number = super().__new__(cls, digits)
        number._digits = digits
        return number

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return WrittenFloat, (self._digits,)

    def __repr__(self) -> str:
        return self._digits


class Struct(tuple[Any, ...]):
    """A tuple item: a tuple whose fields also have the names `_1 … _n`.

    >>> Struct((1, "a"))._2
    'a'
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        found = _POSITION.fullmatch(name)
        if found and int(found[1]) <= len(self):
            return self[int(found[1]) - 1]
        raise AttributeError(f"a tuple of {len(self)} has no field {name!r}")


class RowItem(dict[str, Any]):
    """A row item: an immutable mapping whose fields are also attributes.

    A field wins over a method of its name.

    >>> r = RowItem(user="ann", keys=2)
    >>> r.user, r["user"], r.keys, {**r, "n": 1}
    ('ann', 'ann', 2, {'user': 'ann', 'keys': 2, 'n': 1})
    """

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in self and not name.startswith("__"):
            return self[name]
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the row has no column {name!r}; it has {', '.join(map(repr, self))}")

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(dict.items(self)))

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return RowItem, (dict(self),)

    def __repr__(self) -> str:
        return dict.__repr__(self)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError('a row cannot be changed; {**row, "name": value} makes a new one')

    __setitem__ = __delitem__ = __ior__ = __setattr__ = __delattr__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


_SHOWN = frozenset({bool, int, float, str, bytes, Decimal, date, datetime, tuple, list, dict})
_SHOWN |= {Struct, RowItem, WrittenFloat}


def describe(value: Any, limit: int = 60) -> str:
    """A short text of any value for a message.

    >>> describe("x" * 100, 10)
    "'xxxxxxx…"
    """
    if type(value) is int and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    if type(value) not in _SHOWN:
        return "None" if value is None else f"a {type(value).__name__}"
    try:
        text = repr(value)
    except ValueError:
        return f"a {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 2]}…"


# Items as Python values: conversion, equality, order, and conformance to a type.


LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
NOT_NULL = "null, where the schema says `not null`"
UNFIT = 'mend the data, or declare the type that they have: `name = source("…")`'
"""The help for an item of an input that does not have its type."""
_RANKS: tuple[tuple[int, type | UnionType], ...] = (
    (1, bool),
    (2, int | float | Decimal),
    (3, str),
    (4, bytes),
    (5, datetime),
    (7, date),
    (8, tuple),
    (9, dict),
    (10, list),
)
_AS_IS = frozenset({int, str, bytes, datetime, date, Decimal, type(None)})
"""The types whose values are equal exactly if Python says so; most values have one of these."""
_SEQUENCES = (range, zip, enumerate, reversed, map, filter, GeneratorType)
_VIEWS = tuple(map(type, ({}.keys(), {}.values(), {}.items(), reversed([]), reversed(range(0)))))


def canonical(item: Any) -> Hashable:
    """A value that is equal for two items exactly if the items are equal.

    Null equals null and NaN NaN; 0.0 equals −0.0; a boolean is no number; the order of a row's
    fields does not matter. Numbers are compared exactly: where two inputs have different numeric
    types, `conform` both to the common type first (a long and a double are compared as doubles).

    >>> canonical(1) == canonical(1.0), canonical(True) == canonical(1)
    (True, False)
    >>> canonical(RowItem(a=1, b=2)) == canonical(RowItem(b=2, a=1))
    True
    """
    if type(item) in _AS_IS:
        return item  # type: ignore[no-any-return]
    match item:
        case bool():
            return ("boolean", item)
        case float():
            return ("nan",) if math.isnan(item) else item
        case tuple():
            return ("tuple", *map(canonical, item))
        case dict():
            return ("row", frozenset((name, canonical(value)) for name, value in item.items()))
        case list():
            return ("array", *map(canonical, item))
        case _:
            return item  # type: ignore[no-any-return]


def sort_key(item: Any) -> Any:
    """A value that orders items as the language does.

    Nulls come first, false before true, NaN last of the numbers, strings by code point, structs and
    arrays field by field. Fields of a row count in the order of the row, which is that of its type
    after `conform`.

    >>> sorted([2.0, float("nan"), None, -1], key=sort_key)
    [None, -1, 2.0, nan]
    """
    if item is None:
        return (0,)
    if isinstance(item, float) and math.isnan(item):
        return (2, 1)
    rank = next((rank for rank, kind in _RANKS if isinstance(item, kind)), None)
    match rank:
        case None:
            raise no_item(item)
        case 2:
            return (2, 0, item)
        case 5 if item.tzinfo:
            return (6, item)
        case 8 | 10:
            return (rank, *map(sort_key, item))
        case 9:
            return (9, *map(sort_key, dict.values(item)))
        case _:
            return (rank, item)


def to_item(value: Any) -> Any:
    """The item of a Python value, such as a function's result; raises `ValueProblem` if it is none.

    >>> to_item((1, {"a": [2]}))
    (1, {'a': [2]})
    >>> to_item(2**63)
    Traceback (most recent call last):
    hydro_core.types.values.ValueProblem: 9223372036854775808 is beyond 64 bits
    """
    match value:
        case None | bool():
            return value
        case int():
            return check_long(int(value))
        case float():
            return float(value)
        case str():
            return check_string(value)
        case tuple():
            return Struct(map(to_item, value))
        case dict():
            return RowItem((_name(key), to_item(field)) for key, field in dict.items(value))
        case list():
            return [to_item(element) for element in value]
        case _:
            return _other_item(value)


def _other_item(value: Any) -> Any:
    match value:
        case Decimal() if value.is_finite():
            return _unsigned_zero(value)
        case datetime():
            return value.astimezone(UTC) if value.tzinfo is not None else value
        case date():
            return value
        case bytes() | bytearray():
            return bytes(value)
        case set() | frozenset():
            raise ValueProblem(
                "a set is not an item: it has no order; `sorted(…)` makes it an array"
            )
        case timedelta():
            raise ValueProblem("a timedelta is not an item; `.total_seconds()` makes it a number")
        case _ if isinstance(value, _SEQUENCES + _VIEWS):
            elements = cast("Iterable[Any]", value)
            return [to_item(element) for element in elements]
        case _:
            raise no_item(value)


def check_long(value: int) -> int:
    """`value`, if it has 64 bits; else raises `ValueProblem`."""
    if LONG_MIN <= value <= LONG_MAX:
        return value
    raise ValueProblem(f"{describe(value)} is beyond 64 bits")


def check_string(value: str) -> str:
    """`value`, if it has no half of a surrogate pair; else raises `ValueProblem`."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueProblem(f"{value!a} holds half of a surrogate pair") from None
    return str(value)


def is_changeable(item: Any) -> bool:
    """True if the item has an array: all other items are immutable."""
    match item:
        case list():
            return True
        case tuple():
            return any(map(is_changeable, item))
        case Mapping():
            return any(map(is_changeable, dict.values(item)))  # type: ignore[arg-type]
        case _:
            return False


def _name(key: Any) -> str:
    if isinstance(key, str):
        return check_string(key)
    raise ValueProblem(f"the columns of a row have names, but {describe(key)} is none")


def conform(item: Any, to: ItemType) -> Any:
    """The item as one of the type; raises `ValueProblem` with the path if it is none.

    Integers become floats where the type has these, decimals get its scale, texts become dates and
    timestamps, missing columns null, lists tuples and tuples lists. Nothing loses digits, except a
    computed decimal, which is rounded half to even.

    >>> from hydro_core.types.ddl import parse_ddl
    >>> conform({"b": 1}, parse_ddl("a string, b double"))
    {'a': None, 'b': 1.0}
    """
    if item is None:
        return None
    match to:
        case Unknown():
            return to_item(item)
        case Scalar(name):
            return _SCALARS[name](item)
        case DecimalType():
            return _decimal(item, to)
        case Tuple() | Row() | Array():
            return with_parts(item, to, conform)
        case _:
            assert_never(to)


def with_parts(
    item: Any, to: Tuple | Row | Array, read: Callable[[Any, ItemType], Any], *, asks: bool = False
) -> Any:
    """The item of the type whose parts are `read` from those of `item`.

    With `asks`, a null in a column that is `not null` is refused.
    """

    def part(step: int | str, value: Any, of: ItemType, required: bool = False) -> Any:
        if value is None and required:
            raise ValueProblem(f"{NOT_NULL} (at {step})")
        try:
            return read(value, of)
        except ValueProblem as problem:
            raise ValueProblem(f"{problem} (at {step})") from None

    match item, to:
        case list() | tuple(), Tuple(fields) if len(item) == len(fields):
            return Struct(part(i, x, t) for i, (x, t) in enumerate(zip(item, fields, strict=True)))
        case list() | tuple(), Array(element):
            return [part(i, x, element) for i, x in enumerate(item)]
        case dict(), Row(columns):
            extra = next((name for name in dict.keys(item) if to.column(name) is None), None)
            if extra is not None:
                raise ValueProblem(
                    f"there is no column {extra!r}; the columns are {', '.join(to.names)}"
                )
            return RowItem(
                (f.name, part(f.name, dict.get(item, f.name), f.type, asks and not f.nullable))
                for f in columns
            )
        case _:
            raise unfit(item, to)


def conform_input(item: Any, to: ItemType) -> Any:
    """The item as one of an input's declared type: columns `not null` are checked, and a number
    keeps all its digits.

    >>> from hydro_core.types.ddl import parse_ddl
    >>> conform_input({"a": None}, parse_ddl("a string not null"))
    Traceback (most recent call last):
    hydro_core.types.values.ValueProblem: null, where the schema says `not null` (at a)
    """
    match item, to:
        case list() | tuple() | dict(), Tuple() | Row() | Array():
            return with_parts(item, to, conform_input, asks=True)
        case _:
            return _exact(conform(item, to), item, to)


def _exact(found: Any, item: Any, to: ItemType) -> Any:
    """The number that was `found` for another one, if that loses no digit of it."""
    match found, item:
        case _ if type(found) is type(item) and found == item:
            return found
        case Decimal(), _ if found != item:
            raise ValueProblem(f"{describe(item)} has more digits after the point than {to}")
        case float(), Decimal():
            # The shortest text of a float is its value, as in CSV and JSON.
            is_exact = Decimal(repr(found)) == item
        case float(), int() | float():
            is_exact = found == item or math.isnan(item)
        case _:
            return found
    if not is_exact:
        raise ValueProblem(f"{describe(item)} is no exact {to}")
    return found


def require(item: Any, of: ItemType) -> None:
    """Refuses a null in a column that the type declares `not null`."""
    match item, of:
        case None, _:
            return
        case dict(), Row(fields):
            for field in fields:
                value = dict.get(item, field.name)
                if value is None and not field.nullable:
                    raise ValueProblem(f"{NOT_NULL} (at {field.name})")
                require(value, field.type)
        case tuple(), Tuple(types):
            for value, kind in zip(item, types, strict=True):
                require(value, kind)
        case list(), Array(element):
            for value in item:
                require(value, element)
        case _:
            return


def unfit(item: Any, to: object) -> ValueProblem:
    return ValueProblem(f"{describe(item)} is not of type {to}")


def _integer(name: str, bits: int) -> Callable[[Any], int]:
    def check(item: Any) -> int:
        if not isinstance(item, int) or isinstance(item, bool):
            raise unfit(item, name)
        if not -(2 ** (bits - 1)) <= item < 2 ** (bits - 1):
            raise ValueProblem(f"{describe(item)} is beyond the {bits} bits of type {name}")
        return int(item)

    return check


def _double(item: Any) -> float:
    if isinstance(item, bool) or not isinstance(item, int | float | Decimal):
        raise unfit(item, "double")
    return float(item)


def _float(item: Any) -> float:
    number = _double(item)
    # The nearest number of 32 bits; one that is too large is an infinity, as in Spark.
    return float(ctypes.c_float(number).value)


def _decimal(item: Any, to: DecimalType) -> Decimal:
    if isinstance(item, bool) or not isinstance(item, int | Decimal):
        raise unfit(item, to)
    value, whole = Decimal(item), to.precision - to.scale
    # A large exponent exceeds the context, so it is refused before it is rounded.
    if not value or not value.is_finite() or value.adjusted() < whole:
        with localcontext(prec=100, rounding=ROUND_HALF_EVEN):
            value = value.quantize(Decimal(1).scaleb(-to.scale))
    if value and value.adjusted() >= whole:
        raise ValueProblem(f"{describe(item)} has more digits than {to}")
    return _unsigned_zero(value)


def _unsigned_zero(value: Decimal) -> Decimal:
    """A zero has no sign in a column of decimals, and so none in an item."""
    return value or value.copy_abs()


def _exactly(
    name: str, kind: type | UnionType, check: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    def checked(item: Any) -> Any:
        if not isinstance(item, kind):
            raise unfit(item, name)
        return check(item)

    return checked


_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "boolean": _exactly("boolean", bool, bool),
    "byte": _integer("byte", 8),
    "short": _integer("short", 16),
    "integer": _integer("integer", 32),
    "long": _integer("long", 64),
    "float": _float,
    "double": _double,
    "string": _exactly("string", str, check_string),
    "binary": _exactly("binary", bytes | bytearray, bytes),
    "date": to_date,
    "timestamp": partial(to_timestamp, zone=True),
    "timestamp_ntz": partial(to_timestamp, zone=False),
}


# Items as Python expressions, as programs, plans and S-expressions write them.


def quoted(text: str) -> str:
    """A text in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def literal(value: Any, string: Callable[[str], str] = quoted) -> str:
    """A Python expression for an item; `string` writes its texts.

    >>> literal((1, None, {"a": [float("inf")]}))
    '(1, None, {"a": [float("inf")]})'
    """
    match value:
        case str():
            return string(value)
        case float() if not math.isfinite(value):
            return f"float({string(str(value))})"
        case tuple():
            inside = ", ".join(literal(part, string) for part in value)
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case list():
            return f"[{', '.join(literal(part, string) for part in value)}]"
        case Mapping():
            fields = (f"{string(name)}: {literal(value[name], string)}" for name in value)
            return "{" + ", ".join(fields) + "}"
        case Decimal():
            return f"Decimal({string(str(value))})"
        case date() | timedelta():
            return _moment_literal(value)
        case _:
            return repr(value)


def _moment_literal(value: date | timedelta) -> str:
    if isinstance(value, timedelta):
        units = ("days", "seconds", "microseconds")
        given = (f"{unit}={n}" for unit in units if (n := getattr(value, unit)))
        return f"timedelta({', '.join(given)})"
    if not isinstance(value, datetime):
        return f"date({value.year}, {value.month}, {value.day})"
    parts = [value.year, value.month, value.day, value.hour, value.minute, value.second]
    parts += [value.microsecond] if value.microsecond else []
    zone = ", tzinfo=timezone.utc" if value.tzinfo else ""
    return f"datetime({', '.join(map(str, parts))}{zone})"
