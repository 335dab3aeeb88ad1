"""What people who work with data look for, and Python's builtins lack.

An entry here has a null rule of its own: of a *strict* function a null gives null, as in SQL, while
Python's builtins fail on it. `coalesce`, `greatest` and `least` skip nulls.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import zlib
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID
from uuid import uuid5 as named_uuid

from hydro_core.functions.constant_limits import Budget
from hydro_core.functions.kinds import ExprType, computed_of, is_open, joined
from hydro_core.functions.library import builtin_types as types
from hydro_core.functions.library.entry import (
    TEXT,
    CallSite,
    LibraryFunction,
    Parameter,
    constant,
)
from hydro_core.functions.library.nulls import strict
from hydro_core.functions.library.regex_types import REGEXP_FUNCTIONS
from hydro_core.types.item import (
    BINARY,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)
from hydro_core.types.values import LONG_MAX, LONG_MIN, sort_key

_CONTENT = Parameter("a string, or bytes", lambda kind: kind in (STRING, BINARY))
_TIME = Parameter("a date or a time", lambda kind: kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ))
_TIMES = ("hour", "minute", "second")
_UNITS = ("year", "quarter", "month", "week", "day", *_TIMES)
_URL_PARTS = ("scheme", "host", "port", "path", "query", "fragment")
_SOUNDS: Mapping[str, str] = {
    letter: str(number)
    for number, letters in enumerate(("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R"), 1)
    for letter in letters
}


def coalesce(*values: Any) -> Any:
    """The first value that is not null."""
    return next((value for value in values if value is not None), None)


def greatest(*values: Any) -> Any:
    """The greatest of the values that are not null, NaN above all numbers."""
    return max((v for v in values if v is not None), key=sort_key, default=None)


def least(*values: Any) -> Any:
    """The least of the values that are not null."""
    return min((v for v in values if v is not None), key=sort_key, default=None)


@strict
def try_int(text: str) -> int | None:
    """The whole number that a text is; null if it is none, or has more than 64 bits."""
    try:
        found = int(text)
    except ValueError:
        return None
    return found if LONG_MIN <= found <= LONG_MAX else None


@strict
def try_float(text: str) -> float | None:
    """The number that a text is; null if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


@strict
def try_date(text: str) -> date | None:
    """The date that a text is, as `date.fromisoformat` reads it; null if it is none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@strict
def sha256(content: str | bytes) -> str:
    """The digest in hexadecimal digits; of a text, that of its UTF-8."""
    return hashlib.sha256(_bytes(content)).hexdigest()


@strict
def md5(content: str | bytes) -> str:
    """The digest in hexadecimal digits, which is no secret's; of a text, that of its UTF-8."""
    return hashlib.md5(_bytes(content), usedforsecurity=False).hexdigest()


@strict
def crc32(content: str | bytes) -> int:
    """The check sum, not negative; of a text, that of its UTF-8."""
    return zlib.crc32(_bytes(content))


@strict
def base64_encode(content: str | bytes) -> str:
    """The content in the letters of base 64; of a text, its UTF-8."""
    return base64.b64encode(_bytes(content)).decode("ascii")


