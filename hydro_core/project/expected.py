"""Values that `expect` names, read by the type of the column that they are compared with.

A number is rounded to the column's type only where that changes no comparison: `at_least: 0.5` of
a `long` is 1, `at_most: 0.5` is 0. Of a `double` or `float` it is the nearest number of the type,
as it is where data are read, so a column of `float` that holds 0.1 is at its bound 0.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any

from hydro_core.errors import Diagnostic
from hydro_core.project.flow_asset import Expect, FlowAsset
from hydro_core.types.item import (
    BOOLEAN,
    DATE,
    FLOATS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ItemType,
    Scalar,
    is_integer,
    is_numeric,
)
from hydro_core.types.item import Decimal as DecimalType
from hydro_core.types.values import ValueProblem, check_long, conform, print_moment, sort_key, unfit

_DIGITS_OF_LONG = 19
_MOST_DIGITS = 400
"""No exact number that is compared has more: a double of 309 digits has no fraction."""


def at_least(value: Any, of: ItemType) -> Any:
    """The smallest value of the type that is not below `value`; `ValueProblem` if none is read."""
    return _read(value, of, ROUND_CEILING)


def at_most(value: Any, of: ItemType) -> Any:
    """The largest value of the type that is not above `value`; `ValueProblem` if none is read."""
    return _read(value, of, ROUND_FLOOR)


def equal_value(value: Any, of: ItemType) -> Any:
    """The value of the type that `value` is; `ValueProblem` if it is none."""
    found = _read(value, of, ROUND_FLOOR)
    if is_exact(of) and found != value and found != _exact(value, of):
        raise unfit(value, of)
    return found


def is_exact(of: ItemType) -> bool:
    """Whether the type is one of numbers whose digits all count."""
    return is_integer(of) or isinstance(of, DecimalType)


def digits_of(of: ItemType) -> tuple[int, int]:
    """The precision and the scale of a type of exact numbers."""
    return (of.precision, of.scale) if isinstance(of, DecimalType) else (_DIGITS_OF_LONG, 0)


def _read(value: Any, of: ItemType, rounding: str) -> Any:
    is_no_time = type(value) is date and of in (TIMESTAMP, TIMESTAMP_NTZ)
    if isinstance(value, bool) is not (of == BOOLEAN) or is_no_time:
        raise unfit(value, of)
    if is_exact(of):
        precision, scale = digits_of(of)
        with localcontext(prec=2 * _MOST_DIGITS):
            # What is beyond all values of the type is as good as the first number that is.
            first = Decimal(1).scaleb(precision - scale)
            number = max(-first, min(first, _exact(value, of)))
            return number.quantize(Decimal(1).scaleb(-scale), rounding=rounding)
    if of not in _EXAMPLES:
        raise unfit(value, of)
    try:
        return conform(value, of)
    except OverflowError:
        raise unfit(value, of) from None


def _exact(value: Any, of: ItemType) -> Decimal:
    if not isinstance(value, int | float | Decimal) or math.isnan(value):
        raise unfit(value, of)
    if isinstance(value, int) and is_integer(of):
        check_long(value)
    # A float is meant as it is written: 0.1 is no 0.1000000000000000055…
    number = Decimal(repr(value) if isinstance(value, float) else value)
    if number.is_finite() and number and abs(number.adjusted()) > _MOST_DIGITS:
        raise unfit(value, of)
    return number


def value_text(value: Any) -> str:
    """A value as YAML has it."""
    match value:
        case bool():
            return str(value).lower()
        case date():
            return print_moment(value)
        case str():
            return repr(value)
        case _:
            return str(value)


def expected_problems(
    flow: FlowAsset, place: str, expect: Expect, of: ItemType
) -> Iterator[Diagnostic]:
    """What is wrong with what a flow expects of a column of the type."""
    said = (expect.at_least, expect.at_most, expect.matches)
    is_said = any(value is not None for value in said)
    if not (is_said or expect.not_null or expect.unique or expect.one_of):
        yield flow.problem_at(
            place, "nothing is expected", "say `not_null`, `unique`, `at_least`, …"
        )
    yield from _pattern(flow, f"{place}.matches", expect.matches, of)
    yield from _bounds(flow, place, expect, of)


def _pattern(
    flow: FlowAsset, place: str, pattern: str | None, of: ItemType
) -> Iterator[Diagnostic]:
    if pattern is None:
        return
    if of != STRING:
        message = f"only text matches a pattern, and the column is {of}"
        yield flow.problem_at(place, message, "leave `matches` out, or say it of a column of text")
    try:
        re.compile(pattern)
    except (re.error, TypeError) as problem:
        message = f"{pattern!r} is no regular expression: {problem}"
        yield flow.problem_at(place, message, "write one of Python's, such as `[a-z]+`")


def _bounds(flow: FlowAsset, place: str, expect: Expect, of: ItemType) -> Iterator[Diagnostic]:
    wanted: list[tuple[str, Any, Callable[[Any, ItemType], Any]]] = [
        *([("at_least", expect.at_least, at_least)] if expect.at_least is not None else []),
        *([("at_most", expect.at_most, at_most)] if expect.at_most is not None else []),
        *(("one_of", value, equal_value) for value in expect.one_of),
    ]
    read: dict[str, Any] = {}
    for name, value, reading in wanted:
        try:
            if name != "one_of" and isinstance(value, float) and math.isnan(value):
                raise unfit(value, of)
            read[name] = reading(value, of)
        except ValueProblem:
            text = value_text(value) if flow.places else repr(value)
            is_long = type(value) is int and is_integer(of)
            why = ", as it is beyond 64 bits" if is_long else ""
            message = f"{text} cannot be compared with a column of type {of}{why}"
            cure = _cure(value, of, in_yaml=bool(flow.places))
            yield flow.problem_at(f"{place}.{name}", message, cure)
    both = [sort_key(read[name]) for name in ("at_least", "at_most") if name in read]
    if len(both) == 2 and both[0] > both[1]:
        message = f"no value is at least {expect.at_least} and at most {expect.at_most}"
        cure = "leave one of the two out, or exchange them"
        yield flow.problem_at(f"{place}.at_least", message, cure)


def _cure(value: Any, of: ItemType, *, in_yaml: bool) -> str:
    if is_numeric(of):
        return "write a number, such as 0"
    if of not in _EXAMPLES:
        return "columns of this type have no bounds"
    what, text, python = _EXAMPLES[of]
    if type(value) is date and of != STRING:
        text = f"{value.isoformat()}{text.partition('T')[1]}{text.partition('T')[2]}"
    return f"write {what}, such as `{text if in_yaml else python}`"


_EXAMPLES: dict[ItemType, tuple[str, str, str]] = {
    **{Scalar(name): ("a number", "0", "0") for name in FLOATS},
    DATE: ("a date", "2026-01-01", "date(2026, 1, 1)"),
    TIMESTAMP: ("a time", "2026-01-01T00:00:00Z", "datetime(2026, 1, 1)"),
    TIMESTAMP_NTZ: ("a time without a zone", "2026-01-01T00:00:00", "datetime(2026, 1, 1)"),
    STRING: ("a text", "'EWR'", "'EWR'"),
    BOOLEAN: ("true or false", "true", "True"),
}
"""Types whose values are compared as they are, and how a value of each is written."""
