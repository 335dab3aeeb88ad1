"""Texts with a format: numbers and times, JSON, digests and encodings."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal as DecimalValue
from decimal import InvalidOperation
from functools import lru_cache
from typing import Any
from uuid import UUID
from uuid import uuid5 as named_uuid

from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import ExprType, as_item, is_open
from hydro_core.functions.library import entry
from hydro_core.functions.library.entry import (
    ANYTHING,
    KNOWN_TEXT,
    KNOWN_WHOLE,
    TEXT,
    Budget,
    CallSite,
    Column,
    Expression,
    Library,
    Parameter,
    optional,
)
from hydro_core.functions.library.texts import all_of, characters
from hydro_core.functions.library.times import PLAIN_DATE, plain_date, strptime
from hydro_core.types import json as items
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    Array,
    Decimal,
    ItemType,
    Row,
    Tuple,
)
from hydro_core.types.routing import SEED, bytes_hashed
from hydro_core.types.values import LONG_MAX, LONG_MIN, ValueProblem, conform, to_item

# Parsers that give null for an invalid text: forms of `int`, `float` and so on that do not fail.


PARSING = Library()
_YES, _NO = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_MOST_DIGITS = 38
_FORM = optional(KNOWN_TEXT)
_DIGITS = optional(KNOWN_WHOLE)


# the types of calls


def _decimal(site: CallSite) -> ExprType:
    precision, scale = (
        site.constant(i) if len(site.args) > i else default for i, default in ((1, 38), (2, 18))
    )
    if not isinstance(precision, int) or not isinstance(scale, int):
        cure = "write them as they are: `try_decimal(text, 10, 2)`"
        raise site.problem("the digits of a decimal are constants", cure)
    if not 1 <= precision <= _MOST_DIGITS or not 0 <= scale <= precision:
        cure = "a decimal has 1 to 38 digits, not more of them after the point"
        raise site.problem(f"there is no decimal({precision},{scale})", cure)
    return Decimal(precision, scale)


# Spark's expressions


def _int(F: Any, text: Column) -> tuple[Column, Column]:
    """A number in plain digits; null of a text without digits, or with any other character.

    Python computes numbers with underscores, digits beyond ASCII, and many digits.
    """
    digits, blanks = all_of("isdecimal"), all_of("isspace")
    plain = F.rlike(text, F.lit("\\A[ \\t\\n]*[+-]?[0-9]{1,18}[ \\t\\n]*\\z"))
    found = F.when(plain, F.btrim(text, F.lit(" \t\n")).try_cast("long"))
    none = ~F.rlike(text, F.lit(f"[{digits}]")) | F.rlike(text, F.lit(f"[^{digits}{blanks}+_-]"))
    return found, plain | none


def _date(F: Any, text: Column, form: str | None = None) -> tuple[Column, Column] | None:
    """A plain date; null of a text of another length, or with other characters.

    Python computes weeks, and dates without hyphens.
    """
    if form is not None:
        return None
    plain = F.rlike(text, F.lit(PLAIN_DATE))
    none = ~F.length(text).isin(7, 8, 10) | F.rlike(text, F.lit("[^0-9W-]"))
    return plain_date(F, text), plain | none


def _boolean(F: Any, text: Column) -> tuple[Column, Column]:
    """The letters of these words have no upper case beyond ASCII."""
    word = F.lower(F.btrim(text, F.lit("".join(characters("isspace")))))
    found = F.when(word.isin(*_YES), F.lit(True)).when(word.isin(*_NO), F.lit(False))
    return found, F.lit(True)


# Functions that programs call.


@PARSING.strict(LONG, TEXT, column=_int)
def try_int(text: str) -> int | None:
    """The whole number of a text; null if it is none, or exceeds 64 bits."""
    try:
        found = int(text)
    except ValueError:
        return None
    return found if LONG_MIN <= found <= LONG_MAX else None


@PARSING.strict(DOUBLE, TEXT)
def try_float(text: str) -> float | None:
    """The number of a text; null if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


@PARSING.strict(_decimal, TEXT, _DIGITS, _DIGITS)
def try_decimal(text: str, precision: int = 38, scale: int = 18) -> DecimalValue | None:
    """The decimal of a text, rounded half to even; null if it is none, or has more digits."""
    try:
        number = DecimalValue(text)
        fits = number.is_finite() and number.adjusted() < _MOST_DIGITS
        found: DecimalValue | None = conform(number, Decimal(precision, scale)) if fits else None
    except (InvalidOperation, ValueProblem):
        return None
    return found


