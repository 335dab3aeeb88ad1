"""Items in JSON.

A row is an object; a tuple and an array are arrays, and an array is a tuple unless the type says
`array<…>`. Dates, timestamps and decimals are strings (a decimal with as many digits after the
point as its scale), binary is base64. NaN and the infinities, for which JSON has no form, are the
strings `"NaN"`, `"Infinity"` and `"-Infinity"`, as Spark writes them; the bare words that Python
writes are read, too. A column that an object lacks is null; one that the type lacks is a problem,
and so is an integer beyond 64 bits.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from datetime import date
from decimal import Decimal as DecimalValue
from decimal import InvalidOperation
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.types.common import merge
from hydro_core.types.item import (
    BOOLEAN,
    DOUBLE,
    LONG,
    STRING,
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
    Unknown,
)
from hydro_core.types.values import (
    RowItem,
    Struct,
    ValueProblem,
    check_long,
    conform,
    describe,
    no_item,
    print_moment,
    unfit,
    with_parts,
)

_FLOATS = (DOUBLE, Scalar("float"))
_NO_NUMBERS = {text: float(text) for text in ("NaN", "Infinity", "-Infinity")}
_MOMENTS = ("date", "timestamp", "timestamp_ntz")


class JsonNumber(float):
    """A number of JSON with a point or an exponent: a double with its text."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> JsonNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __repr__(self) -> str:
        return self.text


def parse_json(text: str) -> Any:
    """The JSON value of a text; raises `ValueProblem` if it is none, or nests deeper than any item.

    Its numbers have all their digits until a type is known, since a decimal has all of them.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    hydro_core.types.values.ValueProblem: it nests too deep: no item has so many levels
    """
    try:
        return json.loads(text, parse_float=JsonNumber)
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as problem:
        line = f"line {problem.lineno}, " if "\n" in text.strip() else ""
        raise ValueProblem(f"{problem.msg} ({line}column {problem.colno})") from None
    except ValueError as problem:
        raise ValueProblem(str(problem)) from None


def from_json(value: Any, to: ItemType) -> Any:
    """The item of a JSON value; raises `ValueProblem` with the path if it is none of the type.

    >>> from hydro_core.types.ddl import parse_ddl
    >>> from_json({"at": "2024-01-01"}, parse_ddl("at date, price decimal(4,2)"))
    {'at': datetime.date(2024, 1, 1), 'price': None}
    """
    if isinstance(value, JsonNumber) and not isinstance(to, Decimal):
        value = float(value)
    match value, to:
        case None, _:
            return None
        case _, Unknown():
            return _as_it_is(value)
        case _, Decimal():
            return _read_decimal(value, to)
        case str(), Scalar("binary"):
            try:
                return base64.b64decode(value, validate=True)
            except ValueError:
                raise ValueProblem(f"{describe(value)} is not base64") from None
        case list() | dict(), Tuple() | Row() | Array():
            return with_parts(value, to, from_json, asks=True)
        case _, Scalar(name) if name not in _MOMENTS or isinstance(value, str):
            if to in _FLOATS and isinstance(value, str):
                value = _NO_NUMBERS.get(value, value)
            return conform(value, to)
        case _:
            raise unfit(value, to)


def to_json(item: Any, of: ItemType = UNKNOWN) -> Any:
    """The JSON value of an item of the type; if the type is unknown, by the item's class.

    >>> to_json(RowItem(price=DecimalValue("2.5")), Row((Field("price", Decimal(4, 2)),)))
    {'price': '2.50'}
    """
    match item:
        case int() if of in _FLOATS:
            return float(item)
        case float() if not math.isfinite(item):
            return _text_of(item)
        case None | bool() | int() | float() | str():
            return item
        case tuple():
            types = of.fields if isinstance(of, Tuple) else (UNKNOWN,) * len(item)
            return [to_json(x, t) for x, t in zip(item, types, strict=True)]
        case list():
            element = of.element if isinstance(of, Array) else UNKNOWN
            return [to_json(x, element) for x in item]
        case dict():
            if isinstance(of, Row):
                return {f.name: to_json(dict.get(item, f.name), f.type) for f in of.fields}
            return {name: to_json(x) for name, x in dict.items(item)}
        case _:
            return _as_text(item, of)


def json_text(value: Any, *, compact: bool = False) -> str:
    """The text of a JSON value; floats that JSON cannot write are strings in it."""
    separators = (",", ":") if compact else None
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=separators)
    except ValueError:
        return as_written(value, compact=compact)


def as_written(value: Any, *, compact: bool = False) -> str:
    """The text of a JSON value, with the numbers of `parse_json` as written."""
    comma, colon = (",", ":") if compact else (", ", ": ")
    match value:
        case JsonNumber():
            return value.text
        case float() if not math.isfinite(value):
            return f'"{_text_of(value)}"'
        case dict():
            each = (
                f"{json_text(n)}{colon}{as_written(x, compact=compact)}" for n, x in value.items()
            )
            return "{" + comma.join(each) + "}"
        case list() | tuple():
            return f"[{comma.join(as_written(x, compact=compact) for x in value)}]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _text_of(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _as_text(item: Any, of: ItemType) -> str:
    match item:
        case DecimalValue():
            return format(conform(item, of) if isinstance(of, Decimal) else item, "f")
        case date():
            return print_moment(item)
        case bytes():
            return base64.b64encode(item).decode("ascii")
        case _:
            raise no_item(item)


def infer(values: Iterable[Any]) -> ItemType:
    """The type of an input without a schema, from its JSON values.

    Integers are long, other numbers double, and long among doubles is double; arrays are tuples,
    objects rows that have every column that any of them has.

    >>> str(infer([[1, {"a": "x"}], [2.5, {"b": None}]]))
    '(double, row<a string, b unknown>)'
    """
    try:
        return merge(map(_type_of_json, values))
    except TypeProblem as problem:
        raise ValueProblem(problem.message) from None
    except RecursionError:  # from Python 3.12 on a parser recurses deeper than functions do
        raise _too_deep() from None


def _type_of_json(value: Any) -> ItemType:
    match value:
        case None:
            return UNKNOWN
        case bool():
            return BOOLEAN
        case int():
            check_long(value)
            return LONG
        case float():
            return DOUBLE
        case str():
            return STRING
        case list():
            return Tuple(tuple(map(_type_of_json, value)))
        case dict():
            return Row(tuple(Field(name, _type_of_json(x)) for name, x in value.items()))
        case _:
            raise ValueProblem(f"{describe(value)} is not a JSON value")


def _as_it_is(value: Any) -> Any:
    try:
        match value:
            case list():
                return Struct(map(_as_it_is, value))
            case dict():
                return RowItem((name, _as_it_is(x)) for name, x in value.items())
            case _:
                return conform(value, UNKNOWN)
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> ValueProblem:
    return ValueProblem("it nests too deep: no item has so many levels")


def _read_decimal(value: Any, to: Decimal) -> DecimalValue:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise unfit(value, to)
    text = value.text if isinstance(value, JsonNumber) else value
    shown = text if isinstance(value, JsonNumber) else describe(value)
    try:
        number = DecimalValue(text if isinstance(text, str) else repr(text))
        if not number.is_finite():
            raise InvalidOperation
    except InvalidOperation:
        raise ValueProblem(f"{shown} is not a decimal number such as '2.50'") from None
    exact: DecimalValue = conform(number, to)
    if exact != number:
        raise ValueProblem(f"{shown} has more digits after the point than {to}")
    return exact