@strict
def base64_decode(text: str) -> bytes:
    """The bytes that stand in a text in base 64; what is none fails."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as problem:
        raise ValueError(f"{text[:40]!r} is not in base 64: {problem}") from None


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


@strict
def uuid5(namespace: str, name: str) -> str:
    """The UUID of a name within a namespace, which is a UUID."""
    return str(named_uuid(UUID(namespace), name))


@strict
def url_part(url: str, part: str) -> Any:
    """`scheme`, `host`, `port`, `path`, `query` or `fragment` of a URL; null where it has none."""
    try:
        found = urlsplit(url)
        value = found.hostname if part == "host" else getattr(found, part)
    except ValueError:
        return None
    return None if value in ("", None) else str(value)


@strict
def url_param(url: str, name: str) -> str | None:
    """The first value of a parameter in the query of a URL; null where it has none."""
    try:
        return parse_qs(urlsplit(url).query, keep_blank_values=True).get(name, [None])[0]
    except ValueError:
        return None


@strict
def levenshtein(a: str, b: str) -> int:
    """How many characters are put in, left out or replaced, at least, to make one of the other."""
    if len(a) < len(b):
        a, b = b, a
    before = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
        before = row
    return before[-1]


@strict
def soundex(text: str) -> str:
    """How a word in English sounds: its first letter and three digits, as in the census; a text
    without a letter of ASCII is the empty text.
    """
    letters = [c for c in text.upper() if "A" <= c <= "Z"]
    if not letters:
        return ""
    digits, last = "", _SOUNDS.get(letters[0], "")
    for letter in letters[1:]:
        sound = _SOUNDS.get(letter, "")
        if sound and sound != last:
            digits += sound
        # H and W stand between two letters as if they were not there.
        if letter not in "HW":
            last = sound
    return f"{letters[0]}{digits:0<3.3}"


@strict
def date_trunc(unit: str, at: Any) -> Any:
    """The beginning of the year, quarter, month, week (from Monday), day, hour, minute or second.

    Times are those of UTC.
    """
    if unit not in _UNITS:
        raise ValueError(f"{unit!r} is no unit: {', '.join(_UNITS)}")
    if isinstance(at, datetime):
        at = at.replace(
            hour=at.hour if unit in _TIMES else 0,
            minute=at.minute if unit in _TIMES[1:] else 0,
            second=at.second if unit in _TIMES[2:] else 0,
            microsecond=0,
        )
    match unit:
        case "year":
            return at.replace(month=1, day=1)
        case "quarter":
            return at.replace(month=3 * ((at.month - 1) // 3) + 1, day=1)
        case "month":
            return at.replace(day=1)
        case "week":
            return at - timedelta(days=at.weekday())
        case _:
            return at


# the types of calls


def _common(site: CallSite) -> ExprType:
    if not site.args:
        raise site.problem(f"`{site.name}` takes at least one argument")
    return joined(site.args, site.place)


def _extreme(site: CallSite) -> ExprType:
    site.count(2, 1000)
    return types.of_extreme(site)


def _truncated(site: CallSite) -> ExprType:
    site.check((constant(TEXT), _TIME))
    unit, kind = site.constant(0), site.args[1]
    if unit is not ... and unit not in _UNITS:
        raise site.problem(f"{unit!r} is no unit of time", f"there are {', '.join(_UNITS)}")
    if is_open(kind):
        return computed_of(kind)
    if kind == DATE and unit in _TIMES:
        raise site.problem(f"a date has no {unit}", "a timestamp has")
    return kind


def _url_part(site: CallSite) -> ExprType:
    site.check((TEXT, constant(TEXT)))
    part = site.constant(1)
    if part not in (..., *_URL_PARTS):
        raise site.problem(f"{part!r} is no part of a URL", f"there are {', '.join(_URL_PARTS)}")
    return STRING


# what is made of constants at most


def _distance(limits: Budget, args: list[Any]) -> None:
    if all(isinstance(a, str) for a in args) and len(args) == 2:
        limits.charge(60 * len(args[0]) * len(args[1]))


def _content(limits: Budget, args: list[Any]) -> None:
    limits.read(*args)


DATA_FUNCTIONS: Mapping[str, LibraryFunction] = {
    "coalesce": LibraryFunction(coalesce, _common),
    "greatest": LibraryFunction(greatest, _extreme),
    "least": LibraryFunction(least, _extreme),
    "try_int": LibraryFunction(try_int, LONG, (TEXT,)),
    "try_float": LibraryFunction(try_float, DOUBLE, (TEXT,)),
    "try_date": LibraryFunction(try_date, DATE, (TEXT,)),
    "sha256": LibraryFunction(sha256, STRING, (_CONTENT,), cost=_content),
    "md5": LibraryFunction(md5, STRING, (_CONTENT,), cost=_content),
    "crc32": LibraryFunction(crc32, LONG, (_CONTENT,), cost=_content),
    "base64_encode": LibraryFunction(base64_encode, STRING, (_CONTENT,), cost=_content),
    "base64_decode": LibraryFunction(base64_decode, BINARY, (TEXT,), cost=_content),
    "uuid5": LibraryFunction(uuid5, STRING, (TEXT, TEXT), cost=_content),
    "url_part": LibraryFunction(url_part, _url_part, cost=_content),
    "url_param": LibraryFunction(url_param, STRING, (TEXT, TEXT), cost=_content),
    "levenshtein": LibraryFunction(levenshtein, LONG, (TEXT, TEXT), cost=_distance),
    "soundex": LibraryFunction(soundex, STRING, (TEXT,), cost=_content),
    "date_trunc": LibraryFunction(date_trunc, _truncated),
    **REGEXP_FUNCTIONS,
}
"""By name; Spark runs them in Python."""


class MathModule:
    """What a text program sees as `math`: a name with functions."""


MathModule.__name__ = "math"


def _no_call(site: CallSite) -> ExprType:
    raise site.problem("`math` is no function", "such as `math.sqrt(x)`")


MATH = LibraryFunction(MathModule, _no_call)
MATH_CONSTANTS: Mapping[str, float] = {
    f"math.{name}": getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")
}