@PARSING.strict(BOOLEAN, TEXT, column=_boolean)
def try_boolean(text: str) -> bool | None:
    """True of `true`, `t`, `yes`, `y`, `1`, false of `false`, `f`, `no`, `n`, `0`; else null."""
    word = text.strip().lower()
    return True if word in _YES else False if word in _NO else None


@PARSING.strict(DATE, TEXT, _FORM, column=_date, cost=entry.form)
def try_date(text: str, form: str | None = None) -> date | None:
    """The date of a text in ISO 8601 or in a form such as `%d.%m.%Y`; null if it is none."""
    try:
        return date.fromisoformat(text) if form is None else strptime(text, form).date()
    except ValueError:
        return None


@PARSING.strict(TIMESTAMP, TEXT, _FORM, cost=entry.form)
def try_timestamp(text: str, form: str | None = None) -> datetime | None:
    """The timestamp of a text in ISO 8601 or in a form such as `%d.%m.%Y %H:%M`; null if it is
    none.

    A text without a zone is in UTC.
    """
    try:
        found = datetime.fromisoformat(text) if form is None else strptime(text, form)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


# JSON in texts: read by a schema that is constant, and written.


JSON = Library()
_STEP = re.compile(r"""\.([^.\[\]'"*?@$()]+)|\[([0-9]+)\]|\['([^']*)'\]|\["([^"]*)"\]""")


# the types of calls


def _by_schema(site: CallSite) -> ExprType:
    schema = site.constant(1)
    if not isinstance(schema, str):
        cure = "write it as it is: types are known before anything runs"
        raise site.problem(f"`{site.name}` takes a schema that is constant", cure)
    try:
        return _type_of(schema)
    except TypeProblem as problem:
        place = site.exprs[1].place
        raise site.problem(problem.message, problem.help, place) from None


def _by_path(site: CallSite) -> ExprType:
    path = site.constant(1)
    if isinstance(path, str):
        try:
            _steps(path)
        except ValueError as problem:
            cure = "such as `$.user.tags[0]` or `$['first name']`"
            raise site.problem(str(problem), cure, site.exprs[1].place) from None
    return STRING


def _of_item(site: CallSite) -> ExprType:
    kind = site.args[0]
    if not is_open(kind):
        as_item(kind, site.place)
    return STRING


# Functions that programs call.


@JSON.strict(_by_schema, TEXT, KNOWN_TEXT, cost=entry.per_character())
def parse_json(text: str, schema: str) -> Any:
    """The item of a text in JSON, of a schema such as `user string, tags array<string>`.

    A column that the text lacks is null, a key that the schema lacks is left out; a text that is no
    JSON, or does not fit, fails.
    """
    try:
        to = _type_of(schema)
        return items.from_json(_declared(items.parse_json(text), to), to)
    except ValueProblem as problem:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise ValueError(f"{shown!r} is no JSON of {schema!r}: {problem}") from None


@JSON.strict(_by_schema, TEXT, KNOWN_TEXT, cost=entry.per_character())
def try_parse_json(text: str, schema: str) -> Any:
    """As `parse_json`; null where it would fail."""
    try:
        return parse_json(text, schema)
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _type_of(schema: str) -> ItemType:
    return parse_ddl(schema)


def _declared(value: Any, to: ItemType) -> Any:
    """The value without the columns that the type lacks."""
    match value, to:
        case dict(), Row(fields):
            return {f.name: _declared(value[f.name], f.type) for f in fields if f.name in value}
        case list(), Array(element):
            return [_declared(part, element) for part in value]
        case list(), Tuple(fields) if len(value) == len(fields):
            return [_declared(part, kind) for part, kind in zip(value, fields, strict=True)]
        case _:
            return value


@JSON.strict(_by_path, TEXT, KNOWN_TEXT, cost=entry.per_character())
def get_json_object(text: str, path: str) -> str | None:
    """The value in JSON at a path such as `$.user.tags[0]`: a text as it is, other values as JSON;
    null where there is nothing, no JSON, or half of a surrogate pair.
    """
    try:
        value = items.parse_json(text)
    except ValueProblem:
        return None
    for step in _steps(path):
        match value, step:
            case dict(), str() if step in value:
                value = value[step]
            case list(), int() if step < len(value):
                value = value[step]
            case _:
                return None
    found = value if isinstance(value, str | None) else items.as_written(value, compact=True)
    try:
        to_item(found)
    except ValueProblem:
        return None  # half of a surrogate pair, which is escaped in JSON
    return found


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[str | int, ...]:
    """The names and positions of a path."""
    steps, at = list[str | int](), 1
    while path.startswith("$") and at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            break
        name, place, *quoted = found.groups()
        steps.append(int(place) if place else next(q for q in (name, *quoted) if q is not None))
        at = found.end()
    if not path.startswith("$") or at < len(path):
        raise ValueError(f"{path!r} is no path")
    return tuple(steps)


@JSON.strict(_of_item, ANYTHING, cost=entry.shown)
def to_json(value: Any) -> str:
    """The text in JSON of any item, without spaces.

    A row is an object; a tuple and an array are arrays; dates, timestamps and decimals are texts.
    """
    return _written(items.to_json(to_item(value)))


def _written(value: Any) -> str:
    return items.json_text(value, compact=True)


# Digests, check sums, base 64 and named UUIDs; of a text, they are those of its UTF-8.


HASHES = Library()
_CONTENT = Parameter("a string, or bytes", lambda kind: kind in (STRING, BINARY))


def _hashed(limits: Budget, args: list[Any]) -> None:
    limits.charge(60 * sum(len(a) for a in args if isinstance(a, str | bytes)))


def _xxhash64(F: Any, content: Column, seed: int = SEED) -> Column | None:
    return F.xxhash64(content) if seed == SEED else None


def _base64(F: Any, content: Column) -> Column:
    """Spark may insert line breaks, which are no characters of base 64."""
    return F.replace(F.base64(content.cast("binary")), F.lit("\r\n"), F.lit(""))


def _digest(name: str, column: Expression, *, secret: bool) -> Callable[..., str | None]:
    """The function of a digest, by its name."""

    def digest(content: str | bytes) -> str:
        return hashlib.new(name, _bytes(content), usedforsecurity=secret).hexdigest()

    none = "" if secret else ", which is no secret's"
    digest.__doc__ = f"The digest in hexadecimal digits{none}; of a text, that of its UTF-8."
    digest.__name__ = digest.__qualname__ = name
    return HASHES.strict(STRING, _CONTENT, column=column, cost=entry.content)(digest)


sha1 = _digest("sha1", lambda F, x: F.sha1(x), secret=False)
sha256 = _digest("sha256", lambda F, x: F.sha2(x, 256), secret=True)
sha512 = _digest("sha512", lambda F, x: F.sha2(x, 512), secret=True)
md5 = _digest("md5", lambda F, x: F.md5(x), secret=False)


@HASHES.strict(LONG, _CONTENT, column=lambda F, x: F.crc32(x), cost=entry.content)
def crc32(content: str | bytes) -> int:
    """The check sum, not negative; of a text, that of its UTF-8."""
    return zlib.crc32(_bytes(content))


@HASHES.strict(LONG, _CONTENT, optional(KNOWN_WHOLE), column=_xxhash64, cost=_hashed)
def xxhash64(content: str | bytes, seed: int = SEED) -> int:
    """The hash as a long, which may be negative; with this seed it is that of Spark."""
    found = bytes_hashed(_bytes(content), seed)
    return found - 2**64 if found >= 2**63 else found


@HASHES.strict(STRING, _CONTENT, column=_base64, cost=entry.content)
def base64_encode(content: str | bytes) -> str:
    """The content in the letters of base 64; of a text, its UTF-8."""
    return base64.b64encode(_bytes(content)).decode("ascii")


@HASHES.strict(BINARY, TEXT, cost=entry.content)
def base64_decode(text: str) -> bytes:
    """The bytes of a text in base 64; another text fails."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as problem:
        raise ValueError(f"{text[:40]!r} is not in base 64: {problem}") from None


@HASHES.strict(STRING, TEXT, TEXT, cost=entry.content)
def uuid5(namespace: str, name: str) -> str:
    """The UUID of a name within a namespace, which is a UUID."""
    return str(named_uuid(UUID(namespace), name))


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
